"""The journal: every operation that may change something, as it was called, and what came of it.

It is kept while the option `journal` is on; the operation that sets it is the first, and that which takes it back the
last. So whoever has the state before the first can execute all of it again, and come to the same replies and the same
state: an operation depends on the state, its moment and its arguments alone. What is left out is not needed for that:
operations that read change nothing, and a call that is refused for its form is none.

An entry is a number, without gaps; the sequence of the last event after the operation; the moment; the operation; and
what came of it.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

from qmodel.contract.operations import Operation
from qmodel.contract.replies import Recorded
from qmodel.model.state.store import Store
from qmodel.wire import as_json


def is_on(store: Store) -> bool:
    """Whether operations are recorded."""
    return store.settings["journal"] == 1


def record(store: Store, now: int, op: Operation, outcome: Any) -> None:
    """Append an operation, and what came of it."""
    store.journaled += 1
    store.recorded.append((store.seq, now, op, outcome))


def keep(store: Store, most: int) -> None:
    """Keep this many entries from now on."""
    store.recorded = deque(store.recorded, most)


def after(store: Store, number: int, count: int) -> tuple[Recorded, ...]:
    """The entries after a number, oldest first."""
    first = store.journaled - len(store.recorded)
    skip = max(number - first, 0)
    return tuple(
        Recorded(first + at, seq, as_json.call(now, op), as_json.outcome(outcome))
        for at, (seq, now, op, outcome) in enumerate(islice(store.recorded, skip, skip + count), skip + 1)
    )
