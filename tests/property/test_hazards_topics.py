"""Faults of systems that deliver messages from one shared stream; each test claims that qmodel does not have one.

Each test is a fault that such a system had: retries that touch other subscribers, messages trimmed before they were
read, delayed or prioritised ones that never came, state shared between subscriptions, and growth without bound.
"""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, snapshot
from qmodel.model.invariants import check
from qmodel.model.state.store import Store


class World:
    """A namespace, and a clock that stands still."""

    def __init__(self) -> None:
        self.store = Store()
        self.now = 1_000_000

    def do(self, op: Any) -> Any:
        """Execute an operation, which must not be refused, and check the invariants."""
        reply = engine.step(self.store, self.now, op)
        assert not isinstance(reply, Refusal), reply
        assert check(snapshot.of(self.store)) == []
        return reply

    def subscribe(self, name: str, *patterns: str, **how: Any) -> int:
        """Subscribe with a queue of the same name."""
        left: int = self.do(ops.Subscribe(name, patterns or (">",), name, "k", **how))
        return left

    def publish(self, subject: str = "m", data: str = "", delay_ms: int = 0) -> int:
        """Publish a message."""
        number: int = self.do(ops.Publish(subject, data, delay_ms))
        return number

    def take(self, queue: str) -> list[Any]:
        """Lease all jobs of a queue."""
        return list(self.do(ops.Pop(queue, "w", 1000)))

    def got(self, queue: str) -> list[int]:
        """Lease the jobs of a queue; give the numbers of their messages, in order."""
        return [int(job.jid.rpartition(":")[2]) for job in self.take(queue)]


@pytest.fixture
def world() -> World:
    """An empty namespace."""
    return World()


def test_each_subscription_gets_each_message_once_in_order(world: World) -> None:
    world.subscribe("a")
    world.subscribe("b", "m", "m", ">", "*")
    numbers = [world.publish() for _ in range(5)]
    assert world.got("a") == world.got("b") == numbers


def test_a_retry_of_one_subscription_touches_no_other(world: World) -> None:
    world.subscribe("a")
    world.subscribe("b")
    world.publish()
    for job in world.take("a"):
        world.do(ops.Retry(job.jid, job.token))
    assert [job.remaining for job in world.take("a")] == [4]
    assert [job.remaining for job in world.take("b")] == [5]


def test_a_failure_of_one_subscription_is_no_failure_of_another(world: World) -> None:
    world.subscribe("a", dead_queue="letters-a")
    world.subscribe("b", dead_queue="letters-b")
    number = world.publish("m", "1")
    (failing,), (fine,) = world.take("a"), world.take("b")
    world.do(ops.Fail(failing.jid, failing.token, "g", ""))
    world.do(ops.Complete(fine.jid, fine.token, "done"))
    assert world.do(ops.Get(f"a:{number}")).state == "failed"
    assert world.do(ops.Get(f"b:{number}")).result == "done"
    assert len(world.take("letters-a")) == 1
    assert world.take("letters-b") == []


def test_the_past_is_bounded_by_count_and_by_age(world: World) -> None:
    world.do(ops.ConfigSet("messages-history-count", 3))
    numbers = [world.publish() for _ in range(10)]
    assert [one.seq for one in world.do(ops.Messages())] == numbers[-3:]
    world.do(ops.ConfigSet("messages-history", 1000))
    world.now += 1000
    newest = world.publish()
    assert [one.seq for one in world.do(ops.Messages())] == [newest]


def test_dropped_messages_are_first_delivered_to_subscriptions_that_are_behind(world: World) -> None:
    numbers = [world.publish() for _ in range(5)]
    assert world.subscribe("late", after=0, count=1) == 4
    world.do(ops.ConfigSet("messages-history-count", 1))
    numbers.append(world.publish())
    assert world.do(ops.SubscriptionGet("late")).behind == 1
    assert world.do(ops.CatchUp("late")) == 0
    assert world.got("late") == numbers


def test_a_subscription_that_is_behind_gets_new_messages_after_the_old_ones(world: World) -> None:
    numbers = [world.publish() for _ in range(3)]
    world.subscribe("late", after=0, count=1)
    numbers.append(world.publish())
    assert len(world.store.queues["late"].ready) == 1
    assert world.do(ops.CatchUp("late", 2)) == 1
    assert world.do(ops.CatchUp("late", 2)) == 0
    numbers.append(world.publish())
    assert world.got("late") == numbers


def test_a_subscription_begins_now_at_a_number_at_a_moment_or_with_all(world: World) -> None:
    numbers = []
    for _ in range(4):
        numbers.append(world.publish())
        world.now += 10
    world.subscribe("new")
    world.subscribe("all", after=0)
    world.subscribe("number", after=numbers[1])
    world.subscribe("moment", since=world.now - 15)
    numbers.append(world.publish())
    assert world.got("new") == numbers[4:]
    assert world.got("all") == numbers
    assert world.got("number") == numbers[2:]
    assert world.got("moment") == numbers[3:]


def test_a_clock_that_goes_back_leaves_the_messages_in_order(world: World) -> None:
    first = world.publish()
    world.now -= 500
    second = world.publish()
    assert [one.at for one in world.do(ops.Messages())] == [1_000_000, 1_000_000]
    world.subscribe("late", since=1_000_000)
    world.now += 500
    assert sorted(world.got("late")) == [first, second]


