"""Requests: opening them, adding sub-requests, closing, changing and canceling. Their rules are described in
qmodel/model/state/requests.py.
"""

from __future__ import annotations

from functools import partial

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.lifecycle import seen_at
from qmodel.contract.operations import (
    Put,
    RequestAdd,
    RequestCancel,
    RequestClose,
    RequestForget,
    RequestGet,
    RequestJobs,
    RequestOpen,
    RequestPut,
    Requests,
    RequestTouch,
    RequestTune,
)
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import Forgotten, Page
from qmodel.model.ops.put import check, check_budget, check_distinct, put_one
from qmodel.model.ops.remove import check_cancel
from qmodel.model.rules import deduplication, request_cancellation, stages
from qmodel.model.rules.admission import check_throttles
from qmodel.model.rules.concurrency import fill_slots
from qmodel.model.rules.deletion import delete, delete_any
from qmodel.model.rules.failure import revoke_one
from qmodel.model.rules.request_end import close, conclude
from qmodel.model.state import (
    budget,
    concurrency_keys,
    config,
    dependencies,
    jobs,
    parked,
    queues,
    requests,
    state_index,
)
from qmodel.model.state.dependencies import Edges
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store, emit


def request_open(store: Store, now: int, op: RequestOpen) -> str:
    """Open a request, unless it exists already."""
    request = requests.get(store, op.id)
    if request is not None:
        _check_same(store, request, op)
        _renew(store, now, request)
        return request.state

    _open(store, now, op)
    _sweep(store, now)
    return "open"


def _check_same(store: Store, request: Request, op: RequestOpen | RequestPut) -> None:
    """Refuse to open a request again with other arguments."""
    known = {"queue": request.queue, "limit": request.first_limit, "priority": request.first_priority}
    if known["queue"] != op.queue:
        raise refuse("REQUEST_CONFLICT", request.id, "queue", known["queue"])
    if known["limit"] != op.limit:
        raise refuse("REQUEST_CONFLICT", request.id, "limit", known["limit"])
    if known["priority"] != op.priority:
        raise refuse("REQUEST_CONFLICT", request.id, "priority", known["priority"])
    if request.fail_fast != op.fail_fast:
        raise refuse("REQUEST_CONFLICT", request.id, "fail_fast", int(request.fail_fast))
    deadline_ms = request.deadline_at - request.opened_at if request.deadline_at else 0
    if deadline_ms != (op.deadline_ms or 0):
        raise refuse("REQUEST_CONFLICT", request.id, "deadline_ms", deadline_ms)
    if request.lease_ms != (getattr(op, "lease_ms", None) or 0):
        raise refuse("REQUEST_CONFLICT", request.id, "lease_ms", request.lease_ms)
    if request.keep_places != op.keep_places:
        raise refuse("REQUEST_CONFLICT", request.id, "keep_places", int(request.keep_places))
    data = requests.data(store, request)
    if data != op.data:
        raise refuse("REQUEST_CONFLICT", request.id, "data", f"{budget.size(data)} bytes")


def _open(store: Store, now: int, op: RequestOpen | RequestPut) -> Request:
    """Create an open request."""
    request = requests.create(store, op.id, op.queue, op.priority, op.limit, now)
    requests.set_ends(now, request, op)
    requests.set_data(store, request, op.data)
    queues.register(store, now, op.queue)
    emit(store, now, "request_opened", op.id, op.queue, op.priority, op.limit)
    requests.move(store, now, request, "open")
    requests.save(store, request)
    return request


def request_add(store: Store, now: int, op: RequestAdd) -> int:
    """Add sub-requests to an open request; known ones are skipped."""
    request = requests.find(store, op.id)
    news = _news_of(store, op.jobs, request, request.queue, "request_add")
    edges = check(store, news, op.id)

    _renew(store, now, request)
    _add(store, now, request, news, edges)
    _sweep(store, now)
    return len(news)


def _renew(store: Store, now: int, request: Request) -> None:
    """Renew the lease on a request, if it is open and has one."""
    if request.state == "open" and request.lease_ms:
        requests.renew(now, request)
        requests.save(store, request)


def request_touch(store: Store, now: int, op: RequestTouch) -> int:
    """Renew the lease on an open request."""
    request = requests.find(store, op.id)
    if request.state != "open":
        raise refuse("REQUEST_STATE", request.id, request.state)

    _renew(store, now, request)
    return request.open_until


