"""Follow the journal of a server: audit each operation soon after it was executed.

A page of the journal is read, executed on the model, and forgotten, so memory is that of the namespace's content. At
the end of the journal the reader sleeps until there is an event. A refused operation has no event, so it sleeps for
LONGEST seconds at most.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from qmodel.client.sync import Client
from qmodel.contract.replies import Recorded
from qmodel.errors import Forked
from qmodel.pipeline.audit.replay import Audit, AuditForked, Difference, without_collection
from qmodel.pipeline.journal.pages import head, pages

LONGEST = 0.5
"""The most seconds that the reader sleeps."""

COLLECT = 1_000_000
"""The entries between two runs of Python's garbage collector: refusals leave a little to collect."""


class Look(NamedTuple):
    """A page that was audited: its last entry, the moment of this (ms), and what differs. Empty after a sleep."""

    number: int
    at: int
    differences: tuple[Difference, ...]


def history(client: Client, audit: Audit, last: int | None = None) -> Iterator[Sequence[Recorded]]:
    """Yield the pages of the journal after what was audited, up to `last` or to the newest entry.

    Raises AuditForked if the server lost some of what was audited.
    """
    try:
        yield from pages(client, audit.number, last, epoch=audit.epoch)
    except Forked as fork:
        raise AuditForked(int(fork.after), int(fork.epoch), int(fork.current), int(fork.common)) from None


def follow(client: Client, audit: Audit, stop: threading.Event) -> Iterator[Look]:
    """Audit the journal as it grows, until the event is set; yield after each page, and after each sleep.

    Raises AuditForked, EntriesGone if entries are dropped before they are read, and AuditError if the audit cannot go
    on. After an error of the connection it can be called again.
    """
    collected = audit.number
    with without_collection():
        while not stop.is_set():
            for page in history(client, audit):
                found = tuple(audit.follow(page))
                yield Look(audit.number, head(page[-1])[0], found)
                if stop.is_set():
                    return
            if audit.number - collected >= COLLECT:
                gc.collect()
                collected = audit.number
            client.backend.wait_events(audit.store.seq, LONGEST)
            yield Look(audit.number, 0, ())
