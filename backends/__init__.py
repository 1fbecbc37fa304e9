"""Backends: what can execute operations.

A backend takes an operation of the catalogue and gives its reply, or a Refusal; it decides nothing. `open_backend`
finds it by the URL's scheme among the entry points `qmodel.backends`, so that others can plug in their own: an entry
point names a function `connect(url: str) -> Backend`, and may name `connect_async(url: str) -> AsyncBackend` beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from qmodel.operations import Operation


class Backend(Protocol):
    """Executes operations, and lets idle workers wait."""

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (milliseconds; by default the backend's clock); give its reply or Refusal."""

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order, in one round trip where there is one; each is a step of its own."""

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        """Sleep until a job becomes ready in one of the queues (True), or `timeout` seconds have passed (False).

        The caller has just popped each of them with `wait` and got nothing.
        """

    def close(self) -> None:
        """Give back what the backend holds."""


class AsyncBackend(Protocol):
    """The same, asynchronous."""

    async def execute(self, op: Operation, now: int | None = None) -> Any: ...

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]: ...

    async def wait(self, queues: Sequence[str], timeout: float) -> bool: ...

    async def close(self) -> None: ...
