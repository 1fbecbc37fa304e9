"""Spaces: the model's namespaces on this server, one for each database and prefix, and who waits for their queues.

The counterpart of backends/memory.py for one event loop: no lock, and a wake-up is handed to exactly one waiter in the
step that made it, so that the journal has both in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from qmodel.contract.operations import Operation
from qmodel.model.engine import step
from qmodel.model.state.store import Store

WAKE: Final = "-wake"


class Waiter:
    """One who waits for a wake-up of some queues, and is told the key of the one that came; once."""

    __slots__ = ("tell", "wanted")

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.tell = tell
        self.wanted: list[tuple[Space, str, str]] = []

    def leave(self) -> None:
        """Wait no more."""
        for space, queue, _ in self.wanted:
            space.strike(self, queue)
        self.wanted = []


class Space:
    """A store, and those who wait for its queues and its events. `took` is told of each wake-up that is handed over."""

    __slots__ = ("_waiting", "db", "prefix", "readers", "store", "took")

    def __init__(self, db: int, prefix: str, took: Callable[[Space, str], object]) -> None:
        self.db = db
        self.prefix = prefix
        self.store = Store()
        self.took = took
        self.readers: dict[object, Callable[[], object]] = {}
        self._waiting: dict[str, dict[Waiter, str]] = {}

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for its queues or its events."""
        return bool(self._waiting or self.readers)

    def execute(self, op: Operation, now: int) -> Any:
        """Make one step; give its reply or Refusal."""
        return step(self.store, now, op)

    def settle(self) -> None:
        """After a step and its entry in the journal: wake those for whom it left a wake-up, or an event."""
        if self._waiting:
            for queue in list(self._waiting):
                self._hand_out(queue)
        if self.readers:
            readers, self.readers = self.readers, {}
            for look in readers.values():
                look()

    def enter(self, waiter: Waiter, queue: str, key: str) -> bool:
        """Let someone wait for a queue; say whether he was told of a wake-up at once."""
        self._waiting.setdefault(queue, {})[waiter] = key
        waiter.wanted.append((self, queue, key))
        return self._hand_out(queue)

    def strike(self, waiter: Waiter, queue: str) -> None:
        """Let someone no longer wait for a queue."""
        waiting = self._waiting.get(queue)
        if waiting is not None:
            waiting.pop(waiter, None)
            if not waiting:
                del self._waiting[queue]

    def take_wake(self, queue: str) -> bool:
        """Use up a wake-up of a queue; say whether there was one."""
        found = self.store.queues.get(queue)
        if found is None or not found.wakes:
            return False
        found.wakes -= 1
        self.took(self, queue)
        return True

    def _hand_out(self, queue: str) -> bool:
        told = False
        while queue in self._waiting and self.take_wake(queue):
            waiter, key = next(iter(self._waiting[queue].items()))
            waiter.leave()
            waiter.tell(key)
            told = True
        return told


class Spaces:
    """All namespaces. `took` is told of each wake-up that is handed over."""

    def __init__(self, took: Callable[[Space, str], object]) -> None:
        self._took = took
        self._all: dict[int, dict[str, Space]] = {}

    def __iter__(self) -> Iterator[Space]:
        for spaces in self._all.values():
            yield from spaces.values()

    def of(self, db: int, prefix: str) -> Space:
        """The namespace under a prefix, made when it is first written."""
        spaces = self._all.setdefault(db, {})
        space = spaces.get(prefix)
        if space is None:
            space = spaces[prefix] = Space(db, prefix, self._took)
        return space

    def look(self, db: int, prefix: str) -> Space:
        """The namespace under a prefix; an empty one, which is not kept, if there is none."""
        return self._all.get(db, {}).get(prefix) or Space(db, prefix, self._took)

    def waking(self, db: int, key: str) -> list[tuple[Space, str]]:
        """The namespaces and queues whose list of wake-ups has this key: several, where one prefix begins another."""
        if not key.endswith(WAKE) or "q:" not in key:
            return []
        found = [
            (space, key[len(prefix) + 2 : -len(WAKE)])
            for prefix, space in self._all.get(db, {}).items()
            if key.startswith(f"{prefix}q:")
        ]
        prefix, _, queue = key.partition("q:")
        return found or [(self.of(db, prefix), queue.removesuffix(WAKE))]

    def clear(self, db: int | None = None, prefix: str | None = None) -> None:
        """Empty the namespaces of a database, or of all; or only those whose prefix begins so. Who waits goes on."""
        for space in list(self):
            if db in (None, space.db) and space.prefix.startswith(prefix or ""):
                space.store = Store()
                if not space.is_awaited:
                    del self._all[space.db][space.prefix]
