"""Context variables that go along with jobs: the value at the put is the value in each attempt, and in its log lines.

The values are texts in the headers of a job's data. A job that is put within an attempt has them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, Final, Protocol

from qmodel.app.errors import DeclarationError

PREFIX: Final = "var."
"""What the names of variables begin with among a job's headers."""


class _HasHeaders(Protocol):
    headers: Mapping[str, str]


class Carried:
    """The variables that an app carries, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, ContextVar[str]] = {}

    def add(self, variable: ContextVar[str]) -> None:
        """Add a variable. Raises DeclarationError if another one has its name."""
        if self._by_name.setdefault(variable.name, variable) is not variable:
            raise DeclarationError(f"Another variable is named {variable.name!r}.", "Give one of them another name.")

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def inject(self, kind: Any, headers: MutableMapping[str, str]) -> None:
        """Write the variables that are set into the headers of a new job. Raises TypeError for one that is no text."""
        for name, variable in self._by_name.items():
            value: object = variable.get(None)
            if value is None:
                continue
            if not isinstance(value, str):
                raise TypeError(f"The variable {name!r} is to go along with jobs, and is no text: {value!r}.")
            headers[PREFIX + name] = value

    def around(self, context: _HasHeaders) -> Iterator[None]:
        """Set the variables to the values of a job while it is performed."""
        with ExitStack() as left:
            for name, value in of(context.headers).items():
                if name in self._by_name:
                    variable = self._by_name[name]
                    left.callback(variable.reset, variable.set(value))
            yield


def of(headers: Mapping[str, str]) -> dict[str, str]:
    """Give the values of variables among a job's headers."""
    return {name.removeprefix(PREFIX): value for name, value in headers.items() if name.startswith(PREFIX)}
