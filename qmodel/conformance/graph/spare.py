"""A copy of a state, which serves as long as nothing changes it."""

from __future__ import annotations

from qmodel.model.copies import are_equal, copy
from qmodel.model.state.store import Store


class Spare:
    """A copy of a state for the next operation. Most operations change nothing; their copy serves the next one too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._copy: Store | None = None

    def take(self) -> Store:
        """Give a copy."""
        found = self._copy or copy(self._store)
        self._copy = None
        return found

    def give_back(self, used: Store) -> bool:
        """Tell whether a copy is still equal to the state; if so, it is the next one."""
        equal = are_equal(self._store, used)
        self._copy = used if equal else None
        return equal
