"""Acknowledged operations survive any crash, and none in part; a damaged journal is refused with an error message."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import qmodel
from qmodel.backends.bundle import function_name
from qmodel.conformance.compare.runner import draw
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.contract.operations import CATALOGUE, BeginEpoch, Complete, Multiget, Pop, Queue
from qmodel.errors import Forked
from qmodel.model import copies, engine, restore, snapshot
from qmodel.model.state.store import Store
from qmodel.serve import snapshot_bytes
from qmodel.serve.disk import Disk
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.journal import DamagedError, Journal, JournalError
from qmodel.serve.namespaces import Spaces
from qmodel.wire import as_json, codec
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
    try:
        journal.recover(executor.spaces, executor.replay)
    except BaseException:
        journal.close()
        raise
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


def test_a_call_that_only_the_strict_reader_reads_is_replayed(tmp_path: Path) -> None:
    """One with an option that is given twice, say."""
    journal, executor = opened(tmp_path)
    words = ["", "r", "q", "a", "K", "{}", "priority", "1", "priority", "2"]
    assert executor.call(0, CATALOGUE["put"], PREFIX, words, 0) == "a"
    journal.commit()
    journal.close()
    again, restored = opened(tmp_path)
    assert restored.spaces.of(0, PREFIX).store.jobs["a"].priority == 2
    assert same(executor.spaces, restored.spaces)
    again.close()


def test_an_entry_with_an_argument_that_this_version_refuses_is_refused_with_a_sentence(tmp_path: Path) -> None:
    journal, executor = opened(tmp_path)
    executor.call(0, CATALOGUE["put"], PREFIX, ["", "r", "q", "a", "K", "{}"], 0)
    journal.operation(executor.spaces.of(0, PREFIX), "put", 5, ["r2", "q", "b", "K", "{}", "later_option", "1"])
    journal.commit()
    journal.close()
    with pytest.raises(JournalError, match="this version refuses its argument option"):
        opened(tmp_path)


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
    """Make a folder with a snapshot, and a log of some commits, as a killed server leaves it."""
    journal, executor = opened(folder)
    for number, (name, words) in enumerate(calls(3, 60)):
        executor.call(number % 2, CATALOGUE[name], PREFIX, words, 0)
        if number == 20:
            journal.snapshot(executor.spaces)
        elif number % 6 == 5 and journal.dirty:
            journal.commit()
    if journal.dirty:
        journal.commit()
    journal.close()
    return folder


def read_anew(folder: Path) -> ModelExecutor:
    journal, found = opened(folder)
    journal.close()
    return found


def rewritten(folder: Path, **changed: Any) -> None:
    """Write the manifest with other values, and a checksum that fits."""
    manifest = json.loads((folder / "manifest").read_bytes().splitlines()[0]) | changed
    body = json.dumps(manifest).encode()
    (folder / "manifest").write_bytes(body + b"\n" + hashlib.sha256(body).hexdigest().encode() + b"\n")


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    rewritten(written(tmp_path), format=9)
    with pytest.raises(JournalError, match="has format 9"):
        opened(tmp_path)


def test_the_format_of_an_earlier_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite3").write_bytes(b"SQLite format 3")
    with pytest.raises(JournalError, match="the format of an earlier build"):
        opened(tmp_path)


def test_entries_that_come_out_differently_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    right = ModelExecutor.replay
    monkeypatch.setattr(ModelExecutor, "replay", lambda executor, entry: right(executor, entry) + 1)
    with pytest.raises(JournalError, match="gave event"):
        opened(tmp_path)


# ---- damage: either everything acknowledged is there, or the start is refused


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Spaces]:
    """A folder as a killed server leaves it, and its state."""
    folder = written(tmp_path_factory.mktemp("kept"))
    return folder, read_anew(shutil.copytree(folder, folder.with_name("read"))).spaces


FILES = ("manifest", "snapshot-2", "log-2", "mark-2")


def survives(kept: tuple[Path, Spaces], folder: Path, name: str, raw: bytes | None) -> bool:
    """Replace a file, and start: say whether it starts; what it starts with must be everything."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept[0], folder)
    (folder / name).unlink() if raw is None else (folder / name).write_bytes(raw)
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    try:
        found = read_anew(folder)
    except DamagedError as error:
        assert name.rpartition("-")[0] in str(error) and "--salvage" in str(error) and "Readable are" in str(error)
        after = {one.name: one.read_bytes() for one in folder.iterdir()}
        assert {**before, "lock": b""} == {**after, "lock": b""}, "a refused start changes nothing"
        return False
    assert same(kept[1], found.spaces), "acknowledged work was lost silently"
    return True


