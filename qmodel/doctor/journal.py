"""The check of the journal: whether it is on, how far back it goes, and whether the server has memory for it.

A server does not know whether its journal is archived. It knows for how long entries are kept for an archiver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from qmodel.contract import operations as ops
from qmodel.doctor.environment import SERVERS, connection
from qmodel.doctor.findings import OK, WARN, Asked, Finding
from qmodel.pipeline.journal.pages import head, newest
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted, format_size

SOON_MS = 3_600_000
"""An archiver that runs each hour misses entries that are kept for less."""

FULL = 0.8
"""The part of the server's memory above which the check warns, as the check of memory does."""


def journal(at: Asked) -> Iterator[Finding]:
    """Check that entries are kept long enough, and that the server has memory for a full journal."""
    on, most = at.client.config["journal"], int(at.client.config["max-journal"])
    first = next(iter(at.client.execute(ops.Journal(0, 1))), None)
    if first is None:
        yield Finding(OK, "the journal is on, and has no entry" if on else "the journal is off")
        return
    count = newest(at.client) - first.number + 1
    size, (used, limit) = _bytes(at)
    kept_ms = max(time.time_ns() // 1_000_000 - head(first)[0], 0)
    shown = (
        counted(count, "entry", "entries")
        + (f", {format_size(size)}" if size else "")
        + f", of {format_duration(kept_ms)}"
    )
    yield Finding(OK, f"the journal is {'on' if on else 'off'}: {shown}; max-journal is {most:,}")
    if on and first.number > 1 and count >= most and kept_ms < SOON_MS:
        what = f"entries of the journal are deleted after {format_duration(kept_ms)}"
        fix = "Archive it more often than that (qmodel archive run ARCHIVE --journal), or raise max-journal."
        yield Finding(WARN, what, fix)
    each = size / count
    if on and limit and used + each * (most - count) > FULL * limit:
        fits = max(int((FULL * limit - used) / each) + count, 0) if each else 0
        what = (
            f"{most:,} entries of the journal would take about {format_size(each * most)}, and the server has "
            f"{format_size(limit - used)} left"
        )
        yield Finding(WARN, what, f"Raise maxmemory, or keep fewer: qmodel op config-set max-journal {fits}")


def _bytes(at: Asked) -> tuple[int, tuple[int, int]]:
    """Measure the journal's bytes by a sample; give them, the memory in use, and its limit; 0 where unknown."""
    if at.url.partition("://")[0] not in SERVERS:
        return 0, (0, 0)
    import redis

    from qmodel.backends.bundle import journal_key

    backend: Any = at.client.backend
    try:
        with connection(backend) as server:
            info: Any = server.info("memory")
            size: Any = server.memory_usage(journal_key(backend.options.prefix))
    except redis.ResponseError:
        return 0, (0, 0)
    return int(size or 0), (int(info.get("used_memory", 0)), int(info.get("maxmemory", 0)))
