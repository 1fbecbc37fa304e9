"""The deployment on a real cluster beside the model of a deployment, step by step, while slots move and masters die.

The same histories, with the same moments and the same turns, are executed by `qmodel.model.deployment` and by three
nodes. Every reply of the deployment is compared, and at the end the whole state of every shard: what a deployment does
to a shard is what the model does with the calls of that shard (law of projection), wherever the shard is.

The default run is short. QMODEL_TEST_ALL=1 executes more histories.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from qmodel.backends.redis import dump, raw_keys
from qmodel.backends.redis.connect import connect
from qmodel.backends.redis.deployment import RedisDeployment, RedisShard
from qmodel.backends.redis.shards import creation, prefix_of
from qmodel.conformance.concurrency import timeline
from qmodel.conformance.concurrency.calls import LOST, Call
from qmodel.conformance.concurrency.contention import ByBackend, Run, record, threads
from qmodel.conformance.concurrency.linearizability import check
from qmodel.contract import operations as ops
from qmodel.contract.refusals import ROUTING_REASONS, Refusal
from qmodel.contract.routing import shard_tag
from qmodel.model import engine, snapshot
from qmodel.model.deployment import deployment as deployments
from qmodel.model.deployment.deployment import Deployment
from qmodel.model.deployment.plans import Turns
from tests.backends.test_routes import CLUSTER, SERVER
from tests.clusters import Cluster
from tests.property.test_deployments import LAYOUT, Drawer

ALL = bool(os.environ.get("QMODEL_TEST_ALL"))
SEEDS, STEPS = (range(40), 400) if ALL else (range(3), 150)
EACH = 60
"""After so many steps a shard moves, or its master is killed."""

FAULTS = ("by keys", "at once", "killed")
"""A slot moves key by key, or in one step where the server can; a master is killed, after all was confirmed."""

STARTED = 10**12 - 10**6


class Compared(NamedTuple):
    """What was compared."""

    refused: int
    struck: Counter[str]


class Both:
    """A deployment on nodes, and the model of one."""

    def __init__(self, nodes: Cluster) -> None:
        self.nodes = nodes
        self.name = secrets.token_hex(6)
        options = f"shards={LAYOUT.shards}", f"single={','.join(LAYOUT.single)}", f"split={','.join(LAYOUT.split)}"
        backend = connect(nodes.deployment(self.name, *options, "requests=given", "deadline=30", "confirm=1"))
        assert isinstance(backend, RedisDeployment)
        self.backend = backend
        self.model = Deployment(LAYOUT)
        self.begin()

    def begin(self) -> None:
        """Begin both with the same turns, and without the moment at which the definition was written."""
        self.backend.turns = Turns(LAYOUT.shards)
        for shard in self.backend.shards:
            node = self.nodes.owner(shard.options.prefix)
            keys: Any = node.client.keys(f"{shard.options.prefix}*")
            if keys:
                node.client.delete(*keys)
        assert self.backend.shards[0].execute(creation(LAYOUT), STARTED) == 1
        assert engine.step(self.model.stores[0], STARTED, creation(LAYOUT)) == 1

    def states(self) -> Iterator[tuple[Any, Any]]:
        """Give the state of each shard on its node, and in the model."""
        for shard, store in zip(self.backend.shards, self.model.stores, strict=True):
            prefix = shard.options.prefix
            node = self.nodes.owner(prefix)
            raw: Any = node.client.execute_command(*dump.dump_command(prefix))
            yield raw_keys.decode(dump.dump_of(raw), prefix), snapshot.of(store)


def strike(nodes: Cluster, prefix: str, fault: str) -> str:
    """Move a shard, or kill its master; say what was done."""
    if fault == "killed":
        nodes.fail_over(prefix)
        return fault
    if fault == "at once" and nodes.move_at_once(prefix):
        return fault
    with nodes.moving(prefix) as move:
        return "by keys" if move.some() else "empty"


def compared(nodes: Cluster, seed: int) -> Compared:
    """Compare a history."""
    both, drawer, chance = Both(nodes), Drawer(seed), random.Random(f"moves.{seed}")
    refused, struck = 0, Counter[str]()
    try:
        for number in range(STEPS):
            now, op = drawer.draw()
            if number % EACH == EACH - 1:
                shard = both.backend.shards[chance.randrange(LAYOUT.shards)]
                struck[strike(nodes, shard.options.prefix, FAULTS[(seed + struck.total()) % len(FAULTS)])] += 1
            expected = deployments.step(both.model, now, op)
            assert both.backend.execute(op, now) == expected, (seed, number, op)
            refused += isinstance(expected, Refusal) and expected.code in ROUTING_REASONS
            drawer.hear(expected)
        for there, model in both.states():
            assert there == model, seed
    finally:
        both.backend.close()
    return Compared(refused, struck)


@SERVER
@CLUSTER
@pytest.mark.timeout(1200)
def test_a_cluster_does_what_the_model_of_a_deployment_does_while_slots_move_and_masters_die(nodes: Cluster) -> None:
    found = [compared(nodes, seed) for seed in SEEDS]
    assert sum(one.refused for one in found) > 5
    struck = sum((one.struck for one in found), Counter[str]())
    assert struck.total() >= len(SEEDS) * (STEPS // EACH)
    assert struck["by keys"] and struck["killed"] >= 2


@SERVER
@CLUSTER
def test_a_call_in_the_middle_of_a_move_waits_for_its_end(nodes: Cluster) -> None:
    """Half of the keys are on one node, and half on the other: no step runs on a half."""
    both = Both(nodes)
    jid = f"j{{{shard_tag(1, LAYOUT.shards)}}}"
    calls = [ops.Put("q", jid, "K", "{}"), ops.Pop("q", "w"), ops.Get(jid)]
    got: list[Any] = []
    try:
        assert both.backend.execute(calls[0], 10**12) == jid
        with nodes.moving(both.backend.shards[1].options.prefix) as move:
            assert move.some()
            thread = threading.Thread(target=lambda: got.extend(both.backend.execute(op, 10**12) for op in calls[1:]))
            thread.start()
            thread.join(0.2)
            assert got == []
        thread.join(60)
        expected = [deployments.step(both.model, 10**12, op) for op in calls]
        assert got == expected[1:]
        for there, model in both.states():
            assert there == model
    finally:
        both.backend.close()


@SERVER
@CLUSTER
def test_a_shard_that_does_something_else_is_found(nodes: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = RedisShard.execute

    def wrong(self: RedisShard, op: Any, now: int | None = None, *more: Any) -> Any:
        done = execute(self, op, now, *more)
        if isinstance(op, ops.Put) and self.options.prefix.startswith(f"{{{self._of.options.name}:2."):
            execute(self, ops.Track(op.jid), now)
        return done

    monkeypatch.setattr(RedisShard, "execute", wrong)
    with pytest.raises(AssertionError):
        for seed in range(10):  # until a history puts a job there
            compared(nodes, seed)


# ---- many clients at once

CLIENTS, OPERATIONS = 3, 600 if ALL else 200
PAUSE = 0.005
"""Seconds between two operations of a client, so that they last as long as the faults."""


DEATH_NS = 300_000_000
"""A call that lasts longer was in flight when a master died, and was sent again."""


class Paused(ByBackend):
    """Executes operations on a shard, with a pause before each; what is away is waited for."""

    def execute(self, op: Any, now: int) -> Any:
        time.sleep(PAUSE)
        return super().execute(op, now)


def on_shard(url: str, run: Run) -> list[Call]:
    """Let clients use a shard; give what they called, under its URL."""
    watcher = ByBackend(url)
    try:
        calls = record(watcher, lambda begun: threads([lambda: Paused(url)] * CLIENTS, begun), run)
    finally:
        watcher.close()
    return [call._replace(namespace=url) for call in calls]


def sent_again(calls: list[Call]) -> list[Call]:
    """Give the first sending of each call that was in flight when the master died: its reply was lost.

    It may have been executed as well as the second one: a put is recognised only until another client puts its job.
    """
    in_flight = [call for call in calls if call.returned is not None and call.returned - call.called > DEATH_NS]
    return [call._replace(returned=None, outcome=LOST) for call in in_flight]


def while_faults_strike(nodes: Cluster, name: str) -> tuple[list[Call], Counter[str]]:
    """Let clients use each shard while one moves key by key, one in one step, and the master of one is killed."""
    connect(nodes.deployment(name, "shards=4")).close()
    prefixes, struck = [prefix_of(name, shard, 4) for shard in range(1, 4)], Counter[str]()
    urls = [nodes.url(prefix, "requests=given", "deadline=30", "confirm=1") for prefix in prefixes]
    with ThreadPoolExecutor(len(urls)) as pool:
        counts = (OPERATIONS, OPERATIONS, 2 * OPERATIONS)  # the last shard's master is killed after the others' moves
        parts = [
            pool.submit(on_shard, url, Run(count, f"{name}.{at}"))
            for at, (url, count) in enumerate(zip(urls, counts, strict=True))
        ]
        for prefix, fault in zip(prefixes, FAULTS, strict=True):
            time.sleep(0.1)
            struck[strike(nodes, prefix, fault)] += 1
        assert not any(part.done() for part in parts[2:]), "the clients of the killed master went on"
        return [call for part in parts for call in part.result()], struck


@SERVER
@CLUSTER
def test_the_history_of_each_shard_is_linearizable_while_slots_move_and_masters_die(nodes: Cluster) -> None:
    for _ in range(5 if ALL else 1):
        calls, struck = while_faults_strike(nodes, secrets.token_hex(6))
        assert struck["by keys"] and struck["killed"]
        assert len({call.namespace for call in calls}) == 3 and not any(call.returned is None for call in calls)
        calls += sent_again(calls)
        verdict = check(calls)
        assert verdict.answer == "linearizable", timeline.page(verdict)
        lost = next(call for call in calls if isinstance(call.op, ops.Pop) and call.outcome)
        assert check([call for call in calls if call is not lost]).answer == "violation"
