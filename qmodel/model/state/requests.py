"""Requests: sets of jobs, their sub-requests, of which only so many run at a time.

A request has a queue, a priority, and a limit. Its sub-requests are jobs of that queue with that priority, in a line of
their own (state/concurrency_keys.py), so no more than the limit of them are in the queue's order or leased. Between
requests the order is that of jobs: a lower priority comes first. Within a priority they take turns, each with as many
sub-requests as its limit, for who is let through goes to the end. What holds of requests:

- *Streamed, or at once.* While it is open sub-requests are added; once it is closed it ends with the last of them.
- *Each sub-request is counted once*, when it ends: done when it completes, failed when it fails, canceled when it is
  deleted, or put anew and so made a job of its own. One that failed and is tried again is such a job too: a count never
  changes, nor does a request that has ended.
- *Known by its id.* A sub-request that is added again is not put again, even if its job is kept no longer.
- *It ends once*, with one event, in the step in which its last sub-request ends, or in which it is closed.
- An ended request is kept for requests-history, and deleted when others are opened or added to: at least as many
  sub-requests are forgotten as an operation adds, so none pile up.
"""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.contract.refusals import refuse
from qmodel.model.sorted_list import Ordered
from qmodel.model.state.store import Place, Store

ENDED = ("done", "canceled")


class Request:
    """A request. It was opened with `first_priority` and `first_limit`; `priority` and `limit` may be others since."""

    __slots__ = (
        "canceled", "done", "ended", "ended_at", "failed", "first_limit", "first_priority", "id", "limit", "opened_at",
        "priority", "queue", "seq", "state", "state_at", "total", "unfinished",
    )  # fmt: skip

    def __init__(self, id: str, queue: str, priority: int, limit: int, now: int) -> None:
        self.id = id
        self.queue = queue
        self.priority = self.first_priority = priority
        self.limit = self.first_limit = limit
        self.state = ""
        self.total = self.done = self.failed = self.canceled = 0
        self.opened_at = self.state_at = now
        self.ended_at = self.seq = 0
        self.unfinished: dict[str, None] = {}
        self.ended: dict[str, None] = {}


def get(store: Store, id: str) -> Request | None:
    """A request that may not exist."""
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
    """How many of its sub-requests may be in order or leased: none any more when it is called off."""
    request = load(store, id)
    return request.limit if request.state in ("open", "closed") else 0


def has_ended(request: Request) -> bool:
    """Whether it has ended."""
    return request.state in ENDED


def move(store: Store, now: int, request: Request, state: str) -> None:
    """Let it be in another state, as of the last event."""
    if request.state:
        _list(store, request.state).remove((request.state_at, request.seq, request.id))
    request.state, request.state_at, request.seq = state, now, store.seq
    if has_ended(request):
        request.ended_at = now
    _list(store, state).add((now, request.seq, request.id))


def _list(store: Store, state: str) -> Ordered[Place]:
    """The requests in a state, by the moment since which they are."""
    found = store.request_states.get(state)
    if found is None:
        found = store.request_states[state] = Ordered()
    return found


def save(store: Store, request: Request) -> None:
    """Keep what was changed of it."""
    store.requested[request.id] = request


def page(store: Store, state: str, offset: int, count: int) -> tuple[int, tuple[str, ...]]:
    """How many requests are in a state, and a page of their ids, longest so first."""
    found = _list(store, state)
    return len(found), tuple(id for _, _, id in found[offset : offset + count])


# ---- sub-requests


def knows(store: Store, request: Request, jid: str) -> bool:
    """Whether a job is, or was, a sub-request of it."""
    return jid in request.unfinished or jid in request.ended


def add(store: Store, request: Request, jid: str) -> None:
    """Let a job be a sub-request of it."""
    request.unfinished[jid] = None
    request.total += 1


def finish(store: Store, request: Request, jid: str, outcome: str) -> None:
    """Count a sub-request that has ended: done, failed or canceled."""
    del request.unfinished[jid]
    request.ended[jid] = None
    setattr(request, outcome, getattr(request, outcome) + 1)


def left(request: Request) -> int:
    """How many of its sub-requests have not ended."""
    return request.total - request.done - request.failed - request.canceled


def unfinished(store: Store, request: Request, most: int) -> list[str]:
    """Some of its sub-requests that have not ended, by id."""
    return sorted(request.unfinished)[:most]


# ---- forgetting


def over(store: Store, until: int) -> list[Request]:
    """Of the requests that ended by a moment one of each kind, the oldest."""
    found = []
    for state in ENDED:
        found += [load(store, id) for _, _, id in _list(store, state).until(until, 1)]
    return found


def forget(store: Store, request: Request, most: int) -> int:
    """Forget some sub-requests of an ended request, and with the last of them the request; give how many are left."""
    for jid in sorted(request.ended)[:most]:
        del request.ended[jid]
    if not request.ended:
        _list(store, request.state).remove((request.state_at, request.seq, request.id))
        del store.requested[request.id]
    return len(request.ended)


def view(request: Request, running: int) -> replies.Request:
    """Everything about a request, of which so many sub-requests are under a valid lease."""
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
    )
