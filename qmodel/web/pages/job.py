"""One job: its data, its timeline, why it is not running, and its flow."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import Refusal
from qmodel.errors import JobNotFound, OverBudget, RefusedError
from qmodel.present.numbers import counted
from qmodel.web import queries
from qmodel.web.site import Site, site_of
from qmodel.web.timeline import moments, spans

RELATED = 50
"""The most dependencies, and dependents, to show."""

FLOW = 300
"""The most jobs of a flow to draw."""

TEXT = 20_000
"""The characters of data, result or message to show; a link shows the rest."""


def _results(site: Site, jid: str, given: Any) -> list[replies.Result]:
    """Take the results of dependencies; if they are too many bytes for a reply, read the first ones."""
    if isinstance(given, OverBudget):
        return list(site.source.ask(ops.Results(jid, 0, int(given.parts))))
    return [] if isinstance(given, RefusedError) else list(given)


LINKED = {"ordered": "holder", "depends": "first", "full": "first", "dependency_failed": "jid"}
"""The fact of a reason that begins with the id of another job, by the code of the reason."""


def parted(reason: Reason) -> tuple[str, str, str]:
    """Divide the sentence of a reason at the other job that it names: the text before, the job's id, the text after.

    >>> parted(Reason("ordered", ("k", "o")))
    ('The concurrency key k has no free slot: job ', 'o', ' holds one.')
    """
    name = LINKED.get(reason.code, "")
    fact = reason.named.get(name, "")
    jid = fact.split(" ")[0]
    if not jid:
        return reason.sentence, "", ""
    marked = tuple((reason.named | {name: "\n"}).values())  # no fact has a line end
    before, _, after = reason._replace(facts=marked).sentence.partition("\n")
    return before, jid, fact.removeprefix(jid) + after


def show(request: Request) -> Response:
    """Show a job."""
    site = site_of(request)
    jid = queries.needed(request, "jid")
    job, reasons, results = site.source.try_all([ops.Get(jid), ops.Why(jid), ops.Results(jid)])
    job = _found(jid, job)
    now, related = site.source.now(), _related(site, job)
    return site.page(
        request,
        "job.html",
        job=job,
        data=site.decode(job.klass, job.data),
        result=site.decode(job.klass, job.result),
        now=now,
        reasons=[] if isinstance(reasons, RefusedError) else [(reason.named, *parted(reason)) for reason in reasons],
        results=_results(site, jid, results),
        more_results=isinstance(results, OverBudget),
        related=related,
        waiting_for=waiting_for(job, related["before"]),
        moments=moments(job),
        spans=spans(job, now),
        whole=bool(queries.text(request, "whole")),
        text=TEXT,
        queues=[queue.name for queue in site.source.queues(0, 100)] if site.allows(request) else [],
    )


def _found(jid: str, job: replies.Job | RefusedError | None) -> replies.Job:
    if isinstance(job, RefusedError):
        raise job
    if job is None:
        raise JobNotFound(Refusal("JOB_NOT_FOUND", (jid,)))
    return job


def _related(site: Site, job: replies.Job) -> dict[str, list[tuple[str, replies.Job | None]]]:
    """Give the dependencies and dependents of a job, as they are now; None for a deleted one."""
    before = tuple(dict.fromkeys([*job.depends_on_jobs, *(edge.jid for edge in job.after)]))[:RELATED]
    after = job.dependents[:RELATED]
    known = site.source.known((*before, *after))
    return {"before": [(jid, known.get(jid)) for jid in before], "after": [(jid, known.get(jid)) for jid in after]}


def waiting_for(job: replies.Job, before: list[tuple[str, replies.Job | None]]) -> str:
    """Say for how many jobs a job waits, and how many of these have failed."""
    open_ones = set(job.depends_on_jobs)
    if job.state != "depends" or not open_ones:
        return ""
    failed = sum(other is not None and other.state == "failed" for jid, other in before if jid in open_ones)
    return f"Waiting for {counted(len(open_ones), 'job')}" + (f" ({failed:,} failed)" if failed else "")


def flow(request: Request) -> Response:
    """Draw the flow of a job."""
    site = site_of(request)
    jid = queries.needed(request, "jid")
    graph = site.source.client.flow(jid, FLOW)
    picture = graph.svg(link=lambda one: site.link(request, "/job", jid=one)) if len(graph.nodes) > 1 else ""
    return site.page(request, "flow.html", jid=jid, graph=graph, picture=picture)
