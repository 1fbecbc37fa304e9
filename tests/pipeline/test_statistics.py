"""Statistics by SQL equal those of a fold, in one run or in many."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from qmodel.cli import cli
from qmodel.model.state.stats import bin_of
from qmodel.pipeline.statistics.fold import KINDS, Fold
from qmodel.pipeline.statistics.tallies import Sample, Tally
from tests.pipeline.histories import histories
from tests.pipeline.kept import keep
from tests.processes import started
from tests.servers import ROOT

pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `duckdb`")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")

from qmodel.pipeline.archive.commit import writing  # noqa: E402
from qmodel.pipeline.archive.layout import Archive, ArchiveError, Commit  # noqa: E402
from qmodel.pipeline.events.gaps import Gap  # noqa: E402
from qmodel.pipeline.statistics.cells import LONGEST, SHIFT, cell_sql, fine_of, fine_range  # noqa: E402
from qmodel.pipeline.statistics.count import collect, count  # noqa: E402
from qmodel.pipeline.statistics.figures import Durations, Figures, Name  # noqa: E402
from qmodel.pipeline.statistics.local import DuckDB  # noqa: E402
from qmodel.pipeline.statistics.runs import Runs, StatisticsError  # noqa: E402
from qmodel.pipeline.statistics.tables import publish  # noqa: E402


@pytest.fixture
def engine() -> Iterator[DuckDB]:
    with DuckDB(memory="500MB", threads=2) as engine:
        yield engine


def name_of(number: int) -> str:
    """Name a history's namespace, with characters that paths and SQL must quote."""
    return f"{{n'{number}}}:%41\\"


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Archive each history as a namespace."""
    root = tmp_path_factory.mktemp("archive")
    for number, watched in enumerate(histories()):
        keep(root, name_of(number), watched.events)
    return root


def folded() -> dict[Name, Tally]:
    """Fold all histories."""
    found = {}
    for number, watched in enumerate(histories()):
        fold = Fold()
        fold.add(watched.events)
        found |= {Name(name_of(number), key.day, key.by, key.name): tally for key, tally in fold.tallies.items()}
    return found


def same(durations: Durations, sample: Sample) -> None:
    """Both have the same durations."""
    assert (durations.count, +durations.bins) == (sample.count, +sample.bins)
    assert durations.mean == pytest.approx(sample.mean, rel=1e-12)
    assert durations.squares == pytest.approx(sample.squares, rel=1e-9, abs=1e-6)


def alike(figures: Figures, tally: Tally) -> None:
    """Both have the same figures."""
    same(figures.wait, tally.wait)
    same(figures.run, tally.run)
    there = (tally.failures, tally.failed, tally.retries, +tally.groups)
    assert (figures.failures, figures.failed, figures.retries, +figures.groups) == there
    assert sum(figures.hours.values()) == tally.run.count


def test_by_sql_all_figures_are_those_of_a_fold(engine: DuckDB, archived: Path) -> None:
    assert len(count(engine, Archive(str(archived)), None)) == len(histories())
    found, expected = collect(engine), folded()
    assert {name.kind for name in found} == set(KINDS)
    for name in found.keys() | expected.keys():
        alike(found.get(name, Figures()), expected.get(name, Tally()))
    assert sum(one.retries + one.failures for one in found.values()) > 500


def test_counted_in_parts_and_again_the_figures_are_the_same(engine: DuckDB, tmp_path: Path) -> None:
    chooser, root, out = random.Random("parts"), tmp_path / "archive", str(tmp_path / "out")
    some = histories()[::4]
    done = [0] * len(some)
    for size in (10, 30, 60, 10**6):
        for number, watched in enumerate(some):
            if events := watched.events[done[number] : done[number] + size // chooser.choice([1, 2, 11])]:
                keep(root, name_of(number), events)
                done[number] += len(events)
        count(engine, Archive(str(root)), out)
        files = sorted(Path(out).rglob("*.*"))
        assert count(engine, Archive(str(root)), out) == {}
        assert sorted(Path(out).rglob("*.*")) == files
    parts = collect(engine)
    assert len(list((Path(out) / "runs").iterdir())) == 4
    count(engine, Archive(str(root)), None)
    assert parts == collect(engine)


def written(out: Path) -> dict[str, list[dict[str, Any]]]:
    """List the rows of the tables in a folder, sorted."""
    names = ("statistics", "histograms", "failures")
    return {name: sorted(pq.read_table(out / f"{name}.parquet").to_pylist(), key=repr) for name in names}


def test_tables_that_are_written_for_new_days_are_those_of_all(engine: DuckDB, tmp_path: Path) -> None:
    root, out, anew = tmp_path / "archive", tmp_path / "out", tmp_path / "anew"
    some = sorted(histories(), key=lambda one: len(one.events))[-6:]
    third = len(some[0].events) // 3
    for first, last in ((0, third), (third, 2 * third), (2 * third, None)):
        for number, watched in enumerate(some):
            keep(root, name_of(number), watched.events[first:last])
        count(engine, Archive(str(root)), str(out))
        publish(engine, str(out))
    shutil.copytree(out / "runs", anew / "runs")
    publish(engine, str(anew))
    assert written(out) == written(anew)
    assert len({row["day"] for row in written(out)["statistics"]}) > 1


def test_of_a_table_only_the_days_that_were_counted_are_written(engine: DuckDB, tmp_path: Path) -> None:
    root, out = tmp_path / "archive", tmp_path / "out"
    events = max((one.events for one in histories()), key=lambda events: events[-1].at - events[0].at)
    cut = max(at for at, event in enumerate(events) if event.event == "popped")
    keep(root, "a:", events[:cut])
    count(engine, Archive(str(root)), str(out))
    publish(engine, str(out))
    table = pq.read_table(out / "statistics.parquet")
    strange = table.set_column(table.schema.get_field_index("retries"), "retries", [[10**6] * len(table)])
    pq.write_table(strange, out / "statistics.parquet")
    publish(engine, str(out))
    assert {row["retries"] for row in written(out)["statistics"]} == {10**6}, "nothing was new"
    keep(root, "a:", events[cut:])
    count(engine, Archive(str(root)), str(out))
    publish(engine, str(out))
    kept = {row["day"]: row["retries"] == 10**6 for row in written(out)["statistics"]}
    assert set(kept.values()) == {True, False} and not kept[max(kept)]
    shutil.rmtree(out / "runs")
    count(engine, Archive(str(root)), str(out))
    publish(engine, str(out))
    assert max(row["retries"] for row in written(out)["statistics"]) < 10**6, "other runs: all is written anew"


def test_a_run_that_fails_leaves_nothing_and_the_next_counts_all(
    engine: DuckDB, archived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        write = engine.write
        patch.setattr(engine, "write", lambda select, folder: write(select if "cells" in folder else "no", folder))
        with pytest.raises(Exception, match="syntax"):
            count(engine, Archive(str(archived)), str(out))
    assert [path.name for path in out.iterdir() if path.name != "_lock"] == ["runs"] and not list(
        (out / "runs").iterdir()
    )
    assert len(count(engine, Archive(str(archived)), str(out))) == len(histories())


def test_wherever_it_is_killed_each_event_is_counted_once(engine: DuckDB, tmp_path: Path) -> None:
    events = max((one.events for one in histories()), key=len)
    root, out = tmp_path / "archive", tmp_path / "out"
    program = [sys.executable, "-m", "qmodel", "statistics", str(root), "--out", str(out), "--json"]
    chooser = random.Random("killed")
    for after in range(0, len(events), -(-len(events) // 4)):
        keep(root, "a:", events[after : after + -(-len(events) // 4)])
        with started(program, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chooser.uniform(0.2, 2.0))
            process.kill()
    (out / "_run-left").mkdir(parents=True, exist_ok=True)
    count(engine, Archive(str(root)), str(out))
    assert not list(out.glob("_run-*"))
    found = collect(engine)
    count(engine, Archive(str(root)), None)
    assert found == collect(engine)


def test_one_process_counts_at_a_time(tmp_path: Path) -> None:
    keep(tmp_path / "archive", "a:", histories()[0].events)
    with Runs(str(tmp_path / "out")).alone():
        program = [
            sys.executable,
            "-m",
            "qmodel",
            "statistics",
            str(tmp_path / "archive"),
            "--out",
            str(tmp_path / "out"),
        ]
        done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (1, "") and "Another process counts into" in done.stderr


def test_what_does_not_fit_what_was_counted_is_refused(engine: DuckDB, tmp_path: Path) -> None:
    events = next(one.events for one in histories() if len(one.events) > 20)
    archive, out = Archive(str(tmp_path / "archive")), str(tmp_path / "out")
    keep(tmp_path / "archive", "a:", events[:10])
    count(engine, archive, out)
    for file in archive.files():
        Path(file.path).unlink()
    keep(tmp_path / "archive", "a:", events[:5])
    with pytest.raises(StatisticsError, match="ends with event 5 of 'a:', and 10 were counted already"):
        count(engine, archive, out)
    keep(tmp_path / "archive", "a:", events[7:12])
    with pytest.raises(ArchiveError, match="ends with number 12"):
        count(engine, archive, out)
    with pytest.raises(StatisticsError, match="DuckDB cannot open nosuch://x"):
        engine.parquet("cells", ["nosuch://x"])


def test_a_damaged_file_is_named_and_a_table_is_made_anew(tmp_path: Path) -> None:
    events = next(one.events for one in histories() if len(one.events) > 20)
    root, out = tmp_path / "archive", tmp_path / "out"
    keep(root, "a:", events[:10])
    assert run(str(root), "--out", str(out)).exit_code == 0
    (good, tables) = written(out), [out / f"{name}.parquet" for name in written(out)]
    for path, torn in zip(tables, (b"", b"PAR1", tables[2].read_bytes()[:-9]), strict=True):
        path.write_bytes(torn)
    assert run(str(root), "--out", str(out)).exit_code == 0 and written(out) == good
    (cells,), counts = (out / "runs/000001/cells").iterdir(), out / "runs/000001/counts.json"
    (kept,) = root.rglob("*.parquet")
    for path, says in ((cells, "DuckDB says: .*part.parquet"), (counts, "counts.json is damaged"), (kept, "verify")):
        whole = path.read_bytes()
        path.write_bytes(whole[:3])
        tables[0].unlink(missing_ok=True)
        done = run(str(root), *(() if path == kept else ("--out", str(out))))
        assert (done.exit_code, type(done.exception)) == (1, SystemExit) and re.search(says, done.stderr), done
        path.write_bytes(whole)
    cells.unlink()
    assert "cells has no Parquet files any more" in run(str(root), "--out", str(out)).stderr


def test_a_cell_is_the_bin_and_the_fine_cell(engine: DuckDB) -> None:
    edges = {edge + near for power in range(43) for edge in (2**power, 1000 * 2**power) for near in (-1, 0, 1)}
    edges |= {edge * 1000 + near for edge in (60, 3600, 86_400, 259_200, 2_592_000) for near in (-1, 0, 1)}
    chosen = sorted(edge for edge in edges if 0 <= edge < LONGEST)
    rows = ", ".join(f"({edge})" for edge in chosen)
    found = engine.rows(f"select ms, {cell_sql('ms')} from (values {rows}) as edges(ms)")
    assert dict(found) == {edge: fine_of(edge) * SHIFT + bin_of(edge) for edge in chosen}
    for edge in chosen:
        low, high = fine_range(fine_of(edge))
        assert low <= edge <= high and (high - low) // 2 <= edge / 64


def test_percentiles_are_as_near_as_it_is_said(engine: DuckDB, archived: Path) -> None:
    count(engine, Archive(str(archived)), None)
    waits: dict[tuple[str, str], list[int]] = {}
    for number, watched in enumerate(histories()):
        for event in watched.events:
            if event.event == "popped":
                waits.setdefault((name_of(number), str(event.facts[1])), []).append(int(event.facts[3]))
    found = {name: one for name, one in collect(engine, kinds=["queue"], together=True).items() if one.wait.count}
    assert {(name.namespace, name.name) for name in found} == waits.keys()
    for name, figures in found.items():
        values = sorted(waits[name.namespace, name.name])
        for share, told in figures.wait.percentiles.items():
            exact = values[-(-share * len(values) // 100) - 1]
            assert abs(told - exact) <= exact / 64


def run(*arguments: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(cli, ["statistics", *arguments], prog_name="qmodel")


def test_the_command_shows_draws_and_keeps_what_it_counts(tmp_path: Path) -> None:
    watched = max(histories(), key=lambda one: sum(event.event == "completed" for event in one.events))
    root, out = str(tmp_path / "archive"), tmp_path / "out"
    keep(tmp_path / "archive", "<a>:", watched.events)
    shown = run(root, "--by", "tag,queue", "--top", "1", "--out", str(out), "--svg", str(tmp_path / "a.svg"))
    assert shown.exit_code == 0 and "with less (--top, --json)" in shown.stdout
    assert f"Counted {len(watched.events)} new events of 1 namespace; " in shown.stderr
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    rows = json.loads(run(root, "--by", "queue", "--json").stdout)
    table = pq.read_table(out / "statistics.parquet").to_pylist()
    plain = [{name: value for name, value in row.items() if name != "groups"} for row in rows]
    assert plain == [row for row in table if row["kind"] == "queue"] and plain
    for row in rows:
        of_row = f"name = '{row['name']}' and day = '{row['day']}' and kind = 'queue'"
        assert sum(row["groups"].values()) == row["failures"]
        with DuckDB() as engine:
            bins = engine.rows(f"select sum(count) from '{out}/histograms.parquet' where {of_row} and measure = 'run'")
        assert (bins[0][0] or 0) == row["run_count"]
    one_day = json.loads(run(root, "--day", rows[0]["day"], "--json").stdout)
    assert one_day == [row for row in rows if row["day"] == rows[0]["day"]]


def test_what_cannot_be_counted_is_said_in_a_sentence(tmp_path: Path) -> None:
    keep(tmp_path, "a:", histories()[0].events)
    assert "There is no archive at" in run(str(tmp_path / "none")).stderr
    assert "there is no kind 'color': there are queue, klass, worker, tag" in run("x", "--by", "color").stderr
    assert "has no namespace 'b:'; it has ['a:']" in run(str(tmp_path), "--namespace", "b:").stderr
    assert "Nothing is counted by queue." in run(str(tmp_path), "--day", "1999-01-01").stdout
    assert "Error: DuckDB says: " in (said := run(str(tmp_path), "--memory", "2apples").stderr) and "2GB" in said


def test_of_a_namespace_only_its_figures_are_shown_also_of_earlier_runs(tmp_path: Path) -> None:
    root, out = str(tmp_path / "archive"), str(tmp_path / "out")
    for name in ("a:", "b'\\:"):
        keep(tmp_path / "archive", name, max(histories(), key=lambda one: len(one.events)).events)
    assert run(root, "--out", out).exit_code == 0
    for name in ("a:", "b'\\:"):
        rows = json.loads(run(root, "--out", out, "--namespace", name, "--json").stdout)
        assert {row["namespace"] for row in rows} == {name}


def test_events_that_are_all_recorded_as_lost_count_nothing(tmp_path: Path) -> None:
    root, out, events = tmp_path / "archive", str(tmp_path / "out"), histories()[0].events
    keep(root, "a:", events[:20])
    with DuckDB() as engine:
        count(engine, Archive(str(root)), out)
        before = collect(engine)
    with writing(Archive(str(root)), "a:") as writer:
        writer.commit(writer.begin(), Commit(holes=(Gap(21, 30),)))
    with DuckDB() as engine:
        assert count(engine, Archive(str(root)), out)["a:"][:2] == (20, 30)
        assert collect(engine) == before
        assert count(engine, Archive(str(root)), str(tmp_path / "anew"))["a:"][:2] == (0, 30)
        assert collect(engine) == before
    keep(root, "a:", events[30:])
    with DuckDB() as engine:
        count(engine, Archive(str(root)), out)
        found = collect(engine)
        count(engine, Archive(str(root)), None)
        assert found == collect(engine)


def test_folders_above_an_archive_are_no_columns(engine: DuckDB, tmp_path: Path) -> None:
    events = max(histories(), key=lambda one: len(one.events)).events
    roots = [tmp_path / "a", tmp_path / "namespace=other" / "queue=none" / "day=1999-01-01" / "a [1] {b} *?"]
    for root in roots:
        keep(root, "100% ü/=:", events)
    one, other = (count(engine, Archive(str(root)), None) and collect(engine) for root in roots)
    assert one == other and {name.namespace for name in one} == {"100% ü/=:"}
