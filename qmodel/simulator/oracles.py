"""The oracles: what must hold in every run, whatever fails.

They see three things: each operation as the server executes it, what clients were told, and the state of the store.
What the declared failure model may lose (a disk that lies, a failover to a replica that lags) is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import Edge
from qmodel.contract.operations import Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.model import invariants, snapshot
from qmodel.model.state.store import Store
from qmodel.simulator.baton import EPOCH, Process
from qmodel.simulator.workload import CONCURRENCY

PATIENCE: Final = 4.0
"""Seconds after a fault in which leases may end and jobs may wait: the longest pause between two tries, and more."""

MOST: Final = 20
"""Findings that are kept of one run."""


class Finding(NamedTuple):
    """Something that must not happen: when, which oracle noticed, and what."""

    at: float
    oracle: str
    text: str


class Execution(NamedTuple):
    """An operation that the server executed."""

    at: float
    op: Operation
    outcome: Any


class _Jobs:
    """What is known of jobs by id: when each was put last, how it ended, what it depends on, whether it goes once
    it is complete, and when its lease ends.
    """

    def __init__(self) -> None:
        self.put_at: dict[str, float] = {}
        self.over: dict[str, str] = {}
        self.depends: dict[str, str] = {}
        self.goes: set[str] = set()
        self.until: dict[str, int] = {}


class Oracles:
    """All oracles of one run. `clock` is the virtual time, `calm_since` the time of the last fault."""

    def __init__(self, clock: Callable[[], float], calm_since: Callable[[], float]) -> None:
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()
        self.ended = 0
        self.acknowledged: dict[str, float] = {}
        self.lost: set[str] = set()
        self.orphans: set[str] = set()
        """The jobs that may be lost: put at a server that was no master any more, or acknowledged after their loss."""
        self.parted = False
        """Whether such a server still serves clients: what ends there has not ended at the other one."""
        self.tail_lost_at = -inf
        """When a shard of a deployment last lost a tail, perhaps with the word that a worker is idle."""
        self.alive: dict[str, Process] = {}
        self.longest_sleep = PATIENCE
        """Seconds in which an idle worker looks for jobs at least once."""
        self._clock, self._calm_since = clock, calm_since
        self._grants: dict[tuple[str, int], tuple[str, str]] = {}
        self._ends: dict[tuple[str, int], str] = {}
        self._changes, self._checked, self._seq = 0, 0, -1
        self._jobs = _Jobs()
        self._tail_lost = -inf
        self._held: dict[str, tuple[int, str]] = {}
        self._begun: set[tuple[str, int]] = set()
        self._performing: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._looked: dict[str, float] = {}
        self._by_request: dict[str, list[Execution]] = {}
        self._reads: dict[Operation, list[Execution]] = {}
        self._gone: dict[tuple[str, int], float] = {}

    def found(self, oracle: str, text: str) -> None:
        """Note a violation."""
        self.counts[f"found: {oracle}"] += 1
        if len(self.findings) < MOST:
            self.findings.append(Finding(round(self._clock(), 6), oracle, text))

    def calm(self, seconds: float) -> bool:
        """Whether nothing has failed for so long."""
        return self._clock() - self._calm_since() > seconds

    # ---- the server

    def executed(
        self, store: Store | None, spec: Spec, words: Sequence[str], op: Operation | None, outcome: Any, space: str = ""
    ) -> None:
        """Observe an operation that a server executed, in a namespace."""
        self.counts["operations"] += 1
        if op is None:
            return
        self._note_changes(store, spec, outcome)
        execution = Execution(self._clock(), op, outcome)
        if request := words[0] if words else "":
            self._by_request.setdefault(request, []).append(execution)
        else:
            self._reads.setdefault(op, []).append(execution)
        if isinstance(outcome, Refusal):
            self.counts[outcome.code] += 1
            if outcome.code == "LOCK_LOST":
                self._refused(_ended(op), spec.name)
        else:
            self._done(store, spec, op, outcome, space)

    def _note_changes(self, store: Store | None, spec: Spec, outcome: Any) -> None:
        """Count what may have changed the state: not a read, nor a pop that found nothing and told no event."""
        seq, self._seq = self._seq, store.seq if store is not None else -1
        if not (spec.reads or isinstance(outcome, Refusal) or (outcome == () and seq == self._seq >= 0)):
            self._changes += 1

    def _done(self, store: Store | None, spec: Spec, op: Operation, outcome: Any, space: str) -> None:
        for put in _puts(op):
            self._jobs.put_at[put.jid] = self._clock()
            if put.depends:
                self._jobs.depends[put.jid] = Edge.parse(put.depends[0]).jid
        for jid, token in _ended(op):
            self._ends.setdefault((jid, token), spec.name)
            if not isinstance(op, ops.Retry | ops.Release):
                self._jobs.over[jid] = spec.name
            self._held.pop(jid, None)
            self.ended += 1
        for job in _granted(op, outcome):
            self._grant(space, job)
        if isinstance(op, ops.Heartbeat):
            self._jobs.until[op.jid] = outcome.expires_at
        if isinstance(op, ops.Timeout):
            for jid in op.jids:
                self._held.pop(jid, None)
        if isinstance(op, ops.Pop | ops.PopAny | ops.CompleteAndPop):
            self._looked[op.worker] = self._clock()
            if store is not None:
                self._limits(store)

    def _grant(self, space: str, job: replies.Job) -> None:
        token, jid, worker = job.token, job.jid, job.worker
        before = self._grants.setdefault((space, token), (jid, worker))
        if before != (jid, worker):
            self.found("token granted once", f"token {token} of {before[0]} at {before[1]}, then of {jid} at {worker}")
        if jid in self._jobs.depends and self._jobs.depends[jid] not in self._jobs.over:
            self.found("dependents wait", f"{jid} was handed out, and {self._jobs.depends[jid]} had not ended")
        held, self._held[jid] = self._held.get(jid), (token, worker)
        until, self._jobs.until[jid] = self._jobs.until.get(jid, 0) / 1000 - EPOCH, job.expires_at
        if held is not None and held[0] != token and self._lives(held[1]) and until - self._calm_since() > PATIENCE:
            self.found("leases are renewed", f"the lease of {jid} at {held[1]} ended, although nothing failed")

    def _lives(self, worker: str) -> bool:
        process = self.alive.get(worker)
        return process is not None and not process.dead

    def _refused(self, ends: Sequence[tuple[str, int]], how: str) -> None:
        for jid, token in ends if not self.parted else ():
            if (jid, token) in self._ends and len(ends) == 1:
                before = self._ends[jid, token]
                self.found("attempts end once", f"{jid} ended by {before} under token {token}, and again by {how}")

    def _limits(self, store: Store) -> None:
        for name, throttle in store.throttles.items():
            most = CONCURRENCY.get(name, throttle.concurrency)
            if most and len(throttle.held) > most:
                self.found("limits", f"{len(throttle.held)} jobs run under {name}, of {most}")
        for request in store.requested.values():
            runs = sum(store.jobs[jid].state == "running" for jid in request.unfinished if jid in store.jobs)
            if runs > request.first_limit:
                self.found("limits", f"{runs} jobs of {request.id} run, of {request.first_limit}")

    def recovered(self, store: Store, since: float | None, has: Callable[[str], bool] = lambda jid: True) -> None:
        """Observe the state after a start. `since`: what the failure model may have lost was done after that. `has`
        says which jobs belong there.
        """
        self._changes += 1
        if since is not None:
            self._tail_lost = self._clock()
        self._ends = {end: how for end, how in self._ends.items() if not has(end[0])}
        self._held = {jid: held for jid, held in self._held.items() if not has(jid)}
        for jid, at in self.acknowledged.items():
            is_gone = jid in self._jobs.goes and self._jobs.over.get(jid, "").startswith("complete")
            if jid in store.jobs or jid in self.lost or not has(jid) or is_gone:
                continue
            if (since is not None and at > since) or jid in self.orphans:
                self.lost.add(jid)
                self.counts["puts lost by the failure model"] += 1
            else:
                self.found("acknowledged puts exist", f"{jid} was acknowledged at {at:.6f} and is gone")
                self.lost.add(jid)

    # ---- the clients

    def told(self, op: Operation, outcome: Any, called: float) -> None:
        """Observe what a client was told: there must be an execution with this outcome, between call and return.

        The server executes one operation after the other, so its order is the witness of linearizability.
        """
        request = getattr(op, "request", "")
        known = self._by_request.get(request, []) if request else self._reads.get(op, [])
        self.counts["replies compared"] += 1
        if not any(one.outcome == outcome and one.at >= called for one in reversed(known)):
            self.found("linearizable", f"{op} gave {outcome}, which no execution since {called:.6f} gave")
        puts = _puts(op)
        if puts and isinstance(outcome, Refusal):
            self.found("own puts", f"the put of the new job {puts[0].jid} was refused: {outcome}")
            return
        for put, jid in zip(puts, outcome if isinstance(op, ops.PutMany) else (outcome,), strict=False):
            if put.jid == jid:  # no other job stands for it
                self.put(jid, goes=put.keep_newest is not None or put.keep_complete_ms is not None)

    def put(self, jid: str, goes: bool) -> None:
        """Observe that a put was acknowledged, of a job that perhaps `goes` when it is complete."""
        self.counts["puts acknowledged"] += 1
        self.acknowledged[jid] = self._clock()
        if self._jobs.put_at.get(jid, inf) < self._tail_lost:
            self.orphans.add(jid)  # this reply was under way when the put was lost
        if goes:
            self._jobs.goes.add(jid)

    def gave_up(self, error: Exception, called: float, deadline: float) -> None:
        """Observe that a call failed: it must have tried until its deadline, and something must have failed."""
        self.counts["calls given up"] += 1
        if getattr(error, "code", ""):
            return  # the server answered
        took = self._clock() - called
        if self.calm(took + PATIENCE):
            self.found("calls are answered", f"a call gave up, although nothing had failed for a while: {error}")
        if took < deadline / 2:
            self.found("tries until the deadline", f"a call gave up after {took:.3f} s of {deadline:g}: {error}")

    def begins(self, jid: str, token: int, worker: str, most: int) -> None:
        """Observe that a worker begins an attempt: each once, none that it gave back, and at most so many at a time."""
        self.counts["attempts"] += 1
        if (jid, token) in self._ends:
            self.found("performed before its end", f"{worker} performs {jid} after it has ended it under token {token}")
        self._performing[worker] = self._performing.get(worker, 0) + 1
        if self._performing[worker] > most:
            self.found("limits", f"{worker} performs {self._performing[worker]} jobs at a time, of {most}")
        if (jid, token) in self._begun:
            self.found("performed once", f"{jid} was performed twice under token {token}")
        self._begun.add((jid, token))

    def stops(self, worker: str) -> None:
        """Observe that a worker no longer performs an attempt."""
        self._performing[worker] -= 1

    def goes_on(self, store: Store, jid: str, token: int, worker: str) -> None:
        """Observe that an attempt is still performed: not long after its lease was lost and its worker could know."""
        job = store.jobs.get(jid)
        if job is not None and job.token == token and job.state == "running":
            return
        since = self._gone.setdefault((jid, token), self._clock())
        if self._clock() - since > PATIENCE and self.calm(PATIENCE + 1):
            self.found("stops after LOCK_LOST", f"{worker} performs {jid} under token {token}, lost at {since:.3f}")

    # ---- the state

    def each_second(self, stores: Sequence[Store], idle: Sequence[str], limited: bool) -> None:
        """Check the states of servers that run, if anything has changed. `idle` workers have a free slot; their queues
        may have limits.
        """
        if self._checked != self._changes:
            self._checked = self._changes
            for broken in [broken for store in stores for broken in invariants.check(snapshot.of(store))[:1]]:
                self.found("invariants", str(broken))
        known = self.calm(PATIENCE) and self._clock() - self.tail_lost_at > self.longest_sleep
        watched = stores if idle and not limited and known else ()
        waiting = [job.jid for store in watched for job in store.jobs.values() if job.state == "waiting"]
        for worker in idle if self.calm(PATIENCE) else ():
            if self._clock() - self._looked.get(worker, self._clock()) > self.longest_sleep:
                self.found("idle workers look for jobs", f"{worker} has not since {self._looked[worker]:.3f}")
        self._waiting = {jid: self._waiting.get(jid, 0) + 1 for jid in waiting}
        for jid, seconds in self._waiting.items():
            if seconds == 4:
                self.found("idle workers find jobs", f"{jid} has waited for 3 s, and {len(idle)} workers are idle")

    def stands_still(self, stores: Sequence[Store], producers: Sequence[str]) -> None:
        """Note which jobs and producers have not ended, although the faults have stopped and everybody had time."""
        jobs = [store.jobs[jid] for store in stores for jid in unended(store)]
        if jobs:
            self.found("all jobs end", f"{len(jobs)} did not, as {jobs[0].jid} ({jobs[0].state})")
        for name in producers:
            self.found("producers stop", f"{name} has not, although nothing fails")

    def requests_end(self, stores: Sequence[Store]) -> None:
        """Note requests that have not ended, although they all end by themselves."""
        for request in [request for store in stores for request in store.requested.values()]:
            self.counts["requests"] += 1
            if not request.ended_at:
                self.found("requests end", f"{request.id} did not, and is {request.state}")

    def replayed(self, store: Store, again: Store) -> None:
        """Compare the state with what the journal gives."""
        if snapshot.of(store) != snapshot.of(again):
            self.found("the journal is the state", "its replay gives another state than the server has")


def unended(store: Store) -> list[str]:
    """List the jobs that have not ended."""
    return [job.jid for job in store.jobs.values() if job.state not in ("complete", "failed")]


def _puts(op: Operation) -> Sequence[ops.Put]:
    return (op,) if isinstance(op, ops.Put) else op.jobs if isinstance(op, ops.PutMany) else ()


def _granted(op: Operation, outcome: Any) -> Sequence[Any]:
    if isinstance(op, ops.Pop | ops.PopAny) and isinstance(outcome, tuple):
        return outcome
    return outcome.jobs if isinstance(op, ops.CompleteAndPop) and hasattr(outcome, "jobs") else ()


def _ended(op: Operation) -> Sequence[tuple[str, int]]:
    if isinstance(op, ops.CompleteMany):
        return [(one.jid, one.token) for one in op.jobs]
    if isinstance(op, ops.Complete | ops.CompleteAndPop | ops.Fail | ops.Retry | ops.Release):
        return [(op.jid, op.token)]
    return ()
