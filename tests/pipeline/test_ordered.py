"""A fold of an archive equals the engine's statistics to the last bit, and continues with the events behind it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qmodel import Client, connect
from qmodel.cli import cli
from qmodel.contract import operations as ops
from qmodel.model.state import stats
from qmodel.pipeline.statistics.fold import Key
from qmodel.pipeline.statistics.reconcile import kept_since, reconcile
from tests.pipeline.histories import counted, histories
from tests.pipeline.kept import keep

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `duckdb`")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")

from qmodel.pipeline.archive.layout import HOLES, Archive, folder_of  # noqa: E402
from qmodel.pipeline.archive.write import archive  # noqa: E402
from qmodel.pipeline.statistics.local import DuckDB  # noqa: E402
from qmodel.pipeline.statistics.ordered import fold_of  # noqa: E402
from qmodel.pipeline.statistics.runs import StatisticsError  # noqa: E402

DAY_MS = stats.DAY_MS


def run(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(cli, arguments, prog_name="qmodel")


@pytest.fixture
def engine() -> Iterator[DuckDB]:
    with DuckDB(memory="500MB", threads=2) as engine:
        yield engine


def test_every_day_of_every_queue_is_the_engines_also_from_an_archive(engine: DuckDB, tmp_path: Path) -> None:
    chooser, compared = random.Random("cut"), 0
    for number, watched in enumerate(histories()[::9]):
        cut = chooser.randrange(1, len(watched.events) + 1)
        keep(tmp_path, f"n{number}", watched.events[:cut])
        fold = fold_of(engine, Archive(str(tmp_path)), f"n{number}")
        fold.add(watched.events[cut:])
        for (day, queue), there in watched.store.days.items():
            assert counted(there) == counted(fold.tally("queue", queue, day))
            compared += there.wait.count + there.failures + there.retries
    assert compared > 100


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        yield client


def work(client: Client, at: int, jobs: int = 30) -> None:
    """Put, perform, retry and fail the jobs of a day."""
    client.execute(ops.PutMany(tuple(ops.Put("q", f"{at}-{number}", "Send", "") for number in range(jobs))), now=at)
    for number in range(jobs):
        (job,) = client.execute(ops.Pop("q", "w"), now=at + 500 + number * number)
        if number % 5 == 0:
            op: ops.Operation = ops.Fail(job.jid, job.token, "no-disk", "It is full.")
        elif number % 5 == 1:
            op = ops.Retry(job.jid, job.token, 10**8)
        else:
            op = ops.Complete(job.jid, job.token)
        client.execute(op, now=at + 700 + number * number)


def test_the_engine_and_its_archive_agree(client: Client, url: str, tmp_path: Path) -> None:
    now = client.execute(ops.Stats("q")).day
    for day in (3, 2, 1):
        work(client, now - day * DAY_MS)
    list(archive(url, str(tmp_path)))
    work(client, now)
    client.failed.retry(group="no-disk", to="q")
    done = run("--url", url, "reconcile", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "4 days of queues compared, 0 differences\n")
    client.config.set("stats-history", 1)
    client.config.set("histogram-history", 0)
    assert json.loads(run("--url", url, "--json", "reconcile", str(tmp_path)).stdout)["compared"] == 2


def test_what_was_altered_is_told(client: Client, url: str, tmp_path: Path) -> None:
    work(client, client.execute(ops.Stats("q")).day)
    list(archive(url, str(tmp_path)))
    (file,) = Archive(str(tmp_path)).files()
    table = pq.ParquetFile(file.path).read()
    waits = table.column("wait_ms").to_pylist()
    longer = [None if ms is None else ms + (ms == max(filter(None, waits))) for ms in waits]
    place = table.schema.get_field_index("wait_ms")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(longer, pa.int64())), file.path)
    done = run("--url", url, "reconcile", str(tmp_path))
    assert done.exit_code == 1
    assert "1 day of a queue compared, 2 differences" in done.stdout
    assert "wait mean" in done.stdout and "wait squares" in done.stdout


def test_days_that_were_lost_on_the_way_are_not_compared(client: Client, engine: DuckDB, tmp_path: Path) -> None:
    now = client.execute(ops.Stats("q")).day
    for day in (2, 1):
        work(client, now - day * DAY_MS)
    events = list(client.events())
    hole = next(place for place, event in enumerate(events) if event.at >= now - DAY_MS)
    keep(tmp_path, "a:", events[: hole - 20])
    keep(tmp_path, "a:", events[hole - 10 :])
    (tmp_path / folder_of("a:") / HOLES).mkdir()
    first, last = events[hole - 20].seq, events[hole - 11].seq
    (tmp_path / folder_of("a:") / HOLES / f"{first}-{last}").touch()
    report = reconcile(client, fold_of(engine, Archive(str(tmp_path)), "a:"))
    assert report.compared == (Key(now - DAY_MS, "queue", "q"),) and report.begun == (
        Key(now - 2 * DAY_MS, "queue", "q"),
    )
    assert report.differences == ()
    assert kept_since(client) == now - 30 * DAY_MS


def test_an_archive_of_others_is_refused(engine: DuckDB, tmp_path: Path) -> None:
    keep(tmp_path, "a:", histories()[0].events)
    with pytest.raises(StatisticsError, match=r"has nothing of 'b:'; it has \['a:'\]"):
        fold_of(engine, Archive(str(tmp_path)), "b:")
