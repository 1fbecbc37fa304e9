"""Moving jobs from one namespace or deployment to another, so that whoever dies may begin again.

A job moves in three steps:

1. It is held in the source: a line of its history says when it was to be ready, and a delay of LONGEST_MS keeps it from
   workers. A job that has begun meanwhile stays.
2. It is put into the target under its id, if that is free.
3. It is canceled in the source.

So it is always in at least one of both, and at most one of both gives it to a worker. After a death between two steps
it is held in the source; the next run finds it there and does the rest. If it is in the target already, or has even
ended there, it is only canceled.

What the engine itself ties to other jobs stays, and ends in the source: jobs with dependencies or dependents, jobs of a
request or of a subscription, dead letters. So do running jobs, and failed ones, unless they are retried first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.arguments import LONGEST_MS
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Failure, Job, QueueCounts
from qmodel.errors import QmodelError
from qmodel.model.deployment.relay import QUEUE as RELAY
from qmodel.model.state.options import OF_PUT
from qmodel.present.actions.jobs import again

PAGE: Final = 200
LINE: Final = "is moved; was to be ready at "
"""The line in the history of a job that is held, before the moment."""

SHOWN: Final = 200
"""The characters of a failure's message, its end, that a moved job shows."""

HELD_MS: Final = LONGEST_MS // 2
"""A job with this line that is ready later than so much from now is held."""

STATES: Final = ("waiting", "throttled", "scheduled")
UNFINISHED: Final = (*STATES, "depends", "running", "stalled")

PASSING: Final = frozenset((*OF_PUT, "gate", "parked", "released", "line", "told", "ended"))
"""The options of a job that may move: those of its put, and those that its next put makes anew."""


@dataclass
class Report:
    """What a run did: how many jobs and recurring jobs it moved, and why others could not be; how many settings it
    copied, by kind, and why others stay as they are in the target.
    """

    moved: int = 0
    recurring: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    copied: Counter[str] = field(default_factory=Counter)
    kept: dict[str, str] = field(default_factory=dict)


class SameNamespace(QmodelError):
    """Raised when source and target are the same."""


def move(source: Client, target: Client, queues: tuple[str, ...] = (), report: Report | None = None) -> Report:
    """Move all jobs of some queues, or of all, that can be moved now; give the report, or add to the one given."""
    report = report or Report()
    for name in queues or [one.name for one in counts(source)]:
        for state in STATES:
            for page in _pages(source, name, state):
                _move_page(source, target, [job for job in page if is_free(job)], report)
    return report


def retry_failed(source: Client, queues: tuple[str, ...] = ()) -> None:
    """Let all failed jobs of some queues, or of all, begin anew, so that they can be moved."""
    for queue in queues or (None,):
        cursor = ""
        while True:
            cursor = source.execute(ops.RetryMany(queue, cursor=cursor)).cursor
            if not cursor:
                break


def counts(client: Client, queues: tuple[str, ...] = ()) -> list[QueueCounts]:
    """List some queues, or all, with their counts."""
    found: list[QueueCounts] = []
    while True:
        page = client.execute(ops.Queues(len(found), PAGE))
        found += page
        if len(page) < PAGE:
            break
    return [one for one in found if one.name != RELAY and (not queues or one.name in queues)]


def left(client: Client, queues: tuple[str, ...] = ()) -> Counter[str]:
    """Count what is left in the source: jobs by state, recurring jobs, and without queues what else there is."""
    found: Counter[str] = Counter()
    for one in counts(client, queues):
        found.update({state: getattr(one, state) for state in (*UNFINISHED, "recurring")})
    if not queues:
        found["failed"] = sum(group.jobs for group in client.execute(ops.FailedGroups(count=1000)))
        found["complete"] = client.execute(ops.Completed(count=1)).total
        found["requests"] = client.execute(ops.Requests(count=1)).total
        found["paused queues"] = sum(one.paused for one in counts(client))
    return +found


