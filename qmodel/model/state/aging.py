"""Aging: the priorities of a queue's waiting jobs improve with their age.

In a queue with the option `aging`, a ready job improves by one priority in every so many milliseconds. All jobs of the
queue do so at one rate, so the order of two of them never changes while they wait: they come by their *even moment*,
when a job has the priority 0. That is its ready time, later by the rate for each level that its priority is above 0,
and earlier for each level below. So the order stays total and static: even moment, ready time, sequence. A job of the
priority 5 at a rate of a minute comes before all jobs of the priority 0 that became ready five minutes after it.

A job gets its place when it becomes ready, or gets another priority. The first number of a place by age is the even
moment less APART, so it is below every priority. When the option is set, the waiting jobs still have their places by
priority, and so they come last; each pop moves the first of them to their places by age, as many as it has room for.
When the option is changed, waiting jobs keep their even moments. When it is removed, they keep their places too: they
come before the jobs that become ready later.
"""

from __future__ import annotations

from typing import Final

APART: Final = 500_000_000_000_000
"""What is taken from an even moment, so that every place by age comes before every place by priority."""

LAST: Final = 99_999_999_999_999
"""Even moments after this one count as this one; those before its negative, as that."""

BOUND: Final = LAST - APART
"""The last place by age."""


def first_number(rate: int, priority: int, at: int) -> int:
    """The first number of the place of a job: its even moment, less APART. The times of lifo jobs are negative."""
    ready_at = at if at >= 0 else -1 - at
    return max(-LAST, min(ready_at + priority * rate, LAST)) - APART


def is_by_age(first: int) -> bool:
    """Whether the first number of a place is that of a place by age."""
    return first <= BOUND
