"""Read and write the dialect's numbers, times and JSON, the same in Python and in Lua.

A number has the form of a JSON number, with at most 40 characters: no `0x10`, no `inf`, no blanks. Redis's cjson
accepts more than JSON, prints 14 digits, and does not distinguish an empty list from an empty object, so it is not
used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

LONGEST = 40
"""The maximum length of a number, in characters."""

WHOLE = 14
"""The maximum length of a whole number that stands for a text."""

MOST = 10.0**14
DEPTH = 128
"""The maximum nesting depth of JSON."""

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_SHOWN = re.compile(r"[ -~]{0,60}\Z")


# ---- numbers and times


def number(text: str | None) -> float | None:
    """Parse a number, or give None."""
    return float(text) if text is not None and len(text) <= LONGEST and _NUMBER.match(text) else None


def whole(text: str | None) -> int | None:
    """Parse a whole number below 10^14 in any notation (`10`, `10.0`, `1e1`), or give None."""
    found = number(text)
    return int(found) if found is not None and abs(found) < MOST and found == int(found) else None


def milliseconds(seconds: float) -> int:
    """Convert seconds below 10^14 to whole milliseconds."""
    return int((seconds * 1000 + 0.5) // 1)


def seconds(moment: int) -> int | float:
    """Convert milliseconds to seconds, for JSON."""
    return moment // 1000 if moment % 1000 == 0 else moment / 1000


def rounded(value: float) -> Raw:
    """Write a number with 14 digits, for JSON: from 10^14 on with an exponent, as the documents' servers do."""
    return Raw(f"{value:.14g}")


# ---- JSON


def _too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= DEPTH:
        return False
    depth = deepest = 0
    for character in _STRING.sub("", text):
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest > DEPTH


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _read(text: str) -> Any:
    """Parse JSON, with its numbers as text. Raises ValueError if it is not valid."""
    if _too_deep(text):
        raise ValueError("too deep")
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)


def is_json(text: str | None) -> bool:
    """Whether a text is JSON (RFC 8259)."""
    try:
        _read(text or "")
    except ValueError:
        return False
    return True


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    return text.lstrip(" \t\r\n").startswith("{") and is_json(text)


def strings(text: str | None) -> tuple[str, ...] | None:
    """Parse a JSON list of texts and whole numbers (`{}` counts as an empty list), or give None."""
    if text is None or not text.lstrip(" \t\r\n").startswith(("[", "{")):
        return None
    try:
        found = json.loads(text, parse_int=_whole, parse_float=float, parse_constant=_refuse) if is_json(text) else None
        if found == {}:
            return ()
        if type(found) is not list or not all(type(one) is str for one in found):
            return None
        for one in found:
            one.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return tuple(found)


def _whole(text: str) -> str | int:
    """Give a whole number as text; 0 for one that is too long, so that the list is refused."""
    return text if len(text) <= WHOLE and text != "-0" else 0


NO_KLASS = "(none)"
"""The engine's klass of jobs of qless with an empty one, as an anonymous class of Ruby gives it."""


def stored_klass(klass: str) -> str:
    """The engine's klass of one of qless."""
    return klass or NO_KLASS


def shown_klass(klass: str) -> str:
    """The klass of qless of one of the engine."""
    return "" if klass == NO_KLASS else klass


def dump(value: Any) -> str:
    """Write a value as JSON, without blanks; an empty list as `{}`, as Redis does."""
    if value in ((), []):
        return "{}"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Raw(str):
    """A text that already is JSON."""


def record(pairs: Iterable[tuple[str, Any]]) -> Raw:
    """Write a JSON object from names and values; values may be Raw."""
    return Raw("{" + ",".join(f"{dump(name)}:{_dumped(value)}" for name, value in pairs) + "}")


def listed(values: Iterable[Any]) -> Raw:
    """Write a JSON list of values, an empty one as `{}`; values may be Raw."""
    parts = list(map(_dumped, values))
    return Raw("[" + ",".join(parts) + "]" if parts else "{}")


def _dumped(value: Any) -> str:
    return value if type(value) is Raw else dump(value)


def shown(value: str | None) -> str:
    """Write an argument for an error message: only short printable ones are repeated."""
    if value is None:
        return "nil"
    return value if _SHOWN.match(value) else "..."
