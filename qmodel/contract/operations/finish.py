"""Finishing jobs."""

from __future__ import annotations

from typing import Annotated

from qmodel.contract.arguments import (
    AnyDependencies,
    Count,
    Data,
    Group,
    Jid,
    Message,
    Milliseconds,
    Operations,
    QueueName,
    RequestId,
    Switch,
    Token,
    WorkerName,
)
from qmodel.contract.operations.spec import CASCADE, DEPENDENCY, ENDS, FAST, HELD, TAKEN, Operation, operation


@operation("state", "lease", HELD + " " + DEPENDENCY, "completed advanced" + CASCADE + ENDS + FAST, finishes=True)
class Complete(Operation):
    """Complete a leased job and release the jobs that waited for it, or send it on to a `next` queue.

    `delay_ms` and `depends` are allowed with `next` only: they apply there as in `put`.
    """

    jid: Jid
    token: Token
    result: Data = ""
    data: Data | None = None
    next: QueueName | None = None
    delay_ms: Milliseconds = 0
    depends: AnyDependencies = ()


@operation("names", "lease", HELD + " DUPLICATE_JID OVER_BUDGET", "completed" + CASCADE + ENDS + FAST, finishes=True)
class CompleteMany(Operation):
    """Complete up to 1000 leased jobs in one step, all or none."""

    jobs: Annotated[tuple[Complete, ...], Operations("Complete")]


@operation(
    "completed_and_popped",
    "grant",
    HELD + " " + DEPENDENCY,
    "completed advanced " + TAKEN,
)
class CompleteAndPop(Operation):
    """Complete a leased job as `complete` does, and lease the next ones as `pop` does, in one step."""

    jid: Jid
    token: Token
    queue: QueueName
    worker: WorkerName
    count: Count = 1
    wait: Switch = False
    result: Data = ""
    data: Data | None = None
    next: QueueName | None = None
    delay_ms: Milliseconds = 0
    depends: AnyDependencies = ()
    request: RequestId = ""


@operation("jid", "lease", HELD, CASCADE + ENDS + FAST, finishes=True)
class Fail(Operation):
    """Fail a leased job: it moves to a failure group, where a person or a policy decides about it.

    Its history keeps the group and the end of the message; not with `qless`, because histories have none in qless.
    """

    jid: Jid
    token: Token
    group: Group
    message: Message
    data: Data | None = None
    qless: Switch = False


@operation("number", "lease", HELD, "retried" + CASCADE + ENDS + FAST, finishes=True)
class Retry(Operation):
    """Give a leased job back to be tried again, now or after a delay; this counts as a retry.

    Replies the retries that remain. Replies -1 if there were none left: the job has failed into `group`, or without it
    into `failed-retries-<queue>`. Its history keeps the group and the end of the message. With `qless`, it does
    not, and this is not among the retries of the statistics: in qless only lapsed leases are.
    """

    jid: Jid
    token: Token
    delay_ms: Milliseconds = 0
    group: Group | None = None
    message: Message = ""
    qless: Switch = False


@operation("state", "lease", HELD + " " + DEPENDENCY, "released" + CASCADE + ENDS + FAST, finishes=True)
class Release(Operation):
    """Give a leased job back, now or after a delay, without counting a retry (step jobs).

    With `depends`, the job waits for those jobs (its children, for example) and is handed out again after them. These
    may be edges, as in `put`.
    """

    jid: Jid
    token: Token
    delay_ms: Milliseconds = 0
    data: Data | None = None
    depends: AnyDependencies = ()
