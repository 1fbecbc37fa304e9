"""Redaction: which arguments in a job's data may not be shown, and the data with their values left out.

The names travel with the job, in the headers of its data, so any process knows them, also one without the job type:

    {"to": "ada", "card": "4111 1111", "$headers": {"redact": "card"}}   is shown with "card": "[redacted]"

Several names are separated by spaces. Data that are not such an object, because a serializer encrypts or compresses
them, are sealed: `{"$sealed": "..."}`, and nothing of them is shown.

`shown` is the one way from a reply to what a person or a program without a lease sees: the pages, `qmodel top`, the
command line and HTTP show no reply without it. It looks at every text of a reply, so that it need not know which field
has data. Jobs that are handed out with a lease (`pop`) have their data as they are, and so have the replies of the
Python client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

HEADERS: Final = "$headers"
"""The key of headers in a job's data: they travel with a job besides its arguments, for example a trace id. No argument
can have this name."""

NAMES: Final = "redact"
"""The header with the names of the redacted arguments, separated by spaces."""

SEALED: Final = "$sealed"
"""The key of data that may not be shown at all: the text that the serializer made."""

REDACTED: Final = "[redacted]"
"""What is shown in place of a value."""

SHORTEST: Final = 3
"""The fewest characters of a value that is also redacted in messages: shorter ones are part of many words."""

LEASED: Final = frozenset({"pop", "pop_any", "complete_and_pop"})
"""The operations that hand out jobs with a lease: their callers perform the jobs, and get the data as they are."""


# ---- making data


def sealed(text: str, names: Iterable[str]) -> str:
    """Wrap data in which the names of redacted arguments cannot be read; other data are returned as they are."""
    data = _object(text)
    if data is not None and set(names_in(data)) >= set(names):
        return text
    return json.dumps({SEALED: text}, ensure_ascii=False, separators=(",", ":"))


def opened(text: str) -> str:
    """Give the data that `sealed` wrapped; other data are returned as they are."""
    data = _object(text) if SEALED in text else None
    inner = data.get(SEALED) if data is not None and len(data) == 1 else None
    return inner if isinstance(inner, str) else text


def names_in(data: Any) -> tuple[str, ...]:
    """Give the names of the arguments that are redacted in decoded data."""
    headers = data.get(HEADERS) if isinstance(data, dict) else None
    given = headers.get(NAMES) if isinstance(headers, dict) else None
    return tuple(given.split()) if isinstance(given, str) else ()


# ---- showing


def redacted(text: str) -> str:
    r"""Replace the values of redacted arguments in a job's data; any other text is returned as it is.

    >>> redacted('{"to":"ada","card":"4111","$headers":{"redact":"card"}}')
    '{"to":"ada","card":"[redacted]","$headers":{"redact":"card"}}'
    >>> redacted('{"$sealed":"eJyr..."}'), redacted('{"to":"ada"}')
    ('{"$sealed":"[redacted]"}', '{"to":"ada"}')
    """
    marked = (HEADERS in text and NAMES in text) or SEALED in text
    if not (marked or "\\u" in text) or text.lstrip()[:1] != "{":  # JSON may write any character as an escape
        return text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(REDACTED) if marked else text  # perhaps redacted arguments, damaged or nested too deeply
    found = {name for name in names_in(data) if name in data} | ({SEALED} & data.keys())
    if not found:
        return text
    return _text({name: REDACTED if name in found else value for name, value in data.items()})


def is_shown(text: str) -> bool:
    """Whether a text is data with values left out: it must not be stored in place of the original."""
    return REDACTED in text and redacted(text) == _text(_object(text))


def shown(reply: Any) -> Any:
    """Redact every text in a reply: a record, a text, or a list or tuple of them. Other values stay as they are."""
    if isinstance(reply, str):
        return _deep(reply) if HEADERS in reply or SEALED in reply or "\\u" in reply else reply
    if isinstance(reply, list):
        return [shown(one) for one in reply]
    if not isinstance(reply, tuple):
        return reply
    items = list(reply)
    made = [shown(one) for one in items]
    if all(one is other for one, other in zip(made, items, strict=True)):
        return reply
    return type(reply)(*made) if hasattr(reply, "_fields") else type(reply)(made)


def replied(op: Any, reply: Any) -> Any:
    """Redact the reply of an operation, unless it hands out jobs with a lease.

    A search leaves out jobs that match only by what is not shown: otherwise it could be guessed.
    """
    if op.spec.name in LEASED:
        return reply
    found = shown(reply)
    if op.spec.name != "search" or op.text is None or not hasattr(found, "jobs"):
        return found
    return found._replace(jobs=tuple(job for job in found.jobs if op.text in job.data))


def scrubbed(text: str, values: Iterable[str]) -> str:
    """Replace redacted values in a message or a log line.

    >>> scrubbed("card 4111 was declined", ["4111"])
    'card [redacted] was declined'
    """
    found = sorted({one for one in values if len(one) >= SHORTEST}, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, found)), REDACTED, text) if found else text


def spellings(value: Any) -> set[str]:
    """Give the texts that a redacted value may appear as in a message: its parts as they are, in Python and in JSON."""
    if isinstance(value, dict):
        return set().union(*(spellings(one) for one in value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return set().union(*(spellings(one) for one in value))
    if isinstance(value, bytes | bytearray):
        return spellings(value.decode(errors="backslashreplace"))
    if value is None or isinstance(value, bool):
        return set()
    if not isinstance(value, str):
        return {str(value), repr(value)}
    return {value, repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}


def _deep(text: str) -> str:
    """Redact data, also those within a text in JSON, as the calls of a journal have them."""
    plain = redacted(text)
    if plain != text or text.lstrip()[:1] not in ("{", "["):
        return plain
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    made = _within(found)
    return text if made == found else _text(made)


def _within(value: Any) -> Any:
    """Redact the texts within decoded JSON."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, list):
        return [_within(one) for one in value]
    if isinstance(value, dict):
        return {name: _within(one) for name, one in value.items()}
    return value


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(value, separators=(",", ":"))
    return text
