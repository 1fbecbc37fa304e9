"""The first page: the state of all queues at a glance."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.web import queries
from qmodel.web.charts import minutes
from qmodel.web.site import Site, site_of

BUSIEST = 30
"""The number of queues in the list and in the chart."""

LATEST = 12
"""The number of events."""

SPANS = (60, 180, 720)
"""The lengths of the chart, in minutes."""


def show(request: Request) -> Response:
    """Show counts, the last minutes, failures, workers, and the latest events."""
    site = site_of(request)
    span = queries.whole(request, "minutes", SPANS[0], 1000) or SPANS[0]
    queues, groups = site.source.all_queues(), site.source.all_groups()
    workers, newest = site.source.ask_all([ops.Workers(0, 9), ops.Newest()])
    busiest = sorted(queues, key=_size, reverse=True)[:BUSIEST]
    asked: list[ops.Operation] = [ops.Metrics(queue.name, None, span) for queue in busiest]
    if site.source.client.shards:
        metrics, events = site.source.ask_all(asked), site.source.latest(LATEST)
    else:
        *metrics, events = site.source.ask_all([*asked, ops.Events(max(newest.seq - LATEST, 0), LATEST)])
    totals = {state: sum(getattr(queue, state) for queue in queues) for state in COUNTED}
    totals["failed"] = sum(group.jobs for group in groups)
    return site.page(
        request,
        "overview.html",
        totals=totals,
        queues=queues,
        busiest=busiest,
        groups=sorted(groups, key=lambda group: -group.jobs)[:6],
        failures=latest_failures(site, sorted(groups, key=lambda group: -group.jobs)[:6]),
        workers=workers,
        events=list(reversed(events)),
        chart=minutes(metrics),
        done=sum(minute.completed for queue in metrics for minute in queue),
        span=span,
        spans=SPANS,
    )


COUNTED = ("waiting", "running", "stalled", "scheduled", "throttled", "depends")


def _size(queue: replies.QueueCounts) -> int:
    return sum(getattr(queue, state) for state in COUNTED)


def latest_failures(site: Site, groups: list[replies.Tally]) -> dict[str, replies.Job]:
    """Give the latest failed job of each group."""
    pages = site.source.ask_all(ops.Failed(group.name, 0, 1) for group in groups)
    known = site.source.known(jid for page in pages for jid in page.jids)
    pairs = ((group.name, page.jids) for group, page in zip(groups, pages, strict=True))
    return {name: known[jids[0]] for name, jids in pairs if jids and jids[0] in known}
