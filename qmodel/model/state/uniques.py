"""Deduplication keys: which job holds a key, and how long.

The holder of a key is the job that was last put with it and accepted. The mode of the holder decides how long it holds
the key: until the job has ended, or, in the mode `window`, until a given time, whatever becomes of the job. A job of
the mode `pending` may also have such a time, and then releases the key even if it has not ended. What happens to a
later put is decided by its own mode (rules/deduplication.py).

`next` is the one job that waits until the holder has ended. While there is one, the key is held until then.

A key past its time is not held. Each time a key is taken, two keys past their times are deleted, so that none
accumulate.
"""

from __future__ import annotations

from qmodel.contract import replies
from qmodel.model.state.records import Job, Unique
from qmodel.model.state.store import Store

SWEEP = 2
"""How many keys past their times are deleted when one is taken."""


def load(store: Store, key: str) -> Unique | None:
    """A key as stored, even if it is no longer held, or None."""
    return store.uniques.get(key)


def get(store: Store, now: int, key: str) -> Unique | None:
    """A key, if it is held."""
    unique = load(store, key)
    return unique if unique is not None and (not unique.ends or now < unique.ends) else None


def hold(store: Store, key: str, mode: str, job: Job, since: int, ends: int) -> None:
    """Make a job the only holder of a key."""
    if key in store.uniques:
        remove(store, store.uniques[key])
    store.uniques[key] = Unique(key, mode, job.jid, since, ends)
    if ends:
        store.unique_ends.add((ends, 0, key))


def keep_next(store: Store, unique: Unique, jid: str) -> None:
    """Set the job that waits until the holder has ended, or none."""
    store.uniques[unique.key].next = jid


def remove(store: Store, unique: Unique) -> None:
    """Release a key."""
    del store.uniques[unique.key]
    if unique.ends:
        store.unique_ends.remove((unique.ends, 0, unique.key))


def sweep(store: Store, now: int) -> None:
    """Delete keys past their times, the earliest first."""
    for _, _, key in store.unique_ends.until(now, SWEEP):
        remove(store, store.uniques[key])


def view(unique: Unique) -> replies.Unique:
    """Everything about a key."""
    return replies.Unique(unique.key, unique.mode, unique.jid, unique.since, unique.ends, unique.next)
