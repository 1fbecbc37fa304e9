"""An archive on an object store: two writers cannot both commit, and who is killed has lost and doubled nothing."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from qmodel import Client, connect
from tests.pipeline.archives import put
from tests.processes import started
from tests.servers import ROOT

pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `arrow`")
pytest.importorskip("fsspec", reason="fsspec is not installed; it comes with the extra `test`")

from qmodel.pipeline.archive import commit, read
from qmodel.pipeline.archive.commit import Overtaken, writing
from qmodel.pipeline.archive.compact import compact
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit
from qmodel.pipeline.archive.verify import verify
from qmodel.pipeline.archive.write import archive
from qmodel.pipeline.events.decode import events_of
from qmodel.pipeline.events.gaps import Gap

SPACE, DAYS = "spark:", ("2024-10-04", "2024-10-05")


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        client.config.set("max-events", 10**6)
        yield client


@pytest.fixture(params=["memory", "s3"])
def root(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def stored(root: str) -> list[int]:
    """List the sequences in all files that a plain reader of Parquet finds, in order."""
    import fsspec
    import pyarrow.parquet as pq

    found, path = fsspec.url_to_fs(root, use_listings_cache=False)
    files = [name for name in found.find(path) if name.endswith(".parquet")]
    return sorted(seq for name in files for seq in pq.read_table(name, filesystem=found).column("seq").to_pylist())


def finished(client: Client, url: str, root: str) -> None:
    """Archive the rest, and compare everything with the server."""
    list(archive(url, root))
    assert stored(root) == list(range(1, client.newest() + 1))
    assert next(verify(root)).whole


def test_events_are_archived_merged_read_and_verified(client: Client, url: str, root: str) -> None:
    for day in (20_000, 20_001):
        put(client, 30, day=day)
        list(archive(url, root, rows=10, together=2))
    finished(client, url, root)
    assert [(one.day, one.after) for one in compact(root, days=DAYS)] == [(day, 1) for day in DAYS]
    finished(client, url, root)
    assert sorted(event for table in read.read(root, SPACE) for event in events_of(table)) == list(client.events())
    listed = Archive(root).files(SPACE)
    list(compact(root, grace=0))
    assert Archive(root).files(SPACE) == listed
    assert Archive(root).commits(SPACE)[0] == []


def test_of_two_that_commit_at_once_one_is_overtaken(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Archive(root)
    with writing(there, SPACE) as one, writing(Archive(root), SPACE) as other:
        compare = commit.Writer._compare

        def meanwhile(self: commit.Writer, *args: Any) -> None:
            """Compare, and let another writer commit before this one does."""
            compare(self, *args)
            monkeypatch.setattr(commit.Writer, "_compare", compare)
            other.commit(other.begin(), Commit(holes=(Gap(1, 5),)))

        monkeypatch.setattr(commit.Writer, "_compare", meanwhile)
        with pytest.raises(Overtaken, match="commit 1 is of another one"):
            one.commit(one.begin(), Commit(holes=(Gap(1, 9),)))
    assert there.holes(SPACE) == [Gap(1, 5)]


def test_an_archiver_that_is_overtaken_goes_on_after_the_other_one(client: Client, url: str, root: str) -> None:
    put(client, 40)

    def overtaken(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Do the work, while another archiver commits the first events."""
        if Archive(root).last(SPACE) < 20:
            next(archive(url, root, rows=10, together=1))
        return list(map(work, items))

    assert [one.last for one in archive(url, root, run=overtaken, rows=15)] == [client.newest()]
    finished(client, url, root)


