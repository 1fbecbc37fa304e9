"""Propagation: each dependent of a failed job follows the policy of its edge, and so does each of a request that ended
badly. The dependents of a request that ended well are let go.

A thousand jobs may follow one that fails, and their dependents after them. So an operation processes as many as its
budget allows (state/budget.py), at least half a budget, and leaves the rest to the next one. The order of failures does
not change the outcome: a job with an edge that says `cancel` is canceled, even if another edge has failed it first; a
failed job keeps its other edges, and none of them unblocks it.

When a job is canceled this way, its dependents follow *their* edges. If one of these says `block`, the job fails
instead and is kept: otherwise a dependent would wait for a job that no longer exists. A job that a later operation will
cancel fails now, so that no worker takes it.

A request that has ended never changes. So its edges end: a job that failed because of it may be retried. Only those
stay that say `block`, until they are removed.
"""

from __future__ import annotations

from typing import NamedTuple

from qmodel.contract.arguments import MOST
from qmodel.model.rules import deduplication
from qmodel.model.rules.deletion import delete
from qmodel.model.rules.failure import fail_job
from qmodel.model.rules.stages import unblock
from qmodel.model.state import budget, cascade, dependencies, jobs, requests
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store

FOLLOWED = ("fail", "ignore", "cancel")
"""The policies by which a dependent of a failed job follows, in the order in which they are processed."""

LEFT = ("ignore", "fail", "cancel")
"""The same for a canceled job, and for a request that ended badly."""


class Bounds(NamedTuple):
    """What the budget had when the propagation began, and what it leaves."""

    begun: int
    kept: int


def propagate(store: Store, now: int) -> None:
    """Process the dependents of failed jobs, the latest failure first, within the bounds of one operation."""
    room, half = budget.room(store), budget.UNITS // 2
    bounds = Bounds(room, min(room, half) - half)
    doomed: list[str] = []
    late: list[str] = []
    more = True
    while doomed or (more and cascade.is_left(store)):
        if doomed:
            _cancel(store, now, doomed, late, bounds)
            continue
        more = _next(store, now, doomed, bounds) and budget.fits(store, 1, bounds.kept)
    for jid in late:
        _put_off(store, now, jid)


def _next(store: Store, now: int, doomed: list[str], bounds: Bounds) -> bool:
    """Process the last entry of the cascade; say whether the budget had room for it."""
    job, cancels = cascade.take(store)
    if job is None:
        budget.spend(store, 1)
        return True
    if isinstance(job, Request):
        return _end_request(store, now, job, doomed, bounds)
    if not cancels:
        return _follow(store, now, job, doomed, bounds)
    if not _affords(store, job, bounds, ""):
        cascade.push(store, job, True)
        return False
    doomed.append(job.jid)
    return True


def _affords(store: Store, job: Job, bounds: Bounds, text: str) -> bool:
    """Whether the budget has room for a job that is to keep a text, which it always has for the first one; if so, spend
    it.
    """
    units = budget.weight(job) + budget.of_result(budget.size(text)) - 1
    return budget.take(store, units, bounds.kept, budget.room(store) < bounds.begun)


