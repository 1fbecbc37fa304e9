"""The application as a module has it, for a server of your own with several processes:

    uvicorn --workers 4 qmodel.http.asgi:app

QMODEL_URL says where the jobs are, QMODEL_AUTH who may ask; with QMODEL_WRITABLE=1 things can be changed. QMODEL_HOSTS
are names, with commas between, by which it may be asked without a password; without either it answers only to this
machine's own names, for nobody can see here whether others reach it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from qmodel.errors import ConnectError
from qmodel.http import create


@cache
def from_environment() -> Any:
    """The application that the environment asks for. Raises ConnectError for jobs in the memory of one process."""
    from qmodel.http.guard import LOCAL, checked

    url = os.environ.get("QMODEL_URL", "")
    if url.partition("://")[0] in ("", "memory", "embedded"):
        raise ConnectError(
            f"The jobs of {url or 'memory://'} are in the memory of one process, and here there may be several.",
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
    """`app`: the application, made when a server asks for it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return from_environment()
