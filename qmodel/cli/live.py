"""Requirements and deadlines of commands that watch a server for a long time."""

from __future__ import annotations

from importlib.util import find_spec

from qmodel.backends import with_option
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
    """
    return with_option(url, "deadline", DEADLINE)
