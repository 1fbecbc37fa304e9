"""A driver as one of many concurrent clients, for `qmodel.conformance.concurrency.contention`."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from qmodel.conformance.concurrency.calls import Lost, Skipped
from qmodel.conformance.kit.driver import Driver
from qmodel.conformance.subjects.base import Step
from qmodel.contract import replies
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal


class ByDriver:
    """Executes operations by a driver, in a namespace on a server.

    An operation that the driver skips counts as not called. After a crash it is unknown whether the operation was
    executed, as after a lost reply.
    """

    def __init__(self, command: Sequence[str], url: str, prefix: str) -> None:
        self._driver = Driver(command)
        self._driver.start()
        self._driver.reset(url, prefix)

    def execute(self, op: Operation, now: int) -> Any:
        """Execute one operation."""
        outcome = self._driver.step(Step(now, op))
        if "skip" in outcome:
            return Skipped(outcome["skip"])
        if "crash" in outcome:
            return Lost(outcome["crash"])
        if "refusal" in outcome:
            code, *facts = outcome["refusal"]
            return Refusal(code, tuple(facts))
        return read(replies.SHAPES[op.spec.reply], outcome["reply"])

    def close(self) -> None:
        """End the driver."""
        self._driver.close()


def read(hint: Any, value: Any) -> Any:
    """Convert a reply from JSON to its record. Any other value stays as it is: a difference."""
    if value is None:
        return None
    if get_origin(hint) in (Union, types.UnionType):
        return read(next((one for one in get_args(hint) if _is_record(one)), None), value)
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(read(get_args(hint)[0], one) for one in value)
    if _is_record(hint) and isinstance(value, dict) and value.keys() == set(hint._fields):
        hints = get_type_hints(hint)
        return hint(**{name: read(hints[name], one) for name, one in value.items()})
    return value


def _is_record(hint: Any) -> bool:
    return hasattr(hint, "_fields")
