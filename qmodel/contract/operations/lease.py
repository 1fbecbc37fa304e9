"""Leases."""

from __future__ import annotations

from qmodel.contract.arguments import Data, Jid, Jids, RequestId, Token
from qmodel.contract.operations.spec import CASCADE, ENDS, HELD, Operation, operation


@operation("lease", "same", HELD, finishes=True)
class Heartbeat(Operation):
    """Renew a lease from now, and optionally update the job's data.

    Replies the new expiry, and whether the job was revoked: then its worker should stop.
    """

    jid: Jid
    token: Token
    data: Data | None = None


@operation("jids", "memo", "JOB_NOT_FOUND WRONG_STATE", "lock_lost" + CASCADE + ENDS, finishes=True)
class Timeout(Operation):
    """Take leases away at once: the jobs are stalled, and the next to be handed out."""

    jids: Jids
    request: RequestId = ""


@operation("names", "memo", "JOB_NOT_FOUND DEPENDENCY_LIMIT", "revoked" + CASCADE + ENDS, finishes=True)
class Revoke(Operation):
    """Call jobs off: those that nobody runs fail at once, in `revoked-<queue>`, and wait for no other job any longer.

    A running one is told so by its next heartbeat. However its lease then ends, by complete, retry, release, fail or
    timeout or because it runs out, it fails in that group and is not tried again; what it gave as result and data is
    kept. Replies the state of each job after that, in the order asked for; complete and failed ones stay as they are.
    """

    jids: Jids
    request: RequestId = ""
