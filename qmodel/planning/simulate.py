"""Simulate a queue and its workers: the model is the queue, and time is a number.

This module does not know what a queue does. Jobs are put, popped, completed and retried by the model's own operations
at the simulated time. So priorities, throttles, leases and retries are exact, not approximated. Only the environment is
simulated: when jobs arrive, how long they take, how often an attempt fails, and when a worker dies.

**Common random numbers.** Each job's arrival, duration and faults are drawn from the seed, the run and its stream only,
never from the state of the queue. So all points of a grid face the same jobs, and differences between points come from
the grid, not from chance.

**Simplifications.** A worker takes its next job in no time; in production that takes about a millisecond. A retry takes
as long as the first attempt. If workers may die, a worker renews its lease after each third of it, as `qmodel worker`
does; otherwise leases have no effect and are not renewed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.settings import YEAR
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.planning.distributions import Law

QUIET = {
    "max-events": 1,
    "jobs-history-count": 0,
    "failed-history-count": 0,
    "metrics-history": 0,
    "stats-history": 0,
    "histogram-history": 0,
}
"""Options that keep no ended jobs, because a simulation does not read them."""

MOST_FAULTS = 1000


class Stream(NamedTuple):
    """Jobs of one kind. `fails` is the share of attempts that fail, `retry_ms` the delay of the next attempt."""

    name: str
    queue: str
    klass: str
    arrivals: Law
    service: Law
    priority: int = 0
    throttles: tuple[str, ...] = ()
    retries: int = 5
    fails: float = 0.0
    retry_ms: int = 0
    lease_ms: int = 60_000
    renews: bool = True


class Pool(NamedTuple):
    """Identical workers with one job each. `crashes` is the share of attempts in which the worker dies.

    `order` is that of `qmodel worker`: `ordered` checks the queues in the given order, `round-robin` begins each pop
    with the next one.
    """

    name: str
    workers: int
    queues: tuple[str, ...]
    crashes: float = 0.0
    restart_ms: int = 1000
    order: str = "ordered"


class Setup(NamedTuple):
    """What is simulated. `load` multiplies the rate of arrivals; `throttles` and `options` are the engine's."""

    streams: tuple[Stream, ...]
    pools: tuple[Pool, ...]
    throttles: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    options: tuple[tuple[str, int], ...] = ()
    load: float = 1.0
    jobs: int = 5000
    warmup: int = 1000
    seed: str = "1"

    @property
    def faulty(self) -> bool:
        """Whether a lease may be lost."""
        return any(pool.crashes for pool in self.pools) or not all(stream.renews for stream in self.streams)


class Served(NamedTuple):
    """A measured job: when it was put, and after how long it began and was completed; -1 if it never was."""

    stream: str
    put_at: int
    wait_ms: int
    total_ms: int


class Simulated(NamedTuple):
    """A run. `busy` is the share of the workers' time that they worked, while jobs arrived.

    `attempts` counts attempts, and `lost` counts attempts that ended without their lease.
    """

    served: tuple[Served, ...]
    busy: float
    attempts: int
    lost: int


class _Job:
    __slots__ = ("begun_at", "crashes", "done_at", "fails", "jid", "put_at", "service", "stream", "token")

    def __init__(self, jid: str, stream: Stream, put_at: int, service: int) -> None:
        self.jid, self.stream, self.put_at, self.service = jid, stream, put_at, service
        self.begun_at = self.done_at = -1
        self.fails = 0
        self.crashes: list[float] = []
        self.token = 0


def simulate(setup: Setup, run: int) -> Simulated:
    """Simulate a run, by its number: `warmup` jobs, then the measured ones, then as many as `warmup` again.

    Raises AssertionError if the model refuses an operation: then the setup was invalid and had not been checked.
    """
    return _Simulation(setup, run).done()


