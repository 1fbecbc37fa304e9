"""Read and compare the calls and outcomes of the journal, which `qmodel.wire.as_json` writes, by the million.

`msgspec` (the extra of that name, and part of `spark`) takes a fifth of the time of `json`. It writes a few values,
such as fractions, in another way. So an equal text proves an equal outcome; mismatches are re-encoded before they are
compared.
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
    """Choose the JSON decoder, and a fast encoder if there is one."""
    try:
        import msgspec
    except ImportError:
        return json.loads, None
    return msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


_decode, _encode = _codec()


def read_call(call: str) -> tuple[int, Operation]:
    """Read the moment and the operation of a call. Raises ValueError for anything else."""
    try:
        return as_json.made(_decode(call))
    except Exception:
        return as_json.read(call)  # its error says what is wrong


def matches(found: Any, outcome: str) -> bool:
    """Say whether a reply or a Refusal is the recorded outcome."""
    kind = type(found)
    if _encode is not None and kind is not str and kind is not Refusal:  # json writes those quickly
        try:
            if f"{_BEGIN}{_encode(_plain(found, kind)).decode()}{_END}" == outcome:
                return True
        except (TypeError, ValueError):
            pass  # a text that is not valid in UTF-8
    return as_json.outcome(found) == outcome


_HISTORY = Job._fields.index("history")


def _plain(found: Any, kind: type) -> Any:
    """Convert a reply with jobs for msgspec, which would otherwise write the inner form of a history."""
    if kind is tuple:
        return [_job(job) for job in found] if found and type(found[0]) is Job else found
    if kind is CompletedAndPopped:
        return [*found[:-1], [_job(job) for job in found.jobs]]
    return found


def _job(job: Job) -> list[Any]:
    fields: list[Any] = [*job]
    fields[_HISTORY] = job.history.kept() if type(job.history) is Stages else job.history
    return fields
