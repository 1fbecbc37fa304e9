"""Queues, workers and configuration."""

from __future__ import annotations

from qmodel.contract.arguments import Milliseconds, Option, QueueNames, Reason, RequestId, Value, WorkerNames
from qmodel.contract.operations.spec import Operation, operation


@operation("number", "memo", "LIMIT_REACHED", "paused unpaused")
class Pause(Operation):
    """Stop handing out jobs of queues, at once; replies how many were not paused before.

    A queue is paused as long as any reason is there. Each has a pause of its own, which a second one for the same
    reason replaces; with `for_ms` it ends by itself after that time, else with `unpause`. A queue has at most 10.
    """

    queues: QueueNames
    reason: Reason = "by hand"
    for_ms: Milliseconds = 0
    request: RequestId = ""


@operation("number", "memo", "", "unpaused")
class Unpause(Operation):
    """End the pauses of queues, or with `reason` only those for it; replies how many hand out jobs again by that."""

    queues: QueueNames
    reason: Reason | None = None
    request: RequestId = ""


@operation("number", "memo", "QUEUE_NOT_EMPTY", "forgotten")
class Forget(Operation):
    """Take empty queues off the list, with their pauses; replies how many were on it, or paused."""

    queues: QueueNames
    request: RequestId = ""


@operation("number", "memo", "", "deregistered")
class Deregister(Operation):
    """Take workers off the list; leases that they hold stay valid. Replies how many were on it."""

    workers: WorkerNames
    request: RequestId = ""


@operation("settings", "read")
class Config(Operation):
    """List the options, their values, and which of them are set."""


@operation("number", "read", "UNKNOWN_OPTION")
class ConfigGet(Operation):
    """Show the value of an option."""

    option: Option


@operation("number", "memo", "UNKNOWN_OPTION BAD_VALUE", "configured")
class ConfigSet(Operation):
    """Set an option; replies its value."""

    option: Option
    value: Value
    request: RequestId = ""


@operation("number", "memo", "UNKNOWN_OPTION", "configured")
class ConfigUnset(Operation):
    """Set an option back to its default; replies that."""

    option: Option
    request: RequestId = ""
