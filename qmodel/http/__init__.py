"""Jobs over HTTP, for programs that are not Python: `docs/http.md` is the way in.

    app = qmodel.http.create("redis://localhost:6379/0", writable=True, auth="s3cr3t")

`app` is an ASGI application, to be served by `qmodel http`, by uvicorn, or mounted in another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from qmodel.http.api import Limits

__all__ = ["create"]


def create(
    client_or_url: Any,
    *,
    writable: bool = False,
    auth: str | None = None,
    hosts: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """Make the application: the jobs of a URL, Client, AsyncClient or App, over HTTP.

    Nothing can be changed unless `writable`. `auth` is `user:password` or a token, and None asks for nothing; then only
    requests to this machine's own names are answered, or to those of `hosts` (`"*"`: any, for a server behind one that
    asks for the password itself). `limits` is what it bears. Raises ConnectError when an extra is missing.
    """
    from qmodel.errors import not_installed

    try:
        from qmodel.http.app import application
    except ImportError as error:
        raise not_installed(error, "HTTP needs", "starlette uvicorn", "http") from error
    return application(client_or_url, writable=writable, auth=auth, hosts=hosts, limits=limits)
