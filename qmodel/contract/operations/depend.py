"""Dependencies."""

from __future__ import annotations

from qmodel.contract.arguments import AnyJids, Dependencies, Jid, RequestId, Switch
from qmodel.contract.operations.spec import CASCADE, DEPENDENCY, Operation, operation


@operation(
    "jids", "memo", "JOB_NOT_FOUND WRONG_STATE " + DEPENDENCY, "blocked skipped unrecurred request_done" + CASCADE
)
class DependsOn(Operation):
    """Add dependencies to a job that waits for others; replies all that it now waits for.

    They may be edges, as with `put`. One that the job has already is from now on as it is given here.
    """

    jid: Jid
    dependencies: Dependencies
    request: RequestId = ""


@operation("jids", "memo", "JOB_NOT_FOUND WRONG_STATE DEPENDENCY_LIMIT", "unblocked throttled")
class DependsOff(Operation):
    """Remove dependencies of a job that waits for others, or with `all` every one; replies those that are left."""

    jid: Jid
    dependencies: AnyJids = ()
    all: Switch = False
    request: RequestId = ""


@operation("results", "read", "JOB_NOT_FOUND")
class Results(Operation):
    """Show what became of the dependencies of a job that were given names, in the order in which they were named.

    Of a complete one its result, of one that failed and is ignored the message of its failure.
    """

    jid: Jid