def test_the_files_are_these(kept: tuple[Path, Spaces], tmp_path: Path) -> None:
    assert {one.name for one in kept[0].iterdir()} == {*FILES, "lock"}
    assert all(survives(kept, tmp_path / "x", name, (kept[0] / name).read_bytes()) for name in FILES)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("bit", [1, 32, 128])
def test_a_flipped_bit_is_noticed_wherever_it_is(
    kept: tuple[Path, Spaces], tmp_path: Path, name: str, bit: int
) -> None:
    raw = (kept[0] / name).read_bytes()
    step = max(1, len(raw) // 150)
    started = []
    for at in {*range(0, len(raw), step), *range(max(0, len(raw) - 40), len(raw))}:
        broken = bytearray(raw)
        broken[at] ^= bit
        started.append(survives(kept, tmp_path / "x", name, bytes(broken)))
    assert all(started) if name.startswith("mark") else not any(started), "only the mark is there twice"


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_cut_is_noticed_wherever_it_is_cut(kept: tuple[Path, Spaces], tmp_path: Path, name: str) -> None:
    raw = (kept[0] / name).read_bytes()
    step = max(1, len(raw) // 150)
    cuts = {*range(0, len(raw), step), *range(max(0, len(raw) - 40), len(raw))}
    started = {at for at in cuts if survives(kept, tmp_path / "x", name, raw[:at])}
    assert started == ({at for at in cuts if at >= 512} if name.startswith("mark") else set())


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_removed_or_emptied_is_noticed(kept: tuple[Path, Spaces], tmp_path: Path, name: str) -> None:
    assert not survives(kept, tmp_path / "x", name, None)
    assert not survives(kept, tmp_path / "x", name, b"")


def test_a_short_log_without_manifest_and_mark_is_noticed(tmp_path: Path) -> None:
    journal, executor = opened(tmp_path)
    executor.call(0, CATALOGUE["put"], PREFIX, ["5", "r", "q", "a", "K", ""], 0)
    journal.commit()
    journal.close()
    for name in ("manifest", "mark-1"):
        (tmp_path / name).unlink()
    with pytest.raises(DamagedError, match="manifest is missing"):
        opened(tmp_path)


@pytest.mark.parametrize("name", FILES)
def test_pieces_in_another_order_or_twice_lose_nothing(kept: tuple[Path, Spaces], tmp_path: Path, name: str) -> None:
    raw = (kept[0] / name).read_bytes()
    lines = raw.splitlines(keepends=True)
    pieces = [raw[at : at + 64] for at in range(0, len(raw), 64)]
    for parts in (lines, pieces):
        for at in range(0, len(parts) - 1, max(1, len(parts) // 40)):
            survives(kept, tmp_path / "x", name, b"".join([*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]))
            survives(kept, tmp_path / "x", name, b"".join([*parts[: at + 1], *parts[at:]]))
            survives(kept, tmp_path / "x", name, b"".join([*parts[:at], *parts[at + 1 :]]))
    survives(kept, tmp_path / "x", name, raw + raw)


def test_files_of_another_folder_or_of_another_time_are_noticed(kept: tuple[Path, Spaces], tmp_path: Path) -> None:
    journal, executor = opened(shutil.copytree(kept[0], tmp_path / "later"))
    for jid in ("x", "y"):
        executor.call(0, CATALOGUE["put"], PREFIX, ["5", "", "q", jid, "k", ""], 0)
        journal.commit()
    journal.close()
    for name in ("log-2", "mark-2"):
        mixed = shutil.copytree(tmp_path / "later", tmp_path / f"mixed-{name}")
        (mixed / name).write_bytes((kept[0] / name).read_bytes())
        if name == "log-2":
            with pytest.raises(DamagedError, match="bytes were acknowledged"):
                read_anew(mixed)
        else:
            assert same(executor.spaces, read_anew(mixed).spaces)
    journal, executor = opened(shutil.copytree(kept[0], tmp_path / "next"))
    journal.snapshot(executor.spaces)
    journal.close()
    (tmp_path / "next" / "manifest").write_bytes((kept[0] / "manifest").read_bytes())
    with pytest.raises(DamagedError, match="snapshot-2 is missing"):
        read_anew(tmp_path / "next")


def test_a_torn_tail_is_cut_off_and_logged_wherever_it_is_torn(
    kept: tuple[Path, Spaces], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A crash during a commit leaves any part of it, also one with holes; its replies were not sent."""
    log, mark = kept[0] / "log-2", (kept[0] / "mark-2").read_bytes()
    journal, executor = opened(shutil.copytree(kept[0], tmp_path / "later"))
    for jid in ("x", "y", "z"):
        executor.call(0, CATALOGUE["put"], PREFIX, ["5", "", "q", jid, "k", ""], 0)
    journal.commit()
    journal.close()
    raw, length = (tmp_path / "later" / "log-2").read_bytes(), log.stat().st_size
    holes = raw[: length + 30] + b"\0" * 50 + raw[length + 80 :]
    for torn in [raw[:at] for at in range(length + 1, len(raw), 7)] + [holes]:
        caplog.clear()
        folder = shutil.copytree(kept[0], tmp_path / "x")
        (folder / "log-2").write_bytes(torn)
        (folder / "mark-2").write_bytes(mark)
        assert same(kept[1], read_anew(folder).spaces)
        assert "never acknowledged" in caplog.text
        assert (folder / "log-2").read_bytes() == log.read_bytes()
        shutil.rmtree(folder)


def test_damage_behind_an_old_mark_is_noticed_if_a_later_commit_is_whole(
    kept: tuple[Path, Spaces], tmp_path: Path
) -> None:
    """A power failure may leave an old mark: it does not wait for the disk."""
    journal, executor = opened(shutil.copytree(kept[0], tmp_path / "x"))
    for jid in ("x", "y", "z"):
        executor.call(0, CATALOGUE["put"], PREFIX, ["5", "", "q", jid, "k", ""], 0)
        journal.commit()
    journal.close()
    (tmp_path / "x" / "mark-2").write_bytes((kept[0] / "mark-2").read_bytes())
    assert same(executor.spaces, read_anew(shutil.copytree(tmp_path / "x", tmp_path / "y")).spaces)
    raw = bytearray((tmp_path / "x" / "log-2").read_bytes())
    raw[(kept[0] / "log-2").stat().st_size + 20] ^= 1
    (tmp_path / "x" / "log-2").write_bytes(raw)
    with pytest.raises(DamagedError, match="log-2 does not match its checksum after byte"):
        read_anew(tmp_path / "x")


def crashing(after: int) -> Callable[[int], None]:
    """Make an fsync that works some times, and then fails in a way that nobody handles."""
    left, real = iter(range(after)), os.fsync
    return lambda file: real(file) if next(left, None) is not None else 1 // 0  # type: ignore[return-value]


@pytest.mark.parametrize("crash", range(9))
def test_a_crash_during_a_snapshot_leaves_one_generation(
    kept: tuple[Path, Spaces], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: int
) -> None:
    """Stop at each wait for the disk of a snapshot, also of the first one of a new folder."""
    for begun in (kept[0], None):
        folder = tmp_path / f"x-{begun is None}"
        shutil.copytree(kept[0], folder) if begun else folder.mkdir()
        with monkeypatch.context() as patched, contextlib.suppress(ZeroDivisionError):
            patched.setattr("os.fsync", crashing(crash + (2 if begun else 0)))
            journal, executor = opened(folder)
            journal.snapshot(executor.spaces)
        again = shutil.copytree(folder, tmp_path / f"again-{begun is None}")
        assert same(kept[1] if begun else Spaces(lambda *_: None), read_anew(again).spaces)


# ---- salvage


def salvaged(folder: Path) -> ModelExecutor:
    journal, executor = Journal(str(folder)), ModelExecutor()
    journal.salvage(executor.spaces, executor.replay)
    journal.close()
    assert same(executor.spaces, read_anew(folder).spaces)
    return executor


@pytest.mark.parametrize("name", ["manifest", "mark-2"])
def test_without_manifest_or_mark_a_salvage_loses_nothing(kept: tuple[Path, Spaces], tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(kept[0], tmp_path / "x")
    (folder / name).unlink()
    assert same(kept[1], salvaged(folder).spaces)
    (aside,) = folder.glob("damaged-*")
    assert {one.name for one in aside.iterdir()} == {*FILES, "jobs.jsonl"} - {name}


def test_a_salvage_replays_the_log_up_to_the_damage(kept: tuple[Path, Spaces], tmp_path: Path) -> None:
    folder = shutil.copytree(kept[0], tmp_path / "x")
    raw = bytearray((folder / "log-2").read_bytes())
    raw[-30] ^= 1
    (folder / "log-2").write_bytes(raw)
    found = salvaged(folder)
    assert 0 < sum(one.store.seq for one in found.spaces) < sum(one.store.seq for one in kept[1])
    (aside,) = folder.glob("damaged-*")
    assert (aside / "log-2").read_bytes() == raw


def test_a_salvage_keeps_the_namespaces_that_are_whole_and_the_jobs_of_others(tmp_path: Path) -> None:
    journal, executor = opened(tmp_path)
    for db in (0, 1):
        for number in range(1500):
            executor.call(db, CATALOGUE["put"], PREFIX, ["5", "", "q", f"j{number}", "k", "{}"], 0)
    journal.snapshot(executor.spaces)
    journal.close()
    raw = bytearray((tmp_path / "snapshot-2").read_bytes())
    raw[-200] ^= 1
    (tmp_path / "snapshot-2").write_bytes(raw)
    with pytest.raises(DamagedError, match=r"part 3 of 3 of the namespace 'ql:' of database 1"):
        read_anew(tmp_path)
    assert [len(one.store.jobs) for one in salvaged(tmp_path).spaces] == [1500]
    (aside,) = tmp_path.glob("damaged-*")
    lines = (aside / "jobs.jsonl").read_text().splitlines()
    assert len(lines) == 1000 and json.loads(lines[0])["jid"] == "j0"


@pytest.mark.parametrize("name", FILES)
def test_a_salvage_stands_any_damage(kept: tuple[Path, Spaces], tmp_path: Path, name: str) -> None:
    """It starts, keeps the damaged file, and never has more than there was; the next start has the same."""
    raw, events = (kept[0] / name).read_bytes(), sum(one.store.seq for one in kept[1])
    broken = [None, b"", b"\n", b"\xff" * 2000, raw + raw]
    for at in range(0, len(raw), max(1, len(raw) // 15)):
        broken += [raw[:at], raw[:at] + bytes([raw[at] ^ 4]) + raw[at + 1 :], raw[at:] + raw[:at]]
    for number, one in enumerate(broken):
        folder = shutil.copytree(kept[0], tmp_path / str(number))
        (folder / name).unlink() if one is None else (folder / name).write_bytes(one)
        assert sum(one.store.seq for one in salvaged(folder).spaces) <= events
        (aside,) = folder.glob("damaged-*")
        assert one is None or (aside / name).read_bytes() == one
        shutil.rmtree(folder)


def test_a_salvage_that_cannot_copy_changes_nothing(
    kept: tuple[Path, Spaces], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(kept[0], tmp_path / "x")
    (folder / "mark-2").unlink()
    before = {one.name: one.read_bytes() for one in folder.iterdir() if one.name != "lock"}

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("shutil.copy2", full)
        journal, executor = Journal(str(folder)), ModelExecutor()
        with pytest.raises(JournalError, match="cannot be copied: No space left"):
            journal.salvage(executor.spaces, executor.replay)
        journal.close()
    assert before == {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and one.name != "lock"}
    assert same(kept[1], salvaged_again(folder).spaces)


def salvaged_again(folder: Path) -> ModelExecutor:
    """Salvage, beside what a salvage that was interrupted has left."""
    journal, executor = Journal(str(folder)), ModelExecutor()
    journal.salvage(executor.spaces, executor.replay)
    journal.close()
    return executor


def test_a_damaged_folder_is_refused_and_salvaged_on_the_command_line(tmp_path: Path) -> None:
    written(tmp_path)
    os.truncate(tmp_path / "log-2", 300)
    code, said = run_to_its_end("--data", str(tmp_path))
    assert code == 69 and "log-2 ends at byte 300" in said and "--salvage" in said
    with serving("--data", str(tmp_path), "--salvage") as server:
        assert "The damaged files are in" in server.errors
        Path(f"{server.folder}/errors").write_text("")
        with server.client() as client:
            assert client.ping()


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
                asked = Pop(name, "w", 10)
                popped = codec.decode(asked, client.fcall("qmodel_v1_pop", 1, PREFIX, *codec.encode(asked)))
                with client.pipeline(transaction=True) as asking:
                    for job in popped:
                        asking.fcall("qmodel_v1_complete", 1, PREFIX, "", "", job.jid, job.token)
                    asking.execute()
                self.completed |= {job.jid for job in popped}
        except Exception:
            return


def check(server: Any, clients: list[Busy]) -> None:
    """Check that every acknowledged put and completion is there, and nothing that was not sent."""
    with server.client() as client:
        for one in clients:
            jids = sorted(one.unknown)
            states: dict[str, str] = {}
            for at in range(0, len(jids), 500):
                wanted = Multiget(tuple(jids[at : at + 500]))
                raw = client.fcall("qmodel_v1_multiget", 1, PREFIX, *codec.encode(wanted))
                states |= {job.jid: job.state for job in codec.decode(wanted, raw)}
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
        (log,) = tmp_path.glob("log-*")
        assert len(log.read_bytes().splitlines()) == 1, "a clean stop leaves a snapshot"
        server.start()
        check(server, clients)


def begun(store: Store, found: snapshot.Snapshot) -> snapshot.Snapshot:
    """A store with the epoch that the server began when it was started again."""
    again = copies.copy(store)
    if found.epoch != again.epoch:
        now = as_json.read(found.journal[-1][2])[0] if found.journal else 0
        engine.step(again, now, BeginEpoch(found.epoch))
    return snapshot.of(again)


def test_a_server_that_lost_the_end_of_its_log_issues_nothing_twice(tmp_path: Path) -> None:
    """Cut the log to an earlier length, as a restored backup does, and let the server claim the same job again."""
    with serving("--data", str(tmp_path)) as server:
        with qmodel.connect(server.url) as client:
            client.queues["q"].put("K", jid="a")
            (log,) = tmp_path.glob("log-*")
            (mark,) = tmp_path.glob("mark-*")
            kept = {path: path.read_bytes() for path in (log, mark)}
            lost = client.execute(Pop("q", "w"))[0].token
            read = list(client.events())
        server.kill()
        for path, raw in kept.items():
            path.write_bytes(raw)
        server.start()
        with qmodel.connect(server.url) as client:
            with pytest.raises(qmodel.LockLost):
                client.execute(Complete("a", lost))
            assert client.execute(Pop("q", "w"))[0].token != lost
            with pytest.raises(Forked):
                list(client.events(read[-1].seq, epoch=read[-1].epoch))
            ours = {(one.epoch, one.seq): one for one in read}
            assert all(ours.get((one.epoch, one.seq), one) == one for one in client.events())


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
            possible.append(snapshot.difference(begun(executor.spaces.look(0, PREFIX).store, found), found) == [])
        executor.call(0, spec, PREFIX, words, 0)
    assert any(possible), (answered, sent)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limit of a running process can be set on Linux only")
class FullDisk(Disk):
    """A disk without room."""

    def write(self, file: int, raw: bytes, at: int) -> None:
        raise OSError(28, "No space left on device")


def test_a_start_on_a_full_disk_is_refused_with_a_sentence(tmp_path: Path) -> None:
    journal, executor = opened(tmp_path)
    executor.call(0, CATALOGUE["put"], PREFIX, ["", "r", "q", "j", "k", ""], 0)
    journal.commit()
    journal.close()
    full = Journal(str(tmp_path), disk=FullDisk())
    with pytest.raises(JournalError, match="cannot be written: No space left on device"):
        full.recover(Spaces(lambda space, queue: None), lambda entry: entry[3])


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
            there = client.fcall("qmodel_v1_length", 1, PREFIX, "", "", "q")
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
