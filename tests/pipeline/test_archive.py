"""An archive has each event once, even if writers are killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qmodel import Client, connect
from qmodel.cli import cli
from qmodel.contract import operations as ops
from qmodel.errors import QmodelError
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack
from tests.pipeline.archives import as_version_2, put, stored
from tests.processes import started
from tests.servers import Server

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `arrow`")
pq = pytest.importorskip("pyarrow.parquet")

from qmodel.pipeline.archive import layout, read  # noqa: E402
from qmodel.pipeline.archive.commit import Busy, writing  # noqa: E402
from qmodel.pipeline.archive.compact import compact  # noqa: E402
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit  # noqa: E402
from qmodel.pipeline.archive.verify import record_missing, verify  # noqa: E402
from qmodel.pipeline.archive.write import archive  # noqa: E402
from qmodel.pipeline.events.decode import events_of  # noqa: E402
from qmodel.processes import processes  # noqa: E402


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        yield client


def test_an_archive_has_the_events_as_they_were_by_day_and_sorted_by_queue(
    client: Client, url: str, tmp_path: Path
) -> None:
    put(client, 20, day=20_000)
    put(client, 20, day=20_001)
    progress = list(archive(url, str(tmp_path), rows=15, together=2))
    assert [(one.last, one.rows) for one in progress] == [(30, 30), (client.newest(), client.newest() - 30)]
    files = layout.files(str(tmp_path))
    assert {(file.namespace, file.day) for file in files} == {("spark:", "2024-10-04"), ("spark:", "2024-10-05")}
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
    last = Archive(str(tmp_path)).last("spark:")
    with pytest.raises(EventsGone, match=f"Events {last + 1} to {oldest - 1} are gone"):
        list(archive(url, str(tmp_path)))
    assert Archive(str(tmp_path)).last("spark:") == last
    *_, done = archive(url, str(tmp_path), skip_gaps=True)
    assert done.holes == (Gap(last + 1, oldest - 1),)
    assert Archive(str(tmp_path)).holes("spark:") == [Gap(last + 1, oldest - 1)]
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
    put(client, 10)
    with pytest.raises(ArchiveError, match="Event 5 on the server is not the one in the archive"):
        list(archive(url, str(tmp_path)))
    assert list(archive(url, str(tmp_path), namespace="since"))[-1].rows == 12
    assert [file.rows for file in layout.files(str(tmp_path), "spark:")] == [5]


def test_a_place_that_cannot_be_is_told_of_in_a_sentence(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ArchiveError, match=r"cannot be read or written: .*run the command again"):
        list(archive(url, str(tmp_path / "file")))
    with pytest.raises(ArchiveError, match=r"cannot hold an archive: .*Give a folder"):
        list(archive(url, "nowhere://bucket"))


def test_tasks_in_processes_end_with_them(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 30)
    with processes(2) as run:
        assert sum(one.rows for one in archive(url, str(tmp_path), run=run, rows=4)) == client.newest()
        with pytest.raises(QmodelError, match="A process ended in the middle"):
            list(run(os._exit, [1]))
    assert stored(tmp_path) == list(range(1, client.newest() + 1))


def test_what_was_written_and_not_committed_is_forgotten(client: Client, url: str, tmp_path: Path) -> None:
    with writing(Archive(str(tmp_path)), "spark:") as writer:
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
    with writing(Archive(str(tmp_path)), "spark:") as writer:
        writer.commit(writer.begin(), Commit((), (), (Gap(3, 3),)))
    with pytest.raises(ArchiveError, match="archive verify"):
        list(archive(url, str(tmp_path)))


def test_closed_days_are_merged_and_merging_again_does_nothing(client: Client, url: str, tmp_path: Path) -> None:
    for day in (20_000, 20_001, 20_000, 20_002):  # the clock goes back once
        put(client, 20, day)
        list(archive(url, str(tmp_path), rows=6))
    before = {file.day: file.rows for file in layout.files(str(tmp_path), days=["2024-10-06"])}
    done = list(compact(str(tmp_path)))
    assert [(one.day, one.after, one.rows) for one in done] == [("2024-10-04", 1, 40), ("2024-10-05", 1, 20)]
    assert {file.day: file.rows for file in layout.files(str(tmp_path), days=["2024-10-06"])} == before
    assert list(compact(str(tmp_path))) == []
    table = pa.concat_tables([pq.ParquetFile(file.path).read() for file in layout.files(str(tmp_path))])
    assert sorted(events_of(table)) == list(client.events())
    assert [one.day for one in compact(str(tmp_path), days=["2024-10-06"], most=15)] == ["2024-10-06"]
    assert list(compact(str(tmp_path), days=["2024-10-06"], most=15)) == []
    assert next(verify(str(tmp_path))).whole
    assert list(archive(url, str(tmp_path)))[-1].last == client.newest()


def test_events_come_back_in_their_order_and_a_gap_is_told_of(client: Client, url: str, tmp_path: Path) -> None:
    for day in (20_000, 20_001, 20_000, 20_002):  # the clock goes back once
        put(client, 20, day)
        list(archive(url, str(tmp_path), rows=6))
    list(compact(str(tmp_path)))
    tables = list(read.read(str(tmp_path), "spark:"))
    assert [event for table in tables for event in events_of(table)] == list(client.events())
    assert len(tables) > 1
    some = pa.concat_tables(read.read(str(tmp_path), "spark:", 15, 33))
    assert some.column("seq").to_pylist() == list(range(16, 34))
    Path(layout.files(str(tmp_path))[-1].path).unlink()
    with pytest.raises(ArchiveError, match="does not have the events"):
        list(read.read(str(tmp_path), "spark:", last=client.newest()))
    gaps: list[Gap] = []
    rows = sum(table.num_rows for table in read.read(str(tmp_path), "spark:", last=client.newest(), gaps=gaps))
    assert rows + sum(map(len, gaps)) == client.newest() and gaps


def test_a_column_that_an_older_file_has_not_is_null_when_they_are_merged(
    client: Client, url: str, tmp_path: Path
) -> None:
    for _ in range(2):
        put(client, 5)
        list(archive(url, str(tmp_path)))
    older = Path(layout.files(str(tmp_path))[0].path)
    pq.write_table(pq.ParquetFile(older).read().drop_columns(["worker", "tag"]), older)
    list(compact(str(tmp_path), days=["2024-10-04"]))
    (file,) = layout.files(str(tmp_path))
    assert sorted(events_of(pq.ParquetFile(file.path).read())) == list(client.events())


def test_files_of_version_2_are_read_refused_by_name_in_sql_and_written_anew(
    client: Client, url: str, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb")
    from qmodel.pipeline.statistics.count import count
    from qmodel.pipeline.statistics.local import DuckDB

    for _ in range(2):
        put(client, 5)
        list(archive(url, str(tmp_path)))
    for file in layout.files(str(tmp_path)):
        new = Path(file.path.replace("-v3-", "-v2-"))
        pq.write_table(as_version_2(pq.read_table(file.path, partitioning=None)), new)
        Path(file.path).unlink()
    events = [event for table in read.read(str(tmp_path), "spark:") for event in events_of(table)]
    assert events == list(client.events())
    assert next(verify(str(tmp_path))).whole
    with DuckDB() as engine:
        with pytest.raises(QmodelError, match=r"v2.*has the columns of version 2.*qmodel archive compact"):
            count(engine, Archive(str(tmp_path)), None)
        put(client, 5)
        list(archive(url, str(tmp_path)))  # a day may have files of both
        list(compact(str(tmp_path)))
        assert {file.version for file in layout.files(str(tmp_path))} == {3}
        assert next(verify(str(tmp_path))).whole
        assert count(engine, Archive(str(tmp_path)), None)["spark:"].until == client.newest()


def test_what_is_missing_twice_or_not_what_its_name_tells_is_found(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 40)
    list(archive(url, str(tmp_path), rows=10))
    one, two, three, four = (Path(file.path) for file in layout.files(str(tmp_path)))
    one.rename(one.with_name(two.name.replace("-10-v3", "-10-v4")))
    three.unlink()
    four.write_bytes(b"PAR1")
    copy = tmp_path / "namespace=spark%3A" / "day=2024-10-05" / two.name
    copy.parent.mkdir()
    copy.write_bytes(two.read_bytes())
    (found,) = verify(str(tmp_path))
    assert (found.missing, found.twice, found.whole) == ((), (Gap(11, 20),), False)
    assert found.last == 20
    for said in (
        "its name does not match its events: 1 to 10",
        "it has events of 2024-10-04",
        "cannot be read",
    ):
        assert any(said in fault for fault in found.faults), found.faults


def test_a_damaged_page_of_any_column_is_found(client: Client, url: str, tmp_path: Path) -> None:
    for _ in range(2):
        put(client, 20)
        list(archive(url, str(tmp_path)))
    file, newest = layout.files(str(tmp_path))
    footer = pq.ParquetFile(file.path).metadata
    (jids,) = (one for one in map(footer.row_group(0).column, range(footer.num_columns)) if one.path_in_schema == "jid")
    data = bytearray(Path(file.path).read_bytes())
    begin = jids.dictionary_page_offset or jids.data_page_offset
    for place in range(begin + 30, begin + jids.total_compressed_size - 5):
        data[place] ^= 0x5A
    for harmed in (data, data[:-9]):
        Path(file.path).write_bytes(harmed)
        assert "cannot be read" in next(verify(str(tmp_path))).faults[0]
        with pytest.raises(ArchiveError, match=rf"{file.name} in .* is damaged: .*qmodel archive verify"):
            list(read.read(str(tmp_path), "spark:"))
        with pytest.raises(ArchiveError, match=rf"{file.name} in .* is damaged: .*qmodel archive verify"):
            list(compact(str(tmp_path), days=["2024-10-04"]))
    Path(newest.path).write_bytes(b"PAR1")
    with pytest.raises(ArchiveError, match=rf"{newest.name} in .* is damaged: .*qmodel archive verify"):
        list(archive(url, str(tmp_path)))


def test_the_archiver_goes_on_behind_what_was_recorded_as_missing(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 30)
    list(archive(url, str(tmp_path), rows=10))
    Path(layout.files(str(tmp_path))[1].path).unlink()
    with pytest.raises(ArchiveError):
        list(archive(url, str(tmp_path)))
    (found,) = verify(str(tmp_path))
    assert found.missing == (Gap(11, 20),)
    record_missing(str(tmp_path), found)
    put(client, 3)
    assert list(archive(url, str(tmp_path)))[-1].last == client.newest()
    (found,) = verify(str(tmp_path))
    assert found.whole and found.holes == (Gap(11, 20),)


def test_one_commits_at_a_time_and_whoever_dies_gives_up_the_lock(tmp_path: Path) -> None:
    held = "import sys; from qmodel.pipeline.archive.layout import Archive\n"
    held += "from qmodel.pipeline.archive.commit import writing\n"
    held += f"with writing(Archive({str(tmp_path)!r}), 'spark:') as writer, writer.locked():\n"
    held += "    print(flush=True); sys.stdin.read()"
    with started([sys.executable, "-c", held], stdin=-1, stdout=-1) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Busy, match="Another process writes"), writing(Archive(str(tmp_path)), "spark:", patience=0):
            pass
        other.kill()
    with writing(Archive(str(tmp_path)), "spark:", patience=60):
        pass


def test_the_work_of_a_writer_stays_as_long_as_it_lives(tmp_path: Path) -> None:
    working = "import sys; from qmodel.pipeline.archive.layout import Archive\n"
    working += "from qmodel.pipeline.archive.commit import writing\n"
    working += f"with writing(Archive({str(tmp_path)!r}), 'spark:') as writer:\n"
    working += "    print(writer.begin(), flush=True); sys.stdin.read()"
    with writing(Archive(str(tmp_path)), "spark:") as here:
        mine = tmp_path / here.begin()
        with started([sys.executable, "-c", working], stdin=-1, stdout=-1, text=True) as other:
            assert other.stdout is not None
            theirs = tmp_path / other.stdout.readline().strip()
            with writing(Archive(str(tmp_path)), "spark:"):
                assert theirs.is_dir() and mine.is_dir()
            other.kill()
        with writing(Archive(str(tmp_path)), "spark:"):
            assert not theirs.exists() and mine.is_dir()


def test_an_archiver_that_is_overtaken_goes_on_after_the_other_one(client: Client, url: str, tmp_path: Path) -> None:
    put(client, 40)

    def overtaken(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Do the work, while another archiver commits the first events."""
        if Archive(str(tmp_path)).last("spark:") < 20:
            next(archive(url, str(tmp_path), rows=10, together=1))
        return list(map(work, items))

    assert [one.last for one in archive(url, str(tmp_path), run=overtaken, rows=15)] == [client.newest()]
    assert stored(tmp_path) == list(range(1, client.newest() + 1))
    assert next(verify(str(tmp_path))).whole


