"""Leases."""

from __future__ import annotations

from qmodel.contract.arguments import Data, Jid, Jids, RequestId, Switch, Token
from qmodel.contract.operations.spec import CASCADE, ENDS, FAST, HELD, Operation, operation


@operation("lease", "same", HELD, finishes=True)
class Heartbeat(Operation):
    """Renew a lease from now, and optionally update the job's data.

    Replies the new expiry, and whether the job was revoked: if so, its worker should stop.
    """

    jid: Jid
    token: Token
    data: Data | None = None


@operation("jids", "memo", "JOB_NOT_FOUND WRONG_STATE OVER_BUDGET", "lock_lost" + CASCADE + ENDS + FAST, finishes=True)
class Timeout(Operation):
    """End leases at once: the jobs are stalled, and are the next to be handed out.

    With `qless`, by the rules of reqless, they count in their throttles no longer.
    """

    jids: Jids
    request: RequestId = ""
    qless: Switch = False


@operation(
    "names", "memo", "JOB_NOT_FOUND DEPENDENCY_LIMIT OVER_BUDGET", "revoked" + CASCADE + ENDS + FAST, finishes=True
)
class Revoke(Operation):
    """Revoke jobs: those not running fail at once into `revoked-<queue>`, and wait for no other job any longer.

    A running job learns of it with its next heartbeat. However its lease then ends (complete, retry, release, fail,
    timeout, or expiry), the job fails into that group and is not retried; the result and data that it gave are kept.
    Replies the resulting state of each job, in the order of `jids`; complete and failed jobs stay as they are.
    """

    jids: Jids
    request: RequestId = ""
