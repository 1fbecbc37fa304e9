"""How a request is canceled: by a call, or by the engine because of its deadline or of a failed sub-request.

The engine cannot be refused. So a sub-request on which a job depends that is not canceled with it is not deleted: it
fails, and its dependents follow their policies. Pops of the queue cancel in parts, as far as half of the budget goes,
first what could be handed out.
"""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.contract.arguments import MOST
from qmodel.model.rules import deduplication
from qmodel.model.rules.concurrency import fill_slots
from qmodel.model.rules.deletion import delete
from qmodel.model.rules.failure import revoke_one
from qmodel.model.rules.request_end import begin_cancellation, close, conclude
from qmodel.model.state import budget, concurrency_keys, dependencies, jobs, options, requests
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store


def after(ids: Iterable[str], first: str) -> list[str]:
    """Those of some ids that come after one."""
    return [id for id in ids if id > first]


def _stays(job: Job, begun: bool) -> bool:
    """Whether a sub-request is not deleted: a leased one, or one that has begun, unless those are canceled too."""
    return job.state == "running" or (not begun and job.token > 0)


def _group_with(store: Store, job: Job, among: set[str], chosen: dict[str, None], begun: bool) -> list[str]:
    """A job to cancel with those among the others that wait for it; nothing if it stays or is chosen already."""
    group = [] if _stays(job, begun) or job.jid in chosen else [job.jid]
    met = set(group)
    for one in group:
        for other in deduplication.dependents(store, jobs.load(store, one)):
            if other in among and other not in chosen and other not in met:
                met.add(other)
                if not _stays(jobs.load(store, other), begun):
                    group.append(other)
    return group


def _wanted(store: Store, request: Request, begun: bool) -> tuple[list[str], set[str], str]:
    """The sub-requests to cancel or to revoke, up to 1000, those with a slot first; all with a slot; and the last of
    these that the call before has reached. If that was the end, it begins again. Without `begun`, those that have begun
    and have no slot are left out: however many they are, the others are reached.
    """
    reached = (request.reached or "") if request.state == "canceling" else ""
    holders = concurrency_keys.holders(store, concurrency_keys.REQUEST + request.id, MOST)
    known = set(holders)
    found = after(holders, reached)
    found += [jid for jid in requests.unfinished(store, request, 2 * MOST, begun) if jid not in known]
    return (found[:MOST], known, reached) if found else (list(holders), known, "")


def pick(store: Store, request: Request, kept: int = 0, begun: bool = True) -> tuple[list[Job], list[str], str, bool]:
    """The leased sub-requests, the others to cancel, and the last one with a slot that is reached, as long as the
    budget leaves `kept`; and whether these are all. Without `begun`, those that have begun are left out.
    """
    wanted, known, reached = _wanted(store, request, begun)
    among = set(wanted)
    leased: list[Job] = []
    chosen: dict[str, None] = {}
    units = 0
    for jid in wanted:
        job = jobs.load(store, jid)
        group = _group_with(store, job, among, chosen, begun)
        units += budget.FAILURE + budget.weight(job) if begun and job.state == "running" else 0
        units += sum(budget.weight(jobs.load(store, one)) for one in group)
        if (chosen or leased) and not budget.fits(store, units, kept):
            return leased, list(chosen), reached, False
        if begun and job.state == "running":
            leased.append(job)
        chosen.update(dict.fromkeys(group))
        if jid in known:
            reached = jid
    return leased, list(chosen), reached, len(wanted) < MOST


# ---- by the engine


def end_due(store: Store, now: int, queue: str) -> bool:
    """Close and cancel the due requests of a queue, as far as half of the budget goes; say whether sub-requests are
    left that a pop might hand out.
    """
    kept = budget.room(store) // 2
    found = requests.due(store, queue, now, MOST)
    for at, request in enumerate(found):
        if not budget.take(store, 1, kept, at):
            return True
        if requests.is_late(now, request) and request.reason != "deadline":
            begin_cancellation(store, now, request, "deadline")
        if not request.ending:
            close(store, now, request, "lapsed")
        elif not _cancel_part(store, now, request, kept):
            return at + 1 < len(found) or _has_more(store, request)
    return False


def _cancel_part(store: Store, now: int, request: Request, kept: int) -> bool:
    """Cancel sub-requests, as long as the budget leaves `kept`, then let the others go on; say whether none is left to
    cancel.
    """
    leased, doomed, reached, whole = pick(store, request, kept, request.reason == "deadline")
    request.reached, request.ending = reached, True
    requests.save(store, request)
    failing = _with_others_waiting(store, doomed)
    for job in leased:
        revoke_one(store, now, job)
    for jid in doomed:
        job = jobs.load(store, jid)
        if jid in failing:
            revoke_one(store, now, job)
        else:
            delete(store, now, job)
    if whole:
        _go_on(store, now, request, kept)
    if not requests.has_ended(request):
        conclude(store, now, request)
    return whole


def _go_on(store: Store, now: int, request: Request, kept: int) -> None:
    """End the cancellation. The sub-requests that have begun may have the free slots: parked ones get them, as long as
    the budget leaves `kept`; if it does not suffice, the next pop continues.
    """
    name, through = concurrency_keys.REQUEST + request.id, 0
    request.ending = False
    for jid in concurrency_keys.first_parked(store, name, concurrency_keys.free_slots(store, name)):
        if not budget.take(store, budget.SLOT + budget.moving(jobs.load(store, jid)), kept, through):
            request.ending = True
            break
        through += 1
    fill_slots(store, now, name, through)
    requests.save(store, request)


def _with_others_waiting(store: Store, doomed: list[str]) -> set[str]:
    """Those of some jobs on which, directly or not, a job depends that is not among them, or that stays because it has
    more dependencies than one operation may end.
    """
    among = set(doomed)
    found: dict[str, None] = {}
    for jid in doomed:
        job = jobs.load(store, jid)
        if not dependencies.is_bounded(job) or any(
            other not in among for other in deduplication.dependents(store, job)
        ):
            found[jid] = None
    turn = list(found)
    for jid in turn:
        for other in dependencies.of(jobs.load(store, jid)):
            if other in among and other not in found:
                found[other] = None
                turn.append(other)
    return set(found)


def _has_more(store: Store, request: Request) -> bool:
    """Whether sub-requests with a slot are left that the cancellation has not reached."""
    holders = concurrency_keys.holders(store, concurrency_keys.REQUEST + request.id, MOST)
    return bool(after(holders, request.reached or ""))


# ---- for a read


def doomed(store: Store, now: int, queue: str) -> set[str]:
    """The sub-requests with a slot that the next pop would cancel, as far as a quarter of the budget goes."""
    kept = budget.room(store) // 4 * 3
    found: set[str] = set()
    for request in requests.due(store, queue, now, MOST):
        holders = concurrency_keys.holders(store, concurrency_keys.REQUEST + request.id, MOST)
        if not budget.take(store, 1 + len(holders), kept, True):
            break
        found.update(jid for jid in holders if is_doomed(store, now, jobs.load(store, jid)))
    return found


def is_doomed(store: Store, now: int, job: Job) -> bool:
    """Whether the next pop of its queue would cancel a sub-request."""
    id = options.get(job, "request")
    if id is None:
        return False
    request = requests.load(store, id)
    if job.queue != request.queue:
        return False
    late = requests.is_late(now, request)
    return late or (request.ending and not _stays(job, request.reason == "deadline"))
