"""The pages of bulk actions: the preview, and the progress."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from qmodel.present.bulk import KINDS, outcome
from qmodel.present.fields import Fields
from qmodel.web import queries
from qmodel.web.bulk import Bulk, count, go_on
from qmodel.web.job_lists import Wanted
from qmodel.web.pages.forms import note, posted
from qmodel.web.pages.jobs import wanted_by
from qmodel.web.site import Site, site_of

DEFAULT_AGE = "1d"


def preview(request: Request) -> Response:
    """Show how many jobs the action would change."""
    site = site_of(request)
    site.guard.check(request, writes=True)
    older = queries.text(request, "older") or DEFAULT_AGE
    name = queries.text(request, "action")
    site.check(request, f"{name}-all")
    bulk = Bulk(name, wanted_by(request), Fields([("older", older)]).duration("older") if name == "clean" else 0)
    fit, all_of_them = count(site.source, bulk)
    kind = KINDS[bulk.kind]
    return site.page(request, "preview.html", bulk=bulk, fit=fit, exact=all_of_them, kind=kind, older=older)


@posted
def run(site: Site, request: Request, form: Fields) -> Response:
    """Do a part of the action, and show the progress."""
    wanted = Wanted(**{name: form.exact(name) for name in Wanted.__dataclass_fields__})
    kind = form.text("action")
    site.check(request, f"{kind}-all")
    older = form.duration("older") if kind == "clean" else 0
    begun = Bulk(
        kind, wanted, older, form.exact("cursor"), form.whole_or_none("done") or 0, form.whole_or_none("passed") or 0
    )
    after = go_on(site.source, begun)
    note(request, f"{kind}-all", f"{outcome(kind, after.done - begun.done)} {dict(wanted.given)}")
    fit = form.whole_or_none("fit") or 0
    return site.page(
        request,
        "progress.html",
        bulk=after,
        kind=KINDS[kind],
        fit=max(fit, after.done),
        exact=form.text("exact") == "1",
        older=form.text("older"),
    )
