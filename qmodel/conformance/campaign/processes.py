"""The parts of a campaign, in several processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.campaign import parts
from qmodel.conformance.campaign.parts import Campaign, Part
from qmodel.processes import spread


class _Work:
    """A part of a campaign, by its range."""

    def __init__(self, what: Campaign) -> None:
        self.what = what

    def __call__(self, numbers: tuple[int, int]) -> Part:
        return parts.perform(self.what, *numbers)


def perform(what: Campaign, examples: int, processes: int, size: int = parts.HISTORIES) -> Iterator[Part]:
    """The parts of a campaign, as they are done."""
    try:
        yield from spread(_Work(what), parts.ranges(examples, size), processes)
    finally:
        parts.close()
