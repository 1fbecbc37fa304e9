"""Backoff: how long a job waits before it is tried again, whoever asks for that.

The first retry of a job with `retry_delay_ms` waits so long, and each further one twice as long as the one before, up
to `retry_delay_max_ms`. A lease that lapses counts like a retry, and the job waits from the end of the lease.
"""

from __future__ import annotations

from qmodel.model.state import options
from qmodel.model.state.records import Job

MOST_MS = 86_400_000
"""The longest delay of a job that does not say another one: a day."""

DOUBLINGS = 20
"""After so many doublings a delay stays as it is."""


def delay(job: Job) -> int:
    """How long the next retry of a job waits at least, in milliseconds."""
    first = options.get(job, "retry_delay_ms")
    if first is None:
        return 0
    before = job.retries - job.remaining + int(options.get(job, "lapses") or 0)
    most = int(options.get(job, "retry_delay_max_ms") or max(MOST_MS, int(first)))
    return min(int(first) << min(before, DOUBLINGS), most)
