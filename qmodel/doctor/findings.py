"""What is examined, and what a check gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol

from qmodel.client.sync import Client

OK, WARN, FAIL = "OK", "WARN", "FAIL"

FEW = 10
"""How many findings of one kind are told: a page of them helps nobody."""


class Asked(Protocol):
    """What is to be examined: which backend, who said so, and whether its keys are to be looked at."""

    @property
    def url(self) -> str: ...

    @property
    def url_from(self) -> str: ...

    @property
    def look_at_keys(self) -> bool: ...

    @property
    def client(self) -> Client: ...


class Finding(NamedTuple):
    """What a check found: how bad it is, what it is, what to do, and what does so if it can be done here."""

    level: str
    what: str
    fix: str = ""
    resolve: Callable[[], str] | None = None


Check = Callable[[Asked], Iterator[Finding]]


def first(findings: Iterable[Finding], kind: str, fix: str = "") -> Iterator[Finding]:
    """The first few findings of a kind, and how many more there are; those that can be resolved are all told."""
    left = iter(findings)
    yield from islice(left, FEW)
    more = 0
    for finding in left:
        more += 1
        if finding.resolve is not None:
            yield finding
            more -= 1
    if more:
        yield Finding(WARN, f"and {more} more {kind}", fix)
