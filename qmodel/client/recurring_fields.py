"""The properties of a recurring job, for both clients."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from qmodel.client.convert import decode, moment
from qmodel.contract import replies
from qmodel.errors import DataError


class RecurringFields:
    """The properties of a recurring job as they were when it was fetched."""

    def __init__(self, raw: replies.Schedule) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        often = f"at {self.raw.cron}" if self.raw.cron else f"every {self.interval}"
        return f"<{type(self).__name__} {self.jid}: {self.klass} in {self.queue} {often}>"

    @property
    def jid(self) -> str:
        """Its id; those of its runs are `<jid>-1`, `<jid>-2` and so on."""
        return self.raw.jid

    @property
    def queue(self) -> str:
        """The queue into which its runs are put."""
        return self.raw.queue

    @property
    def klass(self) -> str:
        """The code that performs its runs."""
        return self.raw.klass

    @property
    def data(self) -> Any:
        """The data of its runs, decoded from JSON."""
        try:
            return decode(self.raw.data) if self.raw.data else None
        except ValueError as error:
            raise DataError(f"The data of {self.jid} are not JSON: {error}. See `text`.") from error

    @property
    def text(self) -> str:
        """The data of its runs as they are stored."""
        return self.raw.data

    @property
    def interval(self) -> timedelta:
        """The time from one due run to the next; for the kind `after`, from the end of a run to the next."""
        return timedelta(milliseconds=self.raw.interval_ms)

    @property
    def kind(self) -> str:
        """When its runs are due: `interval`, `cron` or `after`."""
        return self.raw.kind

    @property
    def cron(self) -> str:
        """Its cron expression, or empty."""
        return self.raw.cron.rpartition(" ")[0]

    @property
    def tz(self) -> str:
        """The time zone in which its cron expression is read, or empty."""
        return self.raw.cron.rpartition(" ")[2]

    @property
    def start(self) -> datetime | None:
        """The moment before which no run is due, if there is one."""
        return moment(self.raw.start_at)

    @property
    def end(self) -> datetime | None:
        """The moment after which no run is due, if there is one."""
        return moment(self.raw.end_at)

    @property
    def limit(self) -> int:
        """How many runs are made; 0 for any number."""
        return self.raw.limit

    @property
    def made(self) -> int:
        """How many runs were made since its times were last set."""
        return self.raw.made

    @property
    def missed(self) -> str:
        """Which of several due runs are made: `all`, `one` or `none`."""
        return self.raw.missed

    @property
    def overlap(self) -> str:
        """Whether a run is made while another one is unfinished: `allow` or `skip`."""
        return self.raw.overlap

    @property
    def throttles(self) -> tuple[str, ...]:
        """The throttles that each claim of a run must pass."""
        return self.raw.throttles

    @property
    def fair_key(self) -> str:
        """The key that its runs take turns by in a fair queue; empty if it has none of its own."""
        return self.raw.fair_key

    @property
    def fair_weight(self) -> int:
        """How many turns the fair key of its runs gets where others get one."""
        return self.raw.fair_weight or 1

    @property
    def unfinished(self) -> int:
        """How many unfinished runs must end before another run is due."""
        return self.raw.open

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self.raw.paused

    @property
    def priority(self) -> int:
        """The priority of its runs: lower runs sooner."""
        return self.raw.priority

    @property
    def retries(self) -> int:
        """How many retries each of its runs has."""
        return self.raw.retries

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of its runs."""
        return self.raw.tags

    @property
    def backlog(self) -> int:
        """How many missed runs are made; 0 for all."""
        return self.raw.backlog

    @property
    def runs(self) -> int:
        """The number of its last run; 0 before the first."""
        return self.raw.runs

    @property
    def next_at(self) -> datetime | None:
        """When its next run is due. None while it is paused, while it waits for the end of a run, or if the engine does
        not know the next moment of its cron expression.
        """
        return moment(self.raw.next_at)
