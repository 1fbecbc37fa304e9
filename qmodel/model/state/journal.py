"""The journal: every operation that may change something, with its call and its outcome.

It is kept while the option `journal` is on; the operation that turns it on is the first entry, and the one that turns
it off the last. So with the state before the first entry, all of it can be executed again, with the same replies and
the same state: an operation depends only on the state, its moment and its arguments. Not recorded are operations that
read, because they change nothing, and calls refused for their form, because they are no operations.

An entry is a number, without gaps; the sequence of the last event after the operation; the moment; the operation; its
outcome; and the epoch. As of events, the pair of epoch and number identifies an entry among all servers.
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
    """Append an operation and its outcome."""
    store.journaled += 1
    store.recorded.append((store.seq, now, op, outcome, store.epoch))


def keep(store: Store, most: int) -> None:
    """Set how many entries are kept."""
    store.recorded = deque(store.recorded, most)


def after(store: Store, number: int, count: int) -> tuple[Recorded, ...]:
    """The entries after a number, oldest first."""
    first = store.journaled - len(store.recorded)
    skip = max(number - first, 0)
    return tuple(
        Recorded(first + at, seq, as_json.call(now, op), as_json.outcome(outcome), epoch)
        for at, (seq, now, op, outcome, epoch) in enumerate(islice(store.recorded, skip, skip + count), skip + 1)
    )
