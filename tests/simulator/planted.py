"""Planted faults: each breaks one thing in the client, the worker or the server, and the simulator has to notice.

`python -m tests.simulator.planted NAME SEEDS` runs seeds until one gives a finding, and says which.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from redis.exceptions import ResponseError

from qmodel import runtime
from qmodel.backends import bundle
from qmodel.backends.redis import aio, backend, resend
from qmodel.backends.redis.aio import AsyncRedisBackend
from qmodel.backends.redis.common import encoded
from qmodel.backends.redis.resend import code_of
from qmodel.backends.redis.route import Line, Route
from qmodel.errors import ConnectError
from qmodel.model.state import dependencies, requests
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host
from qmodel.serve.log_file import Writer
from qmodel.simulator.cluster import Node
from qmodel.simulator.settings import drawn
from qmodel.simulator.world import Result, run
from qmodel.worker.loop import AsyncRunner
from qmodel.worker.renewal import Renewer
from qmodel.worker.shard_wake_ups import ShardWakeUps
from qmodel.worker.shards import Shards
from qmodel.worker.threads import ThreadRunner
from qmodel.worker.wake_ups import WakeUps
from qmodel.worker.worker import Worker

Fault = Callable[[], contextlib.AbstractContextManager[Any]]


def _no_epochs() -> contextlib.AbstractContextManager[Any]:
    def begin(self: ModelExecutor, space: Any) -> None:
        space.is_begun = True

    return mock.patch.object(ModelExecutor, "begin_epoch", begin)


@contextlib.contextmanager
def _first_connect_tries_once() -> Iterator[None]:
    hopeless = lambda *_: True  # noqa: E731
    with mock.patch.object(aio, "is_hopeless", hopeless), mock.patch.object(backend, "is_hopeless", hopeless):
        yield


def _renews_nothing() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Renewer, "_renew", lambda self, due: None)


def _loses_wake_ups() -> contextlib.AbstractContextManager[Any]:
    begin = WakeUps.__init__

    def lossy(self: WakeUps, connection: Any, queues: Any, worker: str, on_wake_up: Any) -> None:
        begin(self, connection, queues, worker, lambda: on_wake_up() if runtime.random() < 0.7 else None)

    return mock.patch.object(WakeUps, "__init__", lossy)


def _wake_ups_end_at_an_error() -> contextlib.AbstractContextManager[Any]:
    def run_once(self: WakeUps) -> None:
        with contextlib.suppress(ConnectError):
            while self._requests.get():
                self._sleep()
                if self.closed:
                    return
                self._on_wake_up()

    return mock.patch.object(WakeUps, "_run", run_once)


def _resends_under_another_id() -> contextlib.AbstractContextManager[Any]:
    execute, send_again = AsyncRedisBackend.execute, AsyncRedisBackend._send_again

    async def careless(self: AsyncRedisBackend, op: Any, now: int | None = None) -> Any:
        async def other(attempts: Any, error: Any, send: Any) -> Any:
            assert self._dialect is not None
            packed = self._dialect.pack(type(op), encoded(replace(op, request=runtime.token_hex(8)), now, False))
            return await send_again(self, attempts, error, lambda: self._send(packed))

        if getattr(op, "request", ""):
            self.__dict__["_send_again"] = other
        else:
            self.__dict__.pop("_send_again", None)
        return await execute(self, op, now)

    return mock.patch.object(AsyncRedisBackend, "execute", careless)


def _goes_on_after_lock_lost() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Worker, "_abort", lambda self, attempt, abort: None)


def _ends_with_jobs_in_hand() -> contextlib.AbstractContextManager[Any]:
    turn = Worker._turn
    return mock.patch.object(Worker, "_turn", lambda self: turn(self) and not self._stopping)


def _renews_what_has_ended() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Renewer, "drop", lambda self, attempt: None)


@contextlib.contextmanager
def _keeps_connections_after_an_error() -> Iterator[None]:
    async def careless(self: AsyncRedisBackend, packed: bytes) -> Any:
        line = self._line
        connection = self._open(line, line.idle)
        try:
            async with asyncio.timeout(self._timeout):
                await connection.send_packed_command(packed, check_health=False)
                return await connection.read_response(disconnect_on_error=False)
        finally:
            line.idle.append(connection)

    async def forget(self: AsyncRedisBackend, line: Any) -> None:
        pass

    with mock.patch.multiple(AsyncRedisBackend, _send=careless, _forget=forget):
        yield


def _performs_twice() -> contextlib.AbstractContextManager[Any]:
    start = ThreadRunner.run
    return mock.patch.object(ThreadRunner, "run", lambda self, attempts: start(self, [*attempts, attempts[0]]))


def _performs_what_it_gave_back() -> contextlib.AbstractContextManager[Any]:
    def keep(self: ThreadRunner) -> list[Any]:
        return list(self._backlog)

    return mock.patch.object(ThreadRunner, "take_back", keep)


def _ignores_limits_of_requests() -> contextlib.AbstractContextManager[Any]:
    limit = requests.limit
    return mock.patch.object(requests, "limit", lambda store, id: limit(store, id) and limit(store, id) + 1)


def _ends_no_request_by_itself() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(requests, "due_at", lambda request: None)


def _lets_dependents_go() -> contextlib.AbstractContextManager[Any]:
    check = dependencies.check

    def met(store: Any, wanted: Any, *of: Any) -> Any:
        return {jid: edges._replace(unmet=()) for jid, edges in check(store, wanted, *of).items()}

    return mock.patch.object(dependencies, "check", met)


def _performs_too_many() -> contextlib.AbstractContextManager[Any]:
    fill = AsyncRunner._fill

    def more(self: AsyncRunner) -> None:
        self._concurrency += 1
        fill(self)
        self._concurrency -= 1

    take = mock.patch.object(Worker, "_free_slots", lambda self: self.settings.concurrency + 1 - len(self._held))
    stack = contextlib.ExitStack()
    stack.enter_context(take)
    stack.enter_context(mock.patch.object(AsyncRunner, "_fill", more))
    return stack


def _gives_up_early() -> contextlib.AbstractContextManager[Any]:
    begin = resend.Attempts.__init__

    def short(self: Any, deadline: float, *given: Any) -> None:
        begin(self, deadline / 10, *given)

    return mock.patch.object(resend.Attempts, "__init__", short)


def _replies_before_the_commit() -> contextlib.AbstractContextManager[Any]:
    withhold = Host.withhold

    def early(self: Host, session: Any) -> bool:
        withhold(self, session)
        return False

    return mock.patch.object(Host, "withhold", early)


def _does_not_sync() -> contextlib.AbstractContextManager[Any]:
    commit = Writer.commit

    def careless(self: Writer, entries: Any) -> None:
        with mock.patch.object(self._disk, "sync", lambda file: None):
            commit(self, entries)

    return mock.patch.object(Writer, "commit", careless)


def _keeps_half_a_step() -> contextlib.AbstractContextManager[Any]:
    text = bundle.read("state/writes")
    mend = "local left = begun and go_on() or undo()"
    assert mend in text
    broken = bundle.library({"state/writes": text.replace(mend, "local left = {}")})
    return mock.patch.object(bundle, "library", lambda: broken)


def _spins() -> contextlib.AbstractContextManager[Any]:
    return mock.patch.object(Shards, "waits", lambda self, idle: self.turns.current() is None)


@contextlib.contextmanager
def _ignores_moved() -> Iterator[None]:
    is_due = Route.is_due

    def due(self: Route, error: BaseException) -> bool:
        return code_of(error) != "MOVED" and is_due(self, error)

    with mock.patch.multiple(Route, follow=lambda self, error: False, is_due=due):
        yield


@contextlib.contextmanager
def _follows_ask() -> Iterator[None]:
    send = AsyncRedisBackend._send

    async def follow(self: AsyncRedisBackend, packed: bytes) -> Any:
        try:
            return await send(self, packed)
        except ResponseError as error:
            if code_of(error) != "ASK":
                raise
            there = {**self._line.settings, "port": int(str(error).rpartition(":")[2])}
        connection = self._open(Line(there, math.inf), [])
        await connection.send_command("ASKING")
        await connection.read_response()
        await connection.send_packed_command(packed, check_health=False)
        return await connection.read_response()

    with mock.patch.object(AsyncRedisBackend, "_send", follow), mock.patch.object(Node, "guard", lambda self: ""):
        yield


def _loses_wake_ups_of_shards() -> contextlib.AbstractContextManager[Any]:
    wake = ShardWakeUps._wake

    def lossy(self: ShardWakeUps, shard: int) -> None:
        if runtime.random() < 0.7:
            wake(self, shard)
        else:
            self._armed.discard(shard)

    return mock.patch.object(ShardWakeUps, "_wake", lossy)


DEFECTS: dict[str, tuple[Fault, str]] = {
    "no epochs": (_no_epochs, "token granted once"),
    "half a step after an inner error": (_keeps_half_a_step, "invariants"),
    "a first connection that tries once": (_first_connect_tries_once, "tries until the deadline"),
    "a worker that spins while its jobs run": (_spins, "no thread spins"),
}
"""Known defects without their mend, and the oracle that notices."""

FAULTS: dict[str, tuple[Fault, str]] = {
    "a renewer that never renews": (_renews_nothing, "leases are renewed"),
    "a bell that loses wake-ups": (_loses_wake_ups, "idle workers look for jobs"),
    "a bell that ends at an error": (_wake_ups_end_at_an_error, "idle workers look for jobs"),
    "a resend under another request id": (_resends_under_another_id, "linearizable"),
    "a job that goes on after LOCK_LOST": (_goes_on_after_lock_lost, "stops after LOCK_LOST"),
    "a worker that ends with jobs in hand": (_ends_with_jobs_in_hand, "nothing is left over"),
    "a renewer that keeps what has ended": (_renews_what_has_ended, "nothing is left over"),
    "a connection that is kept after an error": (_keeps_connections_after_an_error, "linearizable"),
    "a runner that performs an attempt twice": (_performs_twice, "performed once"),
    "a runner that performs what it gave back": (_performs_what_it_gave_back, "performed before its end"),
    "requests with one job too many": (_ignores_limits_of_requests, "limits"),
    "requests that do not end by themselves": (_ends_no_request_by_itself, "requests end"),
    "dependents that do not wait": (_lets_dependents_go, "dependents wait"),
    "a runner that performs too many": (_performs_too_many, "limits"),
    "a client that gives up early": (_gives_up_early, "tries until the deadline"),
    "a server that replies before the commit": (_replies_before_the_commit, "acknowledged puts exist"),
    "a journal that does not sync": (_does_not_sync, "acknowledged puts exist"),
    "a client that ignores MOVED": (_ignores_moved, "calls are answered"),
    "a client that follows ASK, and no guard": (_follows_ask, "acknowledged puts exist"),
    "wake-ups of shards that get lost": (_loses_wake_ups_of_shards, "idle workers find jobs"),
}
"""Planted faults, and the oracle that notices."""

OF_CLUSTERS = (
    "a worker that spins while its jobs run",
    "a client that ignores MOVED",
    "a client that follows ASK, and no guard",
    "wake-ups of shards that get lost",
)
"""Those that change nothing where there is no cluster: only seeds with one are run."""


def search(name: str, seeds: int) -> tuple[int, Result] | None:
    """Run seeds until the oracle of a fault notices it; give the number of seeds, and the run."""
    fault, oracle = {**DEFECTS, **FAULTS}[name]
    with fault():
        for number in range(1, seeds + 1):
            if name in OF_CLUSTERS and not drawn(str(number)).nodes:
                continue
            result = run(str(number))
            if any(one.oracle == oracle for one in result.findings):
                return number, result
    return None


if __name__ == "__main__":
    found = search(sys.argv[1], int(sys.argv[2]))
    if found is None:
        sys.exit(f"not noticed in {sys.argv[2]} seeds")
    first = found[1].findings[0]
    print(f"{found[0]}: {first.oracle}: {first.text}")
