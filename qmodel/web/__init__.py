"""The web pages: `qmodel web`, or an ASGI app to mount in another one.

A page is a function of a request (`pages/`): it sends operations, as any client does, and fills a template with the
replies. Everything can be read without JavaScript; with it a visible page updates itself. Only `actions.py` and
`bulk.py` change something, behind the guard.

Every page sends a bounded number of operations, however many jobs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from qmodel.errors import not_installed

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request


def create(
    client_or_url: Any,
    *,
    writable: bool = False,
    auth: str | None = None,
    prefix: str = "",
    hosts: Sequence[str] | None = None,
    may: Callable[[Request, str], bool] | None = None,
    secret: str | None = None,
    decode: Callable[[str, str], str] | None = None,
) -> Starlette:
    """Make the ASGI app of the pages; mount it in another one, or let any ASGI server run it.

    `client_or_url` is a Client, an App, or a URL, which is opened when a page first needs it. The pages are read-only
    unless `writable`. `auth` is `user:password` or a token. With None there is no authentication, and only requests to
    this machine's own names are answered, or to those in `hosts` (`"*"`: any, for pages behind a proxy that
    authenticates). `prefix` is the path that a proxy in front removes; it is added to all links. The path of a mount is
    detected.

    `may(request, action)` permits or forbids an action, by its name; for the empty name it says whether the caller may
    perform any action. `secret` makes the tokens of forms: several processes that serve the same pages need the same
    one. The API of `qmodel.http` is included, under `/api`; with `may` it is read-only.

    `decode(job_type, text)` makes the text that the page of a job shows for its data and its result: for example
    `qmodel.app.codecs.decoder(app)`, which decrypts. Without it they are shown as they are stored.

    Raises ConnectError if an extra is missing.
    """
    try:
        from qmodel.web.app import make
    except ImportError as error:
        raise not_installed(error, "The pages need", "starlette jinja2 uvicorn", "web") from error
    return make(
        client_or_url, writable=writable, auth=auth, prefix=prefix, hosts=hosts, may=may, secret=secret, decode=decode
    )
