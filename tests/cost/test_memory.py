"""Measure the bytes that a waiting job costs the server: a figure that does not depend on the machine's load.

It is taken at 100,000 jobs, as the target says. At 20,000 jobs the 10,000 events of the stream weigh five times as much
per job, and the figure is 8 % higher. `python -m bench memory` shows what takes the bytes.
"""

from __future__ import annotations

import pytest

from bench.lifecycle import Caller
from bench.memory import MOST, per_job
from tests.servers import Server

pytestmark = pytest.mark.server


def test_a_waiting_job_with_100_bytes_of_data_costs_at_most_600_bytes(server: Server) -> None:
    caller = Caller(server.url).load()
    caller.connection.call("FLUSHDB", "SYNC")
    try:
        size = per_job(caller)
        assert 200 < size <= MOST  # less than the ids, the data and their keys would not be a measurement
    finally:
        caller.connection.call("FLUSHDB", "SYNC")
        caller.connection.close()
