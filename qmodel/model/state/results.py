"""Results: the outcomes of a job's named dependencies, kept with the job until it is complete or deleted.

So a job can read them when it runs, however briefly complete jobs are kept. They are in the order of naming. The option
`results` of a job counts the names that it was given: at most 1000, over all calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from qmodel.contract import replies
from qmodel.contract.arguments import MOST, Edge
from qmodel.contract.lifecycle import seen_at
from qmodel.contract.operations import Results
from qmodel.contract.refusals import refuse
from qmodel.model.state import budget, options
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store

TEXTS = 5333
"""The most units of texts of a job's dependencies (4 MiB), or of copies of its result for its dependents (16 MiB)."""


def check_room(store: Store, jid: str, more: int) -> None:
    """Refuse a job more than 1000 names."""
    if more and _named(store.jobs[jid]) + more > MOST:
        raise refuse("DEPENDENCY_LIMIT", jid)


def check_texts(store: Store, jid: str, given: Iterable[Edge]) -> None:
    """Refuse a job if the texts of its dependencies are longer than one operation may read and keep."""
    if sum(budget.of_texts(store.jobs[edge.jid]) for edge in given if edge.jid in store.jobs) > TEXTS:
        raise refuse("DEPENDENCY_LIMIT", jid)


def copying(job: Job, result: str) -> int:
    """The units for the copies of a result that the dependents keep which have named the job."""
    return sum(mark % 2 for mark in job.dependents.values()) * (budget.of_result(budget.size(result)) - 1)


def check_copies(job: Job, result: str) -> None:
    """Refuse a result if its copies are longer than one operation may write."""
    if copying(job, result) > TEXTS:
        raise refuse("DEPENDENCY_LIMIT", job.jid)


def _named(job: Job) -> int:
    """How many names a job was given."""
    return int(options.get(job, "results") or 0)


def _named_edges(store: Store, unmet: Iterable[Edge], met: Iterable[Edge]) -> list[tuple[Edge, str, str]]:
    """The edges with names, first those to unfinished jobs, each with the state and the result of its job."""
    found = [(edge, "", "") for edge in unmet if edge.name]
    return found + [(edge, "complete", store.jobs[edge.jid].result) for edge in met]


def expect(store: Store, job: Job, unmet: Iterable[Edge], met: Iterable[Edge]) -> None:
    """Reserve names for the results of unfinished and complete dependencies; they come last."""
    wanted = _named_edges(store, unmet, met)
    if wanted:
        options.set(job, "results", _named(job) + len(wanted))
    for edge, state, text in wanted:
        kept = store.results.setdefault(job.jid, {})
        kept.pop(edge.jid, None)
        kept[edge.jid] = (edge.name, state, text)


def keep(store: Store, job: Job, other: str, state: str, text: str) -> None:
    """Keep the outcome of a dependency."""
    kept = store.results[job.jid]
    kept[other] = (kept[other][0], state, text)


def drop(store: Store, job: Job, other: str, mark: int) -> None:
    """Drop the outcome of a dependency, if its edge has a name."""
    if mark % 2:
        kept = store.results[job.jid]
        del kept[other]
        if not kept:
            del store.results[job.jid]


def forget(store: Store, job: Job) -> None:
    """Drop all outcomes of a job."""
    if job.options and options.get(job, "results"):
        options.drop(job, "results")
        store.results.pop(job.jid, None)


def view(store: Store, now: int, job: Job, op: Results) -> tuple[replies.Result, ...]:
    """A page of the outcomes of the named dependencies; for an unfinished one, its state at `now`."""
    kept = store.results.get(job.jid, {})
    page = tuple(islice(kept.items(), op.offset, op.offset + op.count))
    units = sum(_weight(store, jid, state, text) for jid, (_, state, text) in page)
    budget.check("results", len(page), units)
    return tuple(_seen(store, now, replies.Result(name, jid, *rest)) for jid, (name, *rest) in page)


def _weight(store: Store, jid: str, state: str, text: str) -> int:
    """The units for showing an outcome."""
    if state:
        return budget.of_result(budget.size(text))
    job = store.jobs[jid]
    message = job.failure.message if job.failure is not None else ""
    return budget.moving(job) + budget.of_result(budget.size(message))


def _seen(store: Store, now: int, result: replies.Result) -> replies.Result:
    if result.state:
        return result
    job = store.jobs[result.jid]
    state = seen_at(now, job.state, job.ready_at, job.expires_at)
    message = job.failure.message if job.failure is not None and state == "failed" else ""
    return result._replace(state=state, result=message)