def is_free(job: Job) -> bool:
    """Whether a job can be moved by itself."""
    return not job.dependencies and not job.dependents and all(name in PASSING for name, _ in job.options)


def _pages(client: Client, queue: str, state: str) -> Iterator[tuple[Job, ...]]:
    cursor = ""
    while True:
        found = client.execute(ops.Search(queue=queue, state=state, cursor=cursor, count=PAGE))
        yield found.jobs
        cursor = found.cursor
        if not cursor:
            return


def _move_page(source: Client, target: Client, jobs: list[Job], report: Report) -> None:
    """Move jobs, step by step; a step of all jobs is one round trip."""
    now = time.time_ns() // 1_000_000
    before = {job.jid for job in jobs if held_until(job, now) is not None}
    held = _held(source, jobs, now)
    puts = {job.jid: _put(job, due, now) for job, due in held}
    replies = target.backend.execute_many([ops.PutNew((put,)) for put in puts.values()])
    there = {job.jid: job for job in target.backend.execute(ops.Multiget(tuple(puts)))} if puts else {}
    if any(there.get(job.jid) == job for job, _ in held):
        for job, due in held:
            _give_back(source, job, due, now)
        raise SameNamespace("The two URLs lead to the same jobs. Give another one to move to.")
    done: list[str] = []
    for (job, due), reply in zip(held, replies, strict=True):
        why = _refused(job, reply, there.get(job.jid), job.jid in before)
        if why:
            report.refused[job.jid] = why
            _give_back(source, job, due, now)
        else:
            report.refused.pop(job.jid, None)
            done.append(job.jid)
    failures = {job.jid: job.failure for job, _ in held if job.failure is not None}
    target.backend.execute_many([ops.Log(jid, _failed(failures[jid])) for jid in done if jid in failures])
    source.backend.execute_many([ops.Cancel((jid,)) for jid in done])
    report.moved += len(done)


def _held(source: Client, jobs: list[Job], now: int) -> list[tuple[Job, int]]:
    """Hold jobs; give them as they are then, with the moments at which they were to be ready. Others have begun."""
    steps: list[Operation] = []
    for job in jobs:
        if held_until(job, now) is None:
            steps += [ops.Log(job.jid, f"{LINE}{job.ready_at}"), ops.Delay(job.jid, LONGEST_MS)]
    source.backend.execute_many(steps)
    found = source.backend.execute(ops.Multiget(tuple(job.jid for job in jobs))) if jobs else ()
    dues = [(job, held_until(job, now)) for job in found if job.state == "scheduled" and is_free(job)]
    return [(job, due) for job, due in dues if due is not None]


def held_until(job: Job, now: int) -> int | None:
    """Give the moment at which a held job was to be ready; None if it is not held."""
    if job.ready_at < now + HELD_MS:
        return None
    lines = [str(stage.facts[0]) for stage in job.history if stage.what == "log"]
    moments = [line.removeprefix(LINE) for line in lines if line.startswith(LINE)]
    return int(moments[-1]) if moments else None


def _give_back(source: Client, job: Job, due: int, now: int) -> None:
    """Let a held job be ready when it was to be."""
    source.execute(ops.Delay(job.jid, max(due - now, 0)))


def _put(job: Job, due: int, now: int) -> ops.Put:
    """Make the put of a job in the target."""
    at = due if due > now else None
    return replace(again(job, job.queue), priority=job.priority, retries=job.retries, tags=job.tags, at=at)


def _failed(failure: Failure) -> str:
    """Say how a job failed before it was moved, as a line of its new history."""
    return f"failed before it was moved: {failure.group}: {failure.message[-SHOWN:]}"


def _refused(here: Job, reply: Any, there: Job | None, before: bool) -> str:
    """Say why a job could not be put into the target; empty if it is there."""
    if isinstance(reply, Refusal):
        return reply.sentence
    if there is None:
        return "its deduplication key is held by another job there"
    if reply == 0 and not (before and (here.klass, here.data) == (there.klass, there.data)):
        return "its id is taken there"
    return ""