@pytest.mark.parametrize("pattern", ["", "a..b", ".a", "a.", ">.a", "a.>.b", "a*", "a.b>", "**"])
def test_a_bad_pattern_is_refused_when_somebody_subscribes(world: World, pattern: str) -> None:
    refused = engine.step(world.store, world.now, ops.Subscribe("s", ("fine", pattern), "q", "k"))
    assert isinstance(refused, Refusal)
    assert refused.code == ("BAD_PATTERN" if pattern else "BAD_ARGUMENT")
    assert world.store.subscriptions == {}


@pytest.mark.parametrize("subject", ["a..b", ".a", "a.", "*", "a.*", "a.>", "a>b"])
def test_a_bad_subject_is_refused_when_somebody_publishes(world: World, subject: str) -> None:
    refused = engine.step(world.store, world.now, ops.Publish(subject, ""))
    assert isinstance(refused, Refusal)
    assert refused.code == "BAD_SUBJECT"
    assert not world.store.messages.size


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("a.b", ("a.b",), ("a", "b.a", "a.b.c", "A.b")),
        ("a.*", ("a.b", "a.c"), ("a", "a.b.c", "b.a")),
        ("*.b", ("a.b",), ("b", "a.b.c")),
        ("a.>", ("a.b", "a.b.c"), ("a", "b.a")),
        (">", ("a", "a.b.c"), ()),
        ("*.*.>", ("a.b.c", "a.b.c.d"), ("a.b",)),
        ("%a.[x]", ("%a.[x]",), ("b.x", "%a.x")),
    ],
)
def test_a_pattern_fits_segment_by_segment(
    world: World, pattern: str, fits: tuple[str, ...], fits_not: tuple[str, ...]
) -> None:
    world.subscribe("s", pattern)
    wanted = [world.publish(subject) for subject in fits]
    for subject in fits_not:
        world.publish(subject)
    assert world.got("s") == wanted


def test_a_delayed_message_is_ready_at_its_moment_without_another_process(world: World) -> None:
    world.subscribe("s", delay_ms=5)
    number = world.publish(delay_ms=100)
    world.now += 104
    assert world.take("s") == []
    world.now += 1
    assert world.got("s") == [number]


def test_the_delay_of_an_old_message_counts_from_its_own_moment(world: World) -> None:
    number = world.publish(delay_ms=100)
    world.now += 60
    world.subscribe("s", after=0)
    world.now += 39
    assert world.take("s") == []
    world.now += 1
    assert world.got("s") == [number]


def test_priority_and_order_are_those_of_each_subscription(world: World) -> None:
    world.do(ops.Subscribe("slow", ("m",), "q", "k", priority=1))
    world.do(ops.Subscribe("fast", ("m",), "q", "k", priority=-1, lifo=True))
    one, two = world.publish(), world.publish()
    assert [job.jid for job in world.take("q")] == [f"fast:{two}", f"fast:{one}", f"slow:{one}", f"slow:{two}"]


def test_publishing_again_with_the_same_request_changes_nothing(world: World) -> None:
    world.subscribe("s")
    again = ops.Publish("m", "", request="r")
    number = world.do(again)
    before = snapshot.of(world.store)
    assert world.do(again) == number
    assert snapshot.of(world.store) == before


def test_subscribing_again_changes_later_jobs_and_keeps_the_position(world: World) -> None:
    world.subscribe("s", "a", after=0)
    first = world.publish("a")
    world.subscribe("s", "b", after=0)
    world.publish("a")
    second = world.publish("b")
    assert world.got("s") == [first, second]


def test_a_new_subscription_of_an_old_name_makes_no_job_twice(world: World) -> None:
    world.subscribe("s")
    number = world.publish()
    world.do(ops.Unsubscribe("s"))
    world.subscribe("s", after=0)
    assert world.got("s") == [number]


def test_unsubscribing_keeps_the_jobs_and_ends_further_deliveries(world: World) -> None:
    world.subscribe("s")
    number = world.publish()
    assert world.do(ops.Unsubscribe("s")) == 1
    world.publish()
    assert world.do(ops.Unsubscribe("s")) == 0
    assert world.got("s") == [number]


def test_there_are_at_most_a_hundred_subscriptions_with_ten_patterns_each(world: World) -> None:
    many = tuple(f"p{n}" for n in range(11))
    for n in range(100):
        world.do(ops.Subscribe(f"s{n}", many[:10], "q", "k"))
    for op in (ops.Subscribe("more", ("a",), "q", "k"), ops.Subscribe("s1", many, "q", "k")):
        refused = engine.step(world.store, world.now, op)
        assert isinstance(refused, Refusal)
        assert refused.code == "LIMIT_REACHED"
    world.do(ops.Subscribe("s1", ("a",), "q", "k"))


def test_a_trim_makes_no_more_jobs_than_a_step_may(world: World) -> None:
    for _ in range(30):
        world.publish()
    for n in range(100):
        world.do(ops.Subscribe(f"s{n}", (">",), "q", "k", after=0, count=1))
    before = len(world.store.jobs)
    assert world.do(ops.Trim(30)) == 10
    assert len(world.store.jobs) - before <= 1000


def test_nothing_is_left_when_the_last_message_and_subscription_are_gone(world: World) -> None:
    world.publish()
    world.subscribe("s")
    world.do(ops.Unsubscribe("s"))
    assert world.do(ops.Trim()) == 1
    assert not world.store.messages.size
    assert world.store.subscriptions == {}
    assert world.store.jobs == {}