def _follow(store: Store, now: int, job: Job, doomed: list[str], bounds: Bounds) -> bool:
    """Let the dependents of a failed job follow their policies; collect those to cancel; say whether all have followed.
    The others follow later.
    """
    for policy in FOLLOWED:
        for jid in dependencies.under(job, policy):
            if not _follow_one(store, now, job, policy, jobs.load(store, jid), doomed, bounds):
                cascade.push(store, job)
                return False
    budget.spend(store, 1 + len(job.dependents) // 4)
    return True


def _follow_one(store: Store, now: int, job: Job, policy: str, waiting: Job, doomed: list[str], bounds: Bounds) -> bool:
    """Let a dependent of a failed job follow the policy of its edge, unless it has; say whether the budget has room for
    it.
    """
    assert job.failure is not None
    if waiting.state != "depends" and (policy == "fail" or _is_blocked(store, waiting)):
        return True
    if not _affords(store, waiting, bounds, job.failure.message if policy == "ignore" else ""):
        return False
    if policy == "fail":
        _fail(store, now, waiting, f"Its dependency {job.jid} failed.")
    elif policy == "ignore":
        _ignore(store, now, waiting, job, "failed", job.failure.message)
    else:
        _doom(store, now, waiting, f"Its dependency {job.jid} failed.", doomed)
    return True


def _fail(store: Store, now: int, job: Job, message: str) -> None:
    """Fail a job that waits for others."""
    if job.state == "depends":
        jobs.lift(store, job)
        fail_job(store, now, job, "failed-dependencies-" + job.queue, message)


def _ignore(store: Store, now: int, job: Job, other_job: Job | Request, state: str, message: str) -> None:
    """Count a dependency as met; unblock the job if it was the last."""
    dependencies.ignore(store, job, other_job, state, message)
    if job.state == "depends" and not job.dependencies:
        unblock(store, now, job)


def _is_blocked(store: Store, job: Job) -> bool:
    """Whether a dependent prevents that a job is canceled; one that only waits for its key does not."""
    blocking = dependencies.blocking(job)
    return len(blocking) > 1 or any(not deduplication.waits_for_key(store, jid, job) for jid in blocking)


def _doom(store: Store, now: int, job: Job, message: str, doomed: list[str]) -> None:
    """Collect a job to be canceled, or fail it if a dependent blocks that."""
    if _is_blocked(store, job):
        _fail(store, now, job, message)
    else:
        doomed.append(job.jid)


def _cancel(store: Store, now: int, doomed: list[str], late: list[str], bounds: Bounds) -> None:
    """Cancel the last collected job, and let its dependents follow; if they are too many, collect it for later."""
    job = jobs.get(store, doomed.pop())
    if job is None or _is_blocked(store, job):  # collected twice; or a dependent blocks it now
        return
    if not _leave(store, now, job, f"Its dependency {job.jid} was canceled.", doomed, bounds):
        late.append(job.jid)
    elif jobs.get(store, job.jid) is None:  # past its retention, and deleted when a dependent failed
        return
    elif len(job.dependencies) > MOST:
        dependencies.unlink(store, job, dependencies.of(job))
        late.append(job.jid)
    else:
        delete(store, now, job)


def _end_request(store: Store, now: int, request: Request, doomed: list[str], bounds: Bounds) -> bool:
    """Let the dependents of an ended request go, or follow their policies; say whether all have. The others follow
    later.
    """
    if requests.has_ended_well(request):
        whole = _let_go(store, now, request, bounds)
    else:
        done = f"{request.done} of {request.total} sub-requests done"
        message = f"Its request {request.id} ended as {request.state}, with {done}."
        whole = _leave(store, now, request, message, doomed, bounds)
    if not whole:
        cascade.push(store, request)
        return False
    budget.spend(store, 1 + len(request.dependents) // 4)
    return True


def _let_go(store: Store, now: int, request: Request, bounds: Bounds) -> bool:
    """Let the dependents of a request go on; say whether all have."""
    for jid in dependencies.dependents(request):
        waiting = jobs.load(store, jid)
        if not _affords(store, waiting, bounds, ""):
            return False
        _ignore(store, now, waiting, request, "", "")
    return True


def _leave(store: Store, now: int, job: Job | Request, message: str, doomed: list[str], bounds: Bounds) -> bool:
    """Let the dependents of a canceled job, or of a request that ended badly, follow their policies; say whether all
    have followed.
    """
    for policy in LEFT:
        for jid in dependencies.under(job, policy):
            waiting = jobs.load(store, jid)
            if not _affords(store, waiting, bounds, ""):
                return False
            _leave_one(store, now, job, policy, waiting, message, doomed)
    return True


def _leave_one(
    store: Store, now: int, job: Job | Request, policy: str, waiting: Job, message: str, doomed: list[str]
) -> None:
    """Let such a dependent follow the policy of its edge, which ends."""
    if policy == "ignore":
        _ignore(store, now, waiting, job, "canceled", "")
        return
    dependencies.unlink(store, waiting, [job.jid])
    if policy == "fail":
        _fail(store, now, waiting, message)
    else:
        _doom(store, now, waiting, message, doomed)


def _put_off(store: Store, now: int, jid: str) -> None:
    """Leave the cancellation of a job to the next operation."""
    job = jobs.get(store, jid)
    if job is not None:
        _fail(store, now, job, "It is about to be canceled, as its dependency was, or failed.")
        cascade.push(store, job, True)
