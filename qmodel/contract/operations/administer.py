"""Queues, workers and configuration."""

from __future__ import annotations

from qmodel.contract.arguments import Milliseconds, NewEpoch, Option, QueueNames, Reason, RequestId, Value, WorkerNames
from qmodel.contract.operations.spec import Operation, operation


@operation("number", "memo", "LIMIT_REACHED", "paused unpaused")
class Pause(Operation):
    """Stop handing out jobs of queues, at once; replies how many were not paused before.

    A queue is paused as long as it has any pause. It has at most 10, one for each reason; a second pause for the same
    reason replaces the first. With `for_ms` a pause ends by itself after that time, otherwise with `unpause`.
    """

    queues: QueueNames
    reason: Reason = "by hand"
    for_ms: Milliseconds = 0
    request: RequestId = ""


@operation("number", "memo", "", "unpaused")
class Unpause(Operation):
    """End the pauses of queues, with `reason` only those for it; replies how many queues hand out jobs again."""

    queues: QueueNames
    reason: Reason | None = None
    request: RequestId = ""


@operation("number", "memo", "QUEUE_NOT_EMPTY", "forgotten")
class Forget(Operation):
    """Take empty queues off the list, with their pauses; replies how many were listed or paused."""

    queues: QueueNames
    request: RequestId = ""


@operation("number", "memo", "", "deregistered")
class Deregister(Operation):
    """Take workers off the list; their leases stay valid. Replies how many were listed."""

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
    """Reset an option to its default; replies the default."""

    option: Option
    request: RequestId = ""


@operation("number", "same", "EPOCH_PASSED", "epoch_begun")
class BeginEpoch(Operation):
    """Begin an epoch, greater than the current one; replies it. The current epoch again changes nothing.

    Tokens and ids of events after it differ from all earlier ones. A server begins an epoch by itself when it finds
    that it may have lost the end of its log. Do it by hand after restoring a backup where it cannot: see semantics.md.
    """

    epoch: NewEpoch
