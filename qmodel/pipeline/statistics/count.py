"""Count the events of an archive with an SQL engine: DuckDB or Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from qmodel.pipeline.archive.forks import epoch_of
from qmodel.pipeline.archive.layout import Archive, File
from qmodel.pipeline.archive.write import EVENTS
from qmodel.pipeline.statistics import sql
from qmodel.pipeline.statistics.figures import Figures, Name, add_bins, date_of, figures
from qmodel.pipeline.statistics.runs import CARRIED, CELLS, Range, Runs, StatisticsError, again_if_merged, runs_at


class Engine(Protocol):
    """An SQL engine."""

    dialect: sql.Dialect

    def events(self, name: str, archive: Archive, files: Sequence[File]) -> None:
        """Define a view of the events in some files of an archive, or in none: their columns and `namespace`."""

    def parquet(self, name: str, folders: Sequence[str]) -> None:
        """Define a view of the Parquet files in some folders."""

    def view(self, name: str, select: str) -> None:
        """Define a view: the select is executed whenever it is used."""

    def table(self, name: str, select: str) -> None:
        """Define a table: the select is executed once and its rows are kept."""

    def write(self, select: str, folder: str) -> None:
        """Write the rows of a select into a new folder, or to a URL, as Parquet."""

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        """Give the rows of a select."""


def new_ranges(archive: Archive, counted: dict[str, int], namespace: str | None = None) -> dict[str, Range]:
    """Find the new events of an archive, by namespace.

    Raises ArchiveError if the archive has gaps, and StatisticsError if more was counted than it has.
    """
    there = archive.namespaces()
    if not there or namespace not in (None, *there):
        which = f"{archive.root} has no namespace {namespace!r}; it has {there}." if there else ""
        raise StatisticsError(
            which or f"There is no archive at {archive.root}. Make one: qmodel archive run {archive.root}"
        )
    found = {}
    for one in there if namespace is None else [namespace]:
        after, until = counted.get(one, 0), archive.last(one)
        if until < after:
            raise StatisticsError(
                f"The archive {archive.root} ends with event {until} of {one!r}, and {after} were counted already: it "
                f"is another archive, or an older copy. Use another folder for --out to count everything again."
            )
        if until > after:
            found[one] = Range(after, until, archive.position(one).epoch)
    return found


def count(engine: Engine, archive: Archive, out: str | None, namespace: str | None = None) -> dict[str, Range]:
    """Count the new events, and define the view `cells` over all runs; give the ranges that were new.

    Without `out` all events are new, and nothing is kept. Raises ArchiveError and StatisticsError.
    """
    return again_if_merged(lambda: _count(engine, archive, out, namespace))


def _count(engine: Engine, archive: Archive, out: str | None, namespace: str | None) -> dict[str, Range]:
    if out is None:
        new = new_ranges(archive, {}, namespace)
        if new:
            define_views(engine, archive, new)
        engine.table("cells", _cells(engine) if new else _no_cells())
        return new
    runs = runs_at(out)
    with runs.alone():
        check_history(archive, runs)
        new = new_ranges(archive, runs.counted(), namespace)
        if new:
            define_views(engine, archive, new, runs.carried())
            _run(engine, runs, new)
    folders = runs.cells()
    engine.parquet("cells", folders) if folders else engine.table("cells", _no_cells())
    return new


def check_history(archive: Archive, runs: Runs) -> None:
    """Refuse to go on if counted events were taken back from the archive, because the server lost them."""
    for namespace, (_, until, epoch) in runs.last().items():
        now = epoch_of(archive, namespace, until, EVENTS)
        if None not in (now, epoch) and now != epoch:
            raise StatisticsError(
                f"Event {until} of {namespace!r} was counted in epoch {epoch}, and is of epoch {now} in the archive "
                f"{archive.root} now: the server lost events that were counted, and the archive took them back. Use "
                f"another folder for --out to count everything again."
            )


def _run(engine: Engine, runs: Runs, new: dict[str, Range]) -> None:
    """Count the new events and keep the result, all or nothing."""
    made = runs.begin()
    try:
        engine.write(_cells(engine), f"{made}/{CELLS}")
        engine.write(sql.carried("slim"), f"{made}/{CARRIED}")
    except BaseException:
        runs.drop(made)
        raise
    runs.commit(made, new)


def define_views(
    engine: Engine, archive: Archive, new: dict[str, Range], carried: str | None = None, since: int = 0
) -> None:
    """Define the views `slim` and `counted` over the events in some ranges.

    `carried` are earlier events that these need. Events of the days before `since` (ms) are left out.
    """
    define_archived(engine, archive, new, since)
    slim = sql.slim("archived", "ranges", engine.dialect)
    if carried:
        engine.parquet("carried", [carried])
        names = ", ".join(sql.COLUMNS)
        slim = f"select {names} from ({slim}) as new union all select {names} from carried"
    engine.view("slim", slim)
    engine.view("counted", sql.counted("slim", "ranges", engine.dialect))


def define_archived(engine: Engine, archive: Archive, new: dict[str, Range], since: int = 0) -> None:
    """Define the views `archived`, the files with some ranges, and `ranges`. All of a range may be recorded as lost."""
    first = date_of(since)
    files = [file for one, (after, until, _) in new.items() for file in archive.files(one, after=after, last=until)]
    engine.events("archived", archive, [file for file in files if file.day >= first])
    rows = ", ".join(f"({engine.dialect.text(one)}, {after}, {until})" for one, (after, until, _) in new.items())
    engine.table(
        "ranges",
        f"select col0 as namespace, col1 as after, col2 as until from (values {rows}) as named(col0, col1, col2)",
    )


def _cells(engine: Engine) -> str:
    engine.table("tagged", sql.tagged("slim"))
    engine.view("spans", sql.spans("tagged"))
    engine.view("counted_tagged", sql.counted("tagged", "ranges", engine.dialect))
    return f"{sql.cells('counted')} union all {sql.tag_cells('counted_tagged', 'spans')}"


def _no_cells() -> str:
    whole = ("day", "cell", "n", "total", "low", "high")
    kinds = {name: "bigint" for name in whole} | {"squares": "decimal(38, 0)"}
    columns = ", ".join(f"cast(null as {kinds.get(name, 'string')}) as {name}" for name in sql.CELLS)
    return f"select {columns} where 1 = 0"


def collect(
    engine: Engine,
    *,
    kinds: Sequence[str] = (),
    days: Sequence[int] = (),
    namespace: str | None = None,
    together: bool = False,
    bins: bool = True,
) -> dict[Name, Figures]:
    """Read the figures of all cells, or of some kinds and days (their starts, ms), or of one namespace.

    With `together`, all these days are one that begins with the first. Without `bins` the histograms are left out,
    which are most of the rows.
    """
    where = ["1 = 1"]
    if kinds:
        where.append(f"kind in ({', '.join(map(engine.dialect.text, kinds))})")
    if days:
        where.append(f"day in ({', '.join(map(str, days))})")
    if namespace is not None:
        where.append(f"namespace = {engine.dialect.text(namespace)}")
    columns = ", ".join(name for name in sql.CELLS if name != "day")
    day = "min(day) over () as day" if together else "day"
    engine.view("chosen", f"select {columns}, {day} from cells where {' and '.join(where)}")
    found = figures(engine.rows(sql.measured("chosen")), engine.rows(sql.tallied("chosen")))
    if bins:
        add_bins(found, engine.rows(sql.binned("chosen")))
    return found