class _Simulation:
    """A run in progress."""

    def __init__(self, setup: Setup, run: int) -> None:
        self.setup, self.run = setup, run
        self.faulty = setup.faulty
        self.store = Store()
        self.now = 0
        self.tick = 0
        self.agenda: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.jobs: dict[str, _Job] = {}
        self.order: list[_Job] = []
        self.left = setup.jobs + 2 * setup.warmup
        self.attempts = self.lost = 0
        self.busy_ms = 0.0
        self.wakes: set[int] = set()
        self.pools = [_Workers(pool) for pool in setup.pools]
        self.timed = any(name in limits for _, found in setup.throttles for name, _ in found for limits in _TIMED)
        self._prepare()

    def _prepare(self) -> None:
        heartbeat = {} if self.faulty else {"heartbeat": YEAR}
        for option, value in {**QUIET, **heartbeat, **dict(self.setup.options)}.items():
            self._step(ops.ConfigSet(option, value))
        for name, limits in self.setup.throttles:
            self._step(ops.ThrottleSet(name, **dict(limits)))
        self.grace = int(self._step(ops.ConfigGet("grace-period")))
        for stream in self.setup.streams:
            chance = [
                Random(f"{self.setup.seed}/{self.run}/{stream.name}/{what}") for what in ("gaps", "takes", "faults")
            ]
            gaps = stream.arrivals.draws(chance[0], 1 / self.setup.load)
            self._plan_arrival(0.0, stream, gaps, stream.service.draws(chance[1]), chance[2])

    def done(self) -> Simulated:
        """Continue until no event is left."""
        agenda = self.agenda
        while agenda:
            self.now, _, act, given = heapq.heappop(agenda)
            act(*given)
        measured = self.order[self.setup.warmup : self.setup.warmup + self.setup.jobs]
        served = (
            Served(job.stream.name, job.put_at, _since(job, job.begun_at), _since(job, job.done_at)) for job in measured
        )
        return Simulated(tuple(served), self._busy(measured), self.attempts, self.lost)

    def _busy(self, measured: list[_Job]) -> float:
        workers = sum(pool.workers for pool in self.setup.pools)
        span = self.order[-1].put_at - self.order[0].put_at if measured else 0
        return min(self.busy_ms / (workers * span), 1.0) if span else 0.0

    def _step(self, op: Operation) -> Any:
        found = engine.step(self.store, self.now, op)
        assert not isinstance(found, Refusal), (op, found)
        return found

    def _plan(self, at: float, act: Callable[..., None], *given: Any) -> None:
        self.tick += 1
        heapq.heappush(self.agenda, (int(at), self.tick, act, given))

    def _wake(self, at: int) -> None:
        """Schedule a moment at which idle workers look again."""
        if at not in self.wakes:
            self.wakes.add(at)
            self._plan(at, self._woken)

    def _woken(self) -> None:
        self.wakes.discard(self.now)
        self._offer()

    # ---- jobs

    def _plan_arrival(
        self, at: float, stream: Stream, gaps: Iterator[float], takes: Iterator[float], chance: Random
    ) -> None:
        at += next(gaps)  # not rounded: a rate may have many gaps below a millisecond
        self._plan(at + 0.5, self._arrive, at, stream, gaps, takes, chance)

    def _arrive(self, at: float, stream: Stream, gaps: Iterator[float], takes: Iterator[float], chance: Random) -> None:
        if not self.left:
            return
        self.left -= 1
        job = _Job(str(len(self.order)), stream, self.now, int(next(takes) + 0.5))
        self._draw_faults(job, chance)
        self.jobs[job.jid] = job
        self.order.append(job)
        lease = stream.lease_ms if self.faulty else None
        self._step(
            ops.Put(
                stream.queue, job.jid, stream.klass, "", stream.priority,
                retries=stream.retries, lease_ms=lease, throttles=stream.throttles or None,
            )
        )  # fmt: skip
        self._plan_arrival(at, stream, gaps, takes, chance)
        self._offer(stream.queue)

    def _draw_faults(self, job: _Job, chance: Random) -> None:
        fails, crashes = job.stream.fails, max(pool.crashes for pool in self.setup.pools)
        while fails and job.fails < MOST_FAULTS and chance.random() < fails:
            job.fails += 1
        while crashes and len(job.crashes) < MOST_FAULTS and chance.random() < crashes:
            job.crashes.append(chance.random())

    # ---- workers

    def _offer(self, queue: str = "") -> None:
        """Let idle workers take jobs; with a queue, only workers of that queue."""
        for pool in self.pools:
            while pool.idle and (not queue or queue in pool.pool.queues) and self._take(pool, pool.idle[-1]):
                pool.idle.pop()
                if queue:
                    return  # one job has come

    def _free(self, pool: _Workers, worker: int) -> None:
        """Let a worker take its next job, or become idle. The job that it finished may have released others."""
        if not self._take(pool, worker):
            pool.idle.append(worker)
        if self.setup.throttles:
            self._offer()

    def _take(self, pool: _Workers, worker: int) -> bool:
        found = self._step(pool.asking(worker))
        if not found:
            if self.timed:
                for queue in pool.pool.queues:
                    self._wake_at_next(queue)
            return False
        self.attempts += 1
        job = self.jobs[found[0].jid]
        job.token = found[0].token
        job.begun_at = self.now if job.begun_at < 0 else job.begun_at
        self._begin(pool, worker, job, found[0].expires_at)
        return True

    def _wake_at_next(self, queue: str) -> None:
        next_at = self._step(ops.Queue(queue)).next_at
        if next_at > self.now:
            self._wake(next_at)

    def _begin(self, pool: _Workers, worker: int, job: _Job, expires_at: int) -> None:
        stream, ends = job.stream, self.now + job.service
        if pool.pool.crashes and job.crashes:
            ends = self.now + int(job.service * job.crashes.pop())
            self._plan(ends, self._crash, pool, worker, job, job.token, self.now)
        else:
            self._plan(ends, self._end, pool, worker, job, job.token, self.now)
        if self.faulty and stream.renews and stream.lease_ms < 3 * job.service:
            self._plan(self.now + stream.lease_ms // 3, self._renew, job, job.token, ends)
        elif self.faulty and not stream.renews and ends > expires_at:
            self._wake(expires_at + self.grace)

    def _renew(self, job: _Job, token: int, ends: int) -> None:
        if self.now < ends:
            engine.step(self.store, self.now, ops.Heartbeat(job.jid, token))
            self._plan(self.now + job.stream.lease_ms // 3, self._renew, job, token, ends)

    def _crash(self, pool: _Workers, worker: int, job: _Job, token: int, since: int) -> None:
        """Let a worker die. Its job is released when the lease and its grace period end; the worker restarts."""
        self.busy_ms += self.now - since
        third = max(job.stream.lease_ms // 3, 1)
        renewed = (self.now - since - 1) // third * third if job.stream.renews and self.now > since else 0
        self._wake(since + renewed + job.stream.lease_ms + self.grace)
        self._plan(self.now + pool.pool.restart_ms, self._free, pool, worker)

    def _end(self, pool: _Workers, worker: int, job: _Job, token: int, since: int) -> None:
        self.busy_ms += self.now - since
        stream = job.stream
        fails = job.fails > 0
        op = ops.Retry(job.jid, token, stream.retry_ms) if fails else ops.Complete(job.jid, token)
        found = engine.step(self.store, self.now, op)
        if isinstance(found, Refusal):
            self.lost += 1
        elif fails:
            job.fails -= 1
            if stream.retry_ms:
                self._wake(self.now + stream.retry_ms)
            else:
                self._offer(stream.queue)
        else:
            job.done_at = self.now
        self._free(pool, worker)


_TIMED = (("rate", "rate_ms"), ("capacity", "refill"))
"""Limits of throttles that expire by themselves."""


class _Workers:
    """The workers of a pool: the pop of each, and which ones are idle."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.names = [f"{pool.name}-{number}" for number in range(pool.workers)]
        one, several = pool.queues[0], pool.queues
        self.pops: list[Operation] = [
            ops.Pop(one, name) if len(several) == 1 else ops.PopAny(several, name) for name in self.names
        ]
        self.turns = len(several) if pool.order == "round-robin" else 0
        self.turn = 0
        self.idle = list(range(pool.workers))

    def asking(self, worker: int) -> Operation:
        """Give the operation that gets a worker its next job."""
        if self.turns < 2:
            return self.pops[worker]
        self.turn = (self.turn + 1) % self.turns
        queues = self.pool.queues
        return ops.PopAny((*queues[self.turn :], *queues[: self.turn]), self.names[worker])


def _since(job: _Job, moment: int) -> int:
    return moment - job.put_at if moment >= 0 else -1


def erlang_c(workers: int, offered: float) -> float:
    """Compute the share of jobs that wait in an M/M/c queue (exponential times); `offered` is in Erlang.

    Erlang, Post Office Electrical Engineers' Journal 10, 1917. Raises ValueError if the queue grows without bound.

    >>> round(erlang_c(1, 0.5), 3), round(erlang_c(2, 1.0), 4)
    (0.5, 0.3333)
    """
    if not 0 <= offered < workers:
        raise ValueError(f"{offered} Erlang on {workers} workers: waits grow without bound.")
    blocked = 1.0
    for number in range(1, workers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return blocked / (1 - offered / workers * (1 - blocked))


def wait_quantile(workers: int, offered: float, service_ms: float, share: float) -> float:
    """Compute the wait (ms) that a share of the jobs does not exceed in M/M/c."""
    waits = erlang_c(workers, offered)
    if share <= 1 - waits:
        return 0.0
    return math.log(waits / (1 - share)) * service_ms / (workers - offered)
