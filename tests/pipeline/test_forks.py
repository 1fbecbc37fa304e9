"""No reader mixes two histories: after a server lost the end of its log, it stops, or keeps aside what was lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from qmodel import Client
from qmodel.cli import cli
from qmodel.contract import operations as ops
from qmodel.errors import Forked
from qmodel.model.snapshot import Snapshot
from qmodel.pipeline.audit.replay import Audit, AuditError, AuditForked
from qmodel.pipeline.events.decode import events_of, read, tables
from qmodel.pipeline.events.histories import HistoriesMixed, Position, newest_common, spans_between
from qmodel.pipeline.events.pages import pages
from qmodel.pipeline.journal.pages import entries
from qmodel.pipeline.statistics.fold import Fold
from qmodel.pipeline.statistics.reconcile import reconcile
from tests.backends.conftest import private
from tests.backends.helpers import Starter
from tests.pipeline.forks import begin, jobs, restored, rewound
from tests.servers import Server
from tests.worker.support import free_port, until

__all__ = ["private"]

pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `arrow`")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")

from qmodel.model import snapshot  # noqa: E402
from qmodel.pipeline.archive import read as archived  # noqa: E402
from qmodel.pipeline.archive.compact import compact  # noqa: E402
from qmodel.pipeline.archive.forks import ArchiveForked  # noqa: E402
from qmodel.pipeline.archive.layout import Archive, Lost  # noqa: E402
from qmodel.pipeline.archive.verify import verify  # noqa: E402
from qmodel.pipeline.archive.write import archive  # noqa: E402
from qmodel.pipeline.journal import archive as journals  # noqa: E402
from qmodel.pipeline.statistics.count import count  # noqa: E402
from qmodel.pipeline.statistics.local import DuckDB  # noqa: E402
from qmodel.pipeline.statistics.ordered import fold_of  # noqa: E402
from qmodel.pipeline.statistics.runs import StatisticsError  # noqa: E402

SPACE = "shop"


@pytest.fixture
def url() -> str:
    return f"memory://forks-{time.monotonic_ns()}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client


def add(url: str, root: Path, **more: object) -> list[tuple[int, int, tuple[Lost, ...]]]:
    found = archive(url, str(root), namespace=SPACE, rows=7, together=2, **more)  # type: ignore[arg-type]
    return [(one.last, one.rows, one.lost) for one in found]


def kept(root: Path) -> list[object]:
    return [event for table in archived.read(str(root), SPACE) for event in events_of(table)]


# ---- the archive


def test_an_archive_goes_on_over_epochs(client: Client, url: str, tmp_path: Path) -> None:
    for seconds in (1, 2, 3):
        jobs(client, 5, f"j{seconds}-")
        begin(client, seconds)
        add(url, tmp_path)
    jobs(client, 5, "j")
    add(url, tmp_path)
    assert kept(tmp_path) == list(client.events())
    (found,) = verify(str(tmp_path))
    assert found.whole and not found.lost
    assert Archive(str(tmp_path)).position(SPACE) == client.position()


@pytest.mark.parametrize("more", [0, 1, 30])  # the new history is shorter, or longer
def test_an_archive_stops_at_a_fork_or_keeps_aside_what_was_lost(
    client: Client, url: str, tmp_path: Path, more: int
) -> None:
    jobs(client, 8, "both")
    add(url, tmp_path)
    common, old = client.position()
    with rewound(client):
        jobs(client, 3, "lost")
        lost = list(client.events(common))
        add(url, tmp_path)
    new = begin(client, 5)
    jobs(client, more, "others")

    with pytest.raises(ArchiveForked) as told:
        add(url, tmp_path)
    error = told.value
    assert (error.after, error.epoch, error.current, error.common) == (common + len(lost), old, new, common)
    for said in (f"event {common + len(lost)} of epoch {old}", f"its epoch is {new}", "--on-fork keep"):
        assert said in str(error)
    assert kept(tmp_path)[common:] == lost

    added = add(url, tmp_path, on_fork="keep")
    ranges = (Lost(old, common + 1, common + len(lost)),)
    assert min(one for _, _, some in added for one in some).epoch == old
    assert kept(tmp_path) == list(client.events())
    (found,) = verify(str(tmp_path))
    assert found.whole and found.lost == ranges
    aside = [path for path in tmp_path.rglob("_lost/**/*.parquet")]
    again = sorted(event for path in aside for event in events_of(pq.ParquetFile(path).read()))
    assert again == lost
    assert add(url, tmp_path)[0][1:] == (0, ())
    list(compact(str(tmp_path), days=[file.day for file in Archive(str(tmp_path)).files()]))
    jobs(client, 2, "after")
    add(url, tmp_path)
    assert kept(tmp_path) == list(client.events())


def test_several_epochs_of_a_primary_that_lost_may_be_taken_back(client: Client, url: str, tmp_path: Path) -> None:
    """The old primary did not notice that another one took over for a while: its own epoch went on meanwhile."""
    jobs(client, 3, "both")
    common = client.newest()
    with rewound(client):
        for seconds in (1, 1, 1):
            begin(client, seconds)
            jobs(client, 2, f"lost{client.newest()}-")
        add(url, tmp_path)
    jobs(client, 30, "own")
    begin(client, 20)
    with pytest.raises(ArchiveForked) as told:
        add(url, tmp_path)
    assert told.value.common == common
    ranges = {one.epoch for _, _, lost in add(url, tmp_path, on_fork="keep") for one in lost}
    assert len(ranges) == 3
    assert kept(tmp_path) == list(client.events())
    (found,) = verify(str(tmp_path))
    assert found.whole and len(found.lost) == 3


def test_a_reader_that_ignores_epochs_mixes_two_histories_and_verify_finds_it(
    client: Client, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qmodel.pipeline.archive import write

    jobs(client, 8, "both")
    with rewound(client):
        jobs(client, 3, "lost")
        add(url, tmp_path)
    begin(client, 5)
    jobs(client, 30, "others")
    last = Archive(str(tmp_path)).last(SPACE)
    monkeypatch.setattr(write, "joined", lambda *_: (Position(last, None), ()))
    monkeypatch.setattr(write, "_compare", lambda *_: None)
    add(url, tmp_path)
    (found,) = verify(str(tmp_path))
    assert not found.whole and "two histories" in found.faults[0]
    with pytest.raises(HistoriesMixed):
        Fold().add(kept(tmp_path))  # type: ignore[arg-type]


def test_a_server_that_fails_over_during_a_run_is_compared_with_again(client: Client, url: str, tmp_path: Path) -> None:
    jobs(client, 8, "both")
    state = rewound(client)
    state.__enter__()
    jobs(client, 20, "lost")
    began: list[object] = []

    def run(function: object, tasks: object) -> list[object]:
        if len(began) == 2:
            state.__exit__(None, None, None)
            begin(client, 5)
            jobs(client, 20, "others")
        began.append(tasks)
        return [function(task) for task in tasks]  # type: ignore[operator, attr-defined]

    add(url, tmp_path, run=run, on_fork="keep")
    assert kept(tmp_path) == list(client.events())
    assert next(verify(str(tmp_path))).whole


def test_statistics_of_lost_events_are_refused(client: Client, url: str, tmp_path: Path) -> None:
    root, out = tmp_path / "archive", str(tmp_path / "out")
    jobs(client, 8, "both")
    with rewound(client), DuckDB() as engine:
        jobs(client, 3, "lost")
        add(url, root)
        count(engine, Archive(str(root)), out)
    begin(client, 5)
    jobs(client, 30, "others")
    add(url, root, on_fork="keep")
    with DuckDB() as engine:
        with pytest.raises(StatisticsError, match=r"the server lost events that were counted.*--out"):
            count(engine, Archive(str(root)), out)
        count(engine, Archive(str(root)), str(tmp_path / "anew"))


def test_an_archive_with_lost_events_is_not_reconciled(client: Client, url: str, tmp_path: Path) -> None:
    jobs(client, 8, "both")
    with rewound(client), DuckDB() as engine:
        jobs(client, 3, "lost")
        add(url, tmp_path)
        fold = fold_of(engine, Archive(str(tmp_path)), SPACE)
    begin(client, 5)
    jobs(client, 30, "others")
    with pytest.raises(Forked):
        reconcile(client, fold)


def test_the_command_names_the_fork_and_the_next_step(server: Server, tmp_path: Path) -> None:
    server.client().flushdb()
    root, url, only = str(tmp_path / "all"), f"{server.url}?prefix=forks:", ("--journal", "--no-events")

    def run(*args: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(cli, ["--url", url, *args])
        return done.exit_code, done.stdout, done.stderr

    with Client(url) as client:
        client.config.set("journal", 1)
        jobs(client, 8, "both")
        common, old = client.position()
        with restored(server):
            jobs(client, 3, "lost")
            newest = client.newest()
            assert run("archive", "run", root)[0] == 0
            assert run("archive", "run", f"{root}-j", *only)[0] == 0
            assert run("audit", "--save", f"{root}-state.gz")[0] == 0
        jobs(client, 3, "others")  # the library begins an epoch by itself
        assert client.position().epoch > old

        code, _, err = run("archive", "run", root)
        assert code == 1 and f"The newest common event is {common}" in err and "--on-fork keep" in err
        code, out, err = run("archive", "run", root, "--on-fork", "keep")
        assert code == 0 and f"moved to _lost: {common + 1:,} to {newest:,} of epoch {old}" in err
        assert run("archive", "verify", root)[0] == 0
        stored = sorted(event for table in archived.read(root, "forks:") for event in events_of(table))
        assert stored == list(client.events())
        assert list(events_of(tables(read(client)))) == stored  # by the texts of a server

        code, _, err = run("audit", "--from", f"{root}-state.gz")
        assert code == 1 and "exist twice" in err
        assert run("audit")[0] == 0
        code, _, err = run("archive", "run", f"{root}-j", *only)
        assert code == 1 and "--on-fork keep" in err
        assert run("archive", "run", f"{root}-j", *only, "--on-fork", "keep")[0] == 0
        code, out, err = run("audit", f"{root}-j")
        assert code == 0 and ", 0 differ" in out and "exist twice" in err


# ---- the journal and the audit


def journaled(client: Client) -> None:
    client.execute(ops.ConfigSet("journal", 1))


def test_an_audit_goes_on_over_epochs(client: Client) -> None:
    journaled(client)
    for seconds in (1, 2, 3):
        jobs(client, 5, f"j{seconds}-")
        begin(client, seconds)
    audit = Audit()
    assert list(audit.follow(entries(client))) == []
    assert audit.epoch == client.position().epoch
    state: Snapshot = audit.state()
    assert snapshot.difference(state, snapshot.of(client.backend.store)) == [] or audit.entries  # type: ignore[union-attr]


def test_an_audit_across_a_fork_names_the_entries_that_exist_twice(client: Client, url: str, tmp_path: Path) -> None:
    journaled(client)
    jobs(client, 8, "both")
    common = list(client.journal())[-1].number
    audit = Audit()
    root = str(tmp_path)
    with rewound(client):
        jobs(client, 3, "lost")
        lost = list(client.journal(common))
        assert list(audit.follow(entries(client))) == []
        list(journals.archive(url, root, namespace=SPACE))
        journals.keep(root, SPACE, audit.state())
    new = begin(client, 5)
    jobs(client, 30, "others")

    with pytest.raises(Forked) as told:
        list(entries(client, audit.number, epoch=audit.epoch))
    assert int(told.value.common) == common
    said = str(AuditForked(audit.number, audit.epoch, new, common))
    assert f"the entries {common + 1} to {common + len(lost)} exist twice" in said

    with pytest.raises(AuditError, match="two histories"):  # the twin, which ignores epochs
        list(audit.follow(client.journal(audit.number)))
    with pytest.raises(ArchiveForked) as also:
        list(journals.archive(url, root, namespace=SPACE))
    assert also.value.common == common

    list(journals.archive(url, root, namespace=SPACE, on_fork="keep"))
    assert list(journals.read(root, SPACE)) == list(client.journal())
    assert Archive(root).lost(SPACE) == [Lost(lost[0].epoch, common + 1, common + len(lost))]
    assert journals.states(root, SPACE) == []
    assert list(Audit().follow(journals.read(root, SPACE))) == []


# ---- pages, folds


def test_pages_of_two_histories_are_refused(client: Client) -> None:
    jobs(client, 8, "both")
    common, old = client.position()
    fold = Fold()
    with rewound(client):
        jobs(client, 3, "lost")
        last = client.position()
        fold.add(client.events())
    begin(client, 5)
    jobs(client, 30, "others")
    for reading in (
        lambda: list(pages(client, last.seq, epoch=last.epoch)),
        lambda: list(pages(client, common, last.seq, epoch=old, last_epoch=last.epoch)),
        lambda: list(read(client, last.seq, epoch=last.epoch)),
    ):
        with pytest.raises(Forked):
            reading()
    with pytest.raises(HistoriesMixed, match="different histories"):
        fold.add(client.events(last.seq))
    assert next(pages(client, common, epoch=old))[0].seq == common + 1


def test_parts_of_a_fold_are_of_one_history(client: Client) -> None:
    jobs(client, 4, "a")
    begin(client, 3)
    jobs(client, 4, "b")
    events = list(client.events())
    whole = Fold()
    whole.add(events)
    for cut in range(1, len(events)):
        first, later = Fold(), Fold(cut, part=True)
        first.add(events[:cut])
        later.add(events[cut:])
        first.merge(later)
        assert first.tallies.keys() == whole.tallies.keys() and first.epoch == whole.epoch
    first, later = Fold(), Fold(6, part=True)
    first.add(events[:6])
    later.add(event._replace(epoch=3) for event in events[6:7])
    with pytest.raises(HistoriesMixed):
        first.merge(later)


def test_the_newest_common_event_is_found_by_all_epochs_that_a_reader_knows(client: Client) -> None:
    jobs(client, 3, "a")
    start = Position(0, 0)
    epochs = []
    for seconds in (1, 2, 3):
        epochs.append(begin(client, seconds))
        jobs(client, 2, f"e{seconds}")
    end = Position(*client.position())
    spans = spans_between(client, ops.Events, Position(1, next(client.events()).epoch), end)
    assert [epoch for _, epoch in spans] == epochs
    assert all(next(client.events(first - 1)).event == "epoch_begun" for first, _ in spans)
    assert spans_between(client, ops.Events, end, end) == []
    own = [(1, next(client.events()).epoch), (spans[0][0], epochs[0]), (spans[1][0] + 2, epochs[1] + 1)]
    with pytest.raises(Forked) as told:
        client.execute(ops.Events(end.number, 1, epochs[1] + 1))
    found = newest_common(client, ops.Events, told.value, own)
    assert (found.number, found.epoch, found.is_known) == (spans[1][0] - 1, epochs[0], True)
    assert start.number == 0


# ---- two servers


def test_an_archive_of_a_primary_whose_replica_took_over(private: Starter, tmp_path: Path) -> None:
    port, root = free_port(), tmp_path
    with private("--port", str(port), "--repl-diskless-sync-delay", "0") as first, private() as second:
        with first.client() as old, second.client() as new, Client(first.url) as client:
            client.config.set("journal", 1)
            jobs(client, 5, "both")
            new.execute_command("REPLICAOF", "127.0.0.1", str(port))
            until(lambda: new.info("replication")["master_link_status"] == "up", "the replica")
            until(
                lambda: new.info("replication")["slave_repl_offset"] >= old.info("replication")["master_repl_offset"],
                "the replica",
            )
            new.execute_command("REPLICAOF", "NO", "ONE")
            common = client.newest()
            jobs(client, 3, "lost")
            add(first.url, root)
            audit = Audit()
            assert list(audit.follow(entries(client))) == []
        with Client(second.url) as other:
            jobs(other, 9, "others")
            with pytest.raises(ArchiveForked) as told:
                add(second.url, root)
            assert told.value.common == common
            add(second.url, root, on_fork="keep")
            assert kept(root) == list(other.events())
            with pytest.raises(Forked):
                list(entries(other, audit.number, epoch=audit.epoch))
            assert list(Audit().follow(entries(other))) == []
