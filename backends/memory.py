"""`memory://`: the reference model itself, in this process. It is not a mock but the definition.

Each connection to `memory://` gets a namespace of its own. `memory://name` is the same namespace for the whole process,
as long as the process lives. `memory://name?shards=8` is a deployment (`backends/deployment.py`). One lock for each
namespace makes it safe for threads. An event loop may use it too, because no operation takes longer than its step.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from qmodel.backends import layouts
from qmodel.backends.namespace import Clock, Namespace, system_clock
from qmodel.backends.wait import AsyncWaits, Waits
from qmodel.contract.operations import Operation
from qmodel.contract.routing import Layout
from qmodel.errors import ConnectError
from qmodel.model.state.store import Store

if TYPE_CHECKING:
    from qmodel.backends.deployment import DeploymentNamespace
    from qmodel.model.deployment.plans import Call


class MemoryBackend(Waits[Namespace]):
    """Executes operations on the model.

    Two backends of the same `namespace` share their jobs. `clock` returns the time in milliseconds; a test can pass a
    clock that it moves by hand.
    """

    def __init__(self, namespace: Namespace | None = None, clock: Clock = system_clock) -> None:
        self.namespace = Namespace(clock) if namespace is None else namespace

    @property
    def store(self) -> Store:
        """The namespace's contents, for reading only."""
        return self.namespace.store

    @property
    def layout(self) -> Layout | None:
        """The layout of a deployment; None for one namespace."""
        return self.namespace.layout

    def now(self) -> int:
        """Return the time of this backend's clock, in milliseconds since the epoch."""
        return self.namespace.clock()

    def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return self.namespace.execute(op, now)

    def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    def close(self) -> None:
        """Do nothing. A private namespace ends with its last user; a named one stays."""


class AsyncMemoryBackend(AsyncWaits[Namespace]):
    """Executes operations on the model, for an event loop. It shares the namespaces with MemoryBackend."""

    def __init__(self, namespace: Namespace | None = None, clock: Clock = system_clock) -> None:
        self.namespace = Namespace(clock) if namespace is None else namespace

    @property
    def store(self) -> Store:
        """The namespace's contents, for reading only."""
        return self.namespace.store

    @property
    def layout(self) -> Layout | None:
        """The layout of a deployment; None for one namespace."""
        return self.namespace.layout

    async def now(self) -> int:
        """Return the time of this backend's clock, in milliseconds since the epoch."""
        return self.namespace.clock()

    async def execute(self, op: Operation, now: int | None = None) -> Any:
        """Execute one operation at `now` (default: the clock's time); give its reply or Refusal."""
        return self.namespace.execute(op, now)

    async def execute_many(self, ops: Sequence[Operation], now: int | None = None) -> list[Any]:
        """Execute operations in order; each is a step of its own."""
        return [self.namespace.execute(op, now) for op in ops]

    async def close(self) -> None:
        """Do nothing. A private namespace ends with its last user; a named one stays."""


class DeploymentBackend(MemoryBackend):
    """Executes operations on the model of a deployment."""

    def __init__(self, namespace: DeploymentNamespace) -> None:
        super().__init__(namespace)
        self._deployment = namespace
        self.shards = namespace.shards()

    def execute_calls(self, calls: Sequence[Call], now: int | None = None) -> list[Any]:
        """Execute operations in given shards; give their replies."""
        return [self._deployment.execute_call(call, now) for call in calls]

    def wait_after(self, after: Sequence[int], timeout: float) -> bool:
        """Sleep until a shard has an event after the sequence number given for it (True) or time is up (False)."""
        return self.sleep((), lambda waiter: self._deployment.follow_shards(waiter, after), timeout)


class AsyncDeploymentBackend(AsyncMemoryBackend):
    """Executes operations on the model of a deployment, for an event loop."""

    def __init__(self, namespace: DeploymentNamespace) -> None:
        super().__init__(namespace)
        self._deployment = namespace
        self.shards = namespace.async_shards()

    async def execute_calls(self, calls: Sequence[Call], now: int | None = None) -> list[Any]:
        """Execute operations in given shards; give their replies."""
        return [self._deployment.execute_call(call, now) for call in calls]

    async def wait_after(self, after: Sequence[int], timeout: float) -> bool:
        """Sleep until a shard has an event after the sequence number given for it (True) or time is up (False)."""
        return await self.sleep((), lambda waiter: self._deployment.follow_shards(waiter, after), timeout)


_NAMED: dict[str, Namespace] = {}
_NAMING = threading.Lock()
_URL = re.compile(r"memory://([\w.-]*)/?(?:\?(.*))?\Z")


def namespace(url: str) -> Namespace:
    """Find the namespace of a URL: a new one for `memory://`, always the same for `memory://name`.

    With `?shards=` it is a deployment.
    """
    found = _URL.match(url)
    if found is None:
        raise ConnectError(
            f"'{url}' is not a memory URL.",
            "Write memory:// or memory://name, where the name has letters, digits and . _ - only; for a deployment "
            "memory://name?shards=8.",
        )
    name = found[1]
    layout = None if found[2] is None else _layout(url, found[2])
    with _NAMING:
        known = _NAMED.get(name) or _made(layout)
        if layout is not None and layout != known.layout:
            raise layouts.differs(f"memory://{name}", known.layout)
        if name:
            _NAMED[name] = known
        return known


def _layout(url: str, query: str) -> Layout:
    from qmodel.backends import deployment

    return deployment.layout_of(url, query)


def _made(layout: Layout | None) -> Namespace:
    if layout is None:
        return Namespace(system_clock)
    from qmodel.backends import deployment

    return deployment.DeploymentNamespace(system_clock, layout)


def connect(url: str) -> MemoryBackend:
    """Open a memory URL."""
    found = namespace(url)
    if found.layout is None:
        return MemoryBackend(found)
    return DeploymentBackend(cast("DeploymentNamespace", found))


def connect_async(url: str) -> AsyncMemoryBackend:
    """Open a memory URL for an event loop."""
    found = namespace(url)
    if found.layout is None:
        return AsyncMemoryBackend(found)
    return AsyncDeploymentBackend(cast("DeploymentNamespace", found))
