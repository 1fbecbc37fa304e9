"""A server with the Lua library: the sessions of `qmodel serve` in front of the library on a keyspace in memory.

The keyspace stands for the memory of a Redis server. Its commands fail now and then in the middle of a step, as they
do when a user is not allowed one, or memory runs out. At most one command of a call fails. A crash loses what the
library keeps in Lua; one of a disk that lies also goes back to the last settled copy of the keyspace. That copy is also
what a replica has. In a `split` the replica is promoted, and new connections go there, while the old server serves
those that it has for some more time: two servers, and the old one's writes are lost.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from functools import partial
from typing import Any

from qmodel.backends import bundle
from qmodel.backends.embedded.backend import AsyncEmbeddedBackend, Namespace
from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.backends.redis import raw_keys
from qmodel.contract.operations import BeginEpoch, Operation, Put, Spec
from qmodel.errors import ConnectError
from qmodel.model import copies, engine, restore, snapshot
from qmodel.model.state.store import Store
from qmodel.serve.functions import system_clock
from qmodel.serve.host import Host, Options
from qmodel.serve.proxy import ProxyExecutor
from qmodel.serve.replies import Raw, reply
from qmodel.serve.resp import Fault
from qmodel.simulator.baton import Process
from qmodel.simulator.scene import Scene
from qmodel.simulator.server import PREFIX, Server

EVENTS = bundle.events_key(PREFIX).encode()

Observe = Callable[[Spec, Operation, int, Any], None]


@functools.cache
def _source(build: Callable[[], str]) -> str:
    """Build the library once for all starts of all seeds."""
    return build()


class LuaNamespace(Namespace):
    """A namespace with a Lua state of its own, in which one command of a call may fail."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(lambda: system_clock() / 1000)
        self._host = LuaHost(limit=0)
        self._host.load(_source(bundle.library))
        self._scene = scene
        self._left = 0
        self.keyspace.failing = self._failing

    @property
    def host(self) -> LuaHost:
        """The Lua state of this server process."""
        return self._host

    def call(self, function: str, args: list[str]) -> Any:
        """Make one step. One of its first commands that write fails, or none."""
        scene = self._scene
        fails = scene.failing and scene.chance.random() < scene.settings.inner_errors
        self._left = scene.chance.randrange(1, 6) if fails else 0
        return super().call(function, args)

    def _hand_out(self) -> None:
        self._left = 0  # the step is over
        super()._hand_out()

    def _failing(self, name: str, writes: bool) -> str | None:
        if not (self._left and writes):
            return None
        self._left -= 1
        if self._left:
            return None
        self._scene.oracles.counts["commands that failed"] += 1
        self._scene.net.faulted()
        return "NOPERM this command fails as drawn"


class LuaExecutor(ProxyExecutor):
    """Forwards calls to the library. It tells when each begins, and its outcome, or that it has none."""

    def __init__(
        self, namespace: Namespace, begins: Callable[[], None], observe: Observe, failed: Callable[[], None]
    ) -> None:
        super().__init__("embedded://")
        self._async = AsyncEmbeddedBackend(namespace)
        self._begins, self._observe, self._failed = begins, observe, failed

    async def _forward(self, spec: Spec, op: Operation, now: int | None) -> Raw:
        assert self._async is not None
        moment = system_clock() if now is None else now
        self._begins()
        try:
            outcome = await self._async.execute(op, now)
        except ConnectError as error:
            self._failed()
            return Fault(f"{getattr(error, 'code', '') or 'ERR'} {error}")
        except ReplyError:  # a command failed in the middle of the step
            self._failed()
            raise
        self._observe(spec, op, moment, outcome)
        return reply(spec.reply, outcome)


