"""The pages on which people look at jobs and see to them: `qmodel web`, or an ASGI app to mount in another one.

A page is a function of a request (`pages/`): it sends operations, as any client does, and fills a template with the
replies. Everything can be read without JavaScript; with it a page that is looked at brings itself up to date. Nothing
here is written but by `actions.py` and `bulk.py`, which the guard stands before.

Every page sends a bounded number of operations, whatever there is to show.
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
) -> Starlette:
    """Make the ASGI app of the pages; mount it in another one, or let any ASGI server run it.

    `client_or_url` says where the jobs are: a Client, an App, or a URL, which is opened when a page first needs it.
    Nothing can be changed unless `writable`. `auth` is `user:password` or a token, and None asks for nothing; then only
    requests to this machine's own names are answered, or to those of `hosts` (`"*"`: any, for pages behind something
    that asks for the password itself). `prefix` is a path that stands before all links, where a proxy in front takes it
    away; that of a mount is known by itself.

    `may(request, action)` says of each action, by name, whether who asks may do it, and of the empty name whether they
    may do any. `secret` makes the tokens of forms: several processes that serve the same pages need the same one. The
    API of `qmodel.http` is part of it, under `/api`; with `may` nothing can be changed there.

    Raises ConnectError when an extra is missing.
    """
    try:
        from qmodel.web.app import make
    except ImportError as error:
        raise not_installed(error, "The pages need", "starlette jinja2 uvicorn", "web") from error
    return make(client_or_url, writable=writable, auth=auth, prefix=prefix, hosts=hosts, may=may, secret=secret)
