"""Unique keys: which job stands for a key, and for how long.

A key is held by the job that was last put with it and accepted. Who holds it decides for how long: until the job has
ended, or, in the mode `window`, until a moment, whatever becomes of the job. A job of the mode `pending` may say a
moment as well, at which it lets go even if it has not ended. Who comes later decides what is then to happen
(rules/deduplication.py).

`next` is the one job that is kept until the holder has ended. While there is one, the key is held until then.

What is past its moment is not held, and is deleted when other keys are taken, two for each: so none pile up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.contract import replies
from qmodel.model.state.store import Store

if TYPE_CHECKING:
    from qmodel.model.state.jobs import Job

SWEEP = 2
"""How many keys that are past their moment are deleted when one is taken."""


class Unique:
    """A key that is held. `ends` is 0 where the end of the job decides; `token` is the one that the job had when it was
    put: with another one it has begun.
    """

    __slots__ = ("ends", "jid", "key", "mode", "next", "since", "token")

    def __init__(self, key: str, mode: str, jid: str, since: int, ends: int, token: int) -> None:
        self.key = key
        self.mode = mode
        self.jid = jid
        self.since = since
        self.ends = ends
        self.token = token
        self.next = ""


def load(store: Store, key: str) -> Unique | None:
    """A key that was held last by somebody, if it is not deleted."""
    return store.uniques.get(key)


def get(store: Store, now: int, key: str) -> Unique | None:
    """A key, if it is held."""
    unique = load(store, key)
    return unique if unique is not None and (not unique.ends or now < unique.ends) else None


def hold(store: Store, key: str, mode: str, job: Job, since: int, ends: int) -> None:
    """Let a job hold a key, and nobody else."""
    if key in store.uniques:
        remove(store, store.uniques[key])
    store.uniques[key] = Unique(key, mode, job.jid, since, ends, job.token)
    if ends:
        store.unique_ends.add((ends, 0, key))


def keep_next(store: Store, unique: Unique, jid: str) -> None:
    """Let a job be the one that is kept until the holder has ended, or nobody."""
    store.uniques[unique.key].next = jid


def remove(store: Store, unique: Unique) -> None:
    """Let nobody hold a key."""
    del store.uniques[unique.key]
    if unique.ends:
        store.unique_ends.remove((unique.ends, 0, unique.key))


def sweep(store: Store, now: int) -> None:
    """Delete keys that are past their moment, the earliest first."""
    for _, _, key in store.unique_ends.until(now, SWEEP):
        remove(store, store.uniques[key])


def view(unique: Unique) -> replies.Unique:
    """Everything about a key."""
    return replies.Unique(unique.key, unique.mode, unique.jid, unique.since, unique.ends, unique.next)
