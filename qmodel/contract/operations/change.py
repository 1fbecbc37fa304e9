"""Changing jobs."""

from __future__ import annotations

from qmodel.contract.arguments import Data, Jid, LogLine, Milliseconds, PriorityLevel, RequestId, Switch, Token
from qmodel.contract.operations.spec import HELD, Operation, operation


@operation("jid", "memo", "JOB_NOT_FOUND", "updated")
class Update(Operation):
    """Replace a job's data."""

    jid: Jid
    data: Data
    request: RequestId = ""


@operation("number", "memo", "JOB_NOT_FOUND", "prioritized")
class Priority(Operation):
    """Change a job's priority; a waiting job keeps its ready time among the jobs of its new priority, or with `first`
    comes before them. With `first`, a stalled job becomes waiting.
    """

    jid: Jid
    priority: PriorityLevel
    request: RequestId = ""
    first: Switch = False


@operation("state", "memo", "JOB_NOT_FOUND WRONG_STATE", "delayed unthrottled throttled")
class Delay(Operation):
    """Make a scheduled, waiting or throttled job ready `delay_ms` from now, or a dependent one not before then.

    With `qless`, by the rules of reqless, no time changes: a waiting job is parked if one of its throttles is closed,
    and a job that is parked at a throttle is admitted, to the end of its priority.
    """

    jid: Jid
    delay_ms: Milliseconds
    request: RequestId = ""
    qless: Switch = False


@operation("state", "memo", "JOB_NOT_FOUND WRONG_STATE", "promoted throttled")
class Promote(Operation):
    """Make a scheduled job ready now."""

    jid: Jid
    request: RequestId = ""


@operation("jid", "memo", "JOB_NOT_FOUND", "logged")
class Log(Operation):
    """Add a line to a job's history."""

    jid: Jid
    message: LogLine
    request: RequestId = ""


@operation("jid", "memo", HELD, "progressed")
class Progress(Operation):
    """Report the progress of a leased job."""

    jid: Jid
    token: Token
    progress: LogLine
    request: RequestId = ""
