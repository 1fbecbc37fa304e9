"""Texts in little room: ids, messages, and the data of jobs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    r"""Replace the control characters that a terminal would obey: data and messages may come from anybody.

    >>> clean("red: \x1b[31m, and a bell: \x07")
    'red: �[31m, and a bell: �'
    """
    return _CONTROL.sub("�", text)


def short(text: str, most: int = 20) -> str:
    """Shorten a long id to its beginning and its end.

    >>> short("invoice-7"), short("758147edfd385af3584062f55ed4672a"), short("758147edfd385af3584062f55ed4672a", 14)
    ('invoice-7', '758147edfd3…5ed4672a', '758147ed…4672a')
    """
    if len(text) <= most:
        return text
    end = most * 2 // 5
    return f"{text[: most - end - 1]}…{text[-end:]}"


def gist(message: str, most: int = 80) -> str:
    r"""Give the line of a failure's message that says most: the last one of a traceback, else the first.

    >>> gist("Traceback (most recent call last):\n  File ...\nValueError: no such address\n")
    'ValueError: no such address'
    >>> gist("The card was declined.\nSee the log.")
    'The card was declined.'
    """
    lines = [line.strip() for line in clean(message.replace("\r", "")).splitlines() if line.strip()]
    if not lines:
        return ""
    notes = (line for line in reversed(lines) if not line.startswith(("qmodel:", "^", "~")))
    line = next(notes, lines[-1]) if lines[0].startswith("Traceback") else lines[0]
    return line if len(line) <= most else line[: most - 1] + "…"


CUT = 1000
"""The bytes from which on a message of an attempt may be cut at its beginning: the engine keeps the last 1024."""


def why(group: str, message: str) -> str:
    r"""Say on one line why an attempt ended: its failure group, and the line of its message that says most.

    >>> why("ValueError", "Traceback (most recent call last):\n  ...\nValueError: no"), why("mine", "the card\nexpired")
    ('ValueError: no', 'mine: the card')
    """
    line = gist(message if len(message.encode()) < CUT else f"Traceback\n{message}", 200)
    return line if line.startswith(group) else f"{group}: {line}".removesuffix(": ")


def on_a_line(stage: str, facts: Mapping[str, object]) -> str:
    """Write the facts of a stage of a history on one line."""
    if stage == "raised":
        return why(str(facts["group"]), str(facts["message"]))
    return " ".join(f"{name}={fact}" for name, fact in facts.items() if fact != "")


def preview(text: str, most: int = 160) -> str:
    """Give the beginning of a long text, on one line.

    >>> preview("[1,\\n 2]"), preview("x" * 10, 4)
    ('[1, 2]', 'xxxx…')
    """
    return " ".join(text[: most * 2].split())[:most] + ("…" if len(text) > most else "")


def arguments(data: str, most: int = 60) -> str:
    r"""Give the beginning of a job's data on one line, for a list: what distinguishes the job from others of its type.

    >>> arguments('{"to": "ada@example.com",\n "n": 1}', 24), arguments("null"), arguments("\x1b[2J")
    ('{"to": "ada@example.com"…', '', '�[2J')
    """
    return "" if data in ("", "null", "{}", "[]") else preview(clean(data[: most * 3]), most)


def pretty(text: str) -> str:
    r"""Indent a JSON object or array; give any other text as it is, and also JSON that Python would write as another
    value: it may be edited and stored again.

    >>> pretty("[1]"), pretty('{"a":1,"a":2}'), pretty("[1e400]")
    ('[\n  1\n]', '{"a":1,"a":2}', '[1e400]')
    """
    try:
        value = json.loads(text, parse_float=_same_number, object_pairs_hook=_all_fields)
        shown = json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else text
        shown.encode()
    except (ValueError, ArithmeticError, RecursionError):  # not JSON, too deep, another value, half of a surrogate
        return text
    return shown


def _same_number(text: str) -> float:
    found = float(text)
    if not math.isfinite(found) or Decimal(repr(found)) != Decimal(text):
        raise ValueError(text)
    return found


def _all_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is given twice")
    return found
