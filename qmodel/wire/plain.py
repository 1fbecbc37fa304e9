"""Replies as values of JSON's types, for the command line and HTTP."""

from __future__ import annotations

from typing import Any

from qmodel.contract import replies
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal


def plain(reply: Any) -> Any:
    """Convert a reply to JSON's types: records become objects with the names of qmodel.contract.replies, facts by name.

    A token becomes a string of digits, because it is longer than the numbers of JavaScript.

    >>> plain(replies.Drained(1, 2))
    {'canceled': 1, 'left': 2}
    """
    if isinstance(reply, Refusal):
        return {"refused": reply.code, "facts": reply.named, "sentence": reply.sentence}
    if isinstance(reply, Event | replies.Stage):
        return {**reply._asdict(), "facts": _named(reply.named)}
    if isinstance(reply, replies.Sample):
        return {**_record(reply), "variance": reply.variance, "std": reply.std}
    if hasattr(reply, "_asdict"):
        return _record(reply)
    if isinstance(reply, tuple | list):
        return [plain(one) for one in reply]
    return reply


def _record(reply: Any) -> dict[str, Any]:
    return _named({name: plain(value) for name, value in reply._asdict().items()})


def _named(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"token": str(found["token"])} if "token" in found else found
