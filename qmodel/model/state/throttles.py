"""Throttles: named limits for all jobs of the namespace that name them.

*Concurrency*: at most so many jobs run at once. *Rate*: at most so many are claimed in any window of a given length;
the window slides, so there is no edge at which twice as many pass. *Bucket*: a claim takes tokens, which come back
steadily up to a capacity. A level is kept in units of token times `refill_ms`, so all values are whole numbers below
10^14, and no remainder is lost. A clock that goes back opens nothing: claims later than now are in the window, and no
tokens come back.

The state of a throttle:

- its limits as last set; without limits a throttle restricts nothing, but its jobs are counted;
- the jobs that count against its concurrency: the running and stalled ones that name it;
- the claims in its window, and the level of its bucket;
- the queues with jobs parked at it.

A throttle without limits of its own follows those of its family (qmodel/model/state/families.py). While it has claims
in its window, or its bucket is not full, it is listed by the time at which that ends. Each claim under a family forgets
a few throttles that are past theirs, so nothing is kept of a name that is used no more.

Each queue knows its parked and admitted jobs itself (qmodel/model/state/parked.py).

`queue/<queue>` is a queue's own throttle. All its jobs pass it, so none is parked at it: the queue stops handing out
jobs instead. Its concurrency counts the queue's leases.
"""

from __future__ import annotations

from qmodel.contract.operations import ThrottleSet
from qmodel.model.sorted_list import Ordered
from qmodel.model.state import epochs, families, options, queues
from qmodel.model.state.records import NEVER, Job, Throttle
from qmodel.model.state.store import Store

OWN = "queue/"
"""Prefix of the name of a queue's own throttle."""


LIMITS = ("concurrency", "rate", "rate_ms", "capacity", "refill", "refill_ms")
"""The limits of a throttle. A limit that is not set is 0."""

SWEEP = 2
"""How many throttles that are past their time are forgotten with a claim under a family."""

Before = tuple[int, int]
"""How many jobs pass before another one, and the tokens that they cost."""


def of(store: Store, name: str) -> Throttle:
    """A throttle to read, with the limits of its family if it has none of its own."""
    throttle = store.throttles.get(name) or Throttle()
    ruling = _ruling(store, name)
    return _under(store, throttle, *ruling) if ruling is not None else throttle


def _ruling(store: Store, name: str) -> tuple[str, int] | None:
    """The family of a throttle and its generation; None if the throttle has limits of its own, or no family."""
    if not store.families:
        return None
    own = store.throttles.get(name)
    return None if own is not None and is_set(own) else families.of(store, name)


def _under(store: Store, throttle: Throttle, family: str, generation: int) -> Throttle:
    """A throttle with the limits of its family. What it remembers of an earlier generation does not count."""
    shown = Throttle()
    for limit in LIMITS:
        setattr(shown, limit, getattr(store.throttles[family], limit))
    shown.held, shown.queues, shown.generation = throttle.held, throttle.queues, generation
    if throttle.generation == generation:
        shown.claims, shown.cools_at = throttle.claims, throttle.cools_at
        shown.level, shown.level_at = throttle.level, throttle.level_at
    else:
        shown.level = shown.capacity * shown.refill_ms
    return shown


def family(store: Store, name: str) -> str:
    """The family that limits a throttle, or empty."""
    ruling = _ruling(store, name)
    return ruling[0] if ruling is not None else ""


def made(store: Store, name: str) -> Throttle:
    """A throttle to change."""
    throttle = store.throttles.get(name)
    if throttle is None:
        throttle = store.throttles[name] = Throttle()
    return throttle


def forget_if_empty(store: Store, name: str) -> None:
    """Forget a throttle without limits, jobs, queues and anything to remember."""
    throttle = store.throttles.get(name) or Throttle()
    if not (is_set(throttle) or throttle.held or throttle.queues or throttle.cools_at):
        store.throttles.pop(name, None)


def is_set(throttle: Throttle) -> bool:
    """Whether a throttle has any limit."""
    return bool(throttle.concurrency or throttle.rate or throttle.capacity)


def limits(throttle: Throttle) -> tuple[int, ...]:
    """All limits of a throttle."""
    return tuple(getattr(throttle, limit) for limit in LIMITS)


