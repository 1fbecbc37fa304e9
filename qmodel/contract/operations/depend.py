"""Dependencies."""

from __future__ import annotations

from qmodel.contract.arguments import MOST, AnyAwaited, Count, Dependencies, Jid, Offset, RequestId, Switch
from qmodel.contract.operations.spec import CASCADE, DEPENDENCY, FAST, Operation, operation


@operation(
    "jids",
    "memo",
    "JOB_NOT_FOUND WRONG_STATE " + DEPENDENCY,
    "blocked skipped unrecurred request_done" + CASCADE + FAST,
)
class DependsOn(Operation):
    """Add dependencies to a job that waits for others; replies all jobs that it now waits for.

    They may be edges, as in `put`, and requests. An edge that the job already has is replaced.
    """

    jid: Jid
    dependencies: Dependencies
    request: RequestId = ""


@operation("jids", "memo", "JOB_NOT_FOUND WRONG_STATE DEPENDENCY_LIMIT", "unblocked throttled")
class DependsOff(Operation):
    """Remove dependencies of a job that waits for others, with `all` every one; replies those that are left.

    A request is named as `<id> request`.
    """

    jid: Jid
    dependencies: AnyAwaited = ()
    all: Switch = False
    request: RequestId = ""


@operation("results", "read", "JOB_NOT_FOUND OVER_BUDGET")
class Results(Operation):
    """Show the outcome of each named dependency of a job, in the order of naming.

    For a complete dependency this is its result; for one that failed and is ignored, the message of its failure.
    Large results do not fit into one reply: it is refused with the number that does, so read them in pages.
    """

    jid: Jid
    offset: Offset = 0
    count: Count = MOST
