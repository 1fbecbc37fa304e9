"""Acknowledged operations survive any crash, and none in part; a damaged journal is refused with an error message."""

from __future__ import annotations

import contextlib
import random
import resource
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from qmodel.backends.bundle import function_name
from qmodel.conformance.compare.runner import draw
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.contract.operations import CATALOGUE, Queue
from qmodel.model import restore, snapshot
from qmodel.model.state.store import Store
from qmodel.serve import snapshot_bytes
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.journal import FILE, Journal, JournalError
from qmodel.serve.namespaces import Spaces
from qmodel.wire import codec
from tests.serve.support import eventually, run_to_its_end, serving

PREFIX = "ql:"


def calls(seed: int, steps: int) -> Iterator[tuple[str, list[str]]]:
    """Convert a history to calls that the library accepts."""
    for now, op in draw(RandomChooser(seed), steps):
        try:
            yield op.spec.name, codec.encode(op, now)
        except codec.Unencodable:
            continue


def opened(folder: Path, every: int = 1000) -> tuple[Journal, ModelExecutor]:
    journal, executor = Journal(str(folder), every), ModelExecutor()
    journal.recover(executor.spaces, executor.replay)
    executor.log = journal
    return journal, executor


def same(a: Spaces, b: Spaces) -> bool:
    """Whether two servers have the same state, including events."""
    ours, theirs = ({(s.db, s.prefix): s.store for s in one if s.store.seq or s.store.queues} for one in (a, b))
    return ours.keys() == theirs.keys() and all(
        snapshot.difference(snapshot.of(ours[key]), snapshot.of(theirs[key])) == []
        and list(ours[key].events) == list(theirs[key].events)
        for key in ours
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_store_is_restored_as_it_was(seed: int) -> None:
    executor, again = ModelExecutor(), Store()
    for name, words in calls(seed, 200):
        executor.call(0, CATALOGUE[name], PREFIX, words, 0)
    store = executor.spaces.of(0, PREFIX).store
    for number, part in enumerate(snapshot_bytes.parts(store)):
        snapshot_bytes.restore(again, number, part)
    assert snapshot.difference(snapshot.of(store), snapshot.of(again)) == []
    assert list(store.events) == list(again.events)
    assert all(type(getattr(store, name)) is type(getattr(again, name)) for name in Store.__slots__)


def test_a_snapshot_cannot_call_anything() -> None:
    import os
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    with pytest.raises(ValueError, match="not a class of the state"):
        snapshot_bytes.restore(Store(), 1, pickle.dumps([Evil()]))


def test_what_a_newer_version_has_added_gets_the_value_of_a_new_object() -> None:
    executor, again = ModelExecutor(), Store()
    executor.call(0, CATALOGUE["put"], PREFIX, ["5", "", "q", "j", "k", ""], 0)
    store = executor.spaces.of(0, PREFIX).store
    del store.jobs["j"].progress, store.queues["q"].wakes
    for number, part in enumerate(snapshot_bytes.parts(store)):
        snapshot_bytes.restore(again, number, part)
    assert (again.jobs["j"].progress, again.queues["q"].wakes) == ("", 0)


@pytest.mark.parametrize("seed", range(12))
def test_a_journal_cut_anywhere_gives_what_was_committed(seed: int, tmp_path: Path) -> None:
    """Make commits of random length, and copy the folder after each, as a crash would leave it."""
    chance = random.Random(seed)
    journal, executor = opened(tmp_path / "a", every=60)
    for number, (name, words) in enumerate(calls(seed, 150)):
        executor.call(chance.randrange(2), CATALOGUE[name], chance.choice((PREFIX, "other:")), words, 0)
        if chance.random() < 0.05:
            executor.clear(chance.randrange(2))
        if chance.random() < 0.3 and journal.dirty:
            journal.commit()
            if journal.is_long(executor.spaces):
                journal.snapshot(executor.spaces)
            shutil.copytree(tmp_path / "a", tmp_path / str(number))
            again, found = opened(tmp_path / str(number))
            assert same(executor.spaces, found.spaces)
            again.close()
    journal.close()


def test_what_was_not_committed_is_gone_as_a_whole(tmp_path: Path) -> None:
    journal, executor = opened(tmp_path / "a")
    executor.call(0, CATALOGUE["put"], PREFIX, ["5", "", "q", "one", "k", ""], 0)
    journal.commit()
    executor.call(0, CATALOGUE["put"], PREFIX, ["5", "", "q", "two", "k", ""], 0)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    _, found = opened(tmp_path / "b")
    assert list(found.spaces.of(0, PREFIX).store.jobs) == ["one"]


# ---- refusals


def written(folder: Path) -> Path:
    """Make a folder with a journal of some operations."""
    journal, executor = opened(folder)
    for name, words in calls(3, 60):
        executor.call(0, CATALOGUE[name], PREFIX, words, 0)
    journal.commit()
    journal.close()
    return folder / FILE


def change(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("PRAGMA user_version = 9", "has format 9"),
        ("PRAGMA application_id = 5", "is not a journal of qmodel"),
        (
            "UPDATE entries SET entry = replace(entry, 'operation', 'operatiom') WHERE id = 7",
            "does not match its checksum",
        ),
        ("DROP TABLE snapshot", "is damaged: no such table"),
        ("DELETE FROM entries WHERE id = 1", "is damaged: entry 2 was found instead of entry 1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(tmp_path: Path, statement: str, sentence: str) -> None:
    change(written(tmp_path), statement)
    with pytest.raises(JournalError, match=sentence):
        opened(tmp_path)


def test_pages_that_were_overwritten_are_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[4096:12288] = b"\xff" * 8192
    path.write_bytes(raw)
    with pytest.raises(JournalError, match="is damaged"):
        opened(tmp_path)


def test_entries_that_come_out_differently_are_refused(tmp_path: Path) -> None:
    import json
    import zlib

    path = written(tmp_path)
    with sqlite3.connect(path) as db:
        text = db.execute("SELECT entry FROM entries ORDER BY id DESC LIMIT 1").fetchone()[0]
        entry = json.loads(text)
        entry[3] += 1
        text = json.dumps(entry)
        last = "(SELECT max(id) FROM entries)"
        db.execute(f"UPDATE entries SET entry = ?, crc = ? WHERE id = {last}", (text, zlib.crc32(text.encode())))
    db.close()
    with pytest.raises(JournalError, match="gave event"):
        opened(tmp_path)


def test_a_journal_that_somebody_reads_is_not_called_damaged(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(written(tmp_path))) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="Another program has the journal"):
            opened(tmp_path)


def test_a_folder_is_for_one_server(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with serving("--data", data) as server:
        assert server.process is not None
        code, said = run_to_its_end("--data", data)
        assert code == 69 and f"Another server (process {server.process.pid}) has the folder" in said


def test_only_the_model_is_kept() -> None:
    code, said = run_to_its_end("--data", "/nonexistent", "--url", "embedded://")
    assert code == 69 and "--data works with memory:// only" in said


# ---- crashes


class Busy(threading.Thread):
    """A client that puts, pops and completes in pipelines, and records which operations were acknowledged."""

    def __init__(self, server: Any, number: int) -> None:
        super().__init__(daemon=True)
        self.server, self.number = server, number
        self.put: set[str] = set()
        self.completed: set[str] = set()
        self.unknown: set[str] = set()

    def run(self) -> None:
        name = f"q{self.number}"
        client = self.server.client()
        try:
            for round_ in range(10_000):
                jids = [f"{self.number}-{round_}-{i}" for i in range(20)]
                self.unknown |= set(jids)
                with client.pipeline(transaction=False) as asking:
                    for jid in jids:
                        asking.fcall("qmodel_v1_put", 1, PREFIX, "", "r" + jid, name, jid, "k", "{}")
                    asking.execute()
                self.put |= set(jids)
                popped = client.fcall("qmodel_v1_pop", 1, PREFIX, "", "", name, "w", "count", "10")[1]
                with client.pipeline(transaction=True) as asking:
                    for job in popped:
                        token = job[2].split(b"\t")[9]
                        asking.fcall("qmodel_v1_complete", 1, PREFIX, "", "", job[0], token)
                    asking.execute()
                self.completed |= {job[0].decode() for job in popped}
        except Exception:
            return


def check(server: Any, clients: list[Busy]) -> None:
    """Check that every acknowledged put and completion is there, and nothing that was not sent."""
    with server.client() as client:
        for one in clients:
            jids = sorted(one.unknown)
            states: dict[str, str] = {}
            for at in range(0, len(jids), 500):
                words = [word for jid in jids[at : at + 500] for word in ("jids", jid)]
                for job in client.fcall("qmodel_v1_multiget", 1, PREFIX, "", "", *words)[1]:
                    states[job[0].decode()] = job[1].decode()
            assert one.put <= states.keys()
            assert all(states[jid] == "complete" for jid in one.completed)
            counts = codec.decode(Queue("q"), client.fcall("qmodel_v1_queue", 1, PREFIX, "", "", f"q{one.number}"))
            open_ = sum(state != "complete" for state in states.values())
            assert counts.waiting + counts.running + counts.stalled == open_
            assert sum(state == "complete" for state in states.values()) % 10 == 0, "EXEC is all or nothing"


@pytest.mark.parametrize("seed", range(4))
def test_after_kill_9_every_acknowledged_operation_is_there(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    clients: list[Busy] = []
    with serving("--data", str(tmp_path), "--snapshot-every", "500") as server:
        for turn in range(3):
            new = [Busy(server, len(clients) + i) for i in range(3)]
            clients += new
            for one in new:
                one.start()
            enough = chance.randint(0, 400)
            eventually(lambda new=new, enough=enough: sum(len(one.put) for one in new) >= enough)  # type: ignore[misc]
            if turn == 2:
                eventually(lambda clients=clients: any(one.completed for one in clients))  # type: ignore[misc]
            server.kill()
            for one in new:
                one.join(60)
            server.start()
            check(server, clients)
        assert any(one.completed for one in clients)
        server.stop()
        with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db:
            assert db.execute("SELECT count(*) FROM entries").fetchone() == (0,), "a clean stop leaves a snapshot"
        server.start()
        check(server, clients)


@pytest.mark.parametrize("seed", range(6))
def test_after_kill_9_the_state_is_that_of_the_model_after_some_prefix(seed: int, tmp_path: Path) -> None:
    """One client sends a generated history in pipelines. After the crash the state is the model's state after some
    operation between the last answered one and the last sent one."""
    chance = random.Random(seed)
    history = [(CATALOGUE[name], words) for name, words in calls(seed, 1500)]
    with serving("--data", str(tmp_path), "--snapshot-every", "300") as server:
        answered, sent = 0, 0
        with server.line() as line, contextlib.suppress(OSError):
            killing = threading.Timer(chance.uniform(0.01, 0.25), server.kill)
            killing.start()
            reader = line.makefile("rb")
            while sent < len(history):
                chunk = history[sent : sent + chance.randint(1, 25)]
                sent += len(chunk)
                line.sendall(b"".join(packed(spec.name, words) for spec, words in chunk))
                for _ in chunk:
                    read_reply(reader)
                    answered += 1
        killing.join()
        server.start()
        with server.client() as client:
            found = restore.loads(client.execute_command("DEBUG", "QMODEL", "SNAPSHOT", PREFIX))
    executor = ModelExecutor()
    possible = []
    for number, (spec, words) in enumerate([*history[:sent], (CATALOGUE["length"], ["", "", "q"])]):
        if number >= answered:
            possible.append(snapshot.difference(snapshot.of(executor.spaces.look(0, PREFIX).store), found) == [])
        executor.call(0, spec, PREFIX, words, 0)
    assert any(possible), (answered, sent)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of a running process can be set on Linux only")
def test_when_the_disk_is_full_nobody_is_answered_and_what_was_answered_is_there(tmp_path: Path) -> None:
    put = set()
    with serving("--data", str(tmp_path)) as server:
        assert server.process is not None
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (400_000, 400_000))
        with server.client() as client, pytest.raises(redis.ConnectionError):
            for number in range(10_000):
                jid = f"j{number}"
                client.fcall("qmodel_v1_put", 1, PREFIX, "", f"r{number}", "q", jid, "K", "x" * 1000)
                put.add(jid)
        assert server.process.wait(60) == 69
        assert "cannot be written" in server.errors
        Path(f"{server.folder}/errors").write_text("")
        server.start()
        with server.client() as client:
            there = client.fcall("qmodel_v1_length", 1, PREFIX, "", "", "q")[1]
            last = client.fcall("qmodel_v1_get", 1, PREFIX, "", "", f"j{len(put) - 1}")[1]
        assert put and there in (len(put), len(put) + 1) and last is not None


def packed(name: str, words: list[str]) -> bytes:
    """Encode a call for sending."""
    parts = [word.encode() for word in ("FCALL", function_name(name), "1", PREFIX, *words)]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def read_reply(reader: Any) -> None:
    """Skip one reply. Raises ConnectionError if the connection ends."""
    head = reader.readline()
    if not head.endswith(b"\r\n"):
        raise ConnectionError
    assert head[:1] in b"*$:+", head
    if head[:1] == b"*":
        for _ in range(int(head[1:])):
            read_reply(reader)
    elif head[:1] == b"$" and int(head[1:]) >= 0 and len(reader.read(int(head[1:]) + 2)) < int(head[1:]) + 2:
        raise ConnectionError
