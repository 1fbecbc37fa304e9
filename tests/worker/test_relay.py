"""Jobs that wait for jobs of other shards: the workers of a deployment pass on how these ended."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from qmodel import App, Client
from qmodel.app import Context, Fail
from qmodel.contract.routing import shard_tag
from qmodel.errors import CrossShard, DependencyNotFound
from qmodel.model.deployment import relay
from tests.clusters import wait_until
from tests.servers import Server
from tests.worker.support import KILL, Process, working

N = 8


@pytest.fixture
def deployment(place: Server) -> str:
    """The URL of a new deployment that relays."""
    name = f"relay-{uuid.uuid4().hex[:8]}"
    if place.name == "memory":
        return f"memory://{name}?shards={N}&relay=1"
    return f"{place.url}?name={name}&shards={N}&relay=1"


@pytest.fixture
def app(deployment: str) -> Iterator[App]:
    app = App(deployment)

    @app.job
    def first(n: int) -> dict[str, float]:
        if n < 0:
            raise Fail("broken", "no such page")
        return {"n": n, "a": 1e-7}

    @app.job
    def second(context: Context) -> object:
        return context.results.get("page")

    with app.client:
        yield app


def jid(name: str, shard: int) -> str:
    return f"{name}{{{shard_tag(shard, N)}}}"


def put(app: App, n: int, policy: str = "block") -> tuple[str, str]:
    """Put a job, and one of another shard that waits for it."""
    one, other = jid(f"a{n}", 2), jid(f"b{n}", 5)
    app.jobs["first"].options(jid=one).put(n)
    app.jobs["second"].options(jid=other, depends=[f"{one} {policy} page"]).put()
    return one, other


def test_a_job_waits_for_a_job_of_another_shard_and_gets_its_result(app: App) -> None:
    one, other = put(app, 7)
    assert app.client.jobs[other].state == "depends"
    with working(app, queues=["default"]):
        app.client.wait([other], timeout=60)
    assert app.client.jobs[one].result == app.client.jobs[other].result == {"n": 7, "a": 1e-7}
    assert app.client.queues[relay.QUEUE].length() == 0


@pytest.mark.parametrize(("policy", "state"), [("fail", "failed"), ("ignore", "complete"), ("cancel", None)])
def test_a_failure_reaches_the_other_shard(app: App, policy: str, state: str | None) -> None:
    _, other = put(app, -1, policy)

    def reached() -> bool:
        job = app.client.jobs.get(other)
        return (job.state if job else None) == state

    with working(app, queues=["default"]):
        wait_until(reached)
    if state == "failed":
        assert app.client.jobs[other].failure.group == "failed-dependencies-default"


def test_what_cannot_wait_is_refused(app: App) -> None:
    with pytest.raises(DependencyNotFound, match=r"b\{.*cannot depend on a\{"):
        app.jobs["second"].options(jid=jid("b", 5), depends=[jid("a", 2)]).put()
    assert app.client.queues[relay.QUEUE].length() == 0
    app.jobs["first"].options(jid=jid("a", 2)).put(1)
    with pytest.raises(CrossShard):
        app.jobs["second"].options(jid=jid("b", 5), depends=[jid("a", 2)], unique=jid("u", 3)).put()


@pytest.mark.server
def test_workers_that_are_killed_pass_on_every_end(server: Server) -> None:
    url = f"{server.url}?name=relay-{uuid.uuid4().hex[:8]}&shards={N}&relay=1"
    with Client(url) as client:
        client.config["heartbeat"], client.config["grace-period"] = 0.6, 0.1
        queue = client.queues["default"]
        firsts, others = [], []
        for number in range(60):
            one, other = jid(f"a{number}", number % N), jid(f"b{number}", (number + 1 + number // N % 7) % N)
            firsts.append(queue.put("add", {"x": number}, jid=one).jid)
            others.append(queue.put("add", {"x": number}, jid=other, depends=[f"{one} block it"]).jid)

        def done() -> int:
            return sum(job.state == "complete" for job in client.multiget(others))

        for seen in (5, 20, 40):
            with Process(url) as worker:
                wait_until(lambda seen=seen: done() >= seen)
                worker.send(KILL)
        with Process(url):
            wait_until(lambda: done() == 60)
        for one, other in zip(client.multiget(firsts), client.multiget(others), strict=True):
            [began, *_] = [stage.at for stage in other.history if stage.what == "popped"]
            assert one.ended_at <= began
