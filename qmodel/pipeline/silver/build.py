"""Keep tables of jobs and attempts beside an archive; each run adds the rows of new events.

    <out>/runs/000001/jobs/        the jobs that ended in this run
                      attempts/    their attempts
                      carried/     the events of open lives; kept for the last run only

Runs are those of `qmodel.pipeline.statistics.runs`: each exists whole or not at all, and DuckDB and Spark take turns.
"""

from __future__ import annotations

from qmodel.pipeline.archive.layout import Archive
from qmodel.pipeline.silver import sql
from qmodel.pipeline.statistics.count import Engine, check_history, define_archived, new_ranges
from qmodel.pipeline.statistics.runs import CARRIED, Range, Runs, StatisticsError, again_if_merged, runs_at

JOBS, ATTEMPTS = "jobs", "attempts"


def update(engine: Engine, archive: Archive, out: str, namespace: str | None = None) -> dict[str, Range]:
    """Add the rows of new events, and define the views `events`, `jobs` and `attempts`; give the new ranges.

    Raises ArchiveError if the archive has gaps, and StatisticsError if the tables do not fit it.
    """
    return again_if_merged(lambda: _update(engine, archive, out, namespace))


def _update(engine: Engine, archive: Archive, out: str, namespace: str | None) -> dict[str, Range]:
    new_ranges(archive, {}, namespace)  # nothing is made for an archive that is not there
    runs = runs_at(out)
    with runs.alone():
        check_history(archive, runs)
        new = new_ranges(archive, runs.counted(), namespace)
        if new:
            _run(engine, archive, runs, new)
        elif not runs.numbers():
            raise StatisticsError(
                f"The archive {archive.root} has no events yet. When there are some: qmodel archive run {archive.root}"
            )
    engine.events("bronze", archive, archive.files(namespace))
    engine.view("events", sql.events("bronze", engine.dialect))
    _define(engine, runs)
    return new


def _run(engine: Engine, archive: Archive, runs: Runs, new: dict[str, Range]) -> None:
    """Write the rows of lives that are closed now, and the events of the others, all or nothing."""
    define_archived(engine, archive, new)
    select = sql.steps("archived", "ranges", engine.dialect)
    if carried := runs.carried():
        engine.parquet("carried_before", [carried])
        names = ", ".join(sql.COLUMNS)
        select = f"select {names} from ({select}) as new union all select {names} from carried_before"
    engine.table("lives", sql.lives(f"({select}) as steps", engine.dialect))
    engine.view("closed", "select * from lives where closing is not null")
    made = runs.begin()
    try:
        engine.write(sql.jobs("closed", engine.dialect), f"{made}/{JOBS}")
        engine.write(sql.attempts("closed", engine.dialect), f"{made}/{ATTEMPTS}")
        engine.write(sql.carried("lives"), f"{made}/{CARRIED}")
    except BaseException:
        runs.drop(made)
        raise
    runs.commit(made, new)


def _define(engine: Engine, runs: Runs) -> None:
    """Define the views: the rows of all runs, and those of open lives."""
    carried = runs.carried()
    assert carried is not None, "a run was made, because there are events"
    engine.parquet("carried", [carried])
    engine.table("open_lives", sql.lives("carried", engine.dialect))
    for name, select in ((JOBS, sql.jobs), (ATTEMPTS, sql.attempts)):
        engine.parquet(f"closed_{name}", runs.folders(name))
        of_open = select("open_lives", engine.dialect)
        engine.view(name, f"select * from closed_{name} union all select * from ({of_open}) as of_open")
