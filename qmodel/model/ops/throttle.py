"""Setting and showing throttles."""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import ThrottleGet, Throttles, ThrottleSet, ThrottlesUsed, ThrottleUnset
from qmodel.contract.refusals import refuse
from qmodel.model.state import budget, families, jobs, parked, subjects, throttles, throttles_in_use
from qmodel.model.state.records import NEVER, Job
from qmodel.model.state.store import Store, emit


def throttle_set(store: Store, now: int, op: ThrottleSet) -> str:
    """Set all limits of a throttle."""
    missing = _missing(op)
    if missing is not None:
        raise refuse("BAD_ARGUMENT", "throttle_set", missing)
    families.check_room(store, op.throttle)

    changed = throttles.assign(store, now, op)
    limits = throttles.limits(throttles.of(store, op.throttle))
    seq = emit(store, now, "limited", op.throttle, *limits)
    if changed:
        families.keep(store, op.throttle, seq)
    parked.free(store, op.throttle)
    parked.free_family(store, op.throttle)
    return op.throttle


def _missing(op: ThrottleSet) -> str | None:
    """The argument that is missing, or that must not be given without others; or the first limit, if there is none."""
    if (op.rate is None) != (op.rate_ms is None):
        return "rate" if op.rate is None else "rate_ms"
    if op.capacity is None:
        if op.refill is not None or op.refill_ms is not None:
            return "capacity"
    elif op.refill is None:
        return "refill"
    elif op.refill_ms is None:
        return "refill_ms"
    return "concurrency" if op.concurrency is None and op.rate is None and op.capacity is None else None


def throttle_unset(store: Store, now: int, op: ThrottleUnset) -> int:
    """Remove all limits of a throttle, or let one job count in it no longer."""
    if op.jid is not None:
        return _release(store, now, op.throttle, jobs.get(store, op.jid))
    if not throttles.clear(store, op.throttle):
        return 0
    emit(store, now, "unlimited", op.throttle)
    parked.free(store, op.throttle)
    parked.free_family(store, op.throttle)
    return 1


def _release(store: Store, now: int, name: str, job: Job | None) -> int:
    """Let a leased job count in a throttle no longer."""
    if job is None or job.state not in ("running", "stalled") or name not in throttles.counted(job):
        return 0
    emit(store, now, "updated", job.jid)
    parked.release_one(store, job, name)
    return 1


def throttle_get(store: Store, now: int, op: ThrottleGet) -> replies.Throttle:
    """Show a throttle."""
    return _view(store, now, op.throttle)


def throttles_(store: Store, now: int, op: Throttles) -> tuple[replies.Throttle, ...]:
    """List the throttles that have limits."""
    return tuple(_view(store, now, name) for name in throttles.listed(store)[op.offset : op.offset + op.count])


def throttles_used(store: Store, now: int, op: ThrottlesUsed) -> replies.UsedThrottles:
    """List the throttles that are in use, by name: a page of the matching ones."""
    names = throttles_in_use.known(store, op.match, op.cursor, MOST)
    found: list[replies.Throttle] = []
    for at, name in enumerate(names):
        if not subjects.like(op.match, name) or not throttles_in_use.has(store, now, name):
            continue
        if not budget.take(store, throttles_in_use.showing(store, name), 0, found):
            return replies.UsedThrottles(names[at - 1], tuple(found))
        found.append(_view(store, now, name))
        if len(found) == op.count:
            return replies.UsedThrottles(name if at + 1 < len(names) else "", tuple(found))
    return replies.UsedThrottles(names[-1] if len(names) == MOST else "", tuple(found))


def _view(store: Store, now: int, name: str) -> replies.Throttle:
    throttle = throttles.of(store, name)
    opens = throttles.opens_at(store, now, name, 1, (0, 0), False)
    facts = (
        name,
        *throttles.limits(throttle),
        throttles.running(store, name),
        throttles.used(throttle, now),
        throttles.tokens(throttle, now),
        parked.count_parked(store, name),
        opens if now < opens < NEVER else 0,
        throttles.holders(store, name, budget.HOLDERS),
        throttles.family(store, name),
    )
    return replies.Throttle._make(facts)
