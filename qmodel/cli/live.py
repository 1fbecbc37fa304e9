"""What the commands share that look on for a long time: what they need, and how long they wait for the server."""

from __future__ import annotations

from importlib.util import find_spec

from qmodel.backends import BUILT_IN
from qmodel.errors import QmodelError

DEADLINE = 5
"""Seconds for which who looks on sends a call again: then it says that the server is away, and asks anew."""


def need(package: str, extra: str, command: str) -> None:
    """Raise QmodelError with what to install, if a package is not there."""
    if find_spec(package) is None:
        name = package.replace("_", "-")
        raise QmodelError(
            f"`qmodel {command}` needs the package {name}, which is not installed. "
            f"Run: pip install {name} (or, in a checkout of qmodel: pip install '.[{extra}]')"
        )


def impatient(url: str) -> str:
    """A URL whose calls give up soon, unless it says itself when they do.

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
