"""The subject of the checks, and their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol

from qmodel.client.sync import Client

OK, SKIP, WARN, FAIL = "OK", "SKIP", "WARN", "FAIL"
"""The levels. SKIP names what was not checked, and why."""

FEW = 10
"""The maximum number of findings of one kind that are shown."""


class Asked(Protocol):
    """The subject: the backend, the source of its URL, and whether its keys are to be checked."""

    @property
    def url(self) -> str: ...

    @property
    def url_from(self) -> str: ...

    @property
    def look_at_keys(self) -> bool: ...

    @property
    def client(self) -> Client: ...


class Finding(NamedTuple):
    """A finding: its level, what was found, what to do, and a function that does it if that is possible here."""

    level: str
    what: str
    fix: str = ""
    resolve: Callable[[], str] | None = None


Check = Callable[[Asked], Iterator[Finding]]


def first(findings: Iterable[Finding], kind: str, fix: str = "") -> Iterator[Finding]:
    """Yield the first findings of a kind, and the number of the others; findings that can be resolved are all shown."""
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
