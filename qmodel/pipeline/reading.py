"""The events of a client, page by page, each proved to follow the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qmodel import operations as ops
from qmodel.arguments import MOST
from qmodel.client import Client
from qmodel.events import Event
from qmodel.pipeline.gaps import EventsGone, Gap, SequenceWentBack, prove


def pages(
    client: Client, after: int = 0, last: int | None = None, *, gaps: list[Gap] | None = None
) -> Iterator[Sequence[Event]]:
    """The events after a sequence, up to `last` or the newest there is now, in pages: all of them, which is proved.

    Raises EventsGone where some are kept no longer, before a page that follows them; with a list for `gaps` it adds to
    that instead. Raises SequenceWentBack where the newest event is older than `after`.
    """
    newest = client.newest()
    if newest < after:
        raise SequenceWentBack(after, newest)
    last = newest if last is None else min(last, newest)
    while after < last:
        page: Sequence[Event] = client.execute(ops.Events(after, min(MOST, last - after)))
        page = [one for one in page if one.seq <= last]
        until = page[-1].seq if page else last
        missing = prove((one.seq for one in page), after, until)
        if missing and gaps is None:
            raise EventsGone(missing)
        if gaps is not None:
            gaps.extend(missing)
        after = until
        if page:
            yield page
