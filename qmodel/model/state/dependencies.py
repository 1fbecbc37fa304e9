"""Dependencies: which job waits for which, and for what requests.

An edge is stored in both jobs, and exists while one waits and the other is unfinished. A job or a request has at most
1000 dependents, so that its end is bounded. It may depend on any number of others, with 1000 added or removed at a
time; an operation that would have to end more at once is refused.

An edge has a mark, a number: twice the index of its policy in POLICIES, plus one if it has a name; a plain edge has 0.
The edges of a job are ordered by mark, then by id. The outcomes of named edges are kept with the waiting job
(state/results.py).

A dependency on a request is called `<id> request`, which no job is, so all of a job's edges are in one place: they are
counted, bounded and ended together. Its edge ends with the request, or stays if the request ended badly and the policy
says `block`. It has no name: nothing is copied into the job.

A request waits for its sub-requests, so the search for a cycle goes on with those. A cycle leads only through a
sub-request that has dependencies itself, so only these are examined: few of a large request, mostly none. A job that
is put leaves its request, so it may wait for it; one that is given dependencies otherwise stays in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from qmodel.contract.arguments import MOST, POLICIES, Edge, after_request, awaited_request
from qmodel.contract.refusals import refuse
from qmodel.model.state import cascade, concurrency_keys, options, requests, results
from qmodel.model.state.records import Job, Request
from qmodel.model.state.store import Store

EDGES = 4 * MOST
"""The most jobs that one operation examines for a cycle. The dependencies that it adds are bounded by its budget."""

Wanted = dict[str, tuple[str, ...] | None]
"""For each job about to be written, its new dependencies, or None if they stay as they are."""


class Plan(NamedTuple):
    """The jobs about to be written; the new dependencies of those that are given any; and the request that has them all
    as sub-requests, or nothing.
    """

    jobs: Wanted
    edges: dict[str, list[str]]
    request: str


AFTER_BYTES = 4096
"""How many bytes of its edges a job remembers."""


class Edges(NamedTuple):
    """The edges that a job is given; those of them to unfinished jobs; and the named ones to complete jobs."""

    given: tuple[Edge, ...]
    unmet: tuple[Edge, ...]
    met: tuple[Edge, ...]


NO_EDGES = Edges((), (), ())


def check(store: Store, wanted: Wanted, request: str = "") -> dict[str, Edges]:
    """For each job given dependencies, find its edges; or refuse unknown jobs and requests, too many edges, or a cycle.
    The jobs are then sub-requests of `request`, or of none.
    """
    edges = {jid: _edges(store, wanted, jid, others) for jid, others in wanted.items() if others is not None}
    unfinished: dict[str, list[str]] = {}
    more: dict[str, int] = {}
    for jid, (_, unmet, _) in edges.items():
        unfinished[jid] = [edge.jid for edge in unmet]
        results.check_texts(store, jid, edges[jid].given)
        _check_room(store, jid, unfinished[jid], more)
    _check_cycles(store, Plan(wanted, unfinished, request))
    return edges


def check_more(store: Store, jid: str, others: tuple[str, ...]) -> Edges:
    """The edges that a job is given in addition to its own; or refuse, also if there are more names than are kept."""
    edges = check(store, {jid: others}, options.get(store.jobs[jid], "request") or "")[jid]
    results.check_room(store, jid, sum(edge.name != "" for edge in edges.given))
    return edges


def _far(store: Store, other: str) -> Job | Request | None:
    """The job or the request that a dependency is on, or None."""
    id = awaited_request(other)
    return requests.get(store, id) if id else store.jobs.get(other)


def _load_far(store: Store, other: str) -> Job | Request:
    """The job or the request that a dependency is on, which is known to exist."""
    far = _far(store, other)
    assert far is not None
    return far


def _has_dependents(store: Store, other: str) -> bool:
    """Whether a job or a request has dependents. Without dependents it is in no cycle, whatever it depends on."""
    far = _far(store, other)
    return far is not None and bool(far.dependents)


def _edges(store: Store, wanted: Wanted, jid: str, others: tuple[str, ...]) -> Edges:
    """The edges of a job, in order, each once as first named; unknown jobs are refused.

    A job that is itself about to be written counts as unfinished. A request that ended well is no obstacle. An edge
    with the policy cancel to a job that has already failed becomes one with the policy fail: a job deleted during its
    own put could neither explain the reason nor recognise a repeated request.
    """
    given: dict[str, Edge] = {}
    unmet, met = [], []
    for text in others:
        edge = Edge.parse(text)
        if edge.jid in given:
            continue
        given[edge.jid] = edge
        far = _far(store, edge.jid)
        if far is None and edge.jid not in wanted:
            raise refuse("DEPENDENCY_NOT_FOUND", jid, edge.jid)
        if isinstance(far, Request):
            unmet += [edge] if not requests.has_ended_well(far) else []
        elif edge.jid in wanted or (far is not None and far.state not in ("complete", "failed")):
            unmet.append(edge)
        elif far is not None and far.state == "failed":
            unmet.append(edge._replace(on_failure="fail") if edge.on_failure == "cancel" else edge)
        elif edge.name:
            met.append(edge)
    return Edges(tuple(given.values()), tuple(unmet), tuple(met))


def _check_room(store: Store, jid: str, others: Iterable[str], more: dict[str, int]) -> None:
    """Refuse a job or a request more than 1000 dependents; `more` counts those that this operation adds."""
    for other in others:
        far = _far(store, other)
        known = far.dependents if far is not None else {}
        if jid not in known:
            more[other] = more.get(other, 0) + 1
            if len(known) + more[other] > MOST:
                raise refuse("DEPENDENCY_LIMIT", other)


def _check_cycles(store: Store, plan: Plan) -> None:
    """Refuse jobs that would wait for each other, and give the path: one search for all jobs about to be written."""
    depended = {other for others in plan.edges.values() for other in others}
    request = after_request(plan.request)
    awaited = plan.request != "" and (request in depended or _has_dependents(store, request))
    starts = [jid for jid in plan.edges if awaited or jid in depended or _has_dependents(store, jid)]
    cycle = _find_cycle(store, plan, starts)
    for jid in starts:
        if jid in cycle:
            raise refuse("DEPENDENCY_CYCLE", " > ".join(_way_round(store, plan, jid)))


def _waits_for(store: Store, plan: Plan, other: str) -> list[str]:
    """What a job or a request will wait for; if it is too much, more than the bound."""
    if other in plan.edges:
        return plan.edges[other]
    id = awaited_request(other)
    if id:
        found = requests.with_dependencies(store, id, EDGES + MOST + 1)
        stays = [jid for jid in found if jid not in plan.jobs]
        return stays + (list(plan.edges) if id == plan.request else [])
    job = store.jobs.get(other)
    return _in_order(job.dependencies)[: EDGES + 1] if job is not None else []


def _find_cycle(store: Store, plan: Plan, starts: list[str]) -> set[str]:
    """The jobs and requests of a cycle reachable from `starts`. None is examined twice, and at most 1000 for each
    start, 4000 in total.
    """
    most = min(MOST * len(starts), EDGES)
    met: dict[str, bool] = {}  # whether a job is on the current path (True) or finished (False)
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
                ahead.append(iter(_waits_for(store, plan, jid)))
    return set()


def _way_round(store: Store, plan: Plan, jid: str) -> list[str]:
    """The path from a job on a cycle back to itself."""
    came_from: dict[str, str] = {}
    stack = [jid]
    while True:
        at = stack.pop()
        for other in _waits_for(store, plan, at):
            if other == jid:
                return _path(came_from, at, jid)
            if other not in came_from:
                came_from[other] = at
                stack.append(other)


def _path(came_from: dict[str, str], at: str, jid: str) -> list[str]:
    """Rebuild the path from the steps of the search."""
    path = [jid, at] if at != jid else [jid]
    while at != jid:
        at = came_from[at]
        path.append(at)
    path.reverse()
    return path if path[-1] == jid and len(path) > 1 else [jid, jid]


def _mark(edge: Edge) -> int:
    return 2 * POLICIES.index(edge.on_failure) + (edge.name != "")


def _policy(mark: int) -> str:
    return POLICIES[mark // 2]


def _in_order(edges: dict[str, int]) -> list[str]:
    """The jobs of edges, ordered by mark, then by id."""
    return sorted(edges, key=lambda jid: (edges[jid], jid))


def link(store: Store, job: Job, edges: Edges) -> None:
    """Add dependencies to a job. An edge that it already has is replaced.

    A failed dependency with a policy other than block, and an ended request, is processed at the end of the operation.
    The put of a sub-request may have ended its request just now.
    """
    _remember(job, edges.given)
    for edge in edges.unmet:
        far = _load_far(store, edge.jid)
        mark = _mark(_unless_ended(far, edge))
        job.dependencies = job.dependencies or {}
        far.dependents = far.dependents or {}
        results.drop(store, job, edge.jid, job.dependencies.get(edge.jid, 0))
        job.dependencies[edge.jid] = far.dependents[job.jid] = mark
        if _has_ended(far, mark):
            cascade.push(store, far)
    results.expect(store, job, edges.unmet, edges.met)
    request = options.get(job, "request")
    if request is not None and edges.unmet:
        requests.note_dependencies(store, requests.load(store, request), job.jid, concurrency_keys.has_yielded(job))


def _has_ended(far: Job | Request, mark: int) -> bool:
    """Whether a new edge has something to follow: a failed job, unless the edge says `block`, or an ended request."""
    if isinstance(far, Request):
        return requests.has_ended(far)
    return far.state == "failed" and _policy(mark) != "block"


def _unless_ended(far: Job | Request, edge: Edge) -> Edge:
    """The edge; or, if it is on a request that has ended and says `cancel`, one that says `fail`."""
    if isinstance(far, Request) and requests.has_ended(far) and edge.on_failure == "cancel":
        return edge._replace(on_failure="fail")
    return edge


def wait_for(store: Store, job: Job, other: str) -> None:
    """Let a job depend on an unfinished one by a plain edge."""
    link(store, job, Edges((), (Edge(other),), ()))


def _remember(job: Job, edges: tuple[Edge, ...]) -> None:
    """Keep the edges to jobs that a job is given if any has a policy or a name, to draw a finished flow."""
    to_jobs = [edge for edge in edges if not awaited_request(edge.jid)]
    if any(_mark(edge) for edge in to_jobs):
        after = options.get(job, "after") or ""
        for edge in to_jobs:
            said = f"{edge.on_failure}:{edge.name}" if edge.name else edge.on_failure
            more = f"{after} {edge.jid} {said}".lstrip()
            after = more if len(more) <= AFTER_BYTES else after
        options.set(job, "after", after)


def forget(store: Store, job: Job) -> None:
    """Remove all dependencies of a job, and what it remembers of them."""
    unlink(store, job, of(job))
    results.forget(store, job)
    options.drop(job, "after")


def unlink(store: Store, job: Job, others: Iterable[str]) -> None:
    """Remove some dependencies of a job."""
    for other in list(others):
        if other in job.dependencies:
            results.drop(store, job, other, job.dependencies.pop(other))
            del _load_far(store, other).dependents[job.jid]


def ignore(store: Store, job: Job, other_job: Job | Request, state: str, message: str) -> None:
    """Count a dependency that will not complete as met."""
    mark = job.dependencies.pop(other_job.jid)
    del other_job.dependents[job.jid]
    if mark % 2:
        results.keep(store, job, other_job.jid, state, message)


def resolve(store: Store, job: Job) -> list[Job]:
    """Remove a finished job from the dependencies of others; give those that have none left, in order."""
    freed = []
    for jid in _in_order(job.dependents):
        waiting = store.jobs[jid]
        mark = waiting.dependencies.pop(job.jid)
        if mark % 2:
            results.keep(store, waiting, job.jid, "complete", job.result)
        if not waiting.dependencies and waiting.state == "depends":
            freed.append(waiting)
    job.dependents.clear()
    return freed


def of(job: Job) -> tuple[str, ...]:
    """The unfinished jobs and requests that a job waits for, in order; the first 1000."""
    return tuple(_in_order(job.dependencies)[:MOST])


def dependents(job: Job | Request) -> tuple[str, ...]:
    """The jobs that wait for a job or a request, in order."""
    return tuple(_in_order(job.dependents))


def under(job: Job | Request, policy: str) -> list[str]:
    """The jobs that wait for a job or a request by edges of one policy, in order."""
    return [jid for jid in _in_order(job.dependents) if _policy(job.dependents[jid]) == policy]


def blocking(job: Job) -> list[str]:
    """The first two jobs that wait for a job by edges that say `block`."""
    return under(job, "block")[:2]


def is_bounded(job: Job) -> bool:
    """Whether one operation may end all dependencies of a job."""
    return len(job.dependencies) <= MOST


def check_bounded(job: Job) -> None:
    """Refuse to end more than 1000 dependencies at once."""
    if not is_bounded(job):
        raise refuse("DEPENDENCY_LIMIT", job.jid)
