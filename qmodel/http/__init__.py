"""Jobs over HTTP, for programs in any language. `docs/http.md` is the introduction.

    app = qmodel.http.create("redis://localhost:6379/0", writable=True, auth="s3cr3t")

`app` is an ASGI application, served by `qmodel http` or uvicorn, or mounted in another application.
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

    It is read-only unless `writable`. `auth` is `user:password` or a token. With None there is no authentication, and
    only requests to this machine's own names are answered, or to those in `hosts` (`"*"`: any, for a server behind a
    proxy that authenticates). `limits` bounds bodies and waiting requests. Raises ConnectError if an extra is missing.
    """
    from qmodel.errors import not_installed

    try:
        from qmodel.http.app import application
    except ImportError as error:
        raise not_installed(error, "HTTP needs", "starlette uvicorn", "http") from error
    return application(client_or_url, writable=writable, auth=auth, hosts=hosts, limits=limits)
