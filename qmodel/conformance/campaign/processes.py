"""Campaigns in several processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.campaign import parts
from qmodel.conformance.campaign.parts import Campaign, Part
from qmodel.processes import spread


class _Work:
    """Runs the part of a campaign with a given range of numbers."""

    def __init__(self, what: Campaign) -> None:
        self.what = what

    def __call__(self, numbers: tuple[int, int]) -> Part:
        return parts.perform(self.what, *numbers)


def perform(what: Campaign, examples: int, processes: int, size: int = parts.HISTORIES) -> Iterator[Part]:
    """Give the parts of a campaign as they are done."""
    try:
        yield from spread(_Work(what), parts.ranges(examples, size), processes)
    finally:
        parts.close()
