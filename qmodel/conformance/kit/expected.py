"""Expected failures: a file that lists them, each with its reason.

    # what our binding cannot do yet
    full/drain:*            drain is written in the next version
    smoke/TEXT-2            the client library cuts at NUL: https://...

A line has a pattern for the level and id of vectors, in which `*` matches any text, and a reason. A listed vector that
passes is a failure too, and so is a line that matches no vector. So the file cannot become outdated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Expected(NamedTuple):
    """A line of the file."""

    pattern: str
    reason: str

    @property
    def level(self) -> str:
        """The level in its pattern."""
        return self.pattern.partition("/")[0]

    def fits(self, name: str) -> bool:
        """Tell whether the pattern matches this vector."""
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("*"))), name) is not None


def read(text: str) -> list[Expected]:
    """Read a file. Raises ValueError with the first invalid line."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pattern, _, reason = line.strip().partition(" ")
        if "/" not in pattern or not reason.strip():
            raise ValueError(f"line {number}: write a pattern with a level, as in core/drain*, and a reason after it")
        found.append(Expected(pattern, reason.strip()))
    return found


def of(name: str, expected: Iterable[Expected]) -> Expected | None:
    """Find the line that matches a vector, if there is one."""
    return next((one for one in expected if one.fits(name)), None)
