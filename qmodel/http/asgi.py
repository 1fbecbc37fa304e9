"""The application as a module attribute, for an ASGI server with several processes:

    uvicorn --workers 4 qmodel.http.asgi:app

QMODEL_URL is the URL of the jobs, QMODEL_AUTH the password or token; QMODEL_WRITABLE=1 allows changes. QMODEL_HOSTS are
host names, separated by commas, that need no password. Without both it answers only requests to this machine's own
names, because it cannot know whether other machines reach it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from qmodel.errors import ConnectError
from qmodel.http import create


@cache
def from_environment() -> Any:
    """Make the application from environment variables. Raises ConnectError for jobs in the memory of one process."""
    from qmodel.http.guard import LOCAL, checked

    url = os.environ.get("QMODEL_URL", "")
    if url.partition("://")[0] in ("", "memory", "embedded"):
        raise ConnectError(
            f"The jobs of {url or 'memory://'} are in the memory of one process, and this server may have several.",
            "Set QMODEL_URL to a server, or run: qmodel http",
        )
    auth = os.environ.get("QMODEL_AUTH") or None
    names = [name.strip() for name in os.environ.get("QMODEL_HOSTS", "").split(",") if name.strip()]
    return create(
        url,
        writable=os.environ.get("QMODEL_WRITABLE", "") in ("1", "true", "yes"),
        auth=None if auth is None else checked(auth),
        hosts=(*LOCAL, *names) if names else None,
    )


def __getattr__(name: str) -> Any:
    """Give `app`, the application, made when a server asks for it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return from_environment()
