"""Histories written as programs: the model executes each operation at once, so later steps can use its tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state.store import Store

START = 1_700_000_000_000


class Named(NamedTuple):
    """A history and its name."""

    name: str
    steps: list[Step]


class Script:
    """Records a history while a model executes it."""

    def __init__(self, now: int = START) -> None:
        self.now = now
        self.steps: list[Step] = []
        self.store = Store()

    def do(self, op: Operation, after: int = 0) -> Any:
        """Execute an operation, `after` milliseconds after the previous one."""
        self.now += after
        self.steps.append(Step(self.now, op))
        return engine.step(self.store, self.now, op)

    def put(self, *jids: str, queue: str = "q", **arguments: Any) -> None:
        """Put jobs, a thousand at a time."""
        puts = [ops.Put(queue, jid, "k", "", **arguments) for jid in jids]
        for first in range(0, len(puts), MOST):
            self.do(ops.PutMany(tuple(puts[first : first + MOST])))

    def pop(self, count: int = 1, *, queue: str = "q", worker: str = "w", **arguments: Any) -> list[Any]:
        """Lease jobs."""
        return list(self.do(ops.Pop(queue, worker, count, **arguments)))

    def complete(self, *leased: Any, after: int = 0) -> None:
        """Complete leased jobs, all in one step."""
        self.do(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in leased)), after)

    def set(self, option: str, value: int) -> None:
        """Set an option."""
        self.do(ops.ConfigSet(option, value))

    def look(self) -> None:
        """Execute reads that show the state of jobs, queues, workers and all else."""
        self._look_at_jobs()
        store = self.store
        for key in list(store.uniques)[:5]:
            self.do(ops.UniqueGet(key))
        for id in list(store.requested)[:5]:
            self.do(ops.RequestGet(id))
        for jid in list(store.results)[:5]:
            self.do(ops.Results(jid))
        self.do(ops.Throttles())
        self.do(ops.ThrottlesUsed())
        self.do(ops.Subscriptions())
        self.do(ops.Workers())
        self.do(ops.Queues())
        self.do(ops.Completed())
        self.do(ops.Completed(len(store.completed) + 1, 5))
        self.do(ops.FailedGroups())
        self.do(ops.Tracked())
        self.do(ops.TopTags())
        self.do(ops.Config())
        self.do(ops.Events(max(store.seq - 30, 0), 50))

    def _look_at_jobs(self) -> None:
        store = self.store
        for jid in list(store.jobs)[:20]:
            self.do(ops.Get(jid))
            self.do(ops.Why(jid))
        for queue in list(store.queues)[:5]:
            for read in (ops.Waiting, ops.Scheduled, ops.Depending, ops.Throttled, ops.Running, ops.Stalled):
                self.do(read(queue))
            self.do(ops.Queue(queue))
            self.do(ops.Stats(queue))
        for worker in list(store.workers)[:5]:
            self.do(ops.Worker(worker))
        for jid in list(store.schedules)[:5]:
            self.do(ops.RecurGet(jid))
        for queue in list(store.queues)[:5]:
            self.do(ops.Recurring(queue))
            self.do(ops.Peek(queue, 5))
