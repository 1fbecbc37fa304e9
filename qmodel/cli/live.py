"""Requirements and deadlines of commands that watch a server for a long time."""

from __future__ import annotations

from importlib.util import find_spec

from qmodel.backends import BUILT_IN
from qmodel.errors import QmodelError

DEADLINE = 5
"""Seconds for which a call is repeated; after that the command says that the server is away, and tries again."""


def need(package: str, extra: str, command: str) -> None:
    """Raise QmodelError if a package is missing; its text says what to install."""
    if find_spec(package) is None:
        name = package.replace("_", "-")
        raise QmodelError(
            f"`qmodel {command}` needs the package {name}, which is not installed. "
            f"Run: pip install {name} (or, in a checkout of qmodel: pip install '.[{extra}]')"
        )


def impatient(url: str) -> str:
    """Add a short deadline to a URL that has none.

    >>> impatient("redis://host:6379/0")
    'redis://host:6379/0?deadline=5'
    >>> impatient("redis://host?prefix=a:")
    'redis://host?prefix=a:&deadline=5'
    >>> impatient("redis://host?deadline=60"), impatient("memory://")
    ('redis://host?deadline=60', 'memory://')
    """
    scheme, _, rest = url.partition("://")
    module, _ = BUILT_IN.get(scheme, ("", ""))
    if module != "qmodel.backends.redis.backend" or "deadline=" in rest:
        return url
    return f"{url}{'&' if '?' in rest else '?'}deadline={DEADLINE}"
