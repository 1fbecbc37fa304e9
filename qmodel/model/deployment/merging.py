"""Merged replies: the replies of the shards, each true at its own moment, become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Final, TypeVar

from qmodel.contract.arguments import names_family
from qmodel.contract.replies import (
    Job,
    Minute,
    Newest,
    QueueCounts,
    Sample,
    Stats,
    Subscription,
    Tally,
    Throttle,
    TrackedJobs,
    UsedThrottles,
    WorkerCounts,
    WorkerJobs,
)

T = TypeVar("T")
HOLDERS: Final = 25
"""The most holders of a throttle that are shown."""


def _joined(replies: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(one for reply in replies for one in reply)


def _by_name(replies: Iterable[tuple[Any, ...]], add: Callable[[Any, Any], Any]) -> list[Any]:
    """Add up the entries of the same name; they keep the order of their first appearance."""
    found: dict[str, Any] = {}
    for one in _joined(replies):
        found[one.name] = add(found[one.name], one) if one.name in found else one
    return list(found.values())


def tallies(replies: Iterable[tuple[Tally, ...]]) -> list[Tally]:
    """Add up counts by name."""
    return _by_name(replies, lambda a, b: Tally(a.name, a.jobs + b.jobs))


def add_queues(a: QueueCounts, b: QueueCounts) -> QueueCounts:
    """Add up the counts of a queue in two shards."""
    return QueueCounts(
        a.name,
        waiting=a.waiting + b.waiting,
        scheduled=a.scheduled + b.scheduled,
        depends=a.depends + b.depends,
        running=a.running + b.running,
        stalled=a.stalled + b.stalled,
        paused=a.paused or b.paused,
        next_at=min(filter(None, (a.next_at, b.next_at)), default=0),
        recurring=a.recurring + b.recurring,
        due=a.due + b.due,
        throttled=a.throttled + b.throttled,
        pauses=tuple(dict.fromkeys(a.pauses + b.pauses)),
    )


def queues(replies: Iterable[tuple[QueueCounts, ...]]) -> list[QueueCounts]:
    """Add up the counts of each queue."""
    return _by_name(replies, add_queues)


def workers(replies: Iterable[tuple[WorkerCounts, ...]]) -> list[WorkerCounts]:
    """Add up the leases of each worker; the latest seen comes first."""

    def add(a: WorkerCounts, b: WorkerCounts) -> WorkerCounts:
        return WorkerCounts(a.name, max(a.seen_at, b.seen_at), a.jobs + b.jobs, a.stalled + b.stalled)

    return sorted(_by_name(replies, add), key=lambda one: (one.seen_at, one.name), reverse=True)


def worker(replies: Iterable[WorkerJobs]) -> WorkerJobs:
    """Join what a worker holds in each shard."""
    found = list(replies)
    return WorkerJobs(_joined(one.jobs for one in found), _joined(one.stalled for one in found))


def add_throttles(a: Throttle, b: Throttle) -> Throttle:
    """Add up the parts of a throttle that is divided; a family has the same limits in each shard."""
    if names_family(a.name):
        return a._replace(running=a.running + b.running, holders=(a.holders + b.holders)[:HOLDERS])
    return Throttle(
        a.name,
        a.concurrency + b.concurrency,
        a.rate + b.rate,
        a.rate_ms,
        a.capacity + b.capacity,
        a.refill + b.refill,
        a.refill_ms,
        a.running + b.running,
        a.claims + b.claims,
        a.tokens + b.tokens,
        a.parked + b.parked,
        min(a.opens_at, b.opens_at),
        (a.holders + b.holders)[:HOLDERS],
        a.family or b.family,
    )


def throttle(replies: Iterable[Throttle]) -> Throttle:
    """Add up the parts of a throttle."""
    return reduce(add_throttles, replies)


def throttles(replies: Iterable[tuple[Throttle, ...]]) -> list[Throttle]:
    """Add up the parts of each throttle, by name."""
    return sorted(_by_name(replies, add_throttles), key=lambda one: one.name)


def used_throttles(count: int, replies: Iterable[UsedThrottles]) -> UsedThrottles:
    """Merge pages that begin after one name, up to where the first of them ends, and up to `count` throttles."""
    pages = list(replies)
    end = min((page.cursor for page in pages if page.cursor), default="")
    found = [one for one in throttles(page.throttles for page in pages) if not end or one.name <= end]
    more = len(found) > count
    return UsedThrottles(found[count - 1].name if more else end, tuple(found[:count]))


def subscriptions(replies: Iterable[tuple[Subscription, ...]]) -> list[Subscription]:
    """Merge the subscriptions of the shards by name, and add up how far they are behind."""
    named = ([one._replace(name=one.name.partition("}")[2]) for one in reply] for reply in replies)
    return _by_name(map(tuple, named), lambda a, b: a._replace(behind=a.behind + b.behind))


def subscription(replies: Iterable[Subscription | None]) -> Subscription | None:
    """Merge the forms that a subscription has in the shards."""
    return next(iter(subscriptions([(one,) for one in replies if one is not None])), None)


def tracked(replies: Iterable[TrackedJobs]) -> TrackedJobs:
    """Join the tracked jobs of the shards."""
    found = list(replies)
    return TrackedJobs(_joined(one.jobs for one in found), _joined(one.expired for one in found))


def add_samples(a: Sample, b: Sample) -> Sample:
    """Compute the sample of both samples' values (Chan, Golub and LeVeque, 1979)."""
    count = a.count + b.count
    if not a.count or not b.count:
        return a if a.count or not b.count else b
    apart = b.mean - a.mean
    return Sample(
        count,
        a.mean + apart * b.count / count,
        a.squares + b.squares + apart * apart * a.count * b.count / count,
        tuple(map(sum, zip(a.histogram, b.histogram, strict=True))),
    )


def stats(replies: Iterable[Stats]) -> Stats:
    """Add up the statistics of a queue on a day."""

    def add(a: Stats, b: Stats) -> Stats:
        return Stats(
            a.queue,
            a.day,
            add_samples(a.wait, b.wait),
            add_samples(a.run, b.run),
            a.failures + b.failures,
            a.failed + b.failed,
            a.retries + b.retries,
        )

    return reduce(add, replies)


def newest(replies: list[Newest]) -> Newest:
    """Count the events of all shards. No event has this number, and there is no common epoch."""
    return replies[0] if len(replies) == 1 else Newest(sum(one.seq for one in replies), 0)


def metrics(replies: Iterable[tuple[Minute, ...]]) -> tuple[Minute, ...]:
    """Add up what became of jobs, minute by minute."""
    minutes: dict[int, Minute] = {}
    for one in _joined(replies):
        other = minutes.get(one.at, Minute(one.at, 0, 0, 0, 0))
        minutes[one.at] = Minute(one.at, *(x + y for x, y in zip(other[1:], one[1:], strict=True)))
    return tuple(minutes[at] for at in sorted(minutes))


def chosen(jids: tuple[str, ...], replies: Iterable[tuple[Job, ...]]) -> tuple[Job, ...]:
    """Give the jobs in the order in which they were asked for."""
    found = {job.jid: job for job in _joined(replies)}
    return tuple(found[jid] for jid in jids if jid in found)
