"""A pop over the shards of a deployment gives what it has, if a later shard is away."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest

from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.errors import ConnectError
from qmodel.testing.servers import Server

redis = pytest.importorskip("redis")

from qmodel.backends.redis.scatter import away  # noqa: E402

AWAY = 2
AWAY_LAST = next(id for id in map(str, range(100)) if crc32(id.encode()) % 4 == AWAY + 1)
"""A request id with which the shard that is away is asked last."""


@pytest.fixture
def url(server: Server) -> str:
    with server.client() as client:
        client.flushdb()
    mark = "&" if "?" in server.url else "?"
    return f"{server.url}{mark}name=shop&shards=4&deadline=3&socket_timeout=1"


def leave(shard: Any, asynchronous: bool = False) -> None:
    """Let a shard be away: nothing can be sent to its node."""

    def gone(*_: Any) -> None:
        raise redis.ConnectionError("gone")

    async def agone(*_: Any) -> None:
        gone()

    shard._open = gone
    shard._send = shard._send_many = agone if asynchronous else gone


def in_each(client: Client) -> dict[int, str]:
    """Put a job into each shard, and give their ids."""
    assert client.homes is not None
    found: dict[int, str] = {}
    while len(found) < 4:
        jid = client.queues["q"].put("k").jid
        if found.setdefault(client.homes.home(jid), jid) != jid:
            client.jobs[jid].cancel()
    return found


def test_a_pop_gives_the_jobs_that_it_has_leased(url: str) -> None:
    with Client(url) as client:
        jobs = in_each(client)
        leave(client.shards[AWAY])
        found = client.pop(["q"], 10, request=AWAY_LAST)
        assert {job.jid for job in found} == set(jobs.values()) - {jobs[AWAY]}
        with pytest.raises(ConnectError):
            client.pop(["q"], 10)


def test_a_job_is_completed_while_the_others_are_away(url: str) -> None:
    with Client(url) as client:
        jobs = in_each(client)
        held = {job.jid: job for job in client.pop(["q"], 4)}
        leave(client.shards[AWAY])
        job = held[jobs[AWAY + 1]]
        assert job.complete_and_pop({"done": True}, count=2) == []
        assert job.refresh().result == {"done": True}


async def test_so_it_is_in_an_event_loop(url: str) -> None:
    with Client(url) as client:
        jobs = in_each(client)
    async with AsyncClient(url) as aclient:
        await aclient.newest()
        leave(aclient.backend.shards[AWAY], asynchronous=True)
        found = await aclient.pop(["q"], 10, request=AWAY_LAST)
        assert {job.jid for job in found} == set(jobs.values()) - {jobs[AWAY]}


def test_the_sentence_of_a_node_that_is_away_ends_once() -> None:
    said = away("Shard 3", redis.ConnectionError("Connection refused.")).sentence
    assert said == "Shard 3 is away: Connection refused."
