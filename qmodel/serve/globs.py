"""Patterns of Redis: * ? [abc] [^a] [a-z], and a backslash before a literal.

A pattern is cut at its stars. The pieces between are searched for from left to right, and no choice is ever taken back:
if any match exists, the leftmost one of each piece belongs to one. So the time is at most the product of both lengths,
which `PATTERN` and `CHANNEL` limit. One regular expression with several `.*` needs exponential time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

PATTERN: Final = 256
"""The most characters of a pattern."""

CHANNEL: Final = 4096
"""The most characters of a channel that a message may be published to."""


class Glob:
    """A pattern, ready to match.

    >>> Glob("ql:[a-c]?*").matches("ql:bxyz"), Glob("a*b*").matches("acb"), Glob("a*a").matches("a")
    (True, True, False)
    """

    __slots__ = ("_pieces", "_widths")

    def __init__(self, pattern: str) -> None:
        pieces = _pieces(pattern)
        self._widths = [len(piece) for piece in pieces]
        try:
            self._pieces = [re.compile("".join(piece), re.S) for piece in pieces]
        except re.error:  # such as [z-a]: the pattern matches its own text only
            self._pieces = [re.compile(re.escape(pattern))]

    def matches(self, text: str) -> bool:
        """Say whether the whole text matches."""
        first, last = self._pieces[0], self._pieces[-1]
        if len(self._pieces) == 1:
            return first.fullmatch(text) is not None
        at, end = self._widths[0], len(text) - self._widths[-1]
        if at > end or first.match(text) is None or last.match(text, end) is None:
            return False
        for piece in self._pieces[1:-1]:
            found = piece.search(text, at, end)
            if found is None:
                return False
            at = found.end()
        return True


@lru_cache(1024)
def matching(pattern: str) -> Glob:
    """Give the matcher of a pattern."""
    return Glob(pattern)


def _pieces(pattern: str) -> list[list[str]]:
    """Translate a pattern: for each piece between stars the regular expressions of its characters."""
    pieces: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            pieces.append([])
        elif char == "\\" and at < len(pattern):
            pieces[-1].append(re.escape(pattern[at]))
            at += 1
        elif char == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            pieces[-1].append(_class(pattern[at:end]))
            at = end + 1
        else:
            pieces[-1].append("." if char == "?" else re.escape(char))
    return pieces


def _class(inside: str) -> str:
    inside = inside.replace("\\", "").replace("[", "\\[")
    return f"[^{inside[1:]}]" if inside.startswith("^") and len(inside) > 1 else f"[{inside}]"
