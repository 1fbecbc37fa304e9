"""The round trips of a worker on a deployment: each report goes to the shard of its job, each pop to the current shard
(turns.py), and all of them to all nodes at once.

What a node did not answer is sent again, as it was, when the node is back: with the same request id, so that jobs that
it has given come with the second reply. The worker never waits for one node while others have work.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, cast

from qmodel import runtime
from qmodel.client.request_ids import with_request
from qmodel.contract import replies
from qmodel.contract.operations import CompleteAndPop, Pop, PopAny
from qmodel.contract.refusals import Refusal
from qmodel.contract.routing import Layout
from qmodel.errors import ConnectError, error_of
from qmodel.model.deployment.plans import Call, destination
from qmodel.worker.attempt import Attempt
from qmodel.worker.connection import Connection
from qmodel.worker.fetch import FetchPlan
from qmodel.worker.reports import joined
from qmodel.worker.round_trips import Report, RoundTrips, Taker
from qmodel.worker.shard_looks import PATIENCE
from qmodel.worker.shard_wake_ups import ShardWakeUps
from qmodel.worker.turns import Turns

log = logging.getLogger("qmodel.worker")


Sent = tuple[Call, list[Attempt], float]
"""A call, the attempts that it reports, and when it was sent first: the leases of a pop that is resent began then."""


class Shards:
    """The shards of a deployment, as a worker uses them."""

    def __init__(
        self,
        connection: Connection,
        plan: FetchPlan,
        taker: Taker,
    ) -> None:
        self._connection = connection
        self._backend = cast(Any, connection.client.backend)
        self._layout: Layout = self._backend.layout
        self._plan, self._taker = plan, taker
        served = self._served()
        self.turns = Turns(served)
        self._aside = False
        self._unsure: dict[int, list[Sent]] = {}
        self._apart: set[int] = set()

        self.wake_ups = ShardWakeUps(
            self._backend,
            plan.queues,
            served,
            plan.worker,
            lambda shard: taker.call_soon(lambda: self.turns.open(shard)),
            lambda shard: taker.call_soon(lambda: self._returned(shard)),
            lambda shard: taker.call_soon(lambda: self.turns.end_rest(shard)),
            taker.is_busy,
        )

    def _returned(self, shard: int) -> None:
        self.turns.come_back(shard)
        if not self.turns.away:
            log.warning("All nodes are back.")

    def _leave(self, shard: int, error: ConnectError) -> None:
        """Leave all shards of a node that does not answer, until it does."""
        if not self.turns.away:
            log.warning("%s The worker goes on with the other shards.", error.sentence)
        for other in self._backend.neighbours(shard):
            self.turns.leave(other)
            self.wake_ups.watch(other)

    def _served(self) -> list[int]:
        """List the shards in which the queues lie, in an order of this worker's own."""
        names, layout = self._plan.queues, self._layout
        if all(name in layout.single for name in names):
            shards = sorted({layout.home(name) for name in names})
        else:
            shards = list(range(layout.shards))
        return runtime.sample(shards, len(shards))

    def waits(self, idle: bool) -> bool:
        """Whether there is no shard to ask: none that may have jobs, or, without a free slot, that may have more."""
        return (self.turns.current() if idle else self.turns.ahead()) is None

    @property
    def rests(self) -> bool:
        """Whether a pop waits for the report of a job, to be one call with it."""
        return self.turns.resting

    @property
    def unanswered(self) -> bool:
        """Whether there are calls that a node that is away has not answered."""
        return bool(self._unsure)

    def talk(self, reports: Sequence[Report], wanted: int, free: int) -> None:
        """Report the jobs that have ended, and pop new ones from the current shard."""
        now = runtime.monotonic()
        calls = [one for shard in list(self._unsure) if shard not in self.turns.away for one in self._unsure.pop(shard)]
        for op, attempts in reports:
            to = destination(self._layout, op)
            if isinstance(to, Refusal):
                self._taker.apply(op, attempts, error_of(to))
            else:
                assert isinstance(to, int)
                calls.append((Call(to, with_request(op)), attempts, now))
        if wanted > 0:
            self._add_pops(calls, min(wanted, 1000), free > 0, now)
        self._send(calls)

    def _add_pops(self, calls: list[Sent], wanted: int, idle: bool, now: float) -> None:
        """Ask the current shard for jobs, and those of reports that have given all they have.

        Such a shard wakes us only after a pop that finds it empty, and a report and a pop are one call. One job is left
        for the current shard; if there is but one to take, the two have it in turn.
        """
        current = self.turns.current() if idle else self.turns.ahead()
        for at in sorted(range(len(calls)), key=lambda at: calls[at][0].shard == current):
            call, attempts, _ = calls[at]
            here, alone = call.shard == current, call.shard != current and wanted == 1
            if not idle or len(attempts) != 1 or not (here or self.turns.is_dry(call.shard)) or (alone and self._aside):
                continue
            if call.shard in self._apart:
                continue
            both = joined(call.op, self._plan.pop(wanted if here else 1, idle))
            if both is not None:
                self.wake_ups.use(call.shard)
                calls[at] = Call(call.shard, with_request(both)), attempts, now
                wanted -= 1
                if here or wanted == 0:
                    self._aside = alone
                    return
        self._aside = False
        if current is None:
            return
        self.wake_ups.use(current)
        calls.append((Call(current, with_request(self._plan.pop(wanted, idle))), [], now))

    def _send(self, calls: list[Sent]) -> None:
        here = []
        for one in calls:
            if one[0].shard in self.turns.away:
                self._unsure.setdefault(one[0].shard, []).append(one)
            else:
                here.append(one)
        if not here:
            return
        tried = runtime.monotonic()
        found = self._connection.try_calls([call for call, _, _ in here], PATIENCE)
        for (call, attempts, sent), reply in zip(here, found, strict=True):
            if isinstance(reply, ConnectError) and not getattr(reply, "code", ""):
                self._unsure.setdefault(call.shard, []).append((call, attempts, sent))
                self._leave(call.shard, reply)
            else:
                self._take(call, attempts, reply, sent, tried)

    def _take(self, call: Call, attempts: list[Attempt], reply: Any, sent: float, tried: float) -> None:
        op = call.op
        if isinstance(op, CompleteAndPop):
            done = isinstance(reply, replies.CompletedAndPopped)
            if isinstance(reply, ConnectError):
                self._apart.add(call.shard)  # a full server takes no pop, but a report alone
            self._taker.apply(op, attempts, reply.state if done else reply)
            if done:
                self._popped(call.shard, op, reply.jobs, sent, tried)
        elif not isinstance(op, Pop | PopAny):
            self._taker.apply(op, attempts, reply)
        elif isinstance(reply, ConnectError):
            self._taker.pause()
        else:
            self._popped(call.shard, op, reply, sent, tried)

    def _popped(self, shard: int, op: Any, jobs: Sequence[replies.Job], sent: float, tried: float) -> None:
        self._apart.discard(shard)
        current = shard == self.turns.current()
        if jobs and current:
            self.turns.took(len(jobs), len(jobs) >= op.count)
            if len(jobs) < op.count and op.wait:
                self.turns.set_aside(shard)
                self.wake_ups.let_rest(shard)
        elif not jobs and op.wait:
            self.wake_ups.arm(shard, look=not self.turns.gave(shard))
            self.turns.arm(shard)
        elif not jobs and current:
            self.turns.rest()
        self._taker.accept(jobs, sent, tried)


def open_trips(connection: Connection, plan: FetchPlan, taker: Taker) -> RoundTrips | Shards:
    """Make what talks to the server: to one namespace, or to the shards of a deployment on servers."""
    on_servers = hasattr(connection.client.backend, "try_calls")
    return (Shards if on_servers else RoundTrips)(connection, plan, taker)
