"""The list of jobs by a filter, and the search by name."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from qmodel.contract import operations as ops
from qmodel.contract.lifecycle import STATES
from qmodel.errors import RefusedError
from qmodel.web import queries
from qmodel.web.job_lists import Wanted
from qmodel.web.job_lists import find as find_jobs
from qmodel.web.site import site_of


def wanted_by(request: Request) -> Wanted:
    """Read the filter of a request's query."""
    names = ("queue", "state", "klass", "tag", "worker", "group", "jid", "text")
    queries.choice(request, "state", ("", *STATES), "")
    return Wanted(**{name: queries.text(request, name) for name in names})


def index(request: Request) -> Response:
    """List the jobs that match, or the latest ones."""
    site = site_of(request)
    wanted = wanted_by(request)
    offset = queries.whole(request, "offset")
    found = find_jobs(site.source, wanted, offset, queries.text(request, "cursor"))
    queues = [queue.name for queue in site.source.queues(0, 200)]
    return site.page(request, "jobs.html", wanted=wanted, found=found, queues=queues)


def find(request: Request) -> Response:
    """Redirect to the page of a name: a job, a queue, a schedule, a request, ...; else to the jobs of that type."""
    site = site_of(request)
    name = queries.text(request, "q").strip()
    if not name:
        return RedirectResponse(site.link(request, "/jobs"), 303)
    tries: list[tuple[ops.Operation, str, str]] = [
        (ops.Get(name), "/job", "jid"),
        (ops.Length(name), "/queue", "name"),
        (ops.RecurGet(name), "/schedule", "jid"),
        (ops.RequestGet(name), "/request", "id"),
        (ops.Failed(name, 0, 1), "/jobs", "group"),
        (ops.Tagged(name, 0, 1), "/jobs", "tag"),
        (ops.Worker(name), "/worker", "name"),
        (ops.SubscriptionGet(name), "/subscription", "name"),
        (ops.MetadataGet(name), "/klass", "name"),
    ]
    replies = site.source.try_all([op for op, _, _ in tries])
    for reply, (_, path, query) in zip(replies, tries, strict=True):
        if _is_there(reply):
            return RedirectResponse(site.link(request, path, **{query: name}), 303)
    listed = {queue.name for queue in site.source.all_queues()}
    if name in listed:
        return RedirectResponse(site.link(request, "/queue", name=name), 303)
    return RedirectResponse(site.link(request, "/jobs", klass=name), 303)


def _is_there(reply: object) -> bool:
    if reply is None or isinstance(reply, RefusedError):
        return False
    total = getattr(reply, "total", None)
    if total is not None:
        return bool(total)
    if hasattr(reply, "stalled") and not hasattr(reply, "jid"):
        return bool(reply.jobs or reply.stalled)  # type: ignore[attr-defined]  # a worker that holds something
    return bool(reply)
