"""The journal: every operation that may change something, with its call and its outcome.

It is kept while the option `journal` is on; the operation that turns it on is the first entry, and the one that turns
it off the last. So with the state before the first entry, all of it can be executed again, with the same replies and
the same state: an operation depends only on the state, its moment and its arguments. Not recorded are operations that
read, because they change nothing, and calls refused for their form, because they are no operations.

An entry is a number, without gaps; the sequence of the last event after the operation; the moment; the operation; its
outcome; and the epoch. As of events, the pair of epoch and number identifies an entry among all servers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from itertools import islice
from typing import Any

from qmodel.contract.operations import Operation
from qmodel.contract.refusals import refuse
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
    first = _gone(store)
    skip = max(number - first, 0)
    return tuple(
        Recorded(first + at, seq, as_json.call(now, op), as_json.outcome(outcome), epoch)
        for at, (seq, now, op, outcome, epoch) in enumerate(islice(store.recorded, skip, skip + count), skip + 1)
    )


def _gone(store: Store) -> int:
    """The last entry that is no longer kept."""
    return store.journaled - len(store.recorded)


def check(store: Store, number: int, epoch: int) -> None:
    """Refuse a reader whose last entry is not part of this history, as `epochs.check` does for events.

    If that entry is no longer kept, the next one that is must be of the reader's epoch: nothing tells which epoch was
    before it.
    """
    if number == 0:
        return
    if number > store.journaled or not store.recorded:
        same = store.epoch == epoch
    else:
        same = _epoch_of(store, max(number, _gone(store) + 1)) == epoch
    if not same:
        raise refuse("FORKED", number, epoch, store.epoch, _common(store, number, epoch))


def _epoch_of(store: Store, number: int) -> int:
    """The epoch of a kept entry."""
    return store.recorded[number - _gone(store) - 1][-1]


def _common(store: Store, number: int, epoch: int) -> int:
    """The newest entry that both can share, as far as is known: no epoch after that of the reader began before it."""
    first = _gone(store)
    last = min(number, store.journaled)
    if last <= first:
        return min(number, first)
    found = bisect_right(range(first + 1, last + 1), epoch, key=lambda one: _epoch_of(store, one)) + first
    if found == first:
        return min(number, first)
    return found - 1 if found == number else found
