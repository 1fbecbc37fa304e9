"""An app: its job types, and the place where their jobs are."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from qmodel.app.base import BaseApp
from qmodel.app.declare import Declaring
from qmodel.app.jobtype import JobType
from qmodel.app.serializers import Serializer


class App(BaseApp):
    """Job types, and the connection to their jobs.

    `url` is the backend: `redis://localhost:6379/0`, or `memory://` for this process alone. Without one the environment
    variable QMODEL_URL is used, else `memory://`. The app connects at first use and starts no threads, so it costs a
    short-lived process nothing. `imports` lists modules with more job types, which import the app themselves; workers
    load them. `serializer` makes text of data and results; by default it is JSON (`qmodel.app.Json`).

    >>> app = App("memory://")
    >>> @app.job(queue="sums")
    ... def add(x: int, y: int = 0) -> int:
    ...     return x + y
    >>> add(1, 2)
    3
    >>> add.put(1, y=2).data
    {'x': 1, 'y': 2}
    """

    jobs: Mapping[str, JobType[Any, Any, Any, Any]]
    """The job types by name."""

    def __init__(
        self, url: str | None = None, *, imports: Iterable[str] = (), serializer: Serializer | None = None
    ) -> None:
        super().__init__(url, imports=imports, serializer=serializer)
        _KNOWN.add(self)

    @staticmethod
    def known() -> list[App]:
        """List all living apps of this process, for tests."""
        return list(_KNOWN)

    @property
    def job(self) -> Declaring:
        """Make a job type of a function or class: `@app.job`, `@app.job(queue="emails", retries=3)`.

        The options are those of `Queue.put`, and `name`, `backoff`, `fail_on`, `serializer`. For a recurring job type
        there are also those of `Queue.recur`, with `every` for its interval, and the `arguments`. Raises
        DeclarationError for options that cannot work, and for two job types of one name.
        """
        return Declaring(self, {})


_KNOWN: weakref.WeakSet[App] = weakref.WeakSet()
