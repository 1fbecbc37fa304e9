"""Why a job does not run: its state, its throttles, its queue."""

from __future__ import annotations

from qmodel.contract.lifecycle import seen_at
from qmodel.contract.reasons import Reason
from qmodel.model.state import (
    concurrency_keys,
    config,
    dependencies,
    options,
    parked,
    pauses,
    queues,
    throttles,
    workers,
)
from qmodel.model.state.records import NEVER, Job
from qmodel.model.state.store import Store

FEW = 3
"""How many jobs are named as examples."""

SILENT_MS = 60_000
"""After this time without a call from any worker, there seem to be no workers: idle ones ask every ten seconds."""

Facts = tuple[str | int, ...]


def reasons(store: Store, now: int, job: Job) -> tuple[Reason, ...]:
    """List the reasons why a job does not run, or say that it runs."""
    state = seen_at(now, job.state, job.ready_at, job.expires_at)
    found = _of_state(store, now, job, state)
    if state in ("waiting", "throttled"):
        found += _of_throttles(store, now, job)
    if state in ("waiting", "throttled", "stalled"):
        found += _of_queue(store, now, job)
    return tuple(Reason(str(code), tuple(map(str, facts))) for code, *facts in found)


def _some(jids: tuple[str, ...]) -> str:
    """The first few jobs, as text."""
    return " ".join(jids[:FEW])


def _of_state(store: Store, now: int, job: Job, state: str) -> list[Facts]:
    """The reasons that follow from its state."""
    if state == "complete":
        return [("complete", job.ended_at)]
    if state == "failed" and job.failure is not None:
        return [("failed", job.failure.group)]
    if state == "running":
        return [("running", job.worker, job.expires_at)]
    if state == "scheduled":
        return [("scheduled", job.ready_at)]
    if state == "depends":
        return [("depends", len(job.dependencies), _some(dependencies.of(job)))]
    if state == "stalled":
        free_at = job.expires_at + config.value(store, "grace-period") if job.state == "running" else 0
        return [("lapsed", job.worker, free_at)] if free_at > now else []
    if concurrency_keys.is_parked(job):
        return [
            (
                "ordered",
                str(concurrency_keys.of(job)),
                _some(concurrency_keys.holders(store, str(concurrency_keys.of(job)), FEW)),
            )
        ]
    return []


def _of_throttles(store: Store, now: int, job: Job) -> list[Facts]:
    """Which of its throttles are closed to it, and how many jobs are parked before it."""
    found: list[Facts] = []
    for name in throttles.passed_by(store, job):
        opens = throttles.opens_at(store, now, name, throttles.cost(job), (0, 0), False)
        if opens == NEVER:
            most, few = throttles.of(store, name).concurrency, throttles.holders(store, name, FEW)
            found.append(("full", name, throttles.running(store, name), most, _some(few)))
        elif opens > now:
            found.append(("spent", name, opens))
    ahead = parked.ahead(store, job)
    if ahead:
        found.append(("turn", str(options.get(job, "gate")), ahead))
    return found


def _of_queue(store: Store, now: int, job: Job) -> list[Facts]:
    """The reasons that follow from its queue: pauses, jobs before it, and missing workers."""
    found: list[Facts] = []
    for reason, until in pauses.lasting(store, now, job.queue):
        found.append(("paused", job.queue, reason, until))
    ahead = queues.ahead(store, job)
    if ahead:
        found.append(("behind", job.queue, ahead))
    last = workers.last_seen(store)
    if last < now - SILENT_MS:
        found.append(("unattended", last))
    return found
