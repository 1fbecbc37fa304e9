"""The journal: every operation that may change something, with its call and its outcome.

It is kept while the option `journal` is on; the operation that turns it on is the first entry, and the one that turns
it off the last. So with the state before the first entry, all of it can be executed again, with the same replies and
the same state: an operation depends only on the state, its moment and its arguments. Not recorded are operations that
read, because they change nothing, and calls refused for their form, because they are no operations.

A page stops where its budget ends (state/budget.py): the engine counts the bytes of a call and its outcome, and the
jobs in the outcome.

An entry is a number, without gaps; the sequence of the last event after the operation; the moment; the operation; its
outcome; and the epoch. As of events, the pair of epoch and number identifies an entry among all servers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from qmodel.contract import replies
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal, refuse
from qmodel.contract.replies import Recorded
from qmodel.model.state import budget, epochs
from qmodel.model.state.store import Store
from qmodel.wire import as_json, codec


def record(store: Store, now: int, op: Operation, outcome: Any) -> None:
    """Append an operation and its outcome."""
    store.journaled += 1
    store.recorded.append((store.seq, now, op, outcome, store.epoch))


def keep(store: Store, most: int) -> None:
    """Set how many entries are kept."""
    store.recorded = deque(store.recorded, most)


def _measure(values: Iterable[Any]) -> tuple[int, int]:
    """The bytes of all texts in a list, and the units of all jobs in it."""
    bytes_, units = 0, 0
    for one in values:
        if type(one) is str:
            bytes_ += budget.size(one)
        elif type(one) is replies.Job:
            units += budget.of_shown(one)
        elif isinstance(one, tuple):
            of_list = _measure(one)
            bytes_ += of_list[0]
            units += of_list[1]
    return bytes_, units


def _weight(now: int, op: Operation, outcome: Any) -> int:
    """The units of a call and its outcome, beside the unit of each entry."""
    said = outcome if isinstance(outcome, tuple) else ()
    if type(outcome) is Refusal:
        said = (outcome.code, *map(str, outcome.facts))
    of_call, _ = _measure(codec.encode(op, now))
    of_outcome, units = _measure(said)
    return budget.of_entry(of_call + of_outcome, units)


def all_(store: Store) -> Iterator[Recorded]:
    """All kept entries, oldest first."""
    for at, entry in enumerate(store.recorded, _gone(store) + 1):
        yield _shown(at, *entry)


def _shown(number: int, seq: int, now: int, op: Operation, outcome: Any, epoch: int) -> Recorded:
    return Recorded(number, seq, as_json.call(now, op), as_json.outcome(outcome), epoch)


def after(store: Store, number: int, count: int) -> tuple[Recorded, ...]:
    """The entries after a number, oldest first: as many as the budget has room for."""
    first = _gone(store)
    skip = max(number - first, 0)
    page: list[Recorded] = []
    for at, entry in enumerate(islice(store.recorded, skip, skip + count), skip + 1):
        if not budget.take(store, 1 + _weight(*entry[1:4]), 0, page):
            break
        page.append(_shown(first + at, *entry))
    return tuple(page)


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
        of = partial(_epoch_of, store)
        raise refuse(
            "FORKED", number, epoch, store.epoch, epochs.common(number, epoch, _gone(store), store.journaled, of)
        )


def _epoch_of(store: Store, number: int) -> int:
    """The epoch of a kept entry."""
    return store.recorded[number - _gone(store) - 1][-1]
