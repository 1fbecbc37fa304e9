"""What is archived is each event once, however often somebody was killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel import Client, connect
from qmodel import operations as ops
from qmodel.pipeline.gaps import EventsGone, Gap, SequenceWentBack
from tests.servers import Server

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `arrow`")
pq = pytest.importorskip("pyarrow.parquet")

from qmodel.pipeline import archive as layout  # noqa: E402
from qmodel.pipeline.archive import Archive, ArchiveError, Commit  # noqa: E402
from qmodel.pipeline.archiving import archive  # noqa: E402
from qmodel.pipeline.committing import writing  # noqa: E402
from qmodel.pipeline.decoding import events_of  # noqa: E402

DAY_MS = 86_400_000


@pytest.fixture
def url(spark_server: Server) -> str:
    spark_server.client().flushdb()
    return f"{spark_server.url}?prefix=kept:"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        yield client


def put(client: Client, count: int, day: int = 20_000) -> None:
    """Some jobs of three queues, put on a day since 1970."""
    for number in range(count):
        client.execute(ops.Put(f"q{number % 3}", f"{client.newest()}", "Send", ""), now=day * DAY_MS + number)


def stored(root: Path) -> list[int]:
    """The sequences in all files that a plain reader finds, in their order."""
    found = [seq for path in root.rglob("*.parquet") for seq in pq.ParquetFile(path).read().column("seq").to_pylist()]
    return sorted(found)


def test_an_archive_has_the_events_as_they_were_by_day_and_sorted_by_queue(
    client: Client, url: str, tmp_path: Path
) -> None:
    put(client, 20, day=20_000)
    put(client, 20, day=20_001)
    progress = list(archive(url, str(tmp_path), rows=15, together=2))
    assert [(one.last, one.rows) for one in progress] == [(30, 30), (client.newest(), client.newest() - 30)]
    files = layout.files(str(tmp_path))
    assert {(file.namespace, file.day) for file in files} == {("kept:", "2024-10-04"), ("kept:", "2024-10-05")}
    table = pa.concat_tables([pq.ParquetFile(file.path).read() for file in files])
    assert sorted(events_of(table)) == list(client.events())
    queues = pq.ParquetFile(files[0].path).read().column("queue").to_pylist()
    assert queues == sorted(queues, key=lambda queue: (queue is None, queue))


def test_to_archive_again_adds_only_what_is_new(client: Client, url: str, tmp_path: Path) -> None:
    for _ in range(3):
        put(client, 5)
        list(archive(url, str(tmp_path)))
    again = list(archive(url, str(tmp_path)))
    assert [(one.rows, one.files) for one in again] == [(0, 0)]
    assert stored(tmp_path) == list(range(1, client.newest() + 1))
    assert [file.rows for file in layout.files(str(tmp_path), after=5, last=7)] == [5]


def test_events_that_are_gone_are_refused_or_a_hole(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 5)
    list(archive(url, str(tmp_path)))
    client.config.set("max-events", 10)
    put(client, 40)
    oldest, newest = next(client.events()).seq, client.newest()
    last = Archive(str(tmp_path)).last("kept:")
    with pytest.raises(EventsGone, match=f"Events {last + 1} to {oldest - 1} are gone"):
        list(archive(url, str(tmp_path)))
    assert Archive(str(tmp_path)).last("kept:") == last
    *_, done = archive(url, str(tmp_path), skip_gaps=True)
    assert done.holes == (Gap(last + 1, oldest - 1),)
    assert Archive(str(tmp_path)).holes("kept:") == [Gap(last + 1, oldest - 1)]
    assert stored(tmp_path) == [*range(1, last + 1), *range(oldest, newest + 1)]
    assert list(archive(url, str(tmp_path)))[-1].last == newest


def test_a_server_that_is_behind_its_archive_is_refused(
    client: Client, url: str, tmp_path: Path, spark_server: Server
) -> None:
    put(client, 5)
    list(archive(url, str(tmp_path)))
    spark_server.client().flushdb()
    put(client, 2)
    with pytest.raises(SequenceWentBack):
        list(archive(url, str(tmp_path)))


def test_who_is_killed_between_a_decision_and_its_last_move_has_done_all_of_it(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(client, 10, day=20_000)
    put(client, 10, day=20_001)
    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr("qmodel.pipeline.committing.Writer._is_file", _killed_after(1))
        list(archive(url, str(tmp_path)))
    newest = client.newest()
    assert len(stored(tmp_path)) < newest
    found = Archive(str(tmp_path))
    assert sum(file.rows for file in found.files()) == found.last("kept:") == newest
    assert [Path(file.path).exists() for file in found.files()] == [True, True]
    list(archive(url, str(tmp_path)))
    assert stored(tmp_path) == list(range(1, newest + 1))
    assert not list((tmp_path / "_work").rglob("*.part"))


def _killed_after(times: int) -> object:
    calls = iter(range(times))

    def is_file(self: object, name: str) -> bool:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return True

    return is_file


def test_what_was_written_and_not_committed_is_forgotten(client: Client, url: str, tmp_path: Path) -> None:
    with writing(Archive(str(tmp_path)), "kept:") as writer:
        left = tmp_path / writer.begin() / "1-2024-10-04.part"
        left.write_bytes(b"PAR1")
    put(client, 3)
    list(archive(url, str(tmp_path)))
    assert not left.exists()
    assert stored(tmp_path) == list(range(1, client.newest() + 1))


def test_a_file_too_many_or_too_few_stops_the_archiver(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 5)
    list(archive(url, str(tmp_path)))
    Path(layout.files(str(tmp_path))[0].path).unlink()
    put(client, 5)
    list(archive(url, str(tmp_path)))  # an archive that is empty begins anew
    with writing(Archive(str(tmp_path)), "kept:") as writer:
        writer.commit(writer.begin(), Commit((), (), (Gap(3, 3),)))
    with pytest.raises(ArchiveError, match="spark verify"):
        list(archive(url, str(tmp_path)))
