"""What commands keep at a URL is what they keep in a folder; of two that count at once, one adds its run."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")
pytest.importorskip("fsspec", reason="fsspec is not installed; it comes with the extra `test`")

import fsspec
import pyarrow.parquet as pq

from qmodel import connect
from qmodel.cli import cli
from qmodel.cli import files as cli_files
from qmodel.contract import operations as ops
from qmodel.errors import QmodelError
from qmodel.pipeline.archive.layout import Archive
from qmodel.pipeline.archive.write import archive
from qmodel.pipeline.silver.build import update
from qmodel.pipeline.statistics import runs
from qmodel.pipeline.statistics.count import collect, count
from qmodel.pipeline.statistics.local import DuckDB
from qmodel.pipeline.statistics.runs import Busy, RemoteRuns, StatisticsError, runs_at
from qmodel.pipeline.statistics.tables import publish
from tests.pipeline.archives import put
from tests.pipeline.histories import histories
from tests.pipeline.kept import keep


@pytest.fixture
def engine() -> Iterator[DuckDB]:
    with DuckDB(memory="500MB", threads=2) as engine:
        yield engine


@pytest.fixture(params=["memory", pytest.param("s3", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param)).removesuffix("/events")


def upload(folder: Path, url: str) -> None:
    """Copy an archive to an object store."""
    found, path = fsspec.url_to_fs(url)
    for file in folder.rglob("*.parquet"):
        found.pipe_file(f"{path}/{file.relative_to(folder)}", file.read_bytes())


def names(url: str) -> list[str]:
    """List the objects below a URL."""
    found, path = fsspec.url_to_fs(url, use_listings_cache=False)
    return sorted(name.removeprefix(path).lstrip("/") for name in found.find(path))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def test_statistics_kept_at_a_url_are_those_of_a_folder(engine: DuckDB, tmp_path: Path, place: str) -> None:
    some, folder = histories()[:6], tmp_path / "archive"
    for part in (0, 1):
        for number, watched in enumerate(some):
            half = len(watched.events) // 2
            keep(folder, f"n{number}:", watched.events[half:] if part else watched.events[:half])
        upload(folder, f"{place}/archive")
        there = Archive(f"{place}/archive")
        assert count(engine, there, f"{place}/out")
        assert not count(engine, there, f"{place}/out")
        publish(engine, f"{place}/out")
    found = collect(engine)
    count(engine, Archive(str(folder)), None)
    assert found == collect(engine)
    kept = [name for name in names(f"{place}/out") if "/" not in name]
    assert kept == ["failures.parquet", "histograms.parquet", "statistics.parquet"]
    with fsspec.open(f"{place}/out/statistics.parquet") as file:
        assert pq.read_table(file).num_rows == len(found)
    carried = [name for name in names(f"{place}/out") if "/carried/" in name]
    assert len(carried) == 1


def test_jobs_and_attempts_are_kept_at_a_url(engine: DuckDB, tmp_path: Path, place: str) -> None:
    folder, asked = tmp_path / "archive", "select * exclude (namespace) from jobs order by all"
    for number, watched in enumerate(histories()[:3]):
        keep(folder, f"n{number}:", watched.events)
    upload(folder, f"{place}/archive")
    update(engine, Archive(f"{place}/archive"), f"{place}/silver")
    found = engine.rows(asked)
    update(engine, Archive(str(folder)), str(tmp_path / "silver"))
    assert found == engine.rows(asked) and found


def test_of_two_that_count_at_once_one_adds_its_run(
    engine: DuckDB, tmp_path: Path, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(tmp_path, "a:", histories()[0].events)
    out, commit, archived = f"{memory}/out", RemoteRuns.commit, Archive(str(tmp_path))

    def meanwhile(self: RemoteRuns, made: str, ranges: dict[str, runs.Range]) -> None:
        """Let another process add its run before this one."""
        monkeypatch.setattr(RemoteRuns, "commit", commit)
        with DuckDB() as other:
            count(other, archived, out)
        commit(self, made, ranges)

    monkeypatch.setattr(RemoteRuns, "commit", meanwhile)
    with pytest.raises(Busy, match=r"Another process counted into .* meanwhile"):
        count(engine, archived, out)
    assert runs_at(out).numbers() == [1]
    assert len({name.partition("/")[0] for name in names(out)} - {"runs"}) == 1
    assert not count(engine, archived, out)


def test_a_run_that_was_not_added_is_removed_after_a_day(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = runs_at(memory)
    with fsspec.open(f"{there.begin()}/cells/part.parquet", "wb") as file:
        file.write(b"left")
    with there.alone():
        assert len(names(memory)) == 1
    monkeypatch.setattr(runs, "LEFT", -1)
    with there.alone():
        assert names(memory) == []


def test_a_url_that_nothing_opens_is_named(engine: DuckDB) -> None:
    with pytest.raises(StatisticsError, match="nosuch://x cannot hold runs"):
        runs_at("nosuch://x")
    with pytest.raises(QmodelError, match="nosuch://x cannot be"):
        cli_files.read("nosuch://x")
    with pytest.raises(QmodelError, match="cannot be written: No such file"):
        cli_files.write("/nowhere/at/all", b"")
    with pytest.raises(QmodelError, match="cannot be read"):
        cli_files.read("memory://nothing/there")


def test_commands_keep_their_output_at_urls(url: str, place: str, tmp_path: Path) -> None:
    with connect(url) as client:
        client.execute(ops.ConfigSet("journal", 1))
        put(client, 20)
    list(archive(url, f"{place}/archive"))
    done = run("--url", url, "audit", "--save", f"{place}/state.gz")
    assert done.exit_code == 0 and gzip.decompress(cli_files.read(f"{place}/state.gz"))
    done = run("--url", url, "audit", "--from", f"{place}/state.gz")
    assert done.exit_code == 0 and done.output.startswith("0 entries")
    done = run("statistics", f"{place}/archive", "--out", f"{place}/out", "--svg", f"{place}/out.svg")
    assert done.exit_code == 0 and b"<svg" in cli_files.read(f"{place}/out.svg")
    done = run("--json", "query", f"{place}/archive", "select count(*) as n from jobs")
    assert json.loads(done.stdout) == [{"n": 20}]
    assert run("--url", url, "reconcile", f"{place}/archive").exit_code == 0
    grid = str(tmp_path / "grid.toml")
    assert run("plan", "new", grid).exit_code == 0
    text = Path(grid).read_text(encoding="utf-8").replace("jobs = 3000", "jobs = 100\nwarmup = 20")
    Path(grid).write_text(text.replace("runs = 8", "runs = 2"), encoding="utf-8")
    for name in ("plan.csv", "plan.parquet"):
        assert run("plan", "run", grid, "--processes", "1", "--out", f"{place}/{name}").exit_code == 0
        assert cli_files.read(f"{place}/{name}")
