"""Subjects and patterns: what a message is about, and which messages a subscription matches; and names with wildcards.

A subject is a text of segments separated by dots, `orders.eu.created`. In a pattern a segment may be `*`, which stands
for any one segment, and the last may be `>`, which stands for one or more. (The rules are those of NATS.) Patterns are
compared segment by segment, so that no pattern makes a comparison expensive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmodel.contract.refusals import refuse

ONE = "*"
MORE = ">"


def split(text: str) -> list[str]:
    """The segments of a subject or a pattern."""
    return text.split(".")


def _is_plain(segment: str) -> bool:
    return segment != "" and ONE not in segment and MORE not in segment


def check(subject: str) -> None:
    """Refuse a text that is not a subject."""
    if not all(map(_is_plain, split(subject))):
        raise refuse("BAD_SUBJECT", subject)


def check_pattern(pattern: str) -> None:
    """Refuse a text that is not a pattern."""
    segments = split(pattern)
    for place, segment in enumerate(segments, 1):
        last = place == len(segments)
        if not (_is_plain(segment) or segment == ONE or (segment == MORE and last)):
            raise refuse("BAD_PATTERN", pattern, segment)


def split_all(patterns: Iterable[str]) -> list[list[str]]:
    """The segments of each of some patterns."""
    return list(map(split, patterns))


def matches(patterns: Iterable[Sequence[str]], subject: Sequence[str]) -> bool:
    """Whether any of these patterns matches a subject; all are given as segments."""
    return any(_fits(pattern, subject) for pattern in patterns)


def _fits(pattern: Sequence[str], subject: Sequence[str]) -> bool:
    for place, segment in enumerate(pattern):
        if place == len(subject):
            return False
        if segment == MORE:
            return True
        if segment not in (ONE, subject[place]):
            return False
    return len(pattern) == len(subject)


def like(wildcard: str, name: str) -> bool:
    """Whether a name matches a text in which each `*` stands for any characters, also none. Parts are found from left
    to right, so no text makes the comparison expensive.
    """
    first, *parts = wildcard.split(ONE)
    if not parts:
        return wildcard == name
    at, last = len(first), parts.pop()
    if name[:at] != first:
        return False
    for part in parts:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(name) - at >= len(last) and name.endswith(last)
