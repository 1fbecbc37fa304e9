"""Why a job does not run: its state, its throttles, its queue.

Workers do not say which queues they serve. But a worker that asks a queue takes its first job. So nobody serves a
queue if a job that nothing bars has been ready for UNSERVED_MS, no worker holds a lease on a job of the queue, and no
job of it was completed, failed or retried in this minute or the one before.
"""

from __future__ import annotations

from qmodel.contract.arguments import awaited_request
from qmodel.contract.lifecycle import seen_at
from qmodel.contract.reasons import Reason
from qmodel.model.state import (
    concurrency_keys,
    config,
    dependencies,
    jobs,
    options,
    parked,
    pauses,
    queues,
    requests,
    stats,
    throttles,
    turns,
    workers,
)
from qmodel.model.state.records import NEVER, Job, Request
from qmodel.model.state.store import Store

FEW = 3
"""How many jobs are named as examples."""

SILENT_MS = 60_000
"""After this time without a call from any worker, there seem to be no workers: idle ones ask every ten seconds."""

UNSERVED_MS = 20_000
"""How long a job that nothing bars must be ready before its queue counts as one that nobody serves."""

EXAMINED = 100
"""How many of a job's dependencies are examined for failures: those that block come first."""

Facts = tuple[str | int, ...]


def reasons(store: Store, now: int, job: Job) -> tuple[Reason, ...]:
    """List the reasons why a job does not run, or say that it runs."""
    state = seen_at(now, job.state, job.ready_at, job.expires_at)
    found = _of_state(store, now, job, state)
    if state in ("waiting", "throttled"):
        found += _of_throttles(store, now, job)
    if state in ("waiting", "throttled", "stalled"):
        found += _of_queue(store, now, job, state, bool(found))
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
        return [("depends", len(job.dependencies), _some(dependencies.of(job))), *_of_dependencies(store, job)]
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


def _of_dependencies(store: Store, job: Job) -> list[Facts]:
    """The first few failed jobs and requests that it waits for."""
    found: list[Facts] = []
    for other in dependencies.of(job)[:EXAMINED]:
        id = awaited_request(other)
        said = _of_request(requests.load(store, id)) if id else _of_failure(jobs.load(store, other))
        found += said if len(found) < FEW else []
    return found


def _of_failure(job: Job) -> list[Facts]:
    """What there is to say of a job that another one waits for."""
    return [("dependency_failed", job.jid, job.failure.group)] if job.state == "failed" and job.failure else []


def _of_request(request: Request) -> list[Facts]:
    """What there is to say of a request that a job waits for."""
    if requests.has_ended(request) and not requests.has_ended_well(request):
        return [("request_failed", request.id, request.state, request.done, request.total)]
    return [("request", request.id, request.state, requests.left(request), request.total)]


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


def _is_served(store: Store, now: int, job: Job, since: int) -> bool:
    """Whether a worker may be asking for the jobs of its queue, though the job has been ready since then."""
    leases = queues.of(store, job.queue).locks
    if since > now - UNSERVED_MS or len(leases) > queues.count(leases, now):
        return True
    ended = stats.metrics(store, now, job.queue, now, 2)
    return any(one.completed + one.failed + one.retried > 0 for one in ended)


def _of_queue(store: Store, now: int, job: Job, state: str, barred: bool) -> list[Facts]:
    """The reasons that follow from its queue: pauses, jobs before it, and missing workers."""
    found: list[Facts] = []
    since = job.ready_at if state == "waiting" else job.expires_at
    for reason, until in pauses.lasting(store, now, job.queue):
        found.append(("paused", job.queue, reason, until))
        barred = True
    ahead = queues.ahead(store, job)
    if ahead:
        found.append(("behind", job.queue, ahead))
    if job.state == "waiting" and options.get(job, "turn") is not None:
        queue = queues.of(store, job.queue)
        rounds = turns.rounds(job, queues.first(queue, job.priority))
        if rounds:
            found.append(("fair", job.queue, turns.fair_key(job), rounds))
    last = workers.last_seen(store)
    if last < now - SILENT_MS:
        found.append(("unattended", last))
    elif not barred and since > 0 and not _is_served(store, now, job, since):
        found.append(("unserved", job.queue, since))
    return found