class LuaServer(Server):
    """A server that executes the Lua library. Beside it, the model executes the same operations: `_twin`.

    The twin follows the keys again, from the next outcome on, after a crash and after a call in which a command failed.
    """

    _twin: Store | None = None
    _kept: dict[bytes, Any] | None = None
    _keyspace: dict[bytes, Any] | None = None
    _namespace: LuaNamespace | None = None
    _read: tuple[int, Store] | None = None
    _calls = 0

    @property
    def store(self) -> Store | None:
        """The state that the keys hold; None while a failed command waits for the next call."""
        if not self.runs or self.host is None or self._namespace is None:
            return None
        if self._read is None or self._read[0] != self._calls:
            try:
                state = restore.store(raw_keys.decode(self._namespace.keyspace.dump(), PREFIX))
            except raw_keys.Corrupt as error:
                if "wait for the next call" not in str(error):
                    self._scene.oracles.found("invariants", str(error))
                return None
            self._read = self._calls, state
            self._compare(state)
        return self._read[1]

    def _compare(self, state: Store) -> None:
        """Compare the keys with the state of the model."""
        if self._twin is None:
            return
        self._take_wakes()
        found = snapshot.difference(snapshot.of(self._twin), snapshot.of(state))
        if found:
            self._scene.oracles.found("the library does what the model does", "; ".join(found[:3]))
            self._twin = None

    def settle(self) -> None:
        """Keep a copy of the keyspace."""
        self.disk.settle()
        if self._namespace is not None:
            self._kept = copy.deepcopy(self._namespace.keyspace._data)

    def replayed(self) -> Store | None:
        """There is no journal."""
        return None

    def _open(self) -> Host:
        self._namespace = namespace = LuaNamespace(self._scene)
        if self._keyspace is not None:
            namespace.keyspace._data = self._keyspace
        self._calls += 1
        self._lose_twin()
        executor = LuaExecutor(namespace, self._take_wakes, partial(self._observed, namespace), self._lose_twin)
        return Host(Options(), executor)

    def crash(self, how: str, down: float) -> None:
        """End the process as others do; or, in a `split`, promote its replica first."""
        if how == "split" and self._process is not None and self.runs:
            self._split(self._process, 2 * down)
        else:
            super().crash("tail" if how == "split" else how, down)

    def _split(self, old: Process, lasts: float) -> None:
        """Start another server with what the replica has, and end the old one after some time."""
        scene, since = self._scene, self.disk.settled_at
        self.crashes += 1
        scene.oracles.counts["crashes: split"] += 1
        scene.net.faulted(lasts + 1.0)
        scene.oracles.parted = True
        self._lose("tail")
        self._process, self.start_at = None, scene.baton.now
        self._ended.wake()
        scene.sleep(lasts)
        scene.baton.kill(old)
        scene.baton.give_way()
        if self.store is not None:
            scene.oracles.recovered(self.store, since)
        scene.oracles.parted = False

    def _lose_twin(self) -> None:
        self._twin = None

    def _take_wakes(self) -> None:
        """Take the wake-ups from the twin that clients have taken from the keys."""
        if self._twin is None or self._namespace is None:
            return
        for name, queue in self._twin.queues.items():
            if queue.wakes:
                queue.wakes = self._namespace.keyspace.execute("LLEN", bundle.wake_key(PREFIX, name).encode())

    def _epochs(self, after: int) -> list[int]:
        """The epochs of the events in the keys after a sequence number."""
        assert self._namespace is not None
        events = self._namespace.keyspace.execute("XRANGE", EVENTS, b"%d-0" % (after + 1), b"+")
        return sorted({int(event[0].partition(b"-")[2]) for event in events})

    def _step_twin(self, spec: Spec, op: Operation, now: int, outcome: Any) -> None:
        """Execute an operation with the model, and compare the outcome; or begin again from the keys."""
        if self._twin is None:
            if self.store is not None:
                self._twin = copies.copy(self.store)
            return
        for epoch in self._epochs(self._twin.seq):
            if epoch > self._twin.epoch:  # the library has begun it by itself, because it did not know the last event
                engine.step(self._twin, now, BeginEpoch(epoch))
        expected = engine.step(self._twin, now, op)
        self._scene.oracles.counts["operations compared with the model"] += 1
        if expected != outcome:
            self._scene.oracles.found("the library does what the model does", f"{op} at {now}: {outcome} != {expected}")
            self._twin = None

    def _observed(self, namespace: LuaNamespace, spec: Spec, op: Operation, now: int, outcome: Any) -> None:
        if namespace is self._namespace:
            self._calls += 1
            self._step_twin(spec, op, now, outcome)
        elif isinstance(op, Put):
            self._scene.oracles.orphans.add(op.jid)
        self._scene.oracles.executed(None, spec, [getattr(op, "request", "")], op, outcome)

    def _lose(self, how: str) -> None:
        assert self._namespace is not None
        self._keyspace = self._namespace.keyspace._data
        if how == "tail" and self._kept is not None:
            self._go_back(self.disk.settled_at)
            self._keyspace = copy.deepcopy(self._kept)
