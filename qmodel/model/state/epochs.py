"""Epochs: what tells two histories of a namespace apart.

A server that loses the end of its log (a failover to a replica that lags, a power failure, a restored backup) hands out
the lost sequences again. So the first step after that begins a new epoch, a number greater than all that the server
knows, and the pair of epoch and sequence identifies an event among all servers. Within the history that one server
knows, sequences stay gapless.

A token is one whole number made of the epoch and the sequence of the claim. In epoch 0 it is the sequence alone.

Two servers must not begin the same epoch. So an automatic epoch is the second of the server's clock, times a million,
plus six digits that belong to the server. These epochs do not always grow: the clock of the next server may be behind
an epoch that was lost. Two simpler rules are wrong. "The last epoch plus one" is begun twice by two servers that both
lost the epoch between. "An upvalue exists" does not tell a server that was a replica in between and kept its Lua state:
the mark has to be the last sequence that this Lua state wrote in the epoch (lua/state/epochs.lua).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import partial

from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.contract.refusals import refuse
from qmodel.model.state.store import Store, emit

DIGITS = 10**6
"""An epoch that a server begins by itself is a second times this number, and digits that belong to the server."""


def token(store: Store, seq: int) -> int:
    """The token of a claim that is event `seq` of the current epoch."""
    return store.epoch * TOKEN_EPOCH + seq


def claim(token: int) -> int:
    """The sequence of the claim that a token is of: in one history, it orders the claims."""
    return token % TOKEN_EPOCH


def begin(store: Store, now: int, epoch: int) -> None:
    """Begin an epoch; the event that tells of it already belongs to it."""
    previous, store.epoch = store.epoch, epoch
    store.epochs.append((store.seq + 1, epoch))
    emit(store, now, "epoch_begun", epoch, previous)
    _forget_gone(store)


def _forget_gone(store: Store) -> None:
    """Forget the epochs of events that are no longer kept."""
    while len(store.epochs) > 1 and store.epochs[1][0] <= _gone(store) + 1:
        del store.epochs[0]


def _gone(store: Store) -> int:
    """The last event that is no longer kept."""
    return store.seq - len(store.events)


def of(store: Store, seq: int) -> int:
    """The epoch of a kept event."""
    return store.epochs[bisect_right(store.epochs, seq, key=lambda span: span[0]) - 1][1]


def kept(store: Store) -> tuple[tuple[int, int], ...]:
    """The epochs of the kept events: each with the first kept event that belongs to it."""
    if not store.events:
        return ()
    first = _gone(store) + 1
    later = [span for span in store.epochs if span[0] > first]
    return (first, of(store, first)), *later


def common(number: int, epoch: int, first: int, newest: int, epoch_of: Callable[[int], int]) -> int:
    """The newest entry that both can share, as far as is known: no epoch after that of the reader began before it.

    `first` is the last event, or entry of the journal, that is no longer kept, and `newest` the last one.
    """
    found = bisect_right(range(first + 1, min(number, newest) + 1), epoch, key=epoch_of) + first
    if found == first:
        return min(number, first)
    return found - 1 if found == number else found


def check(store: Store, after: int, epoch: int) -> None:
    """Refuse a reader whose last event is not part of this history.

    If that event is no longer kept, the next one that is must be of the reader's epoch, or begin the one after it. A
    reader that is ahead, in the current epoch, is no fork: a replica that lags looks like this.
    """
    gone = _gone(store)
    if after == 0:
        return
    if after > store.seq or not store.events:
        same = store.epoch == epoch
    elif after > gone:
        same = of(store, after) == epoch
    else:
        same = of(store, gone + 1) == epoch or store.events[0][1:] == ("epoch_begun", of(store, gone + 1), epoch)
    if not same:
        shared = common(after, epoch, gone, store.seq, partial(of, store))
        raise refuse("FORKED", after, epoch, store.epoch, shared)


# ---- beginning one by oneself


def next_(store: Store, now: int, digits: int, above: int = 0) -> int:
    """The epoch that a server begins by itself, with six digits that belong to the server: above the current one, and
    above another one that it may have begun.
    """
    last = max(store.epoch, above)
    epoch = now // 1000 * DIGITS + digits
    return epoch if epoch > last else (last // DIGITS + 1) * DIGITS + digits
