"""The findings of `qmodel doctor`."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from qmodel.client.sync import Client
from qmodel.doctor import CHECKS, examine, invariants
from qmodel.web.site import site_of

FINDINGS = 200
"""The most findings on a page."""


class Patient(NamedTuple):
    """The subject of an examination. The keys in Redis are not examined: that would delay the server."""

    url: str
    client: Client
    url_from: str = "the start of these pages"
    look_at_keys: bool = False


def show(request: Request) -> Response:
    """Examine the server and the jobs, and list the findings."""
    site = site_of(request)
    checks = tuple(check for check in CHECKS if check is not invariants)
    found = list(examine(Patient(site.source.where, site.source.client), checks))
    return site.page(request, "doctor.html", findings=found[:FINDINGS], left=max(len(found) - FINDINGS, 0))
