"""Commands that fail within an operation: it is whole or not at all, or the next call that writes repairs it.

The laws of lua/state/writes.lua: an operation that replies is whole. One that ends with an error has changed nothing,
or says that it is kept, and then the next call completes it; or it says that a part must be undone, and the next call
does so. They hold whichever command fails, once or as long as the call lasts.

Calls of one operation that took the same way and called the same commands fail in the same way. One of these is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qmodel.backends.embedded.host import ReplyError
from qmodel.contract.operations import Deregister
from qmodel.model import engine
from qmodel.model.copies import copy
from qmodel.model.state.store import Store

NEXT: Final = Deregister(("nobody",))
"""A call that writes, and changes nothing: what is left to do is done before it."""

KEPT: Final = "the step is kept"
"""What the error of an operation says that the next call completes."""


@dataclass
class Failing:
    """Lets the n-th command of a call fail, and those of its name that follow, if it lasts."""

    nth: int
    lasts: bool
    seen: int = 0
    name: str = ""

    def __str__(self) -> str:
        """Name the command as a finding does."""
        return f"the failure of command {self.nth}{', and of all of that name' if self.lasts else ''}"

    def __call__(self, name: str, _writes: bool) -> str | None:
        """Tell what is wrong with a command, if anything is."""
        self.seen += 1
        if self.seen == self.nth:
            self.name = name
        return f"NOPERM {name} fails" if self.seen == self.nth or (self.lasts and name == self.name) else None

    @property
    def has_failed(self) -> bool:
        """Tell whether the call came to that command."""
        return self.seen >= self.nth


def after_failure(error: ReplyError | None, now: int, before: Store, whole: Store) -> Store:
    """Give the state that must be there once the next call has written, by the error of a call."""
    found = copy(whole if error is None or KEPT in str(error) else before)
    engine.step(found, now, NEXT)
    return found
