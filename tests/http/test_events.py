"""Events over HTTP: gapless, to be resumed, and honest about what is gone. From a real process on a real server."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import Redis

from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.contract.routing import shard_tag
from qmodel.http import events as followed
from qmodel.http.api import Api, Limits
from qmodel.http.event_texts import Wanted
from qmodel.http.guard import Guard
from qmodel.http.shard_events import places_after, shard_messages
from tests.http.conftest import served
from tests.pipeline.forks import restored
from tests.servers import Server, chosen_servers, running


@pytest.fixture(scope="module")
def server_url() -> Iterator[str]:
    """A server of its own: it is emptied."""
    if not chosen_servers():
        pytest.skip("no server")
    with running(chosen_servers()[0]) as started:
        yield started.url


@pytest.fixture(scope="module")
def url(server_url: str) -> str:
    """Where the jobs are."""
    return f"{server_url}?prefix={uuid.uuid4().hex}:"


@pytest.fixture(scope="module")
def api(url: str) -> Iterator[str]:
    """Where the API is."""
    with served("--url", url, "--writable") as where:
        yield where


@pytest.fixture
def jobs(url: str) -> Iterator[Client]:
    """The same jobs, without HTTP."""
    with Client(url) as client:
        yield client


def seq_of(id: str) -> int:
    """The sequence number in the id of a message."""
    return int(id.partition("-")[0])


class Stream:
    """A client of server-sent events: each message as its fields."""

    def __init__(self, api: str, query: str = "", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(api).netloc, timeout=30)
        self._connection.request("GET", f"/v1/events{query}", headers=headers)
        self.response = self._connection.getresponse()
        assert self.response.status == 200
        assert next(self)["retry"] == "1000"

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while (line := self.response.readline().decode().rstrip("\n")) or not fields:
            assert line or not self.response.isclosed()
            name, _, value = line.partition(": ")
            fields[name] = value
        return fields | {"data": json.loads(fields["data"])} if "data" in fields else fields

    def events(self, count: int) -> list[tuple[str, str]]:
        """The next messages: id and kind."""
        return [(one["id"], one["event"]) for one in (next(self) for _ in range(count))]

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def test_events_come_as_they_happen(api: str, jobs: Client) -> None:
    jobs.queues["q"].put("K")  # the first one begins an epoch
    newest = jobs.newest()
    stream = Stream(api)
    job = jobs.queues["q"].put("K")
    message = next(stream)
    assert (seq_of(message["id"]), message["event"]) == (newest + 1, "put")
    assert message["data"]["facts"] == {"jid": job.jid, "queue": "q", "klass": "K", "state": "waiting"}
    stream.close()


def test_who_comes_back_goes_on_where_he_was(api: str, jobs: Client) -> None:
    after = jobs.newest()
    stream = Stream(api)
    for _ in range(3):
        jobs.queues["q"].put("K")
    last = stream.events(1)[0][0]
    stream.close()
    jobs.queues["q"].put("K")
    again = Stream(api, **{"Last-Event-ID": last})
    assert [seq_of(one) for one, _ in again.events(3)] == [after + 2, after + 3, after + 4]
    again.close()


def test_many_follow_and_none_misses_any(api: str, jobs: Client) -> None:
    after, number = jobs.newest(), 200
    streams = [Stream(api, f"?after={after}") for _ in range(8)]
    found: list[list[tuple[str, str]]] = [[] for _ in streams]

    def read(at: int) -> None:
        found[at] = streams[at].events(number)

    threads = [threading.Thread(target=read, args=(at,)) for at in range(len(streams))]
    for thread in threads:
        thread.start()
    for _ in range(number):
        jobs.queues["q"].put("K")
    for thread in threads:
        thread.join(60)
    for stream, events in zip(streams, found, strict=True):
        assert [seq_of(one) for one, _ in events] == list(range(after + 1, after + 1 + number))
        stream.close()


def test_only_those_come_that_are_wanted(api: str, jobs: Client) -> None:
    after = jobs.newest()
    jobs.queues["q"].put("K")
    jobs.queues["other"].put("K", jid="it")
    jobs.jobs["it"].cancel()
    stream = Stream(api, f"?after={after}&queue=other&event=canceled&event=failed")
    assert [kind for _, kind in stream.events(1)] == ["canceled"]
    stream.close()
    connection = http.client.HTTPConnection(urlsplit(api).netloc, timeout=30)
    connection.request("GET", "/v1/events?event=cancelled")
    assert "Did you mean canceled?" in connection.getresponse().read().decode()
    connection.request("GET", "/v1/events?after=soon")
    assert connection.getresponse().status == 400
    connection.close()


def test_what_is_no_longer_kept_is_said(api: str, jobs: Client) -> None:
    jobs.config["max-events"] = 100
    try:
        for _ in range(3):
            jobs.put_many([jobs.queues["q"].new("K") for _ in range(200)])
        stream = Stream(api, "?after=1")
        first = next(stream)
        assert first["event"] == "trimmed" and "id" not in first
        gap, then = first["data"], next(stream)
        assert gap == {"after": 1, "first": seq_of(then["id"]), "missed": seq_of(then["id"]) - 2}
        stream.close()
    finally:
        del jobs.config["max-events"]


def test_a_fork_is_named_and_the_servers_own_events_follow(api: str, jobs: Client, server_url: str) -> None:
    jobs.queues["q"].put("K", jid="both")
    common, old = jobs.position()
    with restored(Server("", server_url)):
        lost = Stream(api, f"?after={common}-{old}")
        jobs.queues["q"].put("K", jid="lost")
        last, _ = lost.events(1)[0]
        lost.close()
    assert last == f"{common + 1}-{old}"
    jobs.queues["q"].put("K", jid="other")  # the library begins an epoch

    again = Stream(api, **{"Last-Event-ID": last})
    told = next(again)
    new = jobs.position().epoch
    assert (told["event"], told["data"]) == (
        "forked",
        {"after": common + 1, "epoch": old, "current": new, "common": common},
    )
    assert [kind for _, kind in again.events(2)] == ["epoch_begun", "put"]
    again.close()

    blind = Stream(api, **{"Last-Event-ID": str(common + 1)})  # the twin, whose id has no epoch, is told nothing
    assert next(blind)["event"] == "put"
    blind.close()


@pytest.mark.parametrize("id", ["1-", "-1", "1-x", "x-1", "1-99999999999999999999", "1-2-3"])
def test_a_malformed_id_is_refused(api: str, id: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(api).netloc, timeout=30)
    connection.request("GET", "/v1/events", headers={"Last-Event-ID": id})
    response = connection.getresponse()
    assert response.status == 400 and b"is not the id of an event" in response.read()
    connection.close()


# ---- of a deployment


@pytest.fixture(scope="module")
def deployed(server_url: str) -> str:
    """A deployment on the same server."""
    return f"{server_url}?name={uuid.uuid4().hex}&shards=4"


@pytest.fixture(scope="module")
def all_shards(deployed: str) -> Iterator[str]:
    """Where the API of the deployment is."""
    with served("--url", deployed, "--writable") as where:
        yield where


def test_events_of_all_shards_come_as_they_happen_and_each_once(all_shards: str, deployed: str) -> None:
    with Client(deployed) as client:
        first = [client.queues["q"].put("K").jid for _ in range(8)]
        stream = Stream(all_shards, "?after=0&event=put")
        found = [next(stream) for _ in range(8)]
        assert {one["data"]["facts"]["jid"] for one in found} == set(first)
        assert len({one["data"]["shard"] for one in found}) > 1
        stream.close()

        more = [client.queues["q"].put("K").jid for _ in range(4)]
        again = Stream(all_shards, "?event=put", **{"Last-Event-ID": found[5]["id"]})
        resumed = [next(again)["data"]["facts"]["jid"] for _ in range(6)]
        assert resumed[:2] == [one["data"]["facts"]["jid"] for one in found[6:]]
        assert sorted(resumed[2:]) == sorted(more)  # events of one moment in several shards have no order
        last = client.queues["q"].put("K").jid
        assert next(again)["data"]["facts"]["jid"] == last
        again.close()


@pytest.mark.parametrize("place", [f"{10**18}.", "1.99999999999999999999", "90000000000000."])
def test_a_place_that_no_event_has_is_refused(all_shards: str, place: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(all_shards).netloc, timeout=30)
    connection.request("GET", f"/v1/events?after={place},0.,0.,0.")
    response = connection.getresponse()
    assert response.status == 400 and b"is not the id of an event" in response.read()
    connection.close()


def test_a_shard_that_has_lost_events_is_named(all_shards: str, deployed: str) -> None:
    with Client(deployed) as client:
        raw, shard = Redis.from_url(deployed.partition("?")[0]), client.backend.shards[2]  # type: ignore[attr-defined]
        prefix, jid = shard.options.prefix, f"j{{{shard_tag(2, 4)}}}"
        client.queues["q"].put("K", jid=jid)
        kept = {key: raw.dump(key) for key in raw.scan_iter(f"{prefix}*")}
        client.queues["q"].put("K", jid=f"lost{jid}")
        stream = Stream(all_shards, f"?after={client.cursor()}&jid={jid}")
        with raw.pipeline() as at_once:  # the stream looks all the time, and must not see an empty shard
            at_once.delete(*raw.keys(f"{prefix}*"))
            for key, value in kept.items():
                at_once.restore(key, 0, value)
            at_once.execute()
        client.jobs[jid].promote()
        client.jobs[jid].track()
        told = next(stream)
        assert (told["event"], told["data"]["shard"]) == ("forked", 2)
        assert [next(stream)["event"] for _ in range(1)] == ["tracked"]
        stream.close()


# ---- a filter that takes nothing


async def _put_for_ever(client: AsyncClient) -> None:
    while True:
        await client.queues["q"].put("K", {})
        await asyncio.sleep(0.01)


async def _places(messages: AsyncIterator[str], count: int) -> list[str]:
    """The ids of the first messages."""
    found: list[str] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            message = await anext(messages)
            assert "event:" not in message
            found += [one for one in message.splitlines() if one.startswith("id:")]
    return found


@pytest.mark.parametrize("shards", [False, True])
def test_who_wants_none_of_many_events_is_told_how_far_he_is(server_url: str, shards: bool) -> None:
    """Otherwise proxies end the stream, and its reader begins again where he was hours ago."""
    prefix = uuid.uuid4().hex

    async def follow() -> list[str]:
        url = f"{server_url}?name={prefix}&shards=2" if shards else f"{server_url}?prefix={prefix}:"
        async with AsyncClient(url) as client:
            api = Api(client, Guard(), Limits(alive_seconds=0.1))
            wanted = Wanted(frozenset({"failed"}), frozenset(), frozenset())
            if shards:
                messages = shard_messages(api, await places_after(client, None), wanted)
            else:
                messages = followed._messages(api, followed.Place(0, None), 0, wanted)
            putting = asyncio.ensure_future(_put_for_ever(client))
            try:
                return await _places(messages, 4)
            finally:
                putting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await putting

    found = asyncio.run(follow())
    assert len(set(found)) == len(found)
