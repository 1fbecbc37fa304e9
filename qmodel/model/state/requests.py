"""Requests: sets of jobs, the sub-requests, with a limit on how many run at a time.

A request has a queue, a priority, and a limit. Its sub-requests are jobs of that queue with that priority, and share a
concurrency key (state/concurrency_keys.py): at most as many as the limit are in the queue's order or leased. Requests
are ordered as jobs are: a lower priority comes first. Within a priority they take turns, each with as many sub-requests
as its limit, because an admitted job joins the end. Rules:

- *Streamed, or at once.* Sub-requests are added while the request is open; once it is closed, it ends with the last of
  them.
- *A sub-request that waits for its time gives up its slot*, and asks for one again when it is due: so others go on
  meanwhile. With `keep_places`, one that has begun keeps its slot.
- *Each sub-request is counted once*, when it ends: done when it completes, failed when it fails, canceled when it is
  deleted, or when it is put anew and so becomes a job of its own. A failed sub-request that is retried also becomes
  such a job: a count never changes, nor does a request that has ended.
- *Known by its id.* A sub-request that is added again is not put again, even if its job is no longer kept.
- *Ordered.* Sub-requests are listed as they were added, each with its outcome, which outlives its job. The sequence of
  its end tells whether the job is still as it ended: a job that was retried or put again has another one.
- *Data* is opaque text, kept apart from what changes with each sub-request.
- *Changes in parts.* A change of the sub-requests with a slot (a new priority, the cancellation) goes as far as its
  budget (state/budget.py), by id, and notes where it is. The next call continues.
- *It ends once*, with one event, in the step in which its last sub-request ends or the request is closed.
- *Ends by itself.* A request may have a deadline, at which the engine cancels it. With `fail_fast` the engine cancels
  it when a sub-request fails; those that have begun go on: with the slots that they have until the others are
  canceled, then within the limit. A lease on an open request closes it: what was added is wanted, and no producer will
  close it any more. The queue lists such requests by the time when something is to be done; the next pop of the queue
  does it before it hands out jobs (rules/request_cancellation.py).
- *Waited for.* Jobs may depend on a request (state/dependencies.py). They are let go in the step in which it ends; or
  by the next operations, if they are more than one operation can process (rules/propagation.py). It has ended well if
  each sub-request is done.
- An ended request is kept for requests-history, and deleted when others are opened or added to: at least as many
  sub-requests are forgotten as an operation adds, so that none accumulate. One that a job waits for is kept for another
  requests-history: it ended badly, and the job's edge says `block`.
"""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.contract.operations import RequestOpen, RequestPut
from qmodel.contract.refusals import refuse
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.records import Job, Position, Request
from qmodel.model.state.store import Store

ENDED = ("done", "canceled")
GIVEN, YIELDED = 1, 2
"""The marks of unfinished sub-requests, whose sum is kept. `GIVEN`: it was given dependencies. `YIELDED`: it gave up
its slot after it had begun, to wait for its time or for other jobs. One without a slot and this mark has not begun.
"""
OUTCOMES = ("", "done", "failed", "canceled")
"""How sub-requests end; those that ended before outcomes were kept have none."""


def get(store: Store, id: str) -> Request | None:
    """A request, or None if it does not exist."""
    return store.requested.get(id)


def load(store: Store, id: str) -> Request:
    """A request that is known to exist."""
    return store.requested[id]


def find(store: Store, id: str) -> Request:
    """A request, or refuse."""
    request = store.requested.get(id)
    if request is None:
        raise refuse("REQUEST_NOT_FOUND", id)
    return request


def create(store: Store, id: str, queue: str, priority: int, limit: int, now: int) -> Request:
    """A new request, in no state yet."""
    request = store.requested[id] = Request(id, queue, priority, limit, now)
    return request


def limit(store: Store, id: str) -> int:
    """How many of its sub-requests may be in order or leased: none once the request is canceled; but once a failure has
    canceled those that had not begun, the others go on.
    """
    request = load(store, id)
    goes_on = request.reason == "failed" and not request.ending
    return request.limit if request.state in ("open", "closed") or goes_on else 0


