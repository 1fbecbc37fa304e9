"""Calls and outcomes of the journal as `qmodel.wire.as_json` writes them, read and compared by the million.

With `msgspec` (the extra of that name, and part of `spark`) that takes a fifth of the time. It writes a few things
otherwise, such as fractions: so what it says is equal is equal, and what it says is not is written once more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import CompletedAndPopped, Job, Stages
from qmodel.wire import as_json

_BEGIN, _END = '{"reply":', "}"


def _codec() -> tuple[Callable[[str], Any], Callable[[Any], bytes] | None]:
    """What reads JSON, and what writes it quickly."""
    try:
        import msgspec
    except ImportError:
        return json.loads, None
    return msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


_decode, _encode = _codec()


def read(call: str) -> tuple[int, Operation]:
    """The moment and the operation of a call; raises ValueError for what is none."""
    try:
        return as_json.made(_decode(call))
    except Exception:
        return as_json.read(call)  # which says what is wrong with it


def equal(found: Any, outcome: str) -> bool:
    """Whether a reply, or a Refusal, is the outcome that was written."""
    kind = type(found)
    if _encode is not None and kind is not str and kind is not Refusal:  # those are written quickly anyway
        try:
            if f"{_BEGIN}{_encode(_plain(found, kind)).decode()}{_END}" == outcome:
                return True
        except (TypeError, ValueError):
            pass  # a text that UTF-8 cannot have
    return as_json.outcome(found) == outcome


_HISTORY = Job._fields.index("history")


def _plain(found: Any, kind: type) -> Any:
    """A reply with jobs as what msgspec writes as it is: of a history it would see how that is kept."""
    if kind is tuple:
        return [_job(job) for job in found] if found and type(found[0]) is Job else found
    if kind is CompletedAndPopped:
        return [*found[:-1], [_job(job) for job in found.jobs]]
    return found


def _job(job: Job) -> list[Any]:
    fields: list[Any] = [*job]
    fields[_HISTORY] = job.history.kept() if type(job.history) is Stages else job.history
    return fields
