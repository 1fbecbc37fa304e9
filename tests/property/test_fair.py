"""Fair queues: the turns are those of start-time fair queuing, computed here from puts and pops alone."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest

from qmodel.contract import operations as ops
from qmodel.model import snapshot
from qmodel.model.engine import step
from qmodel.model.state.store import Store

KEYS = "abcde"


def fair() -> Store:
    store = Store()
    step(store, 1, ops.ConfigSet("fair-q", 1))
    return store


class Reference:
    """A fair queue of one priority: a list of (turn, number, key), and the next turn of each key."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, str]] = []
        self.following: dict[str, int] = {}

    def put(self, now: int, number: int, key: str, weight: int) -> None:
        clock = min(self.waiting)[0] if self.waiting else now
        turn = max(clock + 1000 // weight // 2, self.following.get(key, 0))
        self.following[key] = turn + 1000 // weight
        self.waiting.append((turn, number, key))

    def pop(self) -> int:
        first = min(self.waiting)
        self.waiting.remove(first)
        if not self.waiting:
            self.following.clear()
        return first[1]


@pytest.mark.parametrize("seed", range(40))
def test_turns_are_those_of_start_time_fair_queuing(seed: int) -> None:
    chance, store, reference = random.Random(seed), fair(), Reference()
    weights = {key: chance.choice((1, 1, 2, 3, 7, 100)) for key in KEYS}
    for number in range(300):
        now = 10 + number * chance.choice((0, 1))
        if reference.waiting and chance.random() < 0.45:
            (job,) = step(store, now, ops.Pop("q", "w", request=str(number)))
            assert int(job.jid) == reference.pop()
        else:
            key = chance.choice(KEYS[: chance.randrange(1, 6)])
            given = {"fair_weight": weights[key]} if weights[key] > 1 else {}
            step(store, now, ops.Put("q", str(number), "k", "", fair_key=key, **given))
            reference.put(now, number, key, weights[key])
        kept = snapshot.of(store).queues["q"]["turns"]
        assert bool(kept) is bool(reference.waiting)
        passed = min(reference.waiting, default=(0,))[0]
        for key, turn in kept.get(0, {"next": {}})["next"].items():
            assert reference.following[key] == turn
        missing = reference.following.keys() - kept.get(0, {"next": {}})["next"].keys()
        assert all(reference.following[key] <= passed for key in missing)


@pytest.mark.parametrize("seed", range(20))
def test_no_key_that_waits_is_passed_over_more_than_twice(seed: int) -> None:
    chance, store = random.Random(seed), fair()
    waiting: Counter[str] = Counter()
    passed: defaultdict[str, Counter[str]] = defaultdict(Counter)
    keys: dict[str, str] = {}
    for number in range(500):
        if sum(waiting.values()) and chance.random() < 0.5:
            (job,) = step(store, number, ops.Pop("q", "w", request=str(number)))
            key = keys[job.jid]
            waiting[key] -= 1
            passed.pop(key, None)
            for other in +waiting:
                passed[other][key] += 1
                assert passed[other][key] <= 2, (other, key)
        else:
            key = "a" if chance.random() < 0.6 else chance.choice(KEYS)
            keys[str(number)] = key
            waiting[key] += 1
            step(store, number, ops.Put("q", str(number), "k", "", fair_key=key))


@pytest.mark.parametrize("seed", range(20))
def test_peek_shows_due_jobs_at_the_turns_that_they_will_get(seed: int) -> None:
    chance, store = random.Random(seed), fair()
    for number in range(30):
        given = {"delay_ms": 100} if chance.random() < 0.5 else {}
        given |= {"fair_weight": 3} if chance.random() < 0.2 else {}
        put = ops.Put("q", str(number), "k", "", chance.choice((0, 1)), fair_key=chance.choice("abc"), **given)
        step(store, 1 + number, put)
    shown = [job.jid for job in step(store, 200, ops.Peek("q", 30))]
    assert shown == [job.jid for job in step(store, 200, ops.Pop("q", "w", 30))]


def test_a_big_tenant_does_not_delay_a_small_one() -> None:
    store = fair()
    for number in range(1000):
        step(store, 1, ops.Put("q", f"big-{number}", "k", "", fair_key="big"))
    for number in range(10):
        step(store, 2, ops.Put("q", f"small-{number}", "k", "", fair_key="small"))
    popped = [step(store, 3, ops.Pop("q", "w", request=str(n)))[0].jid for n in range(25)]
    assert [jid for jid in popped[:20] if jid.startswith("small")] == [f"small-{n}" for n in range(10)]


def test_a_queue_that_is_not_fair_hands_out_by_time() -> None:
    """The same puts without the option: the negative twin of the test above."""
    store = Store()
    for number in range(30):
        step(store, 1, ops.Put("q", f"big-{number}", "k", "", fair_key="big"))
    step(store, 2, ops.Put("q", "small", "k", "", fair_key="small"))
    popped = step(store, 3, ops.Pop("q", "w", 31))
    assert popped[-1].jid == "small"
    assert all("turn" not in dict(job.options) for job in popped)


def test_why_says_how_many_turns_come_before() -> None:
    store = fair()
    for number in range(4):
        step(store, 1, ops.Put("q", str(number), "k", "", fair_key="a"))
    (reason,) = [one for one in step(store, 1, ops.Why("3")) if one.code == "fair"]
    assert reason.named == {"queue": "q", "fair_key": "a", "rounds": "3"}
    assert "about 3 turns" in reason.sentence


def test_the_second_job_of_a_key_is_served_while_ever_new_keys_come() -> None:
    store = fair()
    for number in range(2):
        step(store, 1, ops.Put("q", f"old-{number}", "k", "", fair_key="old"))
    popped = []
    for number in range(100):
        step(store, 1, ops.Put("q", f"new-{number}", "k", "", fair_key=f"new-{number}"))
        popped += step(store, 1, ops.Pop("q", "w", request=str(number)))
    assert "old-1" in [job.jid for job in popped[:10]]


def test_a_thousand_passed_keys_leave_with_those_that_come() -> None:
    """A queue that is never empty does not keep the keys that it once had."""
    store = fair()
    for number in range(2000):
        step(store, 1, ops.Put("q", str(number), "k", "", fair_key=f"tenant-{number}"))
        if number:
            step(store, 1, ops.Pop("q", "w", request=str(number)))
    assert len(store.queues["q"].turns[0].next) < 10