def _news_of(
    store: Store, puts: tuple[Put, ...], request: Request | None, queue: str, operation: str
) -> tuple[Put, ...]:
    """The sub-requests that the request does not know yet; or refuse."""
    check_distinct(tuple(one.jid for one in puts))
    for one in puts:
        if one.queue != queue or one.priority is not None or one.ordered is not None or one.unique is not None:
            raise refuse("BAD_ARGUMENT", operation, "jobs")
    news = tuple(one for one in puts if request is None or not requests.knows(store, request, one.jid))
    if news and request is not None and request.state != "open":
        raise refuse("REQUEST_STATE", request.id, request.state)
    for one in news:
        if jobs.get(store, one.jid) is not None:
            raise refuse("JOB_EXISTS", one.jid)
        stages.check(one, operation)
        deduplication.check(one, operation)
        check_throttles(store, one, operation)
    check_budget(store, news, operation)
    return news


def _add(store: Store, now: int, request: Request, news: tuple[Put, ...], edges: dict[str, Edges]) -> None:
    """Put new sub-requests."""
    for one in news:
        jobs.create(store, one.jid)
        requests.add(store, request, one.jid)
    if news:
        requests.enlist(store, request, [one.jid for one in news])
        requests.save(store, request)
    for one in news:
        put_one(store, now, one, edges.get(one.jid), "", request)


def request_close(store: Store, now: int, op: RequestClose) -> str:
    """Close a request: it ends with its last sub-request."""
    request = requests.find(store, op.id)

    close(store, now, request)
    return request.state


def request_put(store: Store, now: int, op: RequestPut) -> str:
    """Open a request, add all its sub-requests, and close it."""
    request = requests.get(store, op.id)
    if request is not None:
        _check_same(store, request, op)
    news = _news_of(store, op.jobs, request, op.queue, "request_put")
    edges = check(store, news, op.id)

    if request is None:
        request = _open(store, now, op)
    _add(store, now, request, news, edges)
    close(store, now, request)
    _sweep(store, now)
    return request.state


# ---- looking


def request_get(store: Store, now: int, op: RequestGet) -> replies.Request | None:
    """Show a request."""
    request = requests.get(store, op.id)
    if request is None:
        return None
    running = 0
    for jid in concurrency_keys.holders(store, concurrency_keys.REQUEST + op.id, MOST):
        if jobs.load(store, jid).expires_at > now:
            running += 1
    return requests.view(request, running)


def request_jobs(store: Store, now: int, op: RequestJobs) -> replies.SubRequests:
    """List sub-requests in the order in which they were added."""
    request = requests.find(store, op.id)
    page = requests.ordered(store, request, op.offset, op.count)
    page = page[: budget.afford(store, page, partial(_showing, store))]

    ends = zip(page, requests.ends_of(store, request, page), strict=True)
    shown = tuple(_sub_request(store, now, jid, *end) for jid, end in ends if end is not None)
    after = op.offset + len(page)
    return replies.SubRequests(after if after < requests.count(store, request) else 0, shown)


def _moving(store: Store, jid: str) -> int:
    """The units for moving a job."""
    return budget.moving(jobs.load(store, jid))


def _showing(store: Store, jid: str) -> int:
    """The units for showing a sub-request."""
    job = jobs.get(store, jid)
    return 1 if job is None else budget.moving(job) + 1


def _sub_request(store: Store, now: int, jid: str, outcome: str, seq: int) -> replies.SubRequest:
    """A sub-request and its outcome; and its job, unless that is no longer as it ended."""
    job = jobs.get(store, jid)
    if job is None or (outcome and job.seq != seq):
        return replies.SubRequest(jid, outcome, "", "", "")
    state = seen_at(now, job.state, job.ready_at, job.expires_at)
    if state == "failed" and job.failure is not None:
        return replies.SubRequest(jid, outcome, state, job.failure.group, job.failure.message)
    return replies.SubRequest(jid, outcome, state, "", job.result if state == "complete" else "")


def requests_(store: Store, now: int, op: Requests) -> Page:
    """List the requests in a state."""
    return Page(*requests.page(store, op.state, op.offset, op.count))


# ---- changing


def request_tune(store: Store, now: int, op: RequestTune) -> int:
    """Change the priority or the limit of a request that has not ended; give how many sub-requests are left to
    change.
    """
    request = requests.find(store, op.id)
    if request.state not in ("open", "closed"):
        raise refuse("REQUEST_STATE", request.id, request.state)

    if op.priority is not None and op.priority != request.priority:
        request.priority, request.reached = op.priority, ""
    behind, left = _behind(store, request)
    wanted = request.limit if op.limit is None else op.limit
    request.limit = _affordable_limit(store, request, wanted, len(behind) > 0)
    emit(store, now, "request_tuned", request.id, request.priority, request.limit)
    requests.save(store, request)
    for job in behind:
        if job.priority != request.priority:
            _prioritize(store, job, request.priority)
    name = concurrency_keys.REQUEST + op.id
    fill_slots(store, now, name, concurrency_keys.free_slots(store, name))
    return left + wanted - request.limit


