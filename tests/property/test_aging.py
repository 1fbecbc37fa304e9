"""Aging: the order is that of the priorities that the jobs have at the moment of the pop, computed here from puts, pops
and retries alone, in fractions of a level.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import NamedTuple

import pytest

from qmodel.contract import operations as ops
from qmodel.model import restore, snapshot
from qmodel.model.engine import step
from qmodel.model.state.store import Store


class Waiting(NamedTuple):
    """A waiting job: its priority, when it became ready, and the number of the event that made it ready."""

    priority: int
    ready_at: int
    number: int


class Reference:
    """A queue whose jobs age: at any moment, each has a priority that is its own less its age in levels."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.waiting: dict[str, Waiting] = {}

    def order(self, now: int) -> list[str]:
        def place(jid: str) -> tuple[Fraction, int, int]:
            job = self.waiting[jid]
            return Fraction(job.priority) - Fraction(now - job.ready_at, self.rate), job.ready_at, job.number

        return sorted(self.waiting, key=place)


def aging(rate: int) -> Store:
    """A namespace in which the jobs of a queue age, and no lease ends."""
    store = Store()
    step(store, 1, ops.ConfigSet("heartbeat", 366 * 86_400_000))
    step(store, 1, ops.ConfigSet("aging-q", rate))
    return store


@pytest.mark.parametrize("seed", range(40))
def test_the_first_job_is_the_one_with_the_best_priority_now(seed: int) -> None:
    chance = random.Random(f"aging.{seed}")
    rate = chance.choice((1, 7, 100, 1000, 86_400_000))
    store, reference, now = aging(rate), Reference(rate), 10**12
    for number in range(300):
        now += chance.choice((0, 0, 1, 50, 3000))
        draw = chance.random()
        if reference.waiting and draw < 0.4:
            (job,) = step(store, now, ops.Pop("q", "w", request=str(number)))
            assert job.jid == reference.order(now)[0]
            was = reference.waiting.pop(job.jid)
            if chance.random() < 0.3:
                step(store, now, ops.Retry(job.jid, job.token))
                reference.waiting[job.jid] = Waiting(was.priority, now, store.seq)
        elif reference.waiting and draw < 0.5:
            jid, priority = chance.choice(sorted(reference.waiting)), chance.randrange(-3, 9)
            step(store, now, ops.Priority(jid, priority))
            reference.waiting[jid] = reference.waiting[jid]._replace(priority=priority)
        else:
            priority = chance.choice((0, 0, 1, 5, -2, 40))
            step(store, now, ops.Put("q", str(number), "k", "", priority=priority, retries=1000))
            reference.waiting[str(number)] = Waiting(priority, now, store.seq)
        assert [job.jid for job in step(store, now, ops.Peek("q", 1000))] == reference.order(now)
    later = now + 10**9
    assert [job.jid for job in step(store, later, ops.Peek("q", 1000))] == reference.order(later), "the order is static"


def test_a_stream_of_better_jobs_does_not_starve_a_job() -> None:
    store = aging(60_000)
    step(store, 1, ops.Put("q", "low", "k", "", priority=5))
    popped = []
    for minute in range(12):
        for n in range(2):
            step(store, 2 + minute * 60_000, ops.Put("q", f"{minute}-{n}", "k", ""))
        popped += step(store, 2 + minute * 60_000, ops.Pop("q", "w", request=str(minute)))
    assert [job.jid for job in popped].index("low") == 10


def test_without_the_option_it_does() -> None:
    """The same puts and pops: the negative twin of the test above."""
    store = Store()
    step(store, 1, ops.ConfigSet("heartbeat", 366 * 86_400_000))
    step(store, 1, ops.Put("q", "low", "k", "", priority=5))
    for minute in range(30):
        step(store, 2 + minute * 60_000, ops.Put("q", f"{minute}", "k", ""))
        (job,) = step(store, 2 + minute * 60_000, ops.Pop("q", "w", request=str(minute)))
        assert job.jid != "low"


def test_jobs_that_waited_when_the_option_was_set_find_their_places() -> None:
    """One pop moves a hundred of them, after it has taken its own."""
    store = Store()
    for number in range(250):
        step(store, 1000, ops.Put("q", f"old-{number}", "k", "", priority=9))
    step(store, 2000, ops.ConfigSet("aging", 1000))
    step(store, 20_000, ops.Put("q", "new", "k", ""))
    for pops, moved in enumerate((100, 199, 248)):
        (job,) = step(store, 20_000, ops.Pop("q", "w", request=str(pops)))
        assert job.jid == ("new" if pops == 0 else f"old-{pops - 1}")
        firsts = [first for first, _, _, _ in snapshot.of(store).queues["q"]["ready"]]
        assert sum(first < 0 for first in firsts) == moved


@pytest.mark.parametrize("then", [0, 5000])
def test_waiting_jobs_keep_their_places_when_the_option_changes(then: int) -> None:
    store = aging(1000)
    for number, priority in enumerate((3, 0, -2, 7)):
        step(store, 1000 + number, ops.Put("q", str(number), "k", "", priority=priority))
    before = [job.jid for job in step(store, 2000, ops.Peek("q", 9))]
    step(store, 2000, ops.ConfigSet("aging-q", then))
    assert [job.jid for job in step(store, 2000, ops.Peek("q", 9))] == before == ["2", "1", "0", "3"]
    step(store, 2000, ops.Put("q", "new", "k", "", priority=-1))
    shown = [job.jid for job in step(store, 2000, ops.Peek("q", 9))]
    assert shown.index("new") == (0 if then else 4)


def test_a_fair_queue_does_not_age() -> None:
    store = aging(1)
    step(store, 1, ops.ConfigSet("fair", 1))
    step(store, 10, ops.Put("q", "old", "k", "", priority=1))
    step(store, 1000, ops.Put("q", "new", "k", "", fair_key="a"))
    assert [job.jid for job in step(store, 2000, ops.Pop("q", "w", 2))] == ["new", "old"]


def test_places_are_bounded_and_total_for_every_priority_and_rate() -> None:
    store = aging(366 * 86_400_000)
    for number, priority in enumerate((2**31 - 1, -(2**31), 5, -5, 2**31 - 1)):
        step(store, 1000, ops.Put("q", str(number), "k", "", priority=priority))
    firsts = [first + 5 * 10**14 for first, *_ in snapshot.of(store).queues["q"]["ready"]]
    assert firsts[0] == 1 - 10**14
    assert firsts[-2:] == [10**14 - 1] * 2
    assert [job.jid for job in step(store, 1000, ops.Pop("q", "w", 5))] == ["1", "3", "2", "0", "4"]


def test_lifo_decides_among_those_of_one_moment_only() -> None:
    store = aging(100)
    for jid, at in (("a", 1), ("b", 2), ("c", 2)):
        step(store, at, ops.Put("q", jid, "k", "", lifo=True))
    step(store, 2, ops.Put("q", "d", "k", ""))
    assert [job.jid for job in step(store, 3, ops.Pop("q", "w", 4))] == ["a", "c", "b", "d"]


def test_a_store_made_from_its_snapshot_knows_who_stands_by_age() -> None:
    store = aging(100)
    for number, priority in enumerate((3, 0)):
        step(store, 1, ops.Put("q", str(number), "k", "", priority=priority))
    made = restore.store(snapshot.of(store))
    step(made, 2, ops.Cancel(("0",)))
    assert [job.jid for job in step(made, 2, ops.Pop("q", "w", 5))] == ["1"]
