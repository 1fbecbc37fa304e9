"""The properties of a subscription, for both clients."""

from __future__ import annotations

from qmodel.contract import replies


class SubscriptionFields:
    """The properties of a subscription as they were when it was fetched."""

    def __init__(self, raw: replies.Subscription) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {' '.join(self.patterns)} to {self.queue}>"

    @property
    def name(self) -> str:
        """Its name; its jobs are called `<name>:<number of the message>`."""
        return self.raw.name

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of its subjects."""
        return self.raw.patterns

    @property
    def queue(self) -> str:
        """The queue into which its jobs are put."""
        return self.raw.queue

    @property
    def klass(self) -> str:
        """The code that performs its jobs."""
        return self.raw.klass

    @property
    def behind(self) -> int:
        """How many kept messages it has not got yet."""
        return self.raw.behind
