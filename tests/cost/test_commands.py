"""Count the commands that a job's life costs the server: a figure that does not depend on the machine's load.

`python -m bench commands` shows which commands they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.commands import MOST_BATCHED, MOST_SINGLE, per_job
from bench.lifecycle import DATA, KLASS, QUEUE, SPAN, Batches, Caller, Chained, Floor, Single, jid, request
from qmodel.contract.operations import Put, ThrottleSet, ThrottleUnset
from tests.servers import Server

pytestmark = pytest.mark.server


@pytest.fixture
def caller(server: Server) -> Iterator[Caller]:
    """A caller of a server without jobs, with the library of this tree."""
    made = Caller(server.url).load()
    made.connection.call("FLUSHDB", "SYNC")
    yield made
    made.connection.close()


def test_a_job_one_a_call_costs_at_most_27_commands(caller: Caller) -> None:
    assert sum(per_job(caller.connection, Single(caller)).values()) <= MOST_SINGLE


def test_a_job_in_batches_of_100_costs_at_most_10_commands(caller: Caller) -> None:
    assert sum(per_job(caller.connection, Batches(caller)).values()) <= MOST_BATCHED


def test_completing_and_popping_in_one_call_costs_fewer_commands_than_in_two(caller: Caller) -> None:
    chained = sum(per_job(caller.connection, Chained(caller)).values())
    assert chained < sum(per_job(caller.connection, Single(caller)).values())


class Named(Single):
    """One job in each call, each with a throttle."""

    def put(self) -> None:
        puts = [Put(QUEUE, jid(), KLASS, DATA, throttles=("tenant-1",), request=request()) for _ in range(SPAN)]
        self._execute(puts)


def test_a_family_of_throttles_costs_a_job_with_a_throttle_three_commands_and_others_none(caller: Caller) -> None:
    plain = sum(per_job(caller.connection, Single(caller)).values())
    caller.execute([ThrottleSet("tenant-1", 1000)])
    own = sum(per_job(caller.connection, Named(caller)).values())
    caller.execute([ThrottleUnset("tenant-1"), ThrottleSet("tenant-*", 1000)])
    assert sum(per_job(caller.connection, Named(caller)).values()) < own + 3.5
    assert sum(per_job(caller.connection, Single(caller)).values()) < plain + 0.5


def test_the_count_sees_the_commands_inside_functions(server: Server, caller: Caller) -> None:
    """The negative twin: of the floor's functions we know what they call."""
    counted = per_job(caller.connection, Floor(server.url).load())
    assert counted == {"fcall": 3, "hset": 3, "zadd": 3, "zpopmin": 1, "hmget": 1, "zrem": 1}
