"""`qmodel plan`: how many workers are enough? The queue is simulated at each point of a grid, with the model itself."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli import planned
from qmodel.cli.live import need
from qmodel.cli.on import on_options, on_spark, only
from qmodel.cli.session import common, session
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from qmodel.cli.session import Session
    from qmodel.planning.capacity import Outcome
    from qmodel.planning.grids import Grid

EXAMPLE = """\
# How many workers are enough? Run: qmodel plan run {name} --picture plan.svg
# Every key: docs/pipeline/planning.md

jobs = 3000          # measured in each run, after 1000 that are not (warmup)
runs = 8             # of each point: how far the figures may be off follows from their differences
{streams}
[pools.main]
workers = 4          # each performs one job at a time
# crashes = 0.001    # the share of attempts in which the worker dies: then leases matter

[grid]               # paths of values above; the points are all combinations
"pools.main.workers" = [{workers}]
load = [1.0, 1.5]
"""

STREAM = """
[streams.{key}]
queue = {queue}
klass = {klass}
arrivals = {arrivals}
service = {service}
fails = {fails}
"""

INVENTED = (
    ("emails", "emails", "Send", '{ law = "exponential", mean_ms = 400 }',
     '{ law = "lognormal", mean_ms = 900, cv = 1.5 }', 0.0),
    ("reports", "reports", "Report", '{ law = "exponential", mean_ms = 20000 }',
     '{ law = "lognormal", mean_ms = 12000, cv = 0.5 }', 0.02),
)  # fmt: skip


@click.group("plan")
def command() -> None:
    """How many workers are enough, and how long will jobs wait? Simulated with the model itself, in virtual time."""


@command.command("new")
@click.argument("file", metavar="GRID.toml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--observe", is_flag=True, help="From the events of --url: when jobs came and how long they took.")
@click.option("--archive", metavar="FOLDER", help="The same from an archive of events (`qmodel archive run`).")
@click.option("--namespace", help="The namespace, if the archive has several.")
def new(file: Path, observe: bool, archive: str | None, namespace: str | None) -> None:
    """Write a first grid: of example jobs, or of observed ones."""
    if file.exists():
        raise QmodelError(f"{file} exists already, and is not overwritten. Give another name.")
    streams, workers = [STREAM.format(**_invented(*one)) for one in INVENTED], [3, 4, 5, 6]
    beside = file.with_suffix(".observed.json")
    if observe or archive:
        from qmodel.planning import observations

        found = []
        for one in _observed(archive, namespace):
            if sum(one.gaps) and sum(one.runs):
                found.append(one)
            else:
                name = f"{one.klass} in {one.queue}"
                click.echo(f"Left out: {name}, with no two moments of puts, or nothing that ran for 1 ms.", err=True)
        if not found:
            raise QmodelError("The events contain no completed jobs: there is nothing to observe.")
        beside.write_text(observations.dumps(found), encoding="utf-8")
        streams = [f'\nobserved = "{beside.name}"\n', *map(_stream_of, found)]
        offered = sum(sum(one.runs) / len(one.runs) / (sum(one.gaps) / len(one.gaps)) for one in found)
        workers = sorted({max(1, round(offered * times)) for times in (1.1, 1.25, 1.5, 2, 3)})
    text = EXAMPLE.format(name=file.name, streams="".join(streams), workers=", ".join(map(str, workers)))
    file.write_text(text, encoding="utf-8")
    click.echo(f"Written: {file}{f' and {beside}' if observe or archive else ''}. Next: qmodel plan run {file}")


def _invented(name: str, queue: str, klass: str, arrivals: str, service: str, fails: float) -> dict[str, Any]:
    return {
        "key": name, "queue": f'"{queue}"', "klass": f'"{klass}"', "arrivals": arrivals, "service": service,
        "fails": fails,
    }  # fmt: skip


def _stream_of(one: Any) -> str:
    import json

    name, queue, klass = (
        json.dumps(text, ensure_ascii=False) for text in (f"{one.queue} {one.klass}", one.queue, one.klass)
    )  # TOML has no surrogate pairs
    seen = '{ law = "observed" }'
    arrivals = '{ law = "recorded" }   # in their order; or "observed", by chance'
    fails = round(one.retried / one.attempts, 4) if one.attempts else 0.0
    return STREAM.format(
        key=name, queue=queue, klass=klass, arrivals=arrivals, service=seen,
        fails=min(fails, 0.9),
    )  # fmt: skip


def _observed(archive: str | None, namespace: str | None) -> Any:
    from qmodel.planning import observations

    if archive is not None:
        need("pyarrow", "arrow", "plan new --archive")
        return observations.archived(archive, namespace)
    from qmodel.pipeline.events.gaps import Gap
    from qmodel.pipeline.events.pages import pages

    gaps: list[Gap] = []  # the server keeps the last events only, and those are enough
    observer = observations.Observer()
    for page in pages(session().client, gaps=gaps):
        observer.add(page)
    return observer.observed()


@command.command("run")
@planned.options
@on_options
@click.option("--processes", type=click.IntRange(1), help="With --on local.  [default: all cores]")
@click.option("--tasks", type=click.IntRange(1), help="With --on spark.  [default: Spark's]")
def run(
    file: Path,
    out: str | None,
    picture: str | None,
    metric: str,
    on: str,
    processes: int | None,
    tasks: int | None,
) -> None:
    """Simulate all points of a grid; show how long jobs wait at each, with confidence intervals.

    On one machine, processes cost less than Spark.
    """
    at, grid, began = session(), planned.read(file, out, metric), time.monotonic()
    if on == "spark":
        only("local", processes=processes)
        with on_spark("plan run") as spark:
            from qmodel.planning.spark import measurements, outcomes

            found = outcomes(grid, measurements(spark, grid, tasks=tasks))
    else:
        only("spark", tasks=tasks)
        found = _here(at, grid, processes or os.cpu_count() or 1)
    planned.answer(at, grid, found, time.monotonic() - began, out, picture, metric)


def _here(at: Session, grid: Grid, processes: int) -> list[Outcome]:
    """Simulate a grid in processes of this machine."""
    from qmodel.planning import capacity

    with click.progressbar(
        length=len(grid.points) * grid.runs, label="runs", file=sys.stderr, hidden=at.json or not sys.stderr.isatty()
    ) as bar:
        return capacity.run(grid, processes, lambda measured: bar.update(1))


common(command)
common(new)
common(run)
