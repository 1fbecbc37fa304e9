"""Clients, apps and workers on a deployment: the model, `memory://name?shards=8`, and one on a server."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import qmodel
from qmodel import App, AsyncClient, Client, Context, Cursor, Worker
from qmodel.backends.deployment import DeploymentNamespace
from qmodel.backends.memory import DeploymentBackend, connect
from qmodel.backends.namespace import system_clock
from qmodel.contract import operations as ops
from qmodel.contract.routing import Layout, shard_tag
from qmodel.errors import ByShard, ConnectError, CrossShard, SplitLimit, Untagged
from tests.backends.test_memory import wait_until
from tests.servers import Server

LAYOUT = Layout(8, frozenset({"alone"}))


@pytest.fixture
def namespace() -> DeploymentNamespace:
    return DeploymentNamespace(system_clock, LAYOUT)


@pytest.fixture
def url(place: Server) -> str:
    """The URL of a deployment that nobody else has: in memory, and on a server."""
    name = uuid.uuid4().hex
    options = "shards=8&single=alone"
    return f"memory://{name}?{options}" if place.name == "memory" else f"{place.url}?name={name}&{options}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, worker="w") as made:
        yield made


def homes(client: Client, jids: list[str]) -> set[int]:
    return {LAYOUT.home(jid) for jid in jids}


# ---- the URL


def test_a_named_deployment_is_the_same_for_all_with_or_without_its_options() -> None:
    connect("memory://one?shards=8").execute(ops.Put("q", "a", "K", "{}"))
    assert connect("memory://one").execute(ops.Length("q")) == 1
    assert connect("memory://one?shards=8").execute(ops.Length("q")) == 1
    assert connect("memory://?shards=8").execute(ops.Length("q")) == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://a?shards=0", "power of two"),
        ("memory://a?shards=6", "power of two"),
        ("memory://a?shards=2048", "power of two"),
        ("memory://a?shards=", "power of two"),
        ("memory://a?shards=x", "power of two"),
        ("memory://a?shards=8&size=3", "unknown option, size"),
        ("memory://a?size=3", "unknown option, size"),
        ("memory://a b", r"memory://name\?shards=8"),
    ],
)
def test_a_wrong_layout_is_an_error_that_says_what_to_write(url: str, said: str) -> None:
    with pytest.raises(ConnectError, match=said):
        connect(url)


def test_another_layout_than_that_of_the_deployment_is_refused() -> None:
    connect("memory://two?shards=8&single=alone")
    for url in ("memory://two?shards=8", "memory://two?shards=4&single=alone"):
        with pytest.raises(ConnectError, match="shards=8&single=alone"):
            connect(url)
    connect("memory://plain")
    with pytest.raises(ConnectError, match="no shards"):
        connect("memory://plain?shards=2")


def test_a_deployment_has_no_store_of_its_own(namespace: DeploymentNamespace) -> None:
    with pytest.raises(ConnectError, match="stores"):
        DeploymentBackend(namespace).store  # noqa: B018
    assert len(namespace.stores) == 8


# ---- where jobs belong


def test_jobs_without_names_go_to_the_shards_in_turn(client: Client) -> None:
    jobs = [client.queues["q"].put("K") for _ in range(8)]
    assert homes(client, [job.jid for job in jobs]) == set(range(8))


def test_jobs_that_are_put_in_one_step_go_to_one_shard(client: Client) -> None:
    queue = client.queues["q"]
    found = [homes(client, [job.jid for job in client.put_many(queue.new("K") for _ in range(9))]) for _ in range(8)]
    assert all(len(one) == 1 for one in found)
    assert set().union(*found) == set(range(8))


@pytest.mark.parametrize("name", ["sync-7", "{cust-1}", "Kunde 7 ü", "a}b", "x" * 120])
def test_a_made_up_id_leads_to_the_other_names_of_the_job(name: str, client: Client) -> None:
    job = client.queues["q"].put("K", ordered=name)
    assert homes(client, [job.jid]) == {LAYOUT.home(name)}
    assert client.jobs[job.jid].ordered == name


def test_a_pop_that_is_sent_again_gets_the_same_jobs(client: Client) -> None:
    for number in range(40):
        client.queues["q"].put("K", number)
    first = [client.execute(ops.Pop("q", "w", 2, request=f"r{number}")) for number in range(8)]
    again = [client.execute(ops.Pop("q", "w", 2, request=f"r{number}")) for number in range(8)]
    assert first == again and len({job.jid for jobs in first for job in jobs}) == 16
    assert len(homes(client, [jobs[0].jid for jobs in first])) > 2
    assert client.execute(ops.Length("q")) == 40


def test_a_job_is_at_home_with_the_job_that_it_waits_for(client: Client) -> None:
    first = client.queues["q"].put("K")
    second = client.queues["q"].put("K", depends=[first])
    for expected in (first, second):
        popped = client.queues["q"].pop()
        assert popped is not None and popped.jid == expected.jid
        popped.complete()


def test_names_with_two_homes_are_refused_and_nothing_is_put(client: Client) -> None:
    with pytest.raises(CrossShard, match=r"order-7\{cust-1\}") as refused:
        client.queues["q"].put("K", jid="a", unique="b")
    assert (refused.value.name, refused.value.other) == ("a", "b")
    assert client.queues["q"].length() == 0
    client.queues["q"].put("K", jid="a{x}", unique="b{x}")


def test_a_single_queue_keeps_its_order(client: Client) -> None:
    queue = client.queues["alone"]
    jids = [queue.put("K", priority=-number).jid for number in range(20)]
    assert [job.jid for job in queue.pop(count=20)] == jids[::-1]


def test_sub_requests_are_at_home_with_their_request(client: Client) -> None:
    with client.request("album-7", "q", limit=2) as request:
        jids = [request.add("K"), request.add("K", name="cover")]
    assert jids[1] == "{album-7}:cover"
    while (job := client.queues["q"].pop()) is not None:
        job.complete()
    assert request.wait(5).done == 2


def test_a_job_that_waits_for_a_request_is_at_home_with_it(client: Client) -> None:
    request = client.requests.open("album-7", "q", limit=2)
    job = client.queues["q"].put("K", depends=request)
    assert job.jid.endswith("{album-7}")
    homes = [client.homes.home(name) for name in ("album-7", "far-1", "far-2", "far-3")] if client.homes else []
    far = next(f"far-{number}" for number in (1, 2, 3) if homes[number] != homes[0])
    with pytest.raises(CrossShard):
        client.queues["q"].put("K", jid=far, depends=request)
    request.close()
    assert client.jobs[job.jid].state == "waiting"


def test_the_runs_of_a_recurring_job_are_at_home_with_it(client: Client) -> None:
    made = client.queues["q"].recur("K", interval=3600)
    jid = client.execute(ops.RecurNow(made.jid))
    assert client.jobs[jid].klass == "K"
    with pytest.raises(Untagged, match=r"\{nightly\}"):
        client.queues["q"].recur("K", interval=60, jid="nightly")


def test_what_each_shard_has_of_its_own_is_refused(client: Client) -> None:
    with pytest.raises(ByShard, match="messages"):
        client.execute(ops.Messages())


def test_a_limit_below_the_number_of_shards_is_refused(client: Client) -> None:
    with pytest.raises(SplitLimit, match="single"):
        client.queues["q"].throttle.set(concurrency=3)
    client.queues["alone"].throttle.set(concurrency=3)
    client.queues["q"].throttle.set(concurrency=16)
    assert client.execute(ops.ThrottleGet("queue/q")).concurrency == 16


def test_every_shard_knows_a_family_with_its_whole_limits(client: Client) -> None:
    client.throttles.family("tenant-*").set(concurrency=1)
    for number in range(8):
        for part in "ab":
            client.queues["q"].put("Send", throttles=[f"tenant-{number}"], jid=f"{{tenant-{number}}}{part}")
    assert len(client.queues["q"].pop(20)) == 8
    assert [(one.name, one.concurrency) for one in client.throttles.all()] == [("tenant-*", 1)]
    shown = client.throttles["tenant-3"].show()
    assert (shown.concurrency, shown.running, shown.parked, shown.family) == (1, 1, 1, "tenant-*")
    assert client.throttles.family("tenant-*").show().concurrency == 1
    assert client.throttles.family("tenant-*").unset()


def test_a_message_becomes_one_job_for_each_subscription(client: Client) -> None:
    client.subscriptions.add("mails", ["user.*"], "q", "Mail")
    client.subscriptions.add("stats", ["user.>"], "r", "Count")
    for number in range(20):
        client.publish(f"user.u{number}", {"n": number})
    assert (client.queues["q"].length(), client.queues["r"].length()) == (20, 20)
    jids = [job.jid for job in client.queues["q"].pop(count=20)]
    assert len(homes(client, jids)) > 4
    assert [client.jobs[jid].jid for jid in jids] == jids


# ---- waiting


def test_a_client_that_waits_is_woken_by_a_job_in_any_shard(client: Client, url: str) -> None:
    for shard in (0, 3, 7):
        got: list[str] = []

        def take(got: list[str] = got) -> None:
            with Client(url, worker="v") as waiting:
                job = waiting.queues["q"].pop(timeout=60)
                assert job is not None
                got.append(job.jid)
                job.complete()

        thread = threading.Thread(target=take)
        thread.start()
        jid = f"job-{shard}{{{shard_tag(shard, 8)}}}"
        client.queues["q"].put("K", jid=jid)
        thread.join(60)
        assert got == [jid]


def test_one_waiter_is_woken_by_a_job_in_any_shard(namespace: DeploymentNamespace) -> None:
    for shard in range(8):
        got: list[str] = []

        def take(got: list[str] = got) -> None:
            with Client(DeploymentBackend(namespace), worker="v") as waiting:
                job = waiting.queues["q"].pop(timeout=60)
                if job is not None:
                    got.append(job.jid)
                    job.complete()

        thread = threading.Thread(target=take)
        thread.start()
        wait_until(lambda: namespace._waiting)
        jid = f"job-{shard}{{{shard_tag(shard, 8)}}}"
        DeploymentBackend(namespace).execute(ops.Put("q", jid, "K", "{}"))
        thread.join(60)
        assert got == [jid]


def test_as_many_waiters_are_woken_as_jobs_are_put(namespace: DeploymentNamespace) -> None:
    got: list[str] = []

    def take() -> None:
        with Client(DeploymentBackend(namespace)) as waiting:
            job = waiting.queues["q"].pop(worker=threading.current_thread().name, timeout=60)
            assert job is not None
            got.append(job.jid)

    threads = [threading.Thread(target=take) for _ in range(6)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(namespace._waiting.get("q", {})) == 6)
    with Client(DeploymentBackend(namespace)) as client:
        jids = [client.queues["q"].put("K").jid for _ in range(6)]
    for thread in threads:
        thread.join(60)
    assert sorted(got) == sorted(jids)


def test_results_and_events_of_all_shards_are_waited_for(client: Client, url: str) -> None:
    jobs = [client.queues["q"].put("K", number) for number in range(20)]

    def work() -> None:
        with Client(url, worker="v") as other:
            for job in other.queues["q"].pop(count=20):
                job.complete(job.data * 2)

    thread = threading.Thread(target=work)
    thread.start()
    assert client.wait(jobs, 60) == [2 * number for number in range(20)]
    thread.join()
    events = [event for event in client.events() if event.event == "completed"]
    assert {event.facts[0] for event in events} == {job.jid for job in jobs}
    assert len(list(client.events())) == client.newest()


def test_a_cursor_is_a_place_in_each_shard(client: Client) -> None:
    cursor, read = Cursor(), []
    for number in range(40):
        client.queues["q"].put("K", jid=f"a{number}")
        if number == 20:
            read += list(client.events(cursor))
            cursor = Cursor.read(str(cursor))
    read += list(client.follow(cursor, timeout=0))
    put = [event.facts[0] for event in read if event.event == "put"]
    assert sorted(put) == sorted(f"a{number}" for number in range(40))
    second = [event for event in read if event.event == "put"][21:]
    assert [event.at for event in second] == sorted(event.at for event in second)
    assert [place.seq for place in client.cursor().places] == [place.seq for place in cursor.places]
    assert list(client.events(client.cursor())) == []


def test_a_cursor_is_a_place_in_the_journal_and_the_messages_of_each_shard(client: Client) -> None:
    client.config["journal"] = 1
    for number in range(12):
        client.queues["q"].put("K", jid=f"a{number}")
        client.publish(f"news.{number}", {"n": number})
    cursor = Cursor()
    entries = list(client.journal(cursor, 2))
    calls = [json.loads(entry.call) for entry in entries]
    assert sorted(call["jid"] for call in calls if call["op"] == "put") == sorted(f"a{number}" for number in range(12))
    client.queues["q"].put("K", jid="later")
    assert [json.loads(entry.call)["jid"] for entry in client.journal(Cursor.read(str(cursor)))] == ["later"]

    cursor, found = Cursor(), list[str]()
    while page := client.messages(cursor, 5):
        assert len(page) <= 5
        found += [message.subject for message in page]
    assert sorted(found) == sorted(f"news.{number}" for number in range(12))


def test_who_follows_is_woken_by_any_shard(client: Client, url: str) -> None:
    got: list[str] = []
    begun = threading.Event()

    def follow() -> None:
        with Client(url) as other:
            cursor = other.cursor()
            begun.set()
            for event in other.follow(cursor, timeout=60):
                got.extend(str(fact) for fact in event.facts[:1] if event.event == "put")
                if len(got) == 3:
                    return

    thread = threading.Thread(target=follow)
    thread.start()
    assert begun.wait(60)
    jids = [f"j{{{shard_tag(shard, 8)}}}" for shard in (1, 5, 7)]
    for jid in jids:
        client.queues["q"].put("K", jid=jid)
    thread.join(60)
    assert sorted(got) == sorted(jids)


@pytest.mark.parametrize("text", ["1", "1.2,x", "1.2;3.4", "-1.2"])
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        Cursor.read(text)


def test_a_cursor_of_another_deployment_and_a_number_are_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="of 2 shards; this one has 8"):
        list(client.events(Cursor.read("1.2,3.4")))
    with pytest.raises(TypeError, match="Cursor in place of a number"):
        list(client.events(7))
    with Client("memory://") as other, pytest.raises(TypeError, match="pass a number"):
        list(other.follow(Cursor()))


# ---- applications


def app_on(url: str) -> tuple[App, list[int]]:
    app, done = App(url), []

    @app.job
    def double(n: int) -> int:
        done.append(n)
        return 2 * n

    @app.job
    async def triple(n: int) -> int:
        return 3 * n

    @app.job
    def spread(context: Context, most: int) -> int:
        jobs = double.put_many((n,) for n in range(most))
        return len(jobs)

    @app.job(every=3600)
    def nightly() -> None:
        done.append(-1)

    return app, done


@contextmanager
def at_work(app: App, **options: object) -> Iterator[Worker]:
    worker = Worker(app, **options)  # type: ignore[arg-type]
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)


@pytest.mark.parametrize(
    "options", [{"concurrency": 4}, {"concurrency": 1}, {"concurrency": 4, "runner": "async"}], ids=str
)
def test_an_app_and_its_worker_run_on_a_deployment(options: dict[str, object], url: str) -> None:
    app, done = app_on(url)
    jobs = app.jobs
    with at_work(app, **options):
        asked = [jobs["double"].put(n) for n in range(40)] + jobs["double"].put_many((n,) for n in range(40, 60))
        assert app.client.wait(asked, 20) == [2 * n for n in range(60)]
        assert jobs["triple"].put(5).wait(60) == 15
        assert jobs["spread"].put(7).wait(60) == 7
        wait_until(lambda: len(done) >= 68)
    assert sorted(done) == sorted([-1, *range(60), *range(7)])
    assert [one.jid for one in app.client.queues["default"].recurring()] == ["{schedule.nightly}"]


def test_an_async_client_runs_on_a_deployment(url: str) -> None:
    async def run() -> None:
        async with AsyncClient(url, worker="w") as client:
            jobs = [await client.queues["q"].put("K", number) for number in range(10)]

            async def work() -> None:
                for _ in range(10):
                    job = await client.queues["q"].pop(timeout=60)
                    assert job is not None
                    await job.complete(job.data)

            _, found = await asyncio.gather(work(), client.wait(jobs, 60))
            assert found == list(range(10))
            assert await client.queues["q"].length() == 0
            with pytest.raises(CrossShard):
                await client.queues["q"].put("K", jid="a", unique="b")
            assert len(await client.put_many(client.queues["q"].new("K") for _ in range(5))) == 5
            assert await client.queues["q"].pop(count=9, timeout=60)
            cursor = Cursor()
            put = [event async for event in client.events(cursor) if event.event == "put"]
            assert len(put) == 15 and [event async for event in client.follow(cursor, timeout=0)] == []

    asyncio.run(run())


def test_the_front_door_has_the_exceptions() -> None:
    assert {qmodel.CrossShard, qmodel.Untagged, qmodel.ByShard, qmodel.SplitLimit}
