"""Families of throttles: limits for all throttles with a matching name.

A throttle with a `*` in its name is a family: its limits hold for each name that matches, where a `*` stands for any
characters, also none. A throttle that has limits of its own follows these alone; otherwise the family with the
longest pattern rules it, and of several of one length the one that is first by name. Each throttle of a family has its
own jobs, its own window and its own bucket: a family shares limits, not room.

Families are few, and a name is compared with each of them, so they are bounded. A job that names no throttle costs
nothing more.

The generation of a family is the sequence of the event that gave it its present limits. A throttle remembers the
generation that its window and its bucket belong to: under another one the window is empty and the bucket full.
"""

from __future__ import annotations

from qmodel.contract.arguments import names_family
from qmodel.contract.refusals import refuse
from qmodel.model.state import budget, subjects
from qmodel.model.state.store import Store

MOST = 25
"""The most families of a namespace."""


def is_family(name: str) -> bool:
    """Whether a throttle of this name is a family."""
    return names_family(name)


def check_room(store: Store, name: str) -> None:
    """Refuse one family too many."""
    if is_family(name) and len(store.families) >= MOST and name not in [pattern for pattern, _ in store.families]:
        raise refuse("LIMIT_REACHED", "families of throttles", MOST)


def keep(store: Store, name: str, generation: int) -> None:
    """Remember a family and its generation: the longest pattern first, then by name."""
    if is_family(name):
        drop(store, name)
        store.throttles[name].generation = generation
        store.families.append((name, generation))
        store.families.sort(key=lambda family: (-budget.size(family[0]), family[0]))


def drop(store: Store, name: str) -> None:
    """Forget a family, if it is one."""
    store.families = [family for family in store.families if family[0] != name]


def of(store: Store, name: str) -> tuple[str, int] | None:
    """The family of a throttle without limits of its own: its pattern and its generation. A queue's own has none."""
    return (
        None
        if name.startswith("queue/")
        else next((family for family in store.families if subjects.like(family[0], name)), None)
    )
