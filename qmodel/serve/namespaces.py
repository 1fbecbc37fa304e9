"""The model's namespaces on this server, one for each database and prefix, and the waiters for their queues.

This is the counterpart of backends/memory.py for one event loop. It needs no lock. A wake-up is given to exactly one
waiter in the step that made it, so that the journal has both in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from qmodel.contract.operations import Operation
from qmodel.model.engine import step
from qmodel.model.state import queues
from qmodel.model.state.store import Store

WAKE: Final = "-wake"


class Waiter:
    """Waits for one wake-up of any of some queues; `notify` gets the key of its list."""

    __slots__ = ("notify", "wanted")

    def __init__(self, notify: Callable[[str], object]) -> None:
        self.notify = notify
        self.wanted: list[tuple[Space, str, str]] = []

    def leave(self) -> None:
        """Stop waiting."""
        for space, queue, _ in self.wanted:
            space.remove(self, queue)
        self.wanted = []


class Space:
    """A store, and the waiters for its queues and its events. `on_wake` is called for each consumed wake-up.

    `is_begun` says whether this process has begun an epoch of the store.
    """

    __slots__ = ("_waiting", "db", "is_begun", "on_wake", "prefix", "readers", "store")

    def __init__(self, db: int, prefix: str, on_wake: Callable[[Space, str], object]) -> None:
        self.db = db
        self.prefix = prefix
        self.store = Store()
        self.is_begun = False
        self.on_wake = on_wake
        self.readers: dict[object, Callable[[], object]] = {}
        self._waiting: dict[str, dict[Waiter, str]] = {}

    @property
    def is_awaited(self) -> bool:
        """Whether there are waiters for its queues or its events."""
        return bool(self._waiting or self.readers)

    def execute(self, op: Operation, now: int) -> Any:
        """Execute one operation; give its reply or Refusal."""
        return step(self.store, now, op)

    def settle(self) -> None:
        """Wake the waiters of new wake-ups and events; called after a step and its entry in the journal."""
        if self._waiting:
            for queue in list(self._waiting):
                self._hand_out(queue)
        if self.readers:
            readers, self.readers = self.readers, {}
            for look in readers.values():
                look()

    def enter(self, waiter: Waiter, queue: str, key: str) -> bool:
        """Add a waiter for a queue; say whether it got a wake-up at once."""
        self._waiting.setdefault(queue, {})[waiter] = key
        waiter.wanted.append((self, queue, key))
        return self._hand_out(queue)

    def remove(self, waiter: Waiter, queue: str) -> None:
        """Remove a waiter for a queue."""
        waiting = self._waiting.get(queue)
        if waiting is not None:
            waiting.pop(waiter, None)
            if not waiting:
                del self._waiting[queue]

    def take_wake(self, queue: str) -> bool:
        """Consume a wake-up of a queue; say whether there was one."""
        found = self.store.queues.get(queue)
        if found is None or not found.wakes:
            return False
        found.wakes -= 1
        self.on_wake(self, queue)
        return True

    def push_wake(self, queue: str) -> int:
        """Add a wake-up that a worker gives back; say how many there are. One that is too many, or of a queue that is
        gone, is dropped: nobody needs it.
        """
        found = self.store.queues.get(queue)
        if found is None:
            return 0
        found.wakes += found.idle + found.wakes < queues.IDLE_MOST
        return found.wakes

    def _hand_out(self, queue: str) -> bool:
        delivered = False
        while queue in self._waiting and self.take_wake(queue):
            waiter, key = next(iter(self._waiting[queue].items()))
            waiter.leave()
            waiter.notify(key)
            delivered = True
        return delivered


def taken_apart(key: str) -> tuple[str, str]:
    """Divide a key `<prefix>q:<rest>` of a namespace that nobody has used yet. Most prefixes end with a colon.

    >>> taken_apart("seq:q:mails-wake"), taken_apart("q:mails-wake"), taken_apart("shopq:mails-wake")
    (('seq:', 'mails-wake'), ('', 'mails-wake'), ('shop', 'mails-wake'))
    """
    found = re.match(r"(|.*?:)q:", key, re.S) or re.match(r"(.*?)q:", key, re.S)
    assert found is not None
    return found[1], key[found.end() :]


class Spaces:
    """All namespaces. `on_wake` is called for each consumed wake-up."""

    def __init__(self, on_wake: Callable[[Space, str], object]) -> None:
        self._on_wake = on_wake
        self.cleared_epoch = 0  # no namespace that was emptied had a later one
        self._all: dict[int, dict[str, Space]] = {}

    def __iter__(self) -> Iterator[Space]:
        for spaces in self._all.values():
            yield from spaces.values()

    def of(self, db: int, prefix: str) -> Space:
        """Get the namespace of a prefix; make it if there is none."""
        spaces = self._all.setdefault(db, {})
        space = spaces.get(prefix)
        if space is None:
            space = spaces[prefix] = Space(db, prefix, self._on_wake)
        return space

    def look(self, db: int, prefix: str) -> Space:
        """Get the namespace of a prefix for reading; an empty one that is not kept if there is none."""
        return self._all.get(db, {}).get(prefix) or Space(db, prefix, self._on_wake)

    def waking(self, db: int, key: str) -> list[tuple[Space, str]]:
        """Find the namespaces and queues with this wake-up key: several, where one prefix begins another."""
        if not key.endswith(WAKE) or "q:" not in key:
            return []
        prefix, queue = taken_apart(key)
        return self.queues_of(db, key, WAKE) or [(self.of(db, prefix), queue.removesuffix(WAKE))]

    def queues_of(self, db: int, key: str, ending: str) -> list[tuple[Space, str]]:
        """Find the queues with a key `<prefix>q:<queue><ending>`, in namespaces that are there."""
        return [
            (space, key[len(prefix) + 2 : -len(ending)])
            for prefix, space in self._all.get(db, {}).items()
            if key.startswith(f"{prefix}q:")
        ]

    def clear(self, db: int | None = None, prefix: str | None = None) -> None:
        """Empty the namespaces of a database, or of all; `prefix` limits it to matching prefixes. Waiters stay."""
        for space in list(self):
            if db in (None, space.db) and space.prefix.startswith(prefix or ""):
                self.cleared_epoch = max(self.cleared_epoch, space.store.epoch)
                space.store, space.is_begun = Store(), False
                if not space.is_awaited:
                    del self._all[space.db][space.prefix]