@pytest.mark.parametrize("every", [1, 10])
def test_the_objects_of_old_commits_are_removed(memory: str, monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """Also of those that came since the last compaction, however many these are."""
    monkeypatch.setattr(commit, "COMMITS_KEPT", 3)
    with writing(Archive(memory), SPACE) as writer:
        for number in range(1, 11):
            writer.commit(writer.begin(), Commit(holes=(Gap(number, number),)))
            if number % every == 0:
                writer.vacuum(0)
    names = sorted(name.rpartition("/")[2] for name in Archive(memory)._names("_commits"))
    assert names == [f"{number:012}.{end}" for number in (8, 9, 10) for end in ("done", "json")]


class Dies:
    """A store whose process dies before a chosen change."""

    left = 0

    def __init__(self, real: object) -> None:
        self.real = real

    def __getattr__(self, name: str) -> object:
        if name in ("create", "move", "create_dir", "delete_file", "delete_dir", "open_output_stream"):
            if Dies.left == 0:
                raise KeyboardInterrupt
            Dies.left -= 1
        return getattr(self.real, name)


@pytest.mark.parametrize("action", ["archive", "compact"])
def test_who_dies_before_any_change_has_lost_and_doubled_nothing(
    client: Client, url: str, memory: str, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    for day in (20_000, 20_001):
        put(client, 9, day)
        list(archive(url, memory, rows=4))
    if action == "archive":
        put(client, 12)
    before, start, last = Archive.__init__, dict(MemoryFileSystem.store), Archive(memory).last(SPACE)

    def init(self: Archive, root: str) -> None:
        before(self, root)
        self.fs, self.remote = Dies(self.fs), Dies(self.remote)  # type: ignore[assignment]

    for count in range(1000):
        MemoryFileSystem.store.clear()
        MemoryFileSystem.store.update(start)
        with monkeypatch.context() as patch:
            patch.setattr(Archive, "__init__", init)
            Dies.left = count
            try:
                list(archive(url, memory, rows=4) if action == "archive" else compact(memory))  # type: ignore[arg-type]
                break
            except KeyboardInterrupt:
                pass
        assert sum(file.rows for file in Archive(memory).files(SPACE)) == Archive(memory).last(SPACE) >= last
        assert next(verify(memory)).whole
        finished(client, url, memory)
    assert count > 10


def counted(root: str) -> int:
    """Count the events with DuckDB, as `qmodel statistics` does; each is there once."""
    pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `test`")
    from qmodel.pipeline.statistics.local import DuckDB
    from qmodel.pipeline.statistics.runs import again_if_merged

    with DuckDB(memory="500MB", threads=1) as engine:

        def rows() -> tuple[int, int]:
            there = Archive(root)
            engine.events("archived", there, there.files(SPACE))
            return engine.rows("select count(*), max(seq) from archived")[0][:2]  # type: ignore[return-value]

        count, last = again_if_merged(rows)
    assert count == last
    return count


@pytest.mark.long
def test_archivers_and_a_compactor_on_s3_are_killed_beside_a_reader(client: Client, url: str, s3: str) -> None:
    chance, seen = random.Random(5), 0
    adds = f"while True:\n    for one in archive({url!r}, {s3!r}, rows=20, together=1): pass"
    merges = f"while True:\n    for one in compact({s3!r}, days={DAYS!r}): pass"
    code = "from qmodel.pipeline.archive.{0} import {1}\n"
    code += "print(flush=True)\n{2}"
    works = [code.format("write", "archive", adds)] * 2 + [code.format("compact", "compact", merges)]
    put(client, 60, day=20_000)
    list(archive(url, s3, rows=20, together=1))
    for _ in range(2):
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}"}
        with ExitStack() as stack:
            processes = [
                stack.enter_context(started([sys.executable, "-c", work], stdout=-1, env=environment)) for work in works
            ]
            assert all(one.stdout and one.stdout.readline() for one in processes)
            for _ in range(chance.randint(1, 3)):
                put(client, 40, day=20_001)
                seqs = [seq for table in read.read(s3, SPACE) for seq in table.column("seq").to_pylist()]
                assert seqs == list(range(1, len(seqs) + 1)) and len(seqs) >= seen
                seen = len(seqs)
                assert counted(s3) >= seen
            for one in chance.sample(processes, 3):
                one.kill()
    finished(client, url, s3)


def test_a_url_that_nothing_opens_is_refused_in_a_sentence() -> None:
    with pytest.raises(ArchiveError, match=r"nosuch://x cannot hold an archive: .* Give a folder, or a URL"):
        Archive("nosuch://x")
