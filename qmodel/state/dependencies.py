"""Dependencies: which job waits for which.

An edge stands in both jobs and exists while the one waits and the other is unfinished. A job has at most 1000
dependents, so that its completion is bounded. It may depend on any number of others, 1000 added or removed at a time;
what would have to end more at once is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from qmodel.arguments import MOST
from qmodel.refusals import refuse
from qmodel.state.store import Store

if TYPE_CHECKING:
    from qmodel.state.jobs import Job

EDGES = 4 * MOST
"""The most dependencies that one operation adds, or jobs that it looks at for a cycle."""

Wanted = dict[str, tuple[str, ...] | None]
"""For each job about to be written, the jobs that it is to depend on, or None where that stays as it is."""


def check(store: Store, wanted: Wanted) -> dict[str, list[str]]:
    """For each job given dependencies, those that are unfinished; or refuse what is unknown, too much, or a cycle."""
    unfinished = {jid: _unfinished(store, wanted, jid, others) for jid, others in wanted.items() if others is not None}
    more: dict[str, int] = {}
    edges = 0
    for jid, others in unfinished.items():
        edges += len(others)
        if edges > EDGES:
            raise refuse("DEPENDENCY_LIMIT", jid)
        _check_room(store, jid, others, more)
    _check_cycles(store, unfinished)
    return unfinished


def _has_dependents(store: Store, jid: str) -> bool:
    """Whether a job has dependents. One that has none is in no cycle, however much it depends on."""
    return jid in store.jobs and bool(store.jobs[jid].dependents)


def _unfinished(store: Store, wanted: Wanted, jid: str, others: tuple[str, ...]) -> list[str]:
    """Those that a job is to depend on which are not complete, each once, in order; unknown ones are refused.

    A job that is itself about to be written counts as unfinished.
    """
    found = []
    for other in dict.fromkeys(others):
        job = store.jobs.get(other)
        if job is None and other not in wanted:
            raise refuse("DEPENDENCY_NOT_FOUND", jid, other)
        if other in wanted or (job is not None and job.state != "complete"):
            found.append(other)
    return found


def _check_room(store: Store, jid: str, others: Iterable[str], more: dict[str, int]) -> None:
    """Refuse a job more than 1000 dependents; `more` counts those that this operation adds."""
    for other in others:
        job = store.jobs.get(other)
        known = job.dependents if job is not None else {}
        if jid not in known:
            more[other] = more.get(other, 0) + 1
            if len(known) + more[other] > MOST:
                raise refuse("DEPENDENCY_LIMIT", other)


def _check_cycles(store: Store, wanted: dict[str, list[str]]) -> None:
    """Refuse jobs that would wait for each other, with the path: one search for all that are about to be written."""
    depended = {other for others in wanted.values() for other in others}
    starts = [jid for jid in wanted if jid in depended or _has_dependents(store, jid)]
    cycle = _find_cycle(store, wanted, starts)
    for jid in starts:
        if jid in cycle:
            raise refuse("DEPENDENCY_CYCLE", " > ".join(_way_round(store, wanted, jid)))


def _waits_for(store: Store, wanted: dict[str, list[str]], jid: str) -> list[str]:
    """The jobs that a job is to wait for; of too many to look at, one too many."""
    if jid in wanted:
        return wanted[jid]
    job = store.jobs.get(jid)
    return sorted(job.dependencies)[: EDGES + 1] if job is not None else []


def _find_cycle(store: Store, wanted: dict[str, list[str]], starts: list[str]) -> set[str]:
    """The jobs of a cycle to which one of those jobs leads. No job is looked at twice, and no more than 1000 for each
    start, 4000 in all.
    """
    most = min(MOST * len(starts), EDGES)
    met: dict[str, bool] = {}  # whether a job is on the way, or done with
    for start in starts:
        way: list[str] = []
        ahead = [iter([start])]
        while ahead:
            jid = next(ahead[-1], None)
            if jid is None:
                ahead.pop()
                if way:
                    met[way.pop()] = False
            elif met.get(jid):
                return set(way[way.index(jid) :])
            elif jid not in met:
                if len(met) > most:
                    raise refuse("DEPENDENCY_LIMIT", start)
                met[jid] = True
                way.append(jid)
                ahead.append(iter(_waits_for(store, wanted, jid)))
    return set()


def _way_round(store: Store, wanted: dict[str, list[str]], jid: str) -> list[str]:
    """The way from a job that is on a cycle to itself."""
    came_from: dict[str, str] = {}
    stack = [jid]
    while True:
        at = stack.pop()
        for other in _waits_for(store, wanted, at):
            if other == jid:
                return _path(came_from, at, jid)
            if other not in came_from:
                came_from[other] = at
                stack.append(other)


def _path(came_from: dict[str, str], at: str, jid: str) -> list[str]:
    path = [jid, at] if at != jid else [jid]
    while at != jid:
        at = came_from[at]
        path.append(at)
    path.reverse()
    return path if path[-1] == jid and len(path) > 1 else [jid, jid]


def link(store: Store, job: Job, others: Iterable[str]) -> None:
    """Let a job depend on others."""
    for other in others:
        far = store.jobs[other]
        job.dependencies = job.dependencies or {}
        job.dependencies[other] = None
        far.dependents = far.dependents or {}
        far.dependents[job.jid] = None


def unlink(store: Store, job: Job, others: Iterable[str]) -> None:
    """Let a job no longer depend on others."""
    for other in list(others):
        if other in job.dependencies:
            del job.dependencies[other]
            del store.jobs[other].dependents[job.jid]


def resolve(store: Store, job: Job) -> list[Job]:
    """Take a finished job out of what others wait for; give those that wait for nothing more, by id."""
    freed = []
    for jid in sorted(job.dependents):
        waiting = store.jobs[jid]
        del waiting.dependencies[job.jid]
        if not waiting.dependencies:
            freed.append(waiting)
    job.dependents.clear()
    return freed


def of(job: Job) -> tuple[str, ...]:
    """The unfinished jobs that a job waits for, by id; the first 1000."""
    return tuple(sorted(job.dependencies)[:MOST])


def dependents(job: Job) -> tuple[str, ...]:
    """The jobs that wait for a job, by id."""
    return tuple(sorted(job.dependents))


def check_bounded(job: Job) -> None:
    """Refuse to end more than 1000 dependencies at once."""
    if len(job.dependencies) > MOST:
        raise refuse("DEPENDENCY_LIMIT", job.jid)
