"""`redis+cluster://host1,host2,host3/0?name=shop&shards=64`: a deployment, one queue system on the nodes of a cluster.

Operations are routed and refused as in `memory://name?shards=64`, by the same plans (`qmodel.model.deployment.plans`).
What a plan sends to several shards goes to all nodes at once: the calls of all shards of a node share a round trip.

Each shard is resent to, and followed to another node, by itself (backend.py): a node that is away holds up only calls
that need one of its shards.

    name=shop    the deployment
    shards=64    how many namespaces it has; may be left out once it exists
    single=a,b   queues that keep one order for all jobs
    split=c,d    throttles that are divided over all shards

It works with every URL of a server: on one server, or on the master that sentinels name, all shards are on one node.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redis import exceptions as raised
from redis.backoff import NoBackoff
from redis.retry import Retry

from qmodel import runtime
from qmodel.backends.redis.armed import Armed
from qmodel.backends.redis.backend import OPEN, RedisBackend, hang_up
from qmodel.backends.redis.common import RESTART_PAUSE, Batch, Probe, blocking_pop, blocking_read, settings, wait_of
from qmodel.backends.redis.confirm import Confirm, asked, check_confirm
from qmodel.backends.redis.confirmed import Confirming
from qmodel.backends.redis.resend import FAILURES, may_pass
from qmodel.backends.redis.route import Line
from qmodel.backends.redis.scatter import away, by_shard, in_order, send_all
from qmodel.backends.redis.setup import Found, Warned, setup
from qmodel.backends.redis.shards import (
    Nodes,
    Prepared,
    ShardRoute,
    check,
    creation,
    definition,
    layout_in,
    options_of_shard,
    shards_of,
)
from qmodel.backends.redis.url import Options
from qmodel.contract.operations import Newest, Operation
from qmodel.contract.routing import Layout
from qmodel.errors import ConnectError
from qmodel.model.deployment.plans import Call, Extra, carry_out, destination
from qmodel.model.deployment.turns import Turns


class RedisShard(Prepared, RedisBackend):
    """A shard: the backend of one namespace. It shares connections with the other shards on its node."""

    def __init__(self, options: Options, of: RedisDeployment) -> None:
        self._of = of
        super().__init__(options, ShardRoute(options, of.nodes))
        self._seeking = of.seeking
        self._closed = of.closed
        OPEN.discard(self)

    def _connect(self) -> Found:
        self._of.nodes.add(self)
        return self._of.found or super()._connect()

    def _go(self) -> bool:
        self._of.nodes.place(self)
        return False

    def _change(self, line: Line) -> bool:
        before = self._line
        self._of.nodes.renew(before)
        self._forget(before)
        return True


class RedisDeployment:
    """Executes operations on the shards of a deployment. Any number of threads may use it, also after a fork."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.nodes = Nodes(settings(options, Retry(NoBackoff(), 0)), options.max_age)
        self.seeking = runtime.Lock()
        self.closed = runtime.Event()
        self.found: Found | None = None
        self._waits: set[Armed] = set()
        self.shards: list[RedisShard] = []
        first = RedisShard(options_of_shard(options, 0, 1), self)
        self.found = first.found
        self.layout: Layout = self._find_layout(first)
        self.shards.append(first)
        for shard in range(1, self.layout.shards):
            self.shards.append(RedisShard(options_of_shard(options, shard, self.layout.shards), self))
        self.warnings: tuple[Warned, ...] = first.warnings + self._check_nodes()
        self.turns = Turns(self.layout.shards, runtime.randbelow(self.layout.shards))
        OPEN.add(self)

    @property
    def at(self) -> dict[str, Any]:
        """The settings of a connection to the node of the first shard."""
        return self.shards[0].at

    def _find_layout(self, first: RedisShard) -> Layout:
        """Read the definition of the deployment; create it if the URL says how many shards it is to have."""
        there = layout_in(first.execute(definition()))
        if there is None and self.options.layout is not None:
            first.execute(creation(self.options.layout))
            there = layout_in(first.execute(definition()))
        return check(self.options, there)

    def _check_nodes(self) -> tuple[Warned, ...]:
        """Check each other node that has a shard, and load the library there. One that is away is checked when it is
        used.
        """
        warnings: tuple[Warned, ...] = ()
        for shard in self.shards:
            if not shard._prepared:
                with contextlib.suppress(*FAILURES):
                    found = shard._talk(setup(shard.options, shard._route))
                    shard._prepared = True
                    shard.found, shard.warnings = found, found.warnings
                    warnings += tuple(one for one in found.warnings if one not in warnings)
        return warnings

    # ---- the protocol

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (ms; default: the servers' clocks); give its reply or Refusal."""
        to = destination(self.layout, op)
        if type(to) is int:
            return self.shards[to].execute(op, now)
        return carry_out(self.layout, op, self.turns, lambda calls: self._execute_part(calls, now))

    def execute_many(
        self, ops: Sequence[Operation], now: int | None = None, confirm: Confirm | None = None
    ) -> list[Any]:
        """Execute operations, each a step of its own, in one round trip to each node. Those of a shard keep their
        order.
        """
        replies: list[Any] = [None] * len(ops)
        places: list[int] = []
        calls: list[Call] = []

        def send(calls: Sequence[Call]) -> list[Any]:
            return self._execute_part(calls, now, confirm)

        def flush() -> None:
            for place, reply in zip(places, send(calls), strict=True):
                replies[place] = reply
            places.clear()
            calls.clear()

        for place, op in enumerate(ops):
            to = destination(self.layout, op)
            if type(to) is int:
                places.append(place)
                calls.append(Call(to, op))
            else:
                flush()
                replies[place] = carry_out(self.layout, op, self.turns, send)
        flush()
        return replies

    def _execute_part(self, calls: Sequence[Call], now: int | None, confirm: Confirm | None = None) -> list[Any]:
        """Execute a part of a plan. What it can do without is not waited for, unless it is to be confirmed."""
        if not isinstance(calls, Extra) or now is not None or confirm or self.options.confirm:
            return self.execute_calls(calls, now, confirm)
        replies = self.try_calls(calls, self.options.connection["socket_timeout"])
        return [None if isinstance(reply, ConnectError) else reply for reply in replies]

    def execute_calls(self, calls: Sequence[Call], now: int | None = None, confirm: Confirm | None = None) -> list[Any]:
        """Execute operations in given shards, in one round trip to each node; give their replies."""
        confirm = confirm or self.options.confirm
        if len(calls) == 1 and confirm is None:
            return [self.shards[calls[0].shard].execute(calls[0].op, now)]
        places = by_shard(calls)
        if confirm is not None:
            found = {
                shard: self.shards[shard].execute_many([calls[at].op for at in some], now, confirm)
                for shard, some in places.items()
            }
        else:
            batches = self._batches(calls, places, now)
            send_all(self.shards, batches)
            for shard, batch in batches.items():
                self.shards[shard]._send_batch(batch)
            found = {shard: batch.finish(self.shards[shard].options.where) for shard, batch in batches.items()}
        return in_order(len(calls), places, found)

    def may_become_ready(self, shards: Iterable[int], queues: Sequence[str], seconds: float) -> set[int]:
        """List those of some shards in which queues may have a job that is ready, or becomes ready by itself."""
        probes = {shard: Probe(self.shards[shard].options.prefix, queues) for shard in shards}
        failed = send_all(self.shards, probes, seconds)
        return {shard for shard, probe in probes.items() if probe.found or shard in failed}

    def try_calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        """Execute operations in given shards without waiting for nodes that are away: their calls get a ConnectError.

        A node is away if it does not answer for so many seconds. Whether it has executed a call is unknown; the same
        call may be sent again.
        """
        places = by_shard(calls)
        batches = self._batches(calls, places, None)
        failed = send_all(self.shards, batches, seconds)
        for _ in range(2):  # a shard that has moved, a connection that broke, a library that is missing
            again = {shard: batches[shard] for shard, error in failed.items() if self._helps(shard, error)}
            if not again:
                break
            failed = {shard: error for shard, error in failed.items() if shard not in again}
            failed |= send_all(self.shards, again, seconds)
        found: dict[int, list[Any]] = {}
        for shard, batch in batches.items():
            where = self.shards[shard].options.where
            if shard in failed:
                found[shard] = [away(where, failed[shard]) if one is None else one for one in batch.replies]
            else:
                try:
                    found[shard] = batch.finish(where)
                except ConnectError as error:
                    found[shard] = [error if one is None else one for one in batch.replies]
        return in_order(len(calls), places, found)

    def _helps(self, shard: int, error: Exception) -> bool:
        """Whether to send once more at once: not to a node that does not answer."""
        before = self.shards[shard]._line
        with contextlib.suppress(*FAILURES, ConnectError):
            self.shards[shard].recover(error)
        hangs = isinstance(error, (raised.TimeoutError, TimeoutError))
        return may_pass(error) and (not hangs or self.shards[shard]._line is not before)

    def _batches(self, calls: Sequence[Call], places: dict[int, list[int]], now: int | None) -> dict[int, Batch]:
        fresh = self.options.fresh_requests
        return {
            shard: Batch([calls[at].op for at in some], now, self.shards[shard]._dialect, fresh)
            for shard, some in places.items()
        }

    def confirming(self, replicas: int = 0, local: bool = False) -> Confirming:
        """Give a backend on the same connections that confirms each call: by replicas, or by the server's disk."""
        confirm = asked(replicas, local)
        assert self.found is not None
        check_confirm(confirm, self.found.facts, self.options.where)
        return Confirming(self, confirm)

    # ---- waiting

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues, in any shard (True), or `timeout` passed (False).

        Also False when a node goes away (a little later), and when another thread closes the backend. A wake-up that
        comes beside the first one is given back.
        """
        timeout = wait_of(timeout)
        names = tuple(queues)
        shards = shards_of(self.layout, names)
        return self._block(shards, lambda shard: blocking_pop(shard.options.prefix, names, timeout), timeout)

    def armed(self) -> Armed:
        """Make what waits for several shards at once."""
        return Armed(self.shards)

    def wake_command(self, shard: int, queues: Sequence[str]) -> tuple[str, ...]:
        """Write the command on which an idle worker waits for a shard, for ever."""
        command = blocking_pop(self.shards[shard].options.prefix, queues, 0)
        assert command is not None, "a worker's queues have valid names"
        return command

    def neighbours(self, shard: int) -> list[int]:
        """List the shards on the node of a shard, that one among them."""
        line = self.shards[shard]._line
        return [other for other, one in enumerate(self.shards) if one._line is line]

    def wait_events(self, after: int, timeout: float) -> bool:
        """Sleep until there are more than `after` events in all shards together (True) or `timeout` passed (False)."""
        found = self.execute_calls([Call(shard, Newest()) for shard in range(self.layout.shards)])
        if sum(one.seq for one in found) > after:
            return True
        return self.wait_after([one.seq for one in found], timeout)

    def wait_after(self, after: Sequence[int], timeout: float) -> bool:
        """Sleep until a shard has an event after the sequence number given for it (True) or `timeout` passed
        (False).
        """
        timeout = wait_of(timeout)
        prefixes = {shard.options.prefix: seq for shard, seq in zip(self.shards, after, strict=True)}

        def command(shard: RedisShard) -> tuple[str, ...]:
            return blocking_read(shard.options.prefix, prefixes[shard.options.prefix], timeout)

        return self._block(range(self.layout.shards), command, timeout)

    def _block(
        self, shards: Sequence[int], command: Callable[[RedisShard], tuple[str, ...] | None], timeout: float
    ) -> bool:
        until = runtime.monotonic() + timeout
        armed = Armed(self.shards)
        self._waits.add(armed)
        woken = away = False
        try:
            for shard in shards:
                words = command(self.shards[shard])
                if words is None or self.closed.is_set():
                    self.closed.wait(timeout)
                    return False
                away |= not armed.arm(shard, words)
            while armed.pending and not woken and not away and not self.closed.is_set():
                left = until - runtime.monotonic()
                if left <= -self.options.connection["socket_timeout"]:
                    break
                for shard, reply in armed.ring(max(left, 0.05)):
                    if isinstance(reply, Exception):
                        away = True
                    elif woken:
                        armed.give_back(shard, reply)
                    else:
                        woken = reply is not None
        finally:
            self._waits.discard(armed)
            armed.disarm()
        if away and not woken:
            self.closed.wait(min(max(until - runtime.monotonic(), 0), RESTART_PAUSE))
        return woken

    # ---- connections

    def close(self) -> None:
        """Close all connections. Waiters wake up with False."""
        self.closed.set()
        for armed in list(self._waits):
            for connection in armed.connections:
                hang_up(connection)
        for shard in self.shards:
            for connection in list(shard._waiting):
                hang_up(connection)
        for line in self.nodes.lines:
            self.shards[0]._forget(line)

    def leave_to_parent(self) -> None:
        """Leave the connections to the parent process, after a fork."""
        self.seeking = runtime.Lock()
        self._waits.clear()
        for line in self.nodes.forget():
            self.shards[0]._forget(line)
        for shard in self.shards:
            shard._waiting.clear()
            shard._seeking = self.seeking