def own(store: Store, queue: str) -> str:
    """The name of a queue's own throttle, or empty if it has none."""
    name = OWN + queue
    return name if store.throttles and name in store.throttles else ""


def queue_of(name: str) -> str:
    """The queue that this throttle is the own throttle of, or empty."""
    return name.removeprefix(OWN) if name.startswith(OWN) else ""


def named(job: Job) -> list[str]:
    """The throttles that a job names."""
    found = options.get(job, "throttles")
    return list(dict.fromkeys(found.split(" "))) if found else []


def counted(job: Job) -> list[str]:
    """The throttles that a job names and counts in while it is leased: all that were not released."""
    released = options.get(job, "released")
    return [name for name in named(job) if name not in released.split(" ")] if released else named(job)


def release(job: Job, name: str) -> None:
    """Let a job that is in no list count no more in a throttle, until its next claim."""
    before = options.get(job, "released")
    options.set(job, "released", f"{before} {name}" if before else name)


def passed_by(store: Store, job: Job) -> list[str]:
    """All throttles that a job passes: those that it names, and its queue's own."""
    mine = own(store, job.queue)
    return [*named(job), mine] if mine else named(job)


def cost(job: Job) -> int:
    """The tokens that a claim of a job takes."""
    return int(options.get(job, "cost") or 1)


# ---- limits


def assign(store: Store, now: int, op: ThrottleSet) -> bool:
    """Set all limits of a throttle; say whether that changes any. A new bucket is full; an existing one keeps its
    tokens, up to the new capacity.
    """
    cool(store, op.throttle)
    throttle = made(store, op.throttle)
    before = limits(throttle)
    level, was_ms = _level(throttle, now), throttle.refill_ms
    for limit in LIMITS:
        setattr(throttle, limit, getattr(op, limit) or 0)
    full = throttle.capacity * throttle.refill_ms
    throttle.level = min(_converted(level, was_ms, throttle.refill_ms), full) if was_ms else full
    throttle.level_at = max(throttle.level_at, now) if throttle.capacity else 0
    if not throttle.rate:
        throttle.claims.clear()
    return limits(throttle) != before


def _converted(level: int, was_ms: int, refill_ms: int) -> int:
    """Convert a level to units of another `refill_ms`: whole tokens apart, so that all products are exact."""
    return level // was_ms * refill_ms + level % was_ms * refill_ms // was_ms


def clear(store: Store, name: str) -> bool:
    """Remove all limits of a throttle; say whether it had any."""
    throttle = store.throttles.get(name)
    if throttle is None or not is_set(throttle):
        return False
    for limit in LIMITS:
        setattr(throttle, limit, 0)
    throttle.level = throttle.level_at = throttle.generation = 0
    throttle.claims.clear()
    families.drop(store, name)
    forget_if_empty(store, name)
    return True


def listed(store: Store) -> list[str]:
    """The throttles that have limits, by name."""
    return sorted(name for name, throttle in store.throttles.items() if is_set(throttle))


def _level(throttle: Throttle, now: int) -> int:
    """The level of a bucket at a given time."""
    if throttle.capacity == 0:
        return 0
    missing = throttle.capacity * throttle.refill_ms - throttle.level
    elapsed = now - throttle.level_at
    if elapsed <= 0:
        return throttle.level
    if elapsed >= _ceiling(missing, throttle.refill):
        return throttle.level + missing
    return throttle.level + elapsed * throttle.refill


def _ceiling(number: int, by: int) -> int:
    return (number + by - 1) // by


def running(store: Store, name: str) -> int:
    """How many jobs count against the concurrency of a throttle."""
    queue = queue_of(name)
    if queue:
        return len(queues.of(store, queue).locks)
    return len(of(store, name).held)


def opens_alone(store: Store, name: str) -> bool:
    """Whether a throttle may open although no job leaves it: with time, without a limit, or because no job holds it."""
    throttle = of(store, name)
    return bool(throttle.rate or throttle.capacity or not throttle.concurrency or not running(store, name))


def holders(store: Store, name: str, most: int) -> tuple[str, ...]:
    """The first of these jobs."""
    queue = queue_of(name)
    if queue:
        return tuple(place[-1] for place in queues.of(store, queue).locks[:most])
    return tuple(jid for _, jid in of(store, name).held[:most])


