"""The command line and the faces on a deployment: what works does, and what does not is refused with a next step."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qmodel import Client
from qmodel.cli import cli
from qmodel.client.cursor import Cursor
from qmodel.telemetry.collector import EngineCollector
from tests.clusters import wait_until
from tests.processes import started
from tests.servers import Server

VIEWS = 6


@pytest.fixture
def url(place: Server) -> str:
    name = uuid.uuid4().hex
    return f"memory://{name}?shards=4" if place.name == "memory" else f"{place.url}?name={name}&shards=4"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, worker="w") as made:
        yield made


@pytest.fixture
def full(client: Client) -> Client:
    """A deployment with jobs in several shards and states."""
    queue = client.queues["emails"]
    for number in range(20):
        queue.put("Send", {"n": number}, tags=["red"])
    queue.pop().fail("boom", "it broke")  # type: ignore[union-attr]
    queue.pop().complete()  # type: ignore[union-attr]
    assert queue.pop() is not None
    client.queues["later"].put("Send", delay=60)
    return client


def run(url: str, *arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["--url", url, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_jobs_are_put_and_shown(url: str, client: Client) -> None:
    jid = run(url, "put", "emails", "Send", "{}").stdout.split()[-1]
    assert client.jobs[jid].klass == "Send"
    assert "emails" in run(url, "queues").stdout
    assert jid in run(url, "get", jid).stdout
    assert jid in run(url, "search", "--queue", "emails").stdout
    refused = run(url, "put", "emails", "Send", "{}", "--jid", "a", "--unique", "b")
    assert refused.exit_code and "CROSS_SHARD" in refused.output and "Write the same tag" in refused.output


@pytest.mark.parametrize(
    "command",
    ["queues", "queue emails", "workers", "failures", "stats emails", "config", "op tracked", "op metrics emails"],
)
def test_reads_of_all_shards_are_merged(command: str, url: str, full: Client) -> None:
    assert run(url, *command.split()).exit_code == 0


def test_events_of_all_shards_are_printed(url: str, full: Client) -> None:
    assert run(url, "events").stdout.count("completed") == 1
    refused = run(url, "events", "--after", "7")
    assert refused.exit_code == 2 and "--url of one shard" in " ".join(refused.output.split())


@pytest.mark.parametrize("command", ["op journal", "op messages", "op begin-epoch 9"])
def test_what_each_shard_has_is_refused_with_a_next_step(command: str, url: str, full: Client) -> None:
    refused = run(url, *command.split())
    assert refused.exit_code == 1 and "BY_SHARD" in refused.output and "qmodel doctor" in refused.output


def test_the_doctor_checks_every_shard_and_node(url: str, full: Client) -> None:
    found = run(url, "doctor", "--keys").stdout
    assert "each shard: every invariant holds" in found
    assert "4 shards" in found and "FAIL" not in found and "Please report" not in found
    if not url.startswith("memory"):
        assert found.count(":") > 4 and all(shard.options.prefix in found for shard in full.backend.shards)  # type: ignore[attr-defined]


def test_the_doctor_names_a_damaged_shard(url: str, full: Client) -> None:
    if url.startswith("memory"):
        pytest.skip("no keys")
    from redis import Redis

    shard = full.backend.shards[2]  # type: ignore[attr-defined]
    with Redis.from_url(url.partition("?")[0]) as raw:
        raw.set(f"{shard.options.prefix}tracked", "x")
    found = run(url, "doctor").stdout
    assert re.search(r"shard 2: .*tracked is a string", found), found
    assert "resolved" in run(url, "doctor", "--resolve").stdout
    assert "each shard: no key is damaged" in run(url, "doctor").stdout


def test_the_place_in_the_events_of_all_shards_is_kept(url: str, client: Client, tmp_path: Path) -> None:
    if url.startswith("memory"):
        pytest.skip("no other process")
    place, seen = tmp_path / "place", []
    for _ in range(2):
        jids = {client.queues["q"].put("K").jid for _ in range(12)}
        command = [sys.executable, "-m", "qmodel", "--url", url, "--json", "events", "--keep", str(place)]
        with started(command, stdout=subprocess.PIPE, text=True) as following:
            assert following.stdout is not None
            while jids:
                event = json.loads(following.stdout.readline())
                seen.append((event["event"], event["facts"].get("jid")))
                jids -= {event["facts"].get("jid")}
            wait_until(
                lambda: place.exists() and sum(one.seq for one in Cursor.read(place.read_text()).places) == len(seen)
            )
            following.kill()
    puts = [jid for kind, jid in seen if kind == "put"]
    assert len(puts) == len(set(puts)) == 24


def test_a_command_of_one_namespace_says_what_to_give(url: str, full: Client) -> None:
    for command in (("audit", "--follow"), ("reconcile", "archive")):
        refused = run(url, *command)
        assert refused.exit_code == 2 and "give the URL of a shard" in refused.output


def test_each_shard_is_audited_by_itself(url: str, client: Client, tmp_path: Path) -> None:
    client.config["journal"] = 1
    file = tmp_path / "state"
    taken = run(url, "audit", "--take", str(file))
    assert taken.exit_code == 0 and taken.stdout.count("The state after entry") == 4
    queue = client.queues["emails"]
    jobs = [queue.put("Send", {"n": number}) for number in range(20)]
    while job := queue.pop():
        job.complete()
    done = run(url, "audit", "--from", str(file), "--state", "--save", str(file))
    assert done.exit_code == 0 and ", 0 differ" in done.stdout, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"state.{shard}" for shard in range(4)]

    shard = client.backend.layout.home(jobs[0].jid)  # type: ignore[attr-defined]
    (tmp_path / f"state.{shard}").rename(tmp_path / "kept")
    (tmp_path / f"state.{shard}").write_bytes((tmp_path / f"state.{(shard + 1) % 4}").read_bytes())
    wrong = run(url, "audit", "--from", str(file), "--state")
    assert wrong.exit_code == 1 and f"shard {shard}: " in wrong.output and "up to" in wrong.output


def test_the_exporter_adds_up_all_shards(full: Client) -> None:
    metrics = {one.name: one for one in EngineCollector(full).collect()}
    assert metrics["qmodel_up"].samples[0].value == 1
    jobs = {tuple(one.labels.values()): one.value for one in metrics["qmodel_queue_jobs"].samples}
    assert jobs["emails", "waiting"] == 17


def test_every_page_of_the_web_is_shown(full: Client) -> None:
    from starlette.testclient import TestClient

    from qmodel.web import create

    with TestClient(create(full), base_url="http://127.0.0.1:8080") as pages:
        seen, left = set(), ["/"]
        while left and len(seen) < 40:
            path = left.pop()
            found = pages.get(path)
            assert found.status_code == 200, (path, found.text[:300])
            assert "BY_SHARD" not in found.text, path
            seen.add(path)
            links = (one.replace("&amp;", "&") for one in re.findall(r'href="(/[^"#]*)"', found.text))
            left += [one for one in dict.fromkeys(links) if one not in seen and "static" not in one and one not in left]
    assert len(seen) > 15


def test_the_http_interface_serves_a_deployment(full: Client) -> None:
    from starlette.testclient import TestClient

    from qmodel.http import create

    with TestClient(create(full), base_url="http://127.0.0.1:8080") as api:
        found = api.get("/v1/queues")
        assert found.status_code == 200 and "emails" in found.text
        done = full.jobs.completed(count=1)[0]
        assert api.get(f"/v1/jobs/{done.jid}/wait").status_code == 200
        assert api.get("/health").status_code == 200
        assert api.head("/v1/events").status_code == 200
        assert api.get("/v1/events?after=17").status_code == 400  # one number, of four shards
        assert api.get("/v1/events?queues=emails").json()["next_step"] == "Did you mean queue?"


def test_the_pages_show_the_messages_of_all_shards(url: str, client: Client) -> None:
    import html

    from starlette.testclient import TestClient

    from qmodel.web import create

    for number in range(70):
        client.publish(f"orders.{number}", {"order": number})
    with TestClient(create(client, writable=True), base_url="http://127.0.0.1:8700") as pages:
        first = pages.get("/messages")
        following = re.search('rel="next" href="([^"]+)"', first.text)
        assert following is not None and first.status_code == 200
        second = pages.get(html.unescape(following[1]))
        seen = re.findall(">(orders[.][0-9]+)<", first.text + second.text)
        assert len(seen) == len(set(seen)) == 70 and 'rel="next"' not in second.text
        assert pages.get("/messages?after=17").status_code == 400  # one number, of four shards


def test_top_shows_every_view(url: str, full: Client) -> None:
    from qmodel.top.app import Top

    async def show() -> int:
        from qmodel.client.aio import AsyncClient

        async with AsyncClient(url) as client:
            app = Top(client, url, interval=3600)
            async with app.run_test(size=(140, 40)) as pilot:
                for number in range(1, VIEWS + 1):
                    await pilot.press(str(number))
                    await pilot.pause()
                return app.drawn

    assert asyncio.run(show()) > 0
