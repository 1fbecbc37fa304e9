"""The queues, and one of them."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.web import queries
from qmodel.web.charts import minutes
from qmodel.web.site import Site, site_of
from qmodel.web.source import PAGE, cut

HOUR = 60


def index(request: Request) -> Response:
    """List the queues, in the order of their creation."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    found = cut(site.source.queues(offset, PAGE + 1), offset)
    oldest = oldest_of(site, [queue.name for queue in found.items])
    trends = site.source.ask_all(ops.Metrics(queue.name, None, HOUR) for queue in found.items)
    rows = list(zip(found.items, trends, strict=True))
    return site.page(request, "queues.html", found=found, rows=rows, oldest=oldest)


def oldest_of(site: Site, names: list[str]) -> dict[str, int]:
    """Give the moment at which the next job of each queue became ready."""
    firsts = site.source.ask_all(ops.Waiting(name, 0, 1) for name in names)
    known = site.source.known(jid for page in firsts for jid in page.jids)
    heads = ((name, known.get(page.jids[0])) for name, page in zip(names, firsts, strict=True) if page.jids)
    return {name: job.ready_at for name, job in heads if job is not None}


def show(request: Request) -> Response:
    """Show one queue: its counts, its running jobs, and its next jobs."""
    site = site_of(request)
    name = queries.needed(request, "name")
    span = queries.whole(request, "minutes", HOUR, 1000) or HOUR
    counts, throttle, stats, metrics, settings, head = site.source.ask_all(
        [
            ops.Queue(name),
            ops.ThrottleGet("queue/" + name),
            ops.Stats(name),
            ops.Metrics(name, None, span),
            ops.ConfigGet("heartbeat-" + name),
            ops.Peek(name, 5),
        ]
    )
    running, made = _there(site, name, head)
    return site.page(
        request,
        "queue.html",
        name=name,
        counts=counts,
        throttle=throttle,
        stats=stats,
        chart=minutes([metrics]),
        span=span,
        lease_ms=settings,
        head=head,
        unmade={job.jid for job in head} - made,
        running=running,
        oldest=oldest_of(site, [name]).get(name, 0),
    )


def _there(site: Site, name: str, head: Sequence[replies.Job]) -> tuple[list[replies.Job], set[str]]:
    """Give the leased jobs of a queue, and the ids of the next ones that exist: due runs may not exist yet."""
    held = site.source.ask_all([ops.Running(name, 0, 10), ops.Stalled(name, 0, 10)])
    jids = [jid for page in held for jid in page.jids]
    known = site.source.known([*jids, *(job.jid for job in head)])
    return [known[jid] for jid in jids if jid in known], set(known)
