"""Statistics of waiting and running times: by queue, and as histograms."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import TIME_END
from qmodel.model.state.stats import DAY_MS
from qmodel.present.durations import format_day, parse_moment
from qmodel.present.fields import BadInput
from qmodel.present.histogram import rows
from qmodel.web import queries
from qmodel.web.site import Site, site_of
from qmodel.web.source import PAGE, cut

DAYS = 14
"""The number of days before the chosen one."""


class Days(NamedTuple):
    """The chosen day, and those before and after it; no day comes after today."""

    day: str
    earlier: str
    later: str


def show(request: Request) -> Response:
    """Show the queues on a day, or one queue."""
    site = site_of(request)
    today = site.source.now()
    at = _day(queries.text(request, "day"), today)
    queue = queries.text(request, "queue")
    earlier, later = format_day(max(at - DAY_MS, 0)), format_day(at + DAY_MS) if at + DAY_MS <= today else ""
    days = Days(format_day(at), earlier, later)
    if queue:
        return _of_queue(site, request, queue, at, days)
    offset = queries.whole(request, "offset")
    found = cut(site.source.queues(offset, PAGE + 1), offset)
    stats = site.source.ask_all(ops.Stats(one.name, at) for one in found.items)
    return site.page(request, "stats.html", found=found, stats=stats, around=days)


def _of_queue(site: Site, request: Request, queue: str, at: int, around: Days) -> Response:
    moments = [at - number * DAY_MS for number in range(DAYS) if at >= number * DAY_MS]
    days = site.source.ask_all(ops.Stats(queue, moment) for moment in moments)
    pictures = [("Waited", days[0].wait, bars(days[0].wait)), ("Ran", days[0].run, bars(days[0].run))]
    return site.page(request, "stats_queue.html", queue=queue, days=days, pictures=pictures, around=around)


def bars(sample: replies.Sample) -> list[tuple[str, int, float]]:
    """Give the rows of a histogram: label, count, and the width of the bar, of 100."""
    found = rows(sample.histogram) if sample.histogram else []
    most = max((count for _, count in found), default=0) or 1
    return [(label, count, round(max(100 * count / most, 0.5 if count else 0), 2)) for label, count in found]


def _day(text: str, today: int) -> int:
    if not text:
        return today
    try:
        found = parse_moment(text)
    except (ValueError, OverflowError):
        found = -1
    if not 0 <= found < TIME_END - DAY_MS:
        raise BadInput(f"day must be a date like 2027-01-31, not '{text[:40]}'.")
    return found
