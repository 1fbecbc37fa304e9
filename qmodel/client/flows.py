"""Flows: jobs that wait for each other. They are built from jobs that `Queue.new` makes, and `client.put_flow` puts
them.

A chain runs its parts one after the other; a group runs them side by side; a chord runs one more job after a group.
Parts may be flows themselves. Each job can read the results of the jobs before it (`job.results`) by their positions,
"0", "1" and so on; in a `dag` every job has a name, and results are read by these names.

>>> import qmodel
>>> client = qmodel.connect()
>>> q = client.queues["pages"]
>>> flow = chain(q.new("Fetch"), group(q.new("Thumb"), q.new("Words")), q.new("Publish"), on_failure="fail")
>>> [job.klass for job in client.put_flow(flow)]
['Fetch', 'Thumb', 'Words', 'Publish']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from qmodel.contract.arguments import MOST, Edge
from qmodel.contract.operations import Put
from qmodel.errors import FlowError


class Flow(NamedTuple):
    """Jobs that wait for each other, with the ids of the first jobs and of the last jobs."""

    jobs: tuple[Put, ...]
    first: tuple[str, ...]
    last: tuple[str, ...]


Part = Put | Flow


def chain(*parts: Part, on_failure: str = "block") -> Flow:
    """Run parts one after the other: each begins when all last jobs of the part before it are complete.

    `on_failure`: what the failure of a job does to the jobs that wait for it: block, fail, ignore or cancel.
    Raises FlowError if there are no parts, or a job occurs twice.
    """
    flows = [_flow(part) for part in parts]
    jobs = list(flows[0].jobs) if flows else []
    for before, after in pairwise(flows):
        edges = tuple(Edge(jid, on_failure, str(place)).text for place, jid in enumerate(before.last))
        jobs += [_after(job, edges) if job.jid in after.first else job for job in after.jobs]
    checked = _distinct(jobs)
    return Flow(checked, flows[0].first, flows[-1].last)


def group(*parts: Part) -> Flow:
    """Run parts side by side. Raises FlowError if there are no parts, or a job occurs twice."""
    flows = [_flow(part) for part in parts]
    jobs = _distinct([job for flow in flows for job in flow.jobs])
    first = tuple(jid for flow in flows for jid in flow.first)
    return Flow(jobs, first, tuple(jid for flow in flows for jid in flow.last))


def chord(parts: Part | Sequence[Part], callback: Part, *, on_failure: str = "block") -> Flow:
    """Run parts side by side, then a callback, which can read their results.

    With `on_failure="ignore"` the callback runs however the parts end; `results().all` says how they ended.
    """
    return chain(parts if isinstance(parts, Put | Flow) else group(*parts), callback, on_failure=on_failure)


def dag(nodes: Mapping[str, Put | tuple[Put, Iterable[str | Edge]]], *, on_failure: str = "block") -> Flow:
    """Run named jobs, each after the jobs that it names: `{"a": job, "b": (job, ["a"])}`.

    A dependency may also be an Edge with a policy and a result name; its `jid` is a name of the flow. Without a result
    name the result is read by the job's name. Raises FlowError for no jobs, unknown names, cycles, and jobs that occur
    twice.
    """
    puts = {name: node if isinstance(node, Put) else node[0] for name, node in nodes.items()}
    wanted = {name: () if isinstance(node, Put) else tuple(node[1]) for name, node in nodes.items()}
    before = {
        name: [Edge(one, on_failure) if isinstance(one, str) else one for one in others]
        for name, others in wanted.items()
    }
    _distinct(list(puts.values()))
    _check_names({name: [edge.jid for edge in edges] for name, edges in before.items()})
    jobs = []
    for name, put in puts.items():
        edges = (Edge(puts[edge.jid].jid, edge.on_failure, edge.name or edge.jid).text for edge in before[name])
        jobs.append(_after(put, tuple(edges)))
    waited_for = {edge.jid for edges in before.values() for edge in edges}
    first = tuple(puts[name].jid for name, edges in before.items() if not edges)
    return Flow(tuple(jobs), first, tuple(put.jid for name, put in puts.items() if name not in waited_for))


def _flow(part: Part) -> Flow:
    return part if isinstance(part, Flow) else Flow((part,), (part.jid,), (part.jid,))


def _after(job: Put, edges: tuple[str, ...]) -> Put:
    return replace(job, depends=(*(job.depends or ()), *edges)) if edges else job


def _distinct(jobs: Sequence[Put]) -> tuple[Put, ...]:
    """Check jobs: there must be some, and none may occur twice. Raises FlowError."""
    if not jobs:
        raise FlowError("A flow needs a job.", "Leave it out where there is nothing to do.")
    seen: set[str] = set()
    for job in jobs:
        if job.jid in seen:
            raise FlowError(f"Job {job.jid} occurs twice in one flow.", "Make one of its own for each place.")
        seen.add(job.jid)
    return tuple(jobs)


def _check_names(before: Mapping[str, Sequence[str]]) -> None:
    """Refuse unknown names, and cycles, with the path."""
    for name, others in before.items():
        for other in others:
            if other not in before:
                raise FlowError(
                    f"{name} waits for {other}, which is not in the flow.", f"There are {', '.join(before)}."
                )
    done: set[str] = set()
    for name in before:
        path = _cycle(before, name, done)
        if path:
            raise FlowError(f"These wait for each other for ever: {' > '.join(path)}.", "Leave out one of them.")


def _cycle(before: Mapping[str, Sequence[str]], start: str, done: set[str]) -> list[str]:
    """Find a cycle that can be reached from a name; empty if there is none. `done` are names that reach no cycle."""
    way: dict[str, None] = {}
    ahead = [iter([start])]
    while ahead:
        name = next(ahead[-1], None)
        if name is None:
            ahead.pop()
            if way:
                done.add(way.popitem()[0])
        elif name in way:
            return [*list(way)[list(way).index(name) :], name]
        elif name not in done:
            way[name] = None
            ahead.append(iter(before[name]))
    return []


# ---- to be put


def named(jobs: Iterable[Put], flow: str) -> tuple[Put, ...]:
    """Give jobs ids made from the flow's, `<flow>-1`, `<flow>-2` and so on, and rewrite the dependencies
    between them.
    """
    given = _distinct(tuple(jobs))
    ids = {job.jid: f"{flow}-{number}" for number, job in enumerate(given, 1)}
    return tuple(
        replace(job, jid=ids[job.jid], depends=None if job.depends is None else tuple(_called(job.depends, ids)))
        for job in given
    )


def _called(depends: Iterable[str], ids: Mapping[str, str]) -> Iterable[str]:
    for text in depends:
        edge = Edge.parse(text)
        yield edge._replace(jid=ids.get(edge.jid, edge.jid)).text


def in_parts(jobs: Iterable[Put]) -> list[tuple[Put, ...]]:
    """Divide jobs into parts of up to 1000, so that no job waits for one of a later part."""
    given = {job.jid: job for job in _distinct(tuple(jobs))}
    before = {jid: [jid for jid in _jids(job) if jid in given] for jid, job in given.items()}
    _check_names(before)
    order: dict[str, None] = {}
    for jid in given:
        ahead = [jid]
        while ahead:
            left = [other for other in before[ahead[-1]] if other not in order]
            if left:
                ahead += left
            else:
                order.setdefault(ahead.pop())
    jids = list(order)
    return [tuple(given[jid] for jid in jids[at : at + MOST]) for at in range(0, len(jids), MOST)]


def _jids(job: Put) -> list[str]:
    return [Edge.parse(text).jid for text in job.depends or ()]
