"""The pages on which something is done to many jobs: the preview, and how far it has come."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.web import queries
from qmodel.web.bulk import KINDS, Bulk, count, go_on
from qmodel.web.forms import Form
from qmodel.web.job_lists import Wanted
from qmodel.web.pages.forms import note, posted
from qmodel.web.pages.jobs import wanted_by
from qmodel.web.site import Site, site_of

DEFAULT_AGE = "1d"


def preview(request: Request) -> Response:
    """How many jobs it would be done to."""
    site = site_of(request)
    site.guard.check(request, writes=True)
    older = queries.text(request, "older") or DEFAULT_AGE
    kind = queries.text(request, "action")
    site.check(request, f"{kind}-all")
    bulk = Bulk(kind, wanted_by(request), Form([("older", older)]).duration("older") if kind == "clean" else 0)
    fit, all_of_them = count(site.source, bulk)
    verb = KINDS[bulk.kind]
    return site.page(request, "preview.html", bulk=bulk, fit=fit, exact=all_of_them, verb=verb, older=older)


@posted
def run(site: Site, request: Request, form: Form) -> Response:
    """Do a part of it, and say how far it has come."""
    wanted = Wanted(**{name: form.text(name) for name in Wanted.__dataclass_fields__})
    kind = form.text("action")
    site.check(request, f"{kind}-all")
    older = form.duration("older") if kind == "clean" else 0
    begun = Bulk(
        kind, wanted, older, form.text("cursor"), form.whole_or_none("done") or 0, form.whole_or_none("passed") or 0
    )
    after = go_on(site.source, begun)
    note(request, f"{kind}-all", f"{after.done - begun.done} jobs {KINDS[kind][1]}, {dict(wanted.given)}")
    fit = form.whole_or_none("fit") or 0
    return site.page(
        request,
        "progress.html",
        bulk=after,
        verb=KINDS[kind],
        fit=max(fit, after.done),
        exact=form.text("exact") == "1",
        older=form.text("older"),
    )