def has_ended(request: Request) -> bool:
    """Whether a request has ended."""
    return request.state in ENDED


def has_ended_well(request: Request) -> bool:
    """Whether a request has ended with each of its sub-requests done."""
    return request.state == "done" and request.done == request.total


def move(store: Store, now: int, request: Request, state: str) -> None:
    """Change the state of a request, as of the last event."""
    if request.state:
        _list(store, request.state).remove((request.state_at, request.seq, request.id))
    request.state, request.state_at, request.seq = state, now, store.seq
    if has_ended(request):
        request.ended_at = now
    _list(store, state).add((now, request.seq, request.id))


def _list(store: Store, state: str) -> Ordered[Position]:
    """The requests in a state, ordered by the time since when."""
    found = store.request_states.get(state)
    if found is None:
        found = store.request_states[state] = Ordered()
    return found


def save(store: Store, request: Request) -> None:
    """Store the changes of a request, and when it is due."""
    store.requested[request.id] = request
    moment = due_at(request)
    if moment is not None:
        store.queues[request.queue].ends[request.id] = moment
    elif request.queue in store.queues:
        store.queues[request.queue].ends.pop(request.id, None)


def page(store: Store, state: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many requests are in a state, and a page of their ids, longest in it first."""
    found = store.request_states.get(state, ())
    return len(found), tuple(id for _, _, id in found[offset : offset + count])


# ---- ending by itself


def set_ends(now: int, request: Request, op: RequestOpen | RequestPut) -> None:
    """Apply the options that let a request end by itself."""
    request.deadline_at = now + op.deadline_ms if op.deadline_ms is not None else 0
    request.fail_fast = op.fail_fast
    request.lease_ms = getattr(op, "lease_ms", None) or 0
    request.keep_places = op.keep_places
    renew(now, request)


def renew(now: int, request: Request) -> None:
    """Renew the lease on an open request, if it has one."""
    request.open_until = now + request.lease_ms if request.lease_ms else 0


def due_at(request: Request) -> int | None:
    """When the engine has something to do for a request, or None."""
    if has_ended(request):
        return None
    if request.ending:
        return 0
    if request.state == "canceling" and request.reason != "failed":
        return None
    moments = (request.open_until if request.state == "open" else 0), request.deadline_at
    return min((moment for moment in moments if moment), default=None)


def is_late(now: int, request: Request) -> bool:
    """Whether the deadline of a request is over."""
    return 0 < request.deadline_at <= now


def timed(store: Store, queue: str) -> int:
    """How many requests of a queue may end by themselves."""
    return len(store.queues[queue].ends) if queue in store.queues else 0


def due(store: Store, queue: str, now: int, most: int) -> list[Request]:
    """The due requests of a queue, earliest first."""
    found = store.queues.get(queue)
    moments = sorted((moment, id) for id, moment in found.ends.items() if moment <= now) if found is not None else []
    return [load(store, id) for _, id in moments[:most]]


# ---- sub-requests


def knows(store: Store, request: Request, jid: str) -> bool:
    """Whether a job is, or was, a sub-request of this request."""
    return jid in request.unfinished or jid in request.ended


def add(store: Store, request: Request, jid: str) -> None:
    """Add a job to the sub-requests."""
    request.unfinished[jid] = 0
    request.total += 1


def enlist(store: Store, request: Request, jids: list[str]) -> None:
    """Note the order of added sub-requests: they come after all others."""
    request.order += jids


def finish(store: Store, request: Request, job: Job, outcome: str) -> None:
    """Count a sub-request that has ended: done, failed or canceled."""
    del request.unfinished[job.jid]
    request.ended[job.jid] = (outcome, job.seq)
    setattr(request, outcome, getattr(request, outcome) + 1)


def left(request: Request) -> int:
    """How many sub-requests have not ended."""
    return request.total - request.done - request.failed - request.canceled


def unfinished(store: Store, request: Request, most: int, begun: bool) -> list[str]:
    """Some sub-requests that have not ended, by marks and ids; without `begun`, none that has yielded its slot."""
    marks = request.unfinished
    found = [jid for jid, mark in marks.items() if begun or mark < YIELDED]
    return sorted(found, key=lambda jid: (marks[jid], jid))[:most]


def note_dependencies(store: Store, request: Request, jid: str, yielded: bool) -> None:
    """Note that a sub-request was given dependencies, and whether it has yielded its slot."""
    request.unfinished[jid] = GIVEN + YIELDED if yielded else GIVEN


def note_yield(store: Store, id: str, job: Job) -> None:
    """Note that a sub-request that has begun gives up its slot: for those that it waits for, or until its time."""
    load(store, id).unfinished[job.jid] = GIVEN + YIELDED if job.dependencies else YIELDED


def with_dependencies(store: Store, id: str, most: int) -> list[str]:
    """Some sub-requests that have not ended and were given dependencies, by id, last those that have yielded their
    slots; none if there is no such request.
    """
    request = get(store, id)
    marks = request.unfinished if request is not None else {}
    found = [jid for jid, mark in marks.items() if mark & GIVEN]
    return sorted(found, key=lambda jid: (marks[jid], jid))[:most]


def ordered(store: Store, request: Request, offset: int, count: int) -> list[str]:
    """A page of the sub-requests, in the order in which they were added."""
    return request.order[offset : offset + count]


def ends_of(store: Store, request: Request, jids: list[str]) -> list[tuple[str, int] | None]:
    """How some sub-requests ended, and the sequences of their ends; empty and 0 for those that have not ended, None for
    those that are forgotten.
    """
    return [("", 0) if jid in request.unfinished else request.ended.get(jid) for jid in jids]


def count(store: Store, request: Request) -> int:
    """How many sub-requests were added."""
    return len(request.order)


def set_data(store: Store, request: Request, data: str) -> None:
    """Set the data of a new request."""
    request.data = data


def data(store: Store, request: Request) -> str:
    """The data of a request."""
    return request.data


# ---- forgetting


def postpone(store: Store, now: int, request: Request) -> None:
    """Keep an ended request that jobs wait for as if it had ended now."""
    found = _list(store, request.state)
    found.remove((request.state_at, request.seq, request.id))
    request.state_at = now
    found.add((request.state_at, request.seq, request.id))
    save(store, request)


def over(store: Store, until: int) -> list[Request]:
    """The oldest request of each final state that ended by `until`."""
    found = []
    for state in ENDED:
        found += [load(store, id) for _, _, id in _list(store, state).until(until, 1)]
    return found


def first_ended(store: Store, request: Request, most: int) -> list[tuple[str, str, int]]:
    """The sub-requests of an ended request that are forgotten next, those that ended last first, each with its outcome
    and the sequence of its end.
    """
    found = [(jid, outcome, seq) for jid, (outcome, seq) in request.ended.items()]
    return sorted(found, key=lambda one: (-one[2], -OUTCOMES.index(one[1]), one[0]))[:most]


def forget(store: Store, request: Request, most: int) -> int:
    """Forget some sub-requests of an ended request, and with the last of them the request; give how many are left."""
    for jid, *_ in first_ended(store, request, most):
        del request.ended[jid]
    if not request.ended:
        _list(store, request.state).remove((request.state_at, request.seq, request.id))
        del store.requested[request.id]
    return len(request.ended)


def view(request: Request, running: int) -> replies.Request:
    """Everything about a request; `running` of its sub-requests have a valid lease."""
    return replies.Request(
        request.id,
        request.queue,
        request.priority,
        request.limit,
        request.state,
        request.total,
        left(request) - running,
        running,
        request.done,
        request.failed,
        request.canceled,
        request.opened_at,
        request.ended_at,
        request.deadline_at,
        request.open_until if request.state == "open" else 0,
        request.fail_fast,
        request.reason,
        len(request.dependents),
        request.data,
        request.keep_places,
    )
