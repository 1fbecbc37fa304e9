"""Constants that both clients share."""

from __future__ import annotations

from typing import Any, Final

SEARCH_PAGE: Final = 100
"""How many jobs one step of a search fetches."""

BY_HAND: Final = "by hand"
"""The reason of a pause when the caller gives none."""

LONGEST_SLEEP = 10.0
"""The longest sleep of a waiting client, in seconds. It looks again after that, in case a wake-up was lost."""


class _Keep:
    """The type of KEEP."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final[Any] = _Keep()
"""Stands for an argument that is not given, where None is a value: the stored value stays as it is."""