def _behind(store: Store, request: Request) -> tuple[list[Job], int]:
    """The sub-requests with a slot that a new priority has not reached, as far as the budget goes, and how many are
    left.
    """
    if request.reached is None:
        return [], 0
    holders = concurrency_keys.holders(store, concurrency_keys.REQUEST + request.id, MOST)
    others = request_cancellation.after(holders, request.reached)
    count = budget.afford(store, others, partial(_moving, store))
    request.reached = others[count - 1] if count < len(others) else None
    return [jobs.load(store, jid) for jid in others[:count]], len(others) - count


def _affordable_limit(store: Store, request: Request, wanted: int, some: bool) -> int:
    """The wanted limit, or as many slots as the budget can fill, at least one unless there were `some` before."""
    name = concurrency_keys.REQUEST + request.id
    free = concurrency_keys.free_slots(store, name) + wanted - request.limit
    waiting = concurrency_keys.first_parked(store, name, free)
    filled = budget.afford(store, waiting, partial(_moving, store), some)
    return wanted - free + filled if filled < len(waiting) else wanted


def _prioritize(store: Store, job: Job, priority: int) -> None:
    """Change the priority of a job that has a slot; it keeps its ready time."""
    if job.state in ("waiting", "throttled"):
        state_index.leave(store, job)
        job.priority = priority
        state_index.enter(store, job)
        parked.recheck(store, job)
    else:
        job.priority = priority


def request_cancel(store: Store, now: int, op: RequestCancel) -> int:
    """Cancel a request: cancel sub-requests that are not running, and revoke the others."""
    request = requests.find(store, op.id)
    if requests.has_ended(request):
        return 0
    leased, doomed, reached, _ = request_cancellation.pick(store, request)
    check_cancel(store, doomed)

    if request.state != "canceling":
        emit(store, now, "request_canceled", request.id)
        requests.move(store, now, request, "canceling")
    request.reason, request.ending, request.reached = "canceled", False, reached
    requests.save(store, request)
    for job in leased:
        revoke_one(store, now, job)
    for jid in doomed:
        delete(store, now, jobs.load(store, jid))
    request = requests.load(store, op.id)
    if not doomed:
        conclude(store, now, request)
    holders = concurrency_keys.holders(store, concurrency_keys.REQUEST + op.id, MOST)
    return requests.left(request) - (len(holders) - len(request_cancellation.after(holders, reached)))


def request_forget(store: Store, now: int, op: RequestForget) -> Forgotten:
    """Forget sub-requests of an ended request, and with the last of them the request; delete their jobs, if asked."""
    request = requests.find(store, op.id)
    if not requests.has_ended(request):
        raise refuse("REQUEST_STATE", request.id, request.state)
    for dependent in dependencies.dependents(request)[:1]:
        raise refuse("HAS_DEPENDENTS", request.jid, dependent)
    reached, doomed, stay = _own_jobs(store, request) if op.delete_jobs else (MOST, [], 0)

    for job in doomed:
        delete_any(store, now, job)
    return Forgotten(_forget(store, now, request, reached), len(doomed), stay)


def _own_jobs(store: Store, request: Request) -> tuple[int, list[Job], int]:
    """How many sub-requests a call forgets with their jobs, as far as its budget goes; the jobs to delete, and how many
    others stay.
    """
    found = requests.first_ended(store, request, MOST)
    doomed: list[Job] = []
    stay = units = 0
    for at, (jid, outcome, seq) in enumerate(found):
        job = jobs.get(store, jid)
        units += 1 if job is None else budget.weight(job)
        if at and not budget.fits(store, units, 0):
            return at, doomed, stay
        if job is not None and _is_own(job, outcome, seq):
            doomed.append(job)
        elif job is not None:
            stay += 1
    return len(found), doomed, stay


def _is_own(job: Job, outcome: str, seq: int) -> bool:
    """Whether a job is as it ended as a sub-request, no other job depends on it, and one operation may delete it."""
    as_ended = (outcome, job.state) in (("done", "complete"), ("failed", "failed"))
    return as_ended and job.seq == seq and not job.dependents and dependencies.is_bounded(job)


def _forget(store: Store, now: int, request: Request, most: int) -> int:
    """Forget sub-requests of a request; give how many are left."""
    left = requests.forget(store, request, most)
    if left == 0:
        emit(store, now, "request_forgotten", request.id)
    return left


def _sweep(store: Store, now: int) -> None:
    """Forget requests past retention, unless jobs wait for them: at least as many sub-requests as one operation adds,
    so that none accumulate.
    """
    for request in requests.over(store, now - config.value(store, "requests-history")):
        if request.dependents:
            requests.postpone(store, now, request)
        else:
            _forget(store, now, request, MOST)
