"""Compares what two sides answered to the same call: replies, kinds of errors, published messages."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

UNORDERED = ("dependents", "dependencies")
"""The lists of a job that the original reads from sets, whose order is by chance."""

TEXTS = ("get", "config.get", "put", "requeue", "queue.put", "recur", "queue.recurAtInterval")
"""Commands whose reply may be a plain text that looks like JSON."""


class Heard(NamedTuple):
    """The outcome of one call: its reply, or its error, and the messages that it published."""

    reply: Any
    error: str | None
    published: tuple[tuple[str, str], ...]


def kind(error: str) -> str:
    """Give what makes an error comparable: its sentence, or `internal` for what Lua or cjson itself says."""
    sentence = re.sub(r"^(ERR )?((Error running script|user_script).*?:\d+: )?(@?user_script: ?\d+: )?", "", error)
    sentence = re.sub(r"( script: [0-9a-f]{40}.*)$", "", sentence)
    sentence = re.sub(r"^(Cancel\(\): .* is a dependency of) .* but", r"\1 another but", sentence)  # any one of them
    found = re.match(r"[A-Z]\w*(?: On)?\(\): |[a-z.]+\(\): |Unknown command|Must provide|Arg \"now\"|Tag\(", sentence)
    return sentence if found else "internal"


def same_error(one: str, other: str) -> bool:
    """Whether two errors are of one kind; an error that Lua itself raised equals any."""
    left, right = kind(one), kind(other)
    return left == right or "internal" in (left, right)


def plain(value: Any) -> Any:
    """Reduce decoded JSON: no empty objects, no order of keys, no order of sets, no noise of floats."""
    if isinstance(value, dict):
        return {
            name: sorted(map(str, one)) if name in UNORDERED and one else plain(one) for name, one in value.items()
        } or []
    if isinstance(value, list):
        return [plain(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def same(left: Any, right: Any) -> bool:
    """Whether two reduced values are equal, but for the noise of floats."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-5)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def without(value: Any, names: Sequence[str]) -> Any:
    """Leave fields out of a decoded reply, wherever they stand."""
    if isinstance(value, dict):
        return {name: without(one, names) for name, one in value.items() if name not in names}
    return [without(one, names) for one in value] if isinstance(value, list) else value


def decoded(reply: Any) -> Any:
    """Decode a reply that is JSON, and reduce it; other texts stay."""
    if isinstance(reply, str) and reply[:1] in ("[", "{"):
        try:
            return plain(json.loads(reply))
        except ValueError:
            return reply
    return [decoded(one) for one in reply] if isinstance(reply, list) else reply


def messages(published: Sequence[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Reduce messages."""
    return [(channel, decoded(text)) for channel, text in published]


def difference(original: Heard, ours: Heard) -> str | None:
    """Describe how two outcomes differ, or give None."""
    if original.error is not None or ours.error is not None:
        if original.error is not None and ours.error is not None and same_error(original.error, ours.error):
            return None
        return f"original: {_said(original)}\nours:     {_said(ours)}"
    left, right = decoded(original.reply), decoded(ours.reply)
    if not same(left, right):
        return "\n".join(parts("reply", left, right))
    if messages(original.published) != messages(ours.published):
        return f"original published {list(original.published)}\nours published     {list(ours.published)}"
    return None


def _said(heard: Heard) -> str:
    return f"error {heard.error}" if heard.error is not None else f"reply {str(heard.reply)[:300]}"


def parts(where: str, left: Any, right: Any) -> list[str]:
    """Name the parts of two values that differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        names = dict.fromkeys([*left, *right])
        return [
            part
            for name in names
            if not same(left.get(name, "(nothing)"), right.get(name, "(nothing)"))
            for part in parts(f"{where}.{name}", left.get(name, "(nothing)"), right.get(name, "(nothing)"))
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return [part for at, (a, b) in pairs if not same(a, b) for part in parts(f"{where}[{at}]", a, b)]
    return [f"{where}: {_short(left)} in the original, {_short(right)} in ours"]


def _short(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(one, dict) and "jid" in one for one in value):
        return str([one["jid"] for one in value])
    return repr(value)[:300]