# ---- opening


def used(throttle: Throttle, now: int) -> int:
    """How many claims are in the window; without a rate there is none."""
    if not throttle.rate:
        return 0
    return len(throttle.claims) - throttle.claims.count_until(now - throttle.rate_ms)


def opens_at(store: Store, now: int, name: str, cost: int, before: Before, holds: bool) -> int:
    """When a claim of this cost may pass a throttle, after others: now, later, or never by itself. A job that already
    `holds` the throttle does not count again.
    """
    throttle = of(store, name)
    count, spent = before
    if throttle.concurrency and not holds and running(store, name) + count >= throttle.concurrency:
        return NEVER
    window = _window_opens(throttle, now, count) if throttle.rate else now
    return max(window, _bucket_opens(throttle, now, cost, spent) if throttle.capacity else now)


def _window_opens(throttle: Throttle, now: int, count: int) -> int:
    """When the window has room for one more claim."""
    gone = throttle.claims.count_until(now - throttle.rate_ms)
    surplus = len(throttle.claims) - gone + count - throttle.rate
    if surplus < 0:
        return now
    first = throttle.claims[gone + surplus : gone + surplus + 1]
    return (first[0][0] if first else now) + throttle.rate_ms


def _bucket_opens(throttle: Throttle, now: int, cost: int, spent: int) -> int:
    """When the bucket has enough tokens."""
    tokens = min(min(cost, throttle.capacity) + spent, 2 * throttle.capacity)  # bounds the products
    missing = tokens * throttle.refill_ms - _level(throttle, now)
    return max(now, throttle.level_at) + _ceiling(missing, throttle.refill) if missing > 0 else now


def taken(store: Store, name: str, cost: int) -> int:
    """The tokens that a claim takes from a throttle: at most the capacity."""
    throttle = of(store, name)
    return min(cost, throttle.capacity)


def cool(store: Store, name: str) -> None:
    """Forget the window and the bucket that a throttle has under its family, if it has them."""
    throttle = store.throttles.get(name)
    if throttle is not None and throttle.cools_at:
        store.cooling.remove((throttle.cools_at, 0, name))
        throttle.claims = Ordered()
        throttle.level = throttle.level_at = throttle.generation = throttle.cools_at = 0
        forget_if_empty(store, name)


def spend(store: Store, now: int, name: str, cost: int, token: int) -> None:
    """Enter a claim into the window, and take its tokens from the bucket."""
    throttle = of(store, name)
    if throttle.rate:
        throttle.claims.take(throttle.claims.count_until(now - throttle.rate_ms))
        throttle.claims.add((now, epochs.claim(token)))
    if throttle.capacity:
        throttle.level = _level(throttle, now) - min(cost, throttle.capacity) * throttle.refill_ms
        throttle.level_at = max(throttle.level_at, now)
    if (throttle.rate or throttle.capacity) and family(store, name):
        _remember(store, now, name, throttle)


def _remember(store: Store, now: int, name: str, spent: Throttle) -> None:
    """Remember the window and the bucket of a throttle that follows its family, until they are empty and full again."""
    throttle = made(store, name)
    if throttle.cools_at:
        store.cooling.remove((throttle.cools_at, 0, name))
    missing = spent.capacity * spent.refill_ms - spent.level
    full = spent.level_at + _ceiling(missing, spent.refill) if missing > 0 else 0
    throttle.claims, throttle.level, throttle.level_at = spent.claims, spent.level, spent.level_at
    throttle.generation, throttle.cools_at = spent.generation, max(spent.cools_at, now + spent.rate_ms, full)
    store.cooling.add((throttle.cools_at, 0, name))
    for _, _, other in store.cooling.until(now, SWEEP):
        cool(store, other)


def is_full(throttle: Throttle, now: int) -> bool:
    """Whether no token is missing in the bucket, if there is one."""
    return _level(throttle, now) == throttle.capacity * throttle.refill_ms


def tokens(throttle: Throttle, now: int) -> int:
    """How many whole tokens are in the bucket."""
    return _level(throttle, now) // throttle.refill_ms if throttle.capacity else 0
