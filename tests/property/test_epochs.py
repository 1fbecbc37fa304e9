"""Servers that crash, fail over and lose the ends of their logs never issue the same event id or token twice.

Several servers share the log of one namespace: a master executes operations, replicas follow with a lag, and every few
operations something fails. Each server has a clock of its own, up to three seconds off, and a Lua state that a restart
and a full resync end, but neither a partial resync nor FLUSHALL. An epoch begins by the rule of lua/state/epochs.lua.
Two other rules look as good; the same test refutes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model import engine, invariants, snapshot
from qmodel.model.state import epochs
from qmodel.model.state.store import Store, events_after

Step = tuple[int, ops.Operation]


@dataclass
class Server:
    """A process with a log, the state after it, a clock, and what its Lua state remembers."""

    chance: random.Random
    log: list[Step] = field(default_factory=list)
    store: Store = field(default_factory=Store)
    synced: int = 0

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new process has another run id, and an empty Lua state; its clock may have been set."""
        self.digits = self.chance.randrange(epochs.DIGITS)
        self.mine: dict[int, int] = {}
        self.newest = 0
        self.flag = False
        self.off = self.chance.randrange(-3000, 3001)

    def load(self, log: list[Step]) -> None:
        """Replace the log by another one."""
        self.log, self.store = list(log), Store()
        for step in log:
            engine.step(self.store, *step)

    def apply(self, step: Step) -> object:
        self.log.append(step)
        return engine.step(self.store, *step)


Rule = Callable[[Server, int], int]
"""Gives the epoch that a server begins before it writes, or 0 if it goes on in the current one."""


def by_last_write(server: Server, now: int) -> int:
    if server.mine.get(server.store.epoch) == server.store.seq:
        return 0
    server.newest = epochs.next_(server.store, now, server.digits, server.newest)
    return server.newest


def by_flag(server: Server, now: int) -> int:
    begun, server.flag = server.flag, True
    return 0 if begun else epochs.next_(server.store, now, server.digits)


def by_last_epoch_and_time(server: Server, now: int) -> int:
    if server.mine.get(server.store.epoch) == server.store.seq:
        return 0
    return max(server.store.epoch + 1, now)


class Swarm:
    """Three servers, and everything that was ever issued."""

    def __init__(self, seed: int, rule: Rule) -> None:
        self.chance, self.rule = random.Random(seed), rule
        self.servers = [Server(self.chance) for _ in range(3)]
        self.master = self.servers[0]
        self.now, self.jobs, self.crashes = 10**9, 0, 0
        self.ids: set[tuple[int, int]] = set()
        self.tokens: set[int] = set()
        self.twice: list[object] = []

    def write(self, server: Server) -> None:
        """Execute an operation on a server that takes itself for the master."""
        self.now += self.chance.randrange(200)
        now = self.now + server.off
        before = server.store.seq
        epoch = self.rule(server, now)
        if epoch:
            assert not isinstance(server.apply((now, ops.BeginEpoch(epoch))), Refusal)
        self.jobs += 1
        op: ops.Operation = ops.Pop("q", "w", 2)
        if self.chance.random() < 0.5:
            op = ops.Put("q", f"j{self.jobs}", "k", "")
        reply = server.apply((now, op))
        if server.store.seq > before:
            server.mine[server.store.epoch] = server.store.seq
        for event in events_after(server.store, before, 1000):
            self.note(self.ids, (event.epoch, event.seq))
        for job in reply if isinstance(op, ops.Pop) and isinstance(reply, tuple) else ():
            self.note(self.tokens, job.token)

    def note(self, known: set[object] | set[tuple[int, int]] | set[int], one: object) -> None:
        if one in known:
            self.twice.append(one)
        known.add(one)  # type: ignore[arg-type]

    def follow(self) -> None:
        """Let each replica get some of what it lacks; one whose log is another one gets all, with a new Lua state."""
        for server in self.servers:
            if server is not self.master and self.chance.random() < 0.7:
                have = len(server.log)
                if server.log != self.master.log[:have]:
                    server.load(self.master.log)
                    server.mine, server.flag = {}, False
                for step in self.master.log[have : have + self.chance.randrange(6)]:
                    server.apply(step)
        if self.chance.random() < 0.3:
            self.master.synced = len(self.master.log)

    def crash(self) -> None:
        self.crashes += 1
        old = self.master
        way = self.chance.random()
        if way < 0.25:  # a restart that loses what was not synced
            old.load(old.log[: min(old.synced, len(old.log))])
            old.restart()
        elif way < 0.3:  # FLUSHALL
            old.load([])
            old.synced = 0
        else:
            self.master = self.chance.choice([server for server in self.servers if server is not old])
            for _ in range(self.chance.randrange(3)):  # split brain: the old master does not know yet
                self.write(old)
            if self.chance.random() < 0.5:
                old.restart()
            elif self.chance.random() < 0.1:
                old.off = self.chance.randrange(-3000, 3001)
        self.now += self.chance.choice((0, 100, 1500, 5000))

    def run(self, crashes: int) -> Swarm:
        while self.crashes < crashes:
            for _ in range(self.chance.randrange(1, 5)):
                self.write(self.master)
                self.follow()
            self.crash()
        return self


SEEDS = range(12)
CRASHES = 30


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_issued_twice(seed: int) -> None:
    swarm = Swarm(seed, by_last_write).run(CRASHES)
    assert swarm.twice == []
    assert len(swarm.tokens) > CRASHES / 2
    for server in swarm.servers:
        assert invariants.check(snapshot.of(server.store)) == []


@pytest.mark.parametrize("rule", [by_flag, by_last_epoch_and_time, lambda server, now: 0])
def test_a_wrong_rule_is_caught(rule: Rule) -> None:
    assert any(Swarm(seed, rule).run(CRASHES).twice for seed in range(60))
