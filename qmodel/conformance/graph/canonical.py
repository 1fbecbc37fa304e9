"""The canonical form of a state: states with one form have, under every operation, successors with one form.

It decides only where the search stops. Edges are executed and compared on concrete states, so a wrong form can lose
coverage; it cannot excuse a difference. And it is tested: two concrete states that arrive at one form are tried under
every operation, and the forms of what follows must be the same (`explore.py`).

`fields.py` says of every field of every record of the store how it stands in the form:

- exact: the value;
- a moment: how many ticks it is from now. Moments further back than the horizon are told apart by their order only: all
  durations of a scope are a tick (some are two, where the horizon is two), so no operation asks how old they are;
- a rank: the order of the sequences, which are not told apart otherwise;
- derived: other fields say it; the invariants hold them together;
- dead: no operation depends on it. Replies and events may show it, and they are compared on every edge.

The library keeps bounds that only save work: it takes a shorter way once they are set. The form knows nothing of them:
the shortest history, which arrives first at a form, may never set them. So the setup of a family sets
them (families.txt, `again`).

Jobs are interchangeable, and so are workers: of all ways to rename them the smallest text is taken. A family in which
the order of ids counts (`live job.jid`) keeps the names of its jobs.
"""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

from qmodel.conformance.graph.fields import FIELDS, STORE, WRITTEN, written
from qmodel.conformance.graph.rules import Dead, Form, each
from qmodel.model.state.store import Store

_NUMBERED = re.compile(r"(\b[TU]:|-dead-|#)(\d+)")
"""Where the number of an event stands in a text: jobs of messages (of the subscriptions T and U), dead letters, and
`rules.number`.
"""


class Canonical:
    """Writes the forms of the states of one scope."""

    def __init__(self, jobs: tuple[str, ...], workers: tuple[str, ...], live: frozenset[str], horizon: int) -> None:
        self._live, self._horizon = live, horizon
        self._jobs = frozenset(jobs)
        names = jobs + workers
        self._tables = [
            {ord(old): new for old, new in zip(names, named + others, strict=True)}
            for named in (permutations(jobs) if "job.jid" not in live else (jobs,))
            for others in permutations(workers)
            if named + others != names
        ]

    def of(self, store: Store, now: int) -> str:
        """Give the form of a state."""
        form = Form(store, now, self._live, self._horizon, written)
        parts = self._parts(store, form)
        if form.again():
            parts = self._parts(store, form)
        if store.messages.size or store.subscriptions or not self._jobs.issuperset(store.jobs):
            parts = _without_numbers(parts)
        renamed = ("\n".join(sorted([part.translate(table) for part in parts])) for table in self._tables)
        return min("\n".join(sorted(parts)), *renamed) if self._tables else "\n".join(sorted(parts))

    @staticmethod
    def _parts(store: Store, form: Form) -> list[str]:
        """Write each job, and each part of the store that is not empty; the records of a part each by itself, so that
        renaming does not change their order.
        """
        form.aside.clear()
        parts = [f"{jid}: {written(job, form)}" for jid, job in store.jobs.items()]
        for name, rule in WRITTEN[Store]:
            value = getattr(store, name)
            if rule is each:
                parts += [f"{name}: {one}" for one in each(value, store, form)] if value else ()
            elif value and (said := rule(value, store, form)):
                parts.append(f"{name}: {said}")
        return [*parts, *form.aside]


def _without_numbers(parts: list[str]) -> list[str]:
    """Replace the numbers of events by their ranks."""
    found = sorted({int(at) for part in parts for _, at in _NUMBERED.findall(part)})
    ranks = {str(at): str(rank) for rank, at in enumerate(found)}
    return [_NUMBERED.sub(lambda m: m[1] + ranks[m[2]], part) for part in parts]


# ---- evidence


def told_apart(one: Store, other: Store) -> set[str]:
    """Name the fields that are not in the form and in which two stores differ; renamed records are not compared."""
    found = {f"store.{name}" for name in _dead(Store) if _differ(getattr(one, name), getattr(other, name))}
    for name, rule in STORE.items():
        if rule is each or name == "jobs":
            records, others = getattr(one, name), getattr(other, name)
            for key in records.keys() & others.keys():
                cls = type(records[key])
                for field in _dead(cls):
                    if _differ(getattr(records[key], field), getattr(others[key], field)):
                        found.add(f"{cls.__name__.lower()}.{field}")
    return found


def _dead(cls: type) -> list[str]:
    return [name for name, rule in FIELDS[cls].items() if isinstance(rule, Dead)]


def _differ(one: Any, other: Any) -> bool:
    if hasattr(one, "__slots__") or isinstance(one, dict):
        return repr(one) != repr(other) if not hasattr(one, "until") else list(one) != list(other)
    return bool(one != other)