def test_a_merge_that_is_overtaken_changes_nothing(client: Client, url: str, tmp_path: Path) -> None:
    for _ in range(3):
        put(client, 10)
        list(archive(url, str(tmp_path)))

    def overtaken(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Merge, and let another compactor merge the same files before the commit."""
        made = list(map(work, items))
        assert len(list(compact(str(tmp_path), days=["2024-10-04"]))) == 1
        return made

    assert list(compact(str(tmp_path), days=["2024-10-04"], run=overtaken)) == []
    assert stored(tmp_path) == list(range(1, client.newest() + 1))


@pytest.mark.server
def test_all_shards_of_a_deployment_are_archived(server: Server, tmp_path: Path) -> None:
    url = f"{server.url}?name=archived&shards=4"
    with Client(url) as client:
        for number in range(40):
            client.queues["q"].put("K", number)
        newest = client.execute_many([ops.Newest()])[0]
    command = ["--url", url, "archive", "run", str(tmp_path)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    place = Archive(f"{tmp_path}/events")
    seqs = [place.last(name) for name in place.namespaces()]
    assert len(seqs) == 4 and sum(seqs) == sum(newest) > 40
    refused = CliRunner().invoke(cli, [*command, "--namespace", "one"])
    assert refused.exit_code == 2 and "no --namespace" in refused.output


def test_two_archivers_a_compactor_and_a_reader_work_on_one_folder(client: Client, url: str, tmp_path: Path) -> None:
    root, count = str(tmp_path / "events"), 240
    client.config.set("max-events", 10**6)
    put(client, count // 2, day=20_000)
    put(client, count // 2, day=20_001)
    adds = "import sys; from qmodel.pipeline.archive.write import archive\n"
    adds += f"for one in archive({url!r}, {root!r}, rows=10, together=1): pass"
    adding, read_to, merged = [sys.executable, "-c", adds], 0, 0
    with started(adding, stderr=-1, text=True) as one, started(adding, stderr=-1, text=True) as other:
        while read_to < client.newest():
            ended = one.poll() is not None and other.poll() is not None
            merged += len(list(compact(root, "spark:", days=["2024-10-04", "2024-10-05"])))
            seqs = [seq for table in read.read(root, "spark:") for seq in table.column("seq").to_pylist()]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= read_to
            read_to = len(seqs)
            assert not ended or read_to == client.newest()
        said = [(archiver.communicate(timeout=60)[1], archiver.returncode) for archiver in (one, other)]
    assert said == [("", 0)] * 2
    assert merged > 1
    assert stored(tmp_path) == list(range(1, client.newest() + 1))
    assert next(verify(root)).whole


def test_the_commands_say_what_they_did_and_what_they_found(client: Client, url: str, tmp_path: Path) -> None:
    root = str(tmp_path / "events")
    place = f"{root}/events"

    def run(*args: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(cli, ["--url", url, "archive", args[0], root, *args[1:]])
        return done.exit_code, done.stdout, done.stderr

    assert run("verify") == (1, "", f"Error: There is no archive in {place}.\n")
    assert run("compact") == (1, "", f"Error: There is no archive in {place}.\n")
    client.config.set("max-events", 30)
    put(client, 25)
    newest = client.newest()
    code, out, err = run("run", "--rows", "20")
    assert (code, out) == (0, f"spark: {newest} events in 3 files, up to {newest}\n")
    assert "Warning: 3 more events, and some would have been lost" in err
    assert run("compact", "--day", "2024-10-04") == (0, "spark: 2024-10-04: 2 files merged into 1, 25 rows\n", "")
    assert run("compact") == (0, "Nothing to merge.\n", "")
    misspelt = f"Error: The archive {place} has no namespace 'sprak:'; it has ['spark:'].\n"
    assert run("verify", "--namespace", "sprak:") == (1, "", misspelt)
    assert run("compact", "--namespace", "other:")[2].endswith("has no namespace 'other:'; it has ['spark:'].\n")
    assert sorted(found.name for found in Path(place).glob("namespace=*")) == ["namespace=spark%3A"]
    assert "'yesterday' is not a day." in run("compact", "--day", "yesterday")[2]
    put(client, 60)
    code, out, err = run("run")
    assert (code, out) == (1, "")
    assert f"Events {newest + 1} to" in err and "--skip-gaps" in err
    assert run("run", "--skip-gaps")[0] == 0
    code, out, err = run("verify")
    assert (code, err) == (0, "")
    assert "each is there once" in out and f"lost: {newest + 1} to" in out
    Path(layout.files(place)[0].path).unlink()
    assert run("verify")[0] == 1
    assert "`qmodel archive verify" in run("run")[2]
    assert CliRunner().invoke(cli, ["archive", "run", root]).exit_code == 1


def test_a_reader_beside_a_compactor_reads_each_event_once(client: Client, url: str, tmp_path: Path) -> None:
    for _ in range(5):
        put(client, 20)
        list(archive(url, str(tmp_path)))
    tables = read.read(str(tmp_path), "spark:")
    found = next(tables).column("seq").to_pylist()
    assert [one.before for one in compact(str(tmp_path), days=["2024-10-04"])] == [5]
    for table in tables:
        found += table.column("seq").to_pylist()
    assert found == list(range(1, client.newest() + 1))


def test_a_file_that_is_listed_and_never_there_is_an_error_with_its_name(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(client, 5)
    list(archive(url, str(tmp_path)))
    (file,) = layout.files(str(tmp_path), "spark:")
    monkeypatch.setattr(Archive, "files", lambda *_, **__: [file._replace(path=f"{file.path}-gone", rows=99)])
    with pytest.raises(ArchiveError, match=f"{file.first:012}.* in .* is listed, and is not there"):
        list(read.read(str(tmp_path), "spark:"))


def test_statistics_list_files_again_that_were_merged_meanwhile(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    from qmodel.pipeline.statistics.count import count
    from qmodel.pipeline.statistics.local import DuckDB

    for _ in range(2):
        put(client, 5)
        list(archive(url, str(tmp_path)))
    found, merged = Archive.files, list[Any]()

    def merging(self: Archive, *args: Any, **options: Any) -> list[layout.File]:
        """List the files, and merge them before anyone opens one."""
        listed = found(self, *args, **options)
        if not merged and options.get("last"):
            merged.append(True)
            merged.extend(compact(str(tmp_path), days=["2024-10-04"]))
        return listed

    monkeypatch.setattr(Archive, "files", merging)
    with DuckDB() as engine:
        assert count(engine, Archive(str(tmp_path)), None)["spark:"].until == client.newest()
    assert len(merged) == 2


def test_merged_files_stay_for_those_that_listed_them(client: Client, url: str, tmp_path: Path) -> None:
    root = str(tmp_path)
    for _ in range(2):
        put(client, 5)
        list(archive(url, root))
    listed = [file for file in layout.files(root) if file.day == "2024-10-04"]
    (done,) = compact(root, days=["2024-10-04"])
    assert (done.before, done.after) == (2, 1)
    assert [pq.read_table(Archive(root).open(file)).num_rows for file in listed] == [file.rows for file in listed]
    assert stored(tmp_path) == list(range(1, client.newest() + 1))
    list(compact(root))
    assert len(list(tmp_path.rglob("*.merged"))) == 2
    list(compact(root, grace=0))
    assert not list(tmp_path.rglob("*.merged"))
    with pytest.raises(FileNotFoundError, match="merged or taken back"):
        Archive(root).open(listed[0])
