"""Who works, and on what."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel import operations as ops
from qmodel.web import asking
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, Slice, cut

SHOWN = 3
"""The jobs of each worker that stand in the list."""

SILENT_MS = 3_600_000
"""After which a worker without a job is said to be silent."""


def index(request: Request) -> Response:
    """The workers, latest seen first, with the first of their jobs."""
    site = site_of(request)
    offset = asking.whole(request, "offset")
    found = cut(site.source.ask(ops.Workers(offset, PAGE + 1)), offset)
    busy = [worker.name for worker in found.items if worker.jobs or worker.stalled]
    held = site.source.ask_all(map(ops.Worker, busy))
    jids = {name: (*one.stalled, *one.jobs)[:SHOWN] for name, one in zip(busy, held, strict=True)}
    known = site.source.known(jid for some in jids.values() for jid in some)
    jobs = {name: [known[jid] for jid in some if jid in known] for name, some in jids.items()}
    return site.page(request, "workers.html", found=found, jobs=jobs, silent_ms=SILENT_MS)


def show(request: Request) -> Response:
    """One worker, and the jobs that it holds."""
    site = site_of(request)
    name = asking.needed(request, "name")
    offset = asking.whole(request, "offset")
    held = site.source.ask(ops.Worker(name))
    jids = (*held.stalled, *held.jobs)
    part = Slice(site.source.jobs(jids[offset : offset + PAGE]), offset, len(jids), offset + PAGE < len(jids))
    return site.page(request, "worker.html", name=name, held=held, found=part)
