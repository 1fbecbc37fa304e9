"""Namespaces that the originals made are converted, and answer as the originals did.

The files in `originals` hold the keys of a namespace, without the prefix, and what the original replied to questions
about it; that of 2012 has no replies that one can still ask for. `python -m tools.oracle.moved` compares many more.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qmodel.cli import cli
from qmodel.contract.operations import Operation
from qmodel.dialects import qless
from qmodel.dialects.qless.conversion import Report, convert
from qmodel.dialects.qless.original import Original, read
from qmodel.model import engine, invariants, snapshot
from qmodel.model.state.store import Store
from tests.servers import Server
from tools.oracle.compare import decoded, parts, same, without
from tools.oracle.moved import LEFT_OUT

FOLDER = Path(__file__).parent / "originals"


def loaded(client: Any, name: str, prefix: str) -> dict[str, Any]:
    """Write the keys of a recorded namespace to a server; give the record."""
    record: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for key, (kind, value) in record["keys"].items():
        if kind == "hash":
            client.hset(prefix + key, mapping=value)
        elif kind == "zset":
            client.zadd(prefix + key, {member: score for member, score in value})
        elif kind == "list":
            client.rpush(prefix + key, *value)
        else:
            client.sadd(prefix + key, *value)
    return record


@pytest.fixture
def prefix(server: Server) -> Iterator[str]:
    """The prefix of a namespace of the original, whose keys are deleted at the end."""
    name = f"{uuid.uuid4().hex}:"
    yield name
    with server.client() as client:
        for key in client.scan_iter(f"{name}*"):
            client.delete(key)


def originals(server: Server, name: str, prefix: str) -> tuple[dict[str, Any], Original]:
    with server.client(decode_responses=True) as client:
        record = loaded(client, name, prefix)
        return record, read(client, prefix)


def converted(record: dict[str, Any], found: Original) -> tuple[Store, Report]:
    store = Store()

    def execute(op: Operation, now: int) -> Any:
        return engine.step(store, now, op)

    return store, convert(found, execute, round(record["now"] * 1000))


@pytest.mark.parametrize("name", ["qless", "reqless"])
def test_a_converted_namespace_answers_as_the_original_did(server: Server, name: str, prefix: str) -> None:
    record, found = originals(server, name, prefix)
    store, report = converted(record, found)
    assert report.refused == []
    assert list(invariants.check(snapshot.of(store))) == []
    for words, reply in record["asked"]:
        ours = without(decoded(qless.call(store, words).reply), LEFT_OUT)
        assert same(reply, ours), (words, *parts("reply", reply, ours))


def test_complete_jobs_past_their_retention_come_along_until_the_next_completion(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True) as client:
        record = loaded(client, "qless", prefix)
        client.hset(f"{prefix}config", "jobs-history-count", 1)
        found = read(client, prefix)
    assert len(found.complete) > 1
    store, report = converted(record, found)
    assert report.refused == []
    assert all(jid in store.jobs for jid in found.complete)
    assert store.config["jobs-history-count"] == 1
    assert "jobs-history" not in store.config


def test_a_timed_out_job_that_got_a_new_priority_keeps_its_place(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True) as client:
        record = loaded(client, "qless", prefix)
        found = read(client, prefix)
        (queue, jid) = next(
            (queue, jid) for queue, line in found.lines.items() for jid, _ in line if found.jobs[jid].state == "waiting"
        )
        client.hset(f"{prefix}j:{jid}", mapping={"state": "stalled", "priority": -99})
        client.zadd(f"{prefix}q:{queue}-work", {jid: -99})
        found = read(client, prefix)
    store, report = converted(record, found)
    assert report.refused == []
    now = str(record["now"])
    peeked = [one["jid"] for one in decoded(qless.call(store, ["peek", now, queue, "100"]).reply)]
    assert (peeked[-1], decoded(qless.call(store, ["get", now, jid]).reply)["state"]) == (jid, "stalled")


def test_a_namespace_of_2012_is_converted(server: Server, prefix: str) -> None:
    record, found = originals(server, "qless_2012", prefix)
    store, report = converted(record, found)
    assert report.refused == []
    assert report.converted == {
        "queue": 1, "complete": 1, "failed": 1, "waiting": 3, "running": 1, "scheduled": 1, "depends": 1,
        "recurring": 1, "tag": 6, "tracked": 1,
    }  # fmt: skip
    now = str(record["now"])
    line = json.loads(str(qless.call(store, ["peek", now, "q", "10"]).reply))
    assert [job["jid"] for job in line] == ["every-1", "a0", "a2", "a4"]
    (ended,) = json.loads(str(qless.call(store, ["failed", now, "broken"]).reply))["jobs"]
    assert ended == "a3"
    running = json.loads(str(qless.call(store, ["get", now, "a5"]).reply))
    assert (running["worker"], running["expires"], running["priority"]) == ("w1", 1347900077, 1)
    assert json.loads(str(qless.call(store, ["get", now, "dep"]).reply))["dependencies"] == ["a5", "later"]


def command(*words: str) -> Any:
    return CliRunner().invoke(cli, words)


def test_the_command_converts_between_namespaces(server: Server, prefix: str) -> None:
    record, found = originals(server, "qless", prefix)
    theirs, ours = f"{server.url}", f"{server.url}?prefix={prefix}new:"
    seen = command("qless-convert", theirs, "--prefix", prefix, "--look")
    assert json.loads(seen.output)["failed"] == 8
    now = str(round(record["now"] * 1000))
    done = command("--url", ours, "--now", now, "--json", "qless-convert", theirs, "--prefix", prefix)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["converted"]["failed"] == 8
    again = command("--url", ours, "qless-convert", theirs, "--prefix", prefix)
    assert again.exit_code == 1
    assert "is not empty" in again.output
    with server.client(decode_responses=True) as client:
        for words, reply in record["asked"]:
            told = client.execute_command("FCALL", "qmodel_v1_qless", "1", f"{prefix}new:", *words)
            mine = without(decoded(told), LEFT_OUT)
            assert same(reply, mine), (words, *parts("reply", reply, mine))
        assert read(client, prefix) == found, "the original's keys were changed"


def test_what_cannot_be_converted_is_refused_with_the_next_step(server: Server, prefix: str) -> None:
    nothing = command("qless-convert", server.url, "--prefix", prefix)
    assert nothing.exit_code == 1
    assert "nothing of qless" in nothing.output
    nowhere = command("qless-convert", "redis://localhost:1/0")
    assert nowhere.exit_code == 1
    assert "cannot be read" in nowhere.output
    options = command("qless-convert", f"{server.url}?prefix={prefix}", "--look")
    assert options.exit_code == 1 and "give the prefix as --prefix" in options.output
    originals(server, "qless", prefix)
    itself = command("--url", f"{server.url}?prefix={prefix}", "qless-convert", server.url, "--prefix", prefix)
    assert itself.exit_code == 1
    assert "the namespace of the original itself" in itself.output


def test_a_job_that_is_refused_is_named_and_the_others_are_converted(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True) as client:
        loaded(client, "qless", prefix)
        client.hset(
            f"{prefix}j:{(jid := 'x y')}", mapping={"jid": jid, "klass": "k", "state": "scheduled", "queue": "q"}
        )
        found = read(client, prefix)
    _, report = converted({"now": 1700500000}, found)
    ((name, why),) = report.refused
    assert name == jid
    assert "bad jid" in why
    assert report.converted["failed"] == 8


NOW = 1700500000
FINE = {"klass": "k", "data": "{}", "queue": "q", "state": "waiting", "priority": "0", "retries": "5",
        "remaining": "5", "tags": "[]", "time": str(NOW - 50)}  # fmt: skip


def keep(client: Any, prefix: str, jid: str | bytes, **fields: str | bytes) -> None:
    """Write a job as the original does."""
    key = prefix.encode() + b"j:" + (jid if isinstance(jid, bytes) else jid.encode())
    client.hset(key, mapping=FINE | {"jid": jid} | fields)
    client.rpush(key + b"-history", json.dumps([NOW - 50, "put", {"q": "q"}]))


def test_a_job_that_was_advanced_with_a_delay_is_scheduled(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True) as client:
        keep(client, prefix, "a")  # the original says `waiting`
        client.zadd(f"{prefix}q:q-scheduled", {"a": NOW + 60})
        found = read(client, prefix)
    store, report = converted({"now": NOW}, found)
    assert (report.converted["scheduled"], report.refused) == (1, [])
    assert [qless.call(store, ["peek", str(NOW + at), "q", "1"]).reply == "{}" for at in (59, 61)] == [True, False]


def test_a_job_that_the_original_has_lost_is_named(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True) as client:
        keep(client, prefix, "a")
        found = read(client, prefix)
    _, report = converted({"now": NOW}, found)
    assert report.refused == [("a", "the original has lost it: its state is waiting, in no list")]


ODD: dict[str, tuple[dict[str, str | bytes], str, float]] = {
    "priority": ({"priority": "inf"}, "work", float("inf")),
    "retries": ({"retries": "inf", "remaining": "inf"}, "work", 0),
    "due": ({"state": "scheduled"}, "scheduled", float("inf")),
    "data": ({"data": b'"\xff"'}, "work", 0),
    "queue": ({"queue": "q" * 129}, "work", 0),
    "history": ({"history": "[1]", "retries": "many"}, "work", 0),
    "failure": ({"state": "failed", "failure": '{"group":"g","when":null}'}, "work", 0),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_job_does_not_keep_others_from_being_converted(server: Server, prefix: str, odd: str) -> None:
    fields, part, score = ODD[odd]
    with server.client(decode_responses=True, encoding_errors="surrogateescape") as client:
        keep(client, prefix, "a")
        keep(client, prefix, "b", **fields)
        client.zadd(f"{prefix}q:q-work", {"a": 0})
        client.zadd(f"{prefix}q:{fields.get('queue', 'q')!s}-{part}", {"b": score})
        client.sadd(f"{prefix}failures", "g")
        client.lpush(f"{prefix}f:g", "b")
        found = read(client, prefix)
    store, report = converted({"now": NOW}, found)
    assert "a" in store.jobs
    assert ("b" in store.jobs) is (odd in ("history", "failure"))
    assert {name for name, _ in report.refused} == {"b"} - store.jobs.keys()


def test_names_of_any_bytes_and_recurring_jobs_that_are_never_due_are_read(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True, encoding_errors="surrogateescape") as client:
        keep(client, prefix, b"x\xff")
        client.zadd(f"{prefix}q:q-work", {b"x\xff": 0})
        client.zadd(prefix.encode() + b"t:\xff", {"a": 1})
        client.hset(f"{prefix}r:r", mapping=FINE | {"jid": "r", "interval": "60", "count": "0", "backlog": "inf"})
        client.zadd(f"{prefix}q:q-recur", {"r": float("inf")})
        client.hset(f"{prefix}th:t", mapping={"id": "t", "maximum": "inf"})
        found = read(client, prefix)
    _, report = converted({"now": NOW}, found)
    assert {name for name, _ in report.refused} == {"x\udcff", "r", "t"}


def test_an_option_that_is_no_number_is_named_once(server: Server, prefix: str) -> None:
    with server.client(decode_responses=True) as client:
        keep(client, prefix, "a", state="running", worker="w", expires=str(NOW + 60))
        client.zadd(f"{prefix}q:q-locks", {"a": NOW + 60})
        client.hset(f"{prefix}config", mapping={"q-heartbeat": "soon", "jobs-history": "long"})
        found = read(client, prefix)
    _, report = converted({"now": NOW}, found)
    assert [name for name, _ in report.refused] == ["q-heartbeat", "jobs-history"]
    assert report.converted["running"] == 1
