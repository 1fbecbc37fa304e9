"""The law of the relay: a job begins after the end of a job in another shard, once, wherever anybody dies.

A life is drawn: the policy, whether the first job fails, whether it ends before the other one is put, and who dies
where. Within one shard the same life is the model's own; with the relay it has to end alike.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Job
from qmodel.contract.routing import Layout
from qmodel.model import invariants, snapshot
from qmodel.model.deployment import relay
from qmodel.model.deployment.deployment import Deployment, execute, step
from qmodel.model.deployment.plans import Call, carry_out

LIVES = 150
FIRST, SECOND = "a{1.3}", "b{3.3}"
TURNS = 60


class Died(Exception):
    """Whoever did something does nothing more."""


class Story(NamedTuple):
    """What happens to the first job, and how the second one depends on it."""

    policy: str
    fails: bool
    early: bool
    mended: bool


def drawn(chance: random.Random) -> Story:
    policy = chance.choice(("block", "fail", "ignore", "cancel"))
    return Story(policy, chance.random() < 0.5, chance.random() < 0.5, chance.random() < 0.5)


class World:
    """A deployment, its time, and chance."""

    def __init__(self, shards: int, chance: random.Random, dies: float) -> None:
        self.deployment = Deployment(Layout(shards, relay=True))
        self.chance, self.dies, self.now, self.deaths = chance, dies, 10**12, 0

    def do(self, op: Any) -> Any:
        """Execute an operation."""
        self.now += 1
        return step(self.deployment, self.now, op)

    def mortal(self, op: Any) -> Any:
        """Execute an operation; who does it may die before each of its calls, and after the last one."""

        def calls(some: list[Call]) -> list[Any]:
            self.may_die()
            return [execute(self.deployment, self.now, call, op) for call in some]

        reply = carry_out(self.deployment.layout, op, self.deployment.turns, calls)
        self.may_die()
        return reply

    def may_die(self) -> None:
        self.now += 1
        if self.chance.random() < self.dies:
            self.deaths += 1
            raise Died

    def until_done(self, act: Callable[[], Any]) -> Any:
        """Begin anew until nobody dies."""
        while True:
            try:
                return act()
            except Died:
                continue


def pass_on(world: World, job: Job) -> None:
    """Perform an errand or a stand-in, as a worker does."""
    if job.klass == relay.STAND_IN:
        found = json.loads(job.data)
        if found["state"] == "complete":
            world.mortal(ops.Complete(job.jid, job.token, found["text"]))
        else:
            world.mortal(ops.Fail(job.jid, job.token, relay.GROUP, found["text"]))
        return
    deliver(world, job)
    world.mortal(ops.Complete(job.jid, job.token))


def deliver(world: World, job: Job, meanwhile: Callable[[], Any] = lambda: None) -> None:
    """Do the steps of an errand; something else happens after the first of them."""
    delivery = relay.deliver(job.jid, **json.loads(job.data))
    op = next(delivery)
    while True:
        reply = world.mortal(op)
        meanwhile()
        try:
            op = delivery.send(reply)
        except StopIteration:
            return


def relays(world: World, perform: Callable[[World, Job], None] = pass_on) -> None:
    """Let workers relay until there is nothing to do; leases of the dead end meanwhile."""
    for _ in range(TURNS):
        world.now += 100_000
        try:
            for job in world.do(ops.Pop(relay.QUEUE, f"w{world.now}")):
                world.may_die()
                perform(world, job)
        except Died:
            continue


def end_first(world: World, fails: bool) -> None:
    [job] = world.do(ops.Pop("q", "w"))
    assert job.jid == FIRST
    world.do(ops.Fail(FIRST, job.token, "g", "broken") if fails else ops.Complete(FIRST, job.token, '"ok"'))


def live(shards: int, story: Story, world: World, perform: Callable[[World, Job], None] = pass_on) -> tuple[Any, ...]:
    """Live a life; tell how the second job ended, and what it got."""
    assert world.do(ops.Put("q", FIRST, "K", "{}", retries=0)) == FIRST
    if story.early:
        end_first(world, story.fails)
    second = ops.Put("q", SECOND, "K", "{}", depends=(f"{FIRST} {story.policy} page",))
    assert world.until_done(lambda: world.mortal(second)) == SECOND
    if not story.early:
        relays(world, perform)
        assert world.do(ops.Get(SECOND)).state == "depends", "it began before the first one had ended"
        end_first(world, story.fails)
    relays(world, perform)
    if story.fails and story.mended and story.policy == "block":
        world.do(ops.RetryMany("q", group="g"))
        end_first(world, False)
        relays(world, perform)
    return told(world)


def told(world: World) -> tuple[Any, ...]:
    for store in world.deployment.stores:
        assert invariants.check(snapshot.of(store)) == []
    job = world.do(ops.Get(SECOND))
    if job is None:
        return ("gone",)
    began = [one.jid for one in world.do(ops.Pop("q", "w", 9))]
    results = world.do(ops.Results(SECOND)) if began else ()
    return job.state, began, [(one.name, one.state, one.result) for one in results]


def expected(story: Story, chance: random.Random) -> tuple[Any, ...]:
    """What the model does in one shard. Only a failure before the put is other: there it fails a job that it would have
    canceled, and with the relay it arrives after the put.
    """
    if story.policy == "cancel" and story.fails and story.early:
        return ("gone",)
    return live(1, story, World(1, chance, 0.0))


@pytest.mark.parametrize("dies", [0.0, 0.3])
def test_a_job_begins_after_the_end_of_a_job_in_another_shard_once(dies: float) -> None:
    deaths = 0
    for number in range(LIVES):
        chance = random.Random(f"relay {number}")
        story = drawn(chance)
        world = World(4, chance, dies)
        assert (number, story, live(4, story, world)) == (number, story, expected(story, chance))
        deaths += world.deaths
    assert (deaths > 5 * LIVES) == (dies > 0)


def test_an_errand_that_ends_before_it_has_delivered_is_noticed() -> None:
    def hasty(world: World, job: Job) -> None:
        if job.klass == relay.ERRAND:
            deliver(world, job, lambda: world.mortal(ops.Complete(job.jid, job.token)))
        else:
            pass_on(world, job)

    wrong = 0
    for number in range(LIVES):
        chance = random.Random(f"relay {number}")
        story = drawn(chance)
        wrong += live(4, story, World(4, chance, 0.3), hasty) != expected(story, chance)
    assert wrong > 20


def test_what_is_refused_leaves_nothing_behind() -> None:
    world = World(4, random.Random(1), 0.0)
    put = ops.Put("q", SECOND, "K", "{}", depends=(FIRST,))
    assert world.do(put) == Refusal("DEPENDENCY_NOT_FOUND", (SECOND, FIRST))
    assert world.do(ops.Length(relay.QUEUE)) == 0 and world.do(ops.Get(SECOND)) is None


def test_other_names_of_other_shards_are_refused_as_before() -> None:
    world = World(4, random.Random(1), 0.0)
    assert world.do(ops.Put("q", FIRST, "K", "{}")) == FIRST
    for put in (
        ops.Put("q", SECOND, "K", "{}", depends=(FIRST,), unique="u{2.1}"),
        ops.PutMany((ops.Put("q", SECOND, "K", "{}", depends=(FIRST,)),)),
    ):
        reply = world.do(put)
        assert isinstance(reply, Refusal) and reply.code == "CROSS_SHARD"
    plain = Deployment(Layout(4))
    step(plain, 1, ops.Put("q", FIRST, "K", "{}"))
    refused = step(plain, 2, ops.Put("q", SECOND, "K", "{}", depends=(FIRST,)))
    assert isinstance(refused, Refusal) and refused.code == "CROSS_SHARD"


def test_dependencies_on_requests_are_not_relayed() -> None:
    deployment = Deployment(Layout(4, relay=True))
    home = Layout(4).home("R")
    here = next(f"j{n}" for n in range(99) if Layout(4).home(f"j{n}") == home)
    far = next(f"j{n}" for n in range(99) if Layout(4).home(f"j{n}") != home)
    step(deployment, 1, ops.RequestOpen("R", "q", 1))
    step(deployment, 1, ops.Put("q", far, "k", ""))
    refused = step(deployment, 1, ops.Put("q", far, "k", "", depends=("R request",)))
    assert isinstance(refused, Refusal) and refused.code == "CROSS_SHARD"
    assert step(deployment, 1, ops.Put("q", here, "k", "", depends=("R request", far))) == here
    waiting = deployment.stores[home].jobs[here].dependencies
    assert "R request" in waiting and len(waiting) == 2
