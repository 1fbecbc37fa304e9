"""The workers, and one of them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.client import profiles, remote
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.present import describe
from qmodel.present.describe import profile_row
from qmodel.web import queries
from qmodel.web.site import site_of
from qmodel.web.source import PAGE, Slice, cut

SHOWN = 3
"""The jobs of each worker to list."""

SILENT_MS = 3_600_000
"""The time after which a worker without a job is called silent."""


def index(request: Request) -> Response:
    """List the workers, latest seen first, with some of their jobs; a worker with very many is listed without."""
    site = site_of(request)
    offset = queries.whole(request, "offset")
    listed, noted_profiles, *noted = site.source.ask_all(
        [ops.Workers(offset, PAGE + 1), profiles.asked(), *remote.asked()]
    )
    found, told = cut(listed, offset), signals(*noted)
    busy = [worker.name for worker in found.items if 0 < worker.jobs + worker.stalled <= MOST]
    held = site.source.ask_all(map(ops.Worker, busy))
    jids = {name: (*one.stalled, *one.jobs)[:SHOWN] for name, one in zip(busy, held, strict=True)}
    known = site.source.known(jid for some in jids.values() for jid in some)
    jobs = {name: [known[jid] for jid in some if jid in known] for name, some in jids.items()}
    rows = {name: profile_row(one) for name, one in profiles.read(noted_profiles).items()}
    return site.page(request, "workers.html", found=found, jobs=jobs, told=told, silent_ms=SILENT_MS, rows=rows)


def signals(sent: tuple[replies.Entry, ...], answered: tuple[replies.Entry, ...]) -> dict[str, remote.Signalled]:
    """Give the last signal of each worker, and its answer, by name."""
    return remote.paired(dict(sent), dict(answered))


def show(request: Request) -> Response:
    """Show one worker, and its jobs."""
    site = site_of(request)
    name = queries.needed(request, "name")
    offset = queries.whole(request, "offset")
    held, noted_profiles, *noted = site.source.ask_all([ops.Worker(name), profiles.asked(), *remote.asked()])
    told, profile = signals(*noted).get(name), profiles.read(noted_profiles).get(name)
    about = describe.worker(profile) if profile is not None else ""
    jids = (*held.stalled, *held.jobs)
    part = Slice(site.source.jobs(jids[offset : offset + PAGE]), offset, len(jids), offset + PAGE < len(jids))
    return site.page(request, "worker.html", name=name, held=held, found=part, told=told, about=about)
