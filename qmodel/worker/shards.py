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
from qmodel.worker.round_trips import Report, Taker
from qmodel.worker.shard_looks import PATIENCE
from qmodel.worker.shard_wake_ups import ShardWakeUps
from qmodel.worker.turns import Turns

log = logging.getLogger("qmodel.worker")


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
        self._unsure: dict[int, list[tuple[Call, list[Attempt]]]] = {}

        self.wake_ups = ShardWakeUps(
            self._backend,
            plan.queues,
            served,
            plan.worker,
            lambda shard: taker.call_soon(lambda: self.turns.open(shard)),
            lambda shard: taker.call_soon(lambda: self._returned(shard)),
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

    @property
    def waits(self) -> bool:
        """Whether no shard may have jobs."""
        return self.turns.current() is None

    def talk(self, reports: Sequence[Report], wanted: int, free: int) -> None:
        """Report the jobs that have ended, and pop new ones from the current shard."""
        calls = [one for shard in list(self._unsure) if shard not in self.turns.away for one in self._unsure.pop(shard)]
        for op, attempts in reports:
            to = destination(self._layout, op)
            if isinstance(to, Refusal):
                self._taker.apply(op, attempts, error_of(to))
            else:
                assert isinstance(to, int)
                calls.append((Call(to, with_request(op)), attempts))
        shard = None if wanted <= 0 else self.turns.current() if free > 0 else self.turns.ahead()
        if shard is not None:
            shard = self._with_report(calls, shard) if free > 0 else shard
            self._add_pop(calls, shard, min(wanted, 1000), free > 0)
        self._send(calls)

    def _with_report(self, calls: list[tuple[Call, list[Attempt]]], current: int) -> int:
        """Give the shard to take jobs from: the one of the only report, if a pop has to find it empty before it wakes
        us. The report and the pop are then one call. The current shard has the next turn.
        """
        self._aside = not self._aside and len(calls) == 1 and self.turns.is_dry(calls[0][0].shard)
        return calls[0][0].shard if self._aside else current

    def _add_pop(self, calls: list[tuple[Call, list[Attempt]]], shard: int, wanted: int, idle: bool) -> None:
        self.wake_ups.use(shard)
        pop = self._plan.pop(wanted, idle)
        if len(calls) == 1 and calls[0][0].shard == shard and len(calls[0][1]) == 1:
            both = joined(calls[0][0].op, pop)
            if both is not None:
                calls[0] = Call(shard, with_request(both)), calls[0][1]
                return
        calls.append((Call(shard, with_request(pop)), []))

    def _send(self, calls: list[tuple[Call, list[Attempt]]]) -> None:
        here = []
        for call, attempts in calls:
            if call.shard in self.turns.away:
                self._unsure.setdefault(call.shard, []).append((call, attempts))
            else:
                here.append((call, attempts))
        if not here:
            return
        sent = runtime.monotonic()
        found = self._connection.try_calls([call for call, _ in here], PATIENCE)
        for (call, attempts), reply in zip(here, found, strict=True):
            if isinstance(reply, ConnectError) and not getattr(reply, "code", ""):
                self._unsure.setdefault(call.shard, []).append((call, attempts))
                self._leave(call.shard, reply)
            else:
                self._take(call, attempts, reply, sent)

    def _take(self, call: Call, attempts: list[Attempt], reply: Any, sent: float) -> None:
        op = call.op
        if isinstance(op, CompleteAndPop):
            done = isinstance(reply, replies.CompletedAndPopped)
            self._taker.apply(op, attempts, reply.state if done else reply)
            if done:
                self._popped(call.shard, op, reply.jobs, sent)
        elif not isinstance(op, Pop | PopAny):
            self._taker.apply(op, attempts, reply)
        elif isinstance(reply, ConnectError):
            self._taker.pause()
        else:
            self._popped(call.shard, op, reply, sent)

    def _popped(self, shard: int, op: Any, jobs: Sequence[replies.Job], sent: float) -> None:
        current = shard == self.turns.current()
        if jobs and current:
            self.turns.took(len(jobs), len(jobs) >= op.count)
        elif not jobs and op.wait:
            self.wake_ups.arm(shard, look=not self.turns.gave(shard))
            self.turns.arm(shard)
        elif not jobs and current:
            self.turns.rest()
        self._taker.accept(jobs, sent)
