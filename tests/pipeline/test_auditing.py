"""The audit names every difference between a server and the model, and nothing else."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qmodel.backends import bundle
from qmodel.backends.redis.take_snapshot import taken
from qmodel.cli import cli
from qmodel.client.sync import Client
from qmodel.conformance.compare import runner
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.subjects.lua import LuaSubject
from qmodel.contract import operations as ops
from qmodel.contract.replies import Recorded
from qmodel.errors import LockLost
from qmodel.model import engine, restore
from qmodel.model.state.store import Store
from qmodel.pipeline.audit import replay
from qmodel.pipeline.audit.follow import follow
from qmodel.pipeline.audit.replay import Audit, AuditError
from qmodel.pipeline.journal.pages import EntriesGone, JournalWentBack, entries, newest, pages
from tests.processes import started
from tests.servers import ROOT, Server

MINUTE = 60_000

WRONG = {
    "a lapse that is not counted": ("ops/pop", "job.remaining = job.remaining - 1", "job.remaining = job.remaining"),
    "no event of a pause": ("ops/administer", "store.emit(now, 'paused', name, op.reason, till)", "do end"),
    "a lease that is longer": ("state/config", "beat = known[PER_QUEUE", "beat = 7 or known[PER_QUEUE"),
}
"""Faults of the library, planted."""


def work(client: Client, jobs: int, name: str = "j") -> None:
    """Complete jobs, fail jobs, cause refusals and resends."""
    queue = client.queues["emails"]
    for number in range(jobs):
        queue.put("Send", {"number": number}, jid=f"{name}{number}", retries=number % 3)
    while popped := queue.pop(7, worker="w"):
        for job in popped:
            job.fail("no", "way") if job.data.get("number", 1) % 5 == 0 else job.complete()


def journaled(jobs: int = 50, name: str = "memory://") -> Client:
    client = Client(name)
    client.execute(ops.ConfigSet("journal", 1))
    work(client, jobs)
    return client


def recorded(client: Client) -> list[Recorded]:
    return list(client.journal())


def altered(found: list[Recorded], number: int, **fields: Any) -> list[Recorded]:
    return [one._replace(**fields) if one.number == number else one for one in found]


# ---- what is right


def test_a_journal_of_the_model_differs_nowhere() -> None:
    found = recorded(journaled())
    audit = Audit()
    assert list(audit.follow(found)) == []
    assert audit.entries == len(found) == audit.number


def test_a_journal_of_a_server_differs_nowhere_and_neither_does_its_state(server: Server) -> None:
    server.client().flushdb()
    with journaled(100, server.url) as client:
        with pytest.raises(LockLost):
            client.execute(ops.Complete("j1", 1))
        client.execute(ops.Pop("emails", "idle", 1, True))
        now = taken(server.url)
        audit = Audit()
        assert list(audit.follow(entries(client, 0, now.journaled))) == []
        assert replay.differences(audit.state(), now) == []
        client.queues["emails"].put("Send", {}, jid="later")
        assert replay.differences(audit.state(), taken(server.url)) != []


def test_an_audit_goes_on_where_another_one_ended(server: Server) -> None:
    server.client().flushdb()
    with journaled(30, server.url) as client:
        first = Audit()
        assert list(first.follow(entries(client))) == []
        text = restore.dumps(first.state())
        work(client, 30, "k")
        second = Audit(restore.loads(text))
        assert list(second.follow(entries(client, second.number))) == []
        assert second.number == newest(client) > first.number


def test_an_audit_begins_with_a_snapshot_of_a_namespace_in_use(server: Server) -> None:
    server.client().flushdb()
    with Client(server.url) as client:
        work(client, 30)
        client.execute(ops.ConfigSet("journal", 1))
        client.queues["emails"].put("Send", {}, jid="before")
        began = taken(server.url)
        work(client, 30, "k")
        audit = Audit(restore.loads(restore.dumps(began)))
        assert list(audit.follow(entries(client, audit.number))) == []
        with pytest.raises(AuditError, match="in use"):
            list(Audit().follow(entries(client)))


def test_memory_does_not_grow_with_the_history() -> None:
    with journaled(0) as client:
        client.execute(ops.ConfigSet("jobs-history-count", 0))
        queue, audit = client.queues["emails"], Audit()
        for number in range(300):
            queue.put("Send", {"number": number})
            queue.pop(1, worker="w")[0].complete()
            assert list(audit.follow(entries(client, audit.number))) == []
        assert (len(audit.store.jobs), len(audit.store.recorded)) == (0, 0)
        assert audit.entries > 900


# ---- what is wrong


@pytest.mark.parametrize("fault", WRONG)
def test_a_fault_planted_in_the_lua_is_named_at_its_first_step(fault: str) -> None:
    file, right, wrong = WRONG[fault]
    text = bundle.read(file)
    assert right in text, "the Lua has changed: plant the fault elsewhere"
    subject = LuaSubject({file: text.replace(right, wrong)})
    first, found = _first_of(subject)
    difference = next(Audit().follow(found))
    assert difference.number == first
    assert len(difference.before) == min(first - 1, replay.AROUND)


def _first_of(subject: LuaSubject) -> tuple[int, tuple[Recorded, ...]]:
    """Find a history with a wrong outcome; give the first wrong entry of its journal, and the journal."""
    for seed in range(200):
        subject.reset()
        model, first, number = Store(), 0, 0
        begin = [(0, ops.ConfigSet("journal", 1))]
        drawn = runner.draw(RandomChooser(f"audit {seed}"), 60)
        history = [step for step in drawn if getattr(step.op, "option", "") not in ("journal", "max-journal")]
        for now, op in [*begin, *history]:
            expected = engine.step(model, now, op)
            found = subject.step(now, op)
            number = model.journaled
            if not op.spec.reads and (expected != found or _last(subject) != model.seq):
                first = number
                break
        if first:
            return first, subject.step(0, ops.Journal(0, 1000))
    raise AssertionError("no history shows the fault")


def _last(subject: LuaSubject) -> int:
    return int(subject.step(0, ops.Newest()).seq)


def test_one_altered_answer_is_found_and_only_that() -> None:
    found = recorded(journaled())
    pop = next(one for one in found if '"pop"' in one.call)
    (difference,) = Audit().follow(altered(found, pop.number, outcome='{"reply":[]}'))
    assert (difference.number, difference.outcome) == (pop.number, '{"reply":[]}')
    assert difference.expected == pop.outcome
    assert json.loads(difference.jobs[0])["reply"][0] == "j0"
    assert str(difference).splitlines()[0] == f"Entry {pop.number} of the journal:"


def test_an_event_that_is_lacking_is_told_once() -> None:
    found = recorded(journaled())
    (difference,) = Audit().follow(altered(found, len(found), seq=found[-1].seq - 1))
    assert (difference.seq, difference.expected_seq) == (found[-1].seq - 1, found[-1].seq)


def test_what_the_model_cannot_execute_ends_the_audit() -> None:
    found = recorded(journaled(3))
    audit = Audit()
    list(audit.follow(found[:3]))
    del audit.store.queues  # a state that cannot be
    with pytest.raises(AuditError, match="cannot execute entry 4"):
        list(audit.follow(found[3:]))


# ---- what is not there


def test_entries_that_are_lacking_are_told() -> None:
    found = recorded(journaled(5))
    with pytest.raises(AuditError, match="entries 3 to 4"):
        list(Audit().follow([*found[:2], *found[4:]]))
    with pytest.raises(AuditError, match="once"):
        list(Audit().follow([*found[:2], found[1]]))


def test_entries_that_are_kept_no_longer_are_told() -> None:
    client = journaled(5)
    client.execute(ops.ConfigSet("max-journal", 3))
    with pytest.raises(EntriesGone, match="entries 1 to"):
        list(pages(client))
    assert [one.number for one in entries(client, newest(client) - 2)] == [newest(client) - 1, newest(client)]
    with pytest.raises(JournalWentBack):
        list(pages(client, newest(client) + 1))


@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 700])
def test_the_newest_entry_is_found_by_asking(count: int) -> None:
    client = Client("memory://")
    if count:
        client.execute(ops.ConfigSet("journal", 1))
    for number in range(count - 1):
        client.execute(ops.Pause((f"q{number}",)))
    assert newest(client) == count


def test_a_journal_that_was_off_meanwhile_is_told() -> None:
    client = journaled(2)
    client.execute(ops.ConfigUnset("journal"))
    client.execute(ops.Put("q", "unseen", "k", ""))
    client.execute(ops.ConfigSet("journal", 1))
    with pytest.raises(AuditError, match="turned off"):
        list(Audit().follow(entries(client)))


# ---- the command


def audit(*words: str) -> Any:
    return CliRunner().invoke(cli, ["audit", *words])


@pytest.fixture
def named() -> Iterator[str]:
    url = "memory://audited"
    with Client(url) as client:
        client.queues["emails"].put("Send", {}, jid="early")
        client.execute(ops.ConfigSet("journal", 1))
        yield url
        client.backend.namespace.store = Store()  # type: ignore[union-attr]


def test_the_command_takes_a_state_goes_on_from_it_and_compares(named: str, tmp_path: Path) -> None:
    file = str(tmp_path / "state.gz")
    assert audit("--url", named, "--take", file).exit_code == 0
    with Client(named) as client:
        work(client, 20)
    done = audit("--url", named, "--from", file, "--state", "--save", file)
    assert done.exit_code == 0, done.output
    assert " 0 differ" in done.output
    again = json.loads(audit("--url", named, "--from", file, "--json").stdout)
    assert (again["entries"], again["all"]) == (0, 0)


def test_the_command_says_what_differs_and_ends_with_1(named: str, tmp_path: Path) -> None:
    file = str(tmp_path / "state.gz")
    audit("--url", named, "--take", file)
    with Client(named) as client:
        client.queues["emails"].pop(1, worker="w")
        store = client.backend.namespace.store  # type: ignore[union-attr]
        seq, now, op, _, epoch = store.recorded[-1]
        store.recorded[-1] = (seq, now, op, (), epoch)
    done = audit("--url", named, "--from", file)
    assert done.exit_code == 1
    assert 'production: {"reply":[]}' in done.output
    found = json.loads(audit("--url", named, "--from", file, "--json").stdout)
    assert (found["all"], found["found"][0]["number"], found["found"][0]["kind"]) == (1, 2, "reply")


def test_the_command_refuses_what_is_no_state(named: str, tmp_path: Path) -> None:
    file = tmp_path / "state"
    file.write_text("nothing of the kind")
    done = audit("--url", named, "--from", str(file))
    assert done.exit_code == 1
    assert "is not a state that --save or --take wrote" in done.output
    assert "in use" in audit("--url", named).output
    assert "The journal is empty" in audit("--url", "memory://").output


def test_a_follower_names_a_planted_fault_as_it_happens_and_saves_where_it_ended(
    server: Server, tmp_path: Path
) -> None:
    server.client().flushdb()
    url, file = f"{server.url}?prefix=followed:&connect_deadline=60", str(tmp_path / "state.gz")
    name, right, wrong = WRONG["a lease that is longer"]
    with Client(url) as client, server.client() as raw:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 40)
        command = [sys.executable, "-m", "qmodel", "--url", url, "audit", "--follow", "--json", "--save", file]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}"}
        with started(command, stdout=-1, stderr=-1, text=True, env=environment) as follower:
            assert follower.stdout and follower.stderr
            assert any("entries up to" in line for line in follower.stderr)  # it follows now
            work(client, 40, "k")
            raw.function_load(bundle.library({name: bundle.read(name).replace(right, wrong)}), True)
            try:
                client.queues["emails"].put("Send", {}, jid="late")
                client.queues["emails"].pop(1, worker="w")
            finally:
                raw.function_load(bundle.library(), True)
            found = json.loads(follower.stdout.readline())
            follower.terminate()
            out, err = follower.communicate(timeout=60)
        assert (found["kind"], '"op":"pop"' in found["call"]) == ("reply", True)
        assert follower.returncode == 1, err
        assert json.loads(out.splitlines()[-1])["all"] == 1
        work(client, 10, "l")
        done = CliRunner().invoke(cli, ["--url", url, "audit", "--from", file, "--json"])
        assert json.loads(done.stdout)["last"] == newest(client)


def test_a_follower_goes_on_with_entries_that_come_and_ends_when_told() -> None:
    client, audit, stop = journaled(20, "memory://following"), Audit(), threading.Event()
    looks = follow(client, audit, stop)
    first = next(looks)
    assert (first.number, first.differences) == (newest(client), ())
    client.queues["emails"].put("Send", {}, jid="more")
    while audit.number < newest(client):
        assert next(looks).differences == ()
    stop.set()
    assert list(looks) == []
