"""The position of a reader of events: what it has read, as far as it needs to know to go back after a fork."""

from __future__ import annotations

from qmodel.contract.events import Event


class Spans:
    """The last event read, and the epochs of those before it, each with its first event."""

    def __init__(self, after: int, epoch: int | None) -> None:
        self.after = after
        self._spans = [] if epoch is None else [(after, epoch)]

    @property
    def epoch(self) -> int | None:
        """The epoch of the last event read; None if it is not known."""
        return self._spans[-1][1] if self._spans else None

    def add(self, event: Event) -> None:
        """Read an event."""
        self.after = event.seq
        if event.epoch != self.epoch:
            self._spans.append((event.seq, event.epoch))

    def take_back(self, common: int) -> None:
        """Go back to an earlier event. If its epoch is not known, the next page is read without a check."""
        if common >= self.after:  # the event itself is no longer kept, so nothing tells where the histories part
            self._spans = []
        self.after = min(common, self.after)
        while self._spans and self._spans[-1][0] > self.after:
            del self._spans[-1]
