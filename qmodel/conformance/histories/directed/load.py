"""Directed histories, for what random drawing seldom reaches: a thousand of something, or an exact moment.

`./dev mutate` runs them after the generated ones; most were written because a mutant survived without them. The files
beside this one hold them, in the notation of `notation.py`.
"""

from __future__ import annotations

import functools
from importlib import resources

from qmodel.conformance.histories.directed import notation
from qmodel.conformance.histories.script import Named

THEMES = (
    "leases", "unique_keys", "queues", "events_and_texts", "retention", "limits_of_jobs", "schedules",
    "limits_of_a_namespace", "flows", "requests", "waits", "throttles", "lists", "deduplication", "journal", "removal",
    "messages", "budget", "rules", "moments", "rows",
)  # fmt: skip
"""The files, in the order in which their histories run."""


@functools.cache
def _written() -> tuple[notation.Written, ...]:
    folder = resources.files(__package__)
    return tuple(
        one
        for theme in THEMES
        for one in notation.read(theme, folder.joinpath(f"{theme}.txt").read_text(encoding="utf-8"))
    )


@functools.cache
def _steps() -> dict[str, Named]:
    return {one.name: Named(one.name, notation.steps(one)) for one in _written()}


def directed() -> list[Named]:
    """Give all directed histories."""
    return list(_steps().values())


def reasons() -> dict[str, str]:
    """Say why each history was written, by its name."""
    return {one.name: one.why for one in _written()}


def theme(name: str) -> str:
    """Say which file a history is from."""
    return next(one.theme for one in _written() if one.name == name)
