"""Read the grid of `qmodel plan run`; show and write the results."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmodel.cli import files
from qmodel.cli.show import table
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.cli.session import Session
    from qmodel.planning.capacity import Outcome
    from qmodel.planning.confidence import Estimate
    from qmodel.planning.grids import Grid

C = TypeVar("C", bound=Callable[..., Any])
UNITS = ((1, 1000, "ms"), (1000, 120_000, "s"), (60_000, 7_200_000, "min"), (3_600_000, float("inf"), "h"))
"""How many ms, below which mean it is used, and its name."""
SHOWN = ("wait_p50", "wait_p95", "wait_p99", "total_p99")


def options(command: C) -> C:
    """Give a command the common options."""
    for one in reversed(
        [
            click.argument("file", metavar="GRID.toml", type=click.Path(dir_okay=False, path_type=Path)),
            click.option(
                "--out", metavar="FILE", help="Write a table, to a file or a URL such as s3://…: .csv or .parquet."
            ),
            click.option("--picture", metavar="FILE", help="Draw the results, as SVG."),
            click.option("--metric", default="wait_p99", show_default=True, help="The metric of the picture."),
        ]
    ):
        command = one(command)
    return command


def read(file: Path, out: str | None, metric: str) -> Grid:
    """Read the grid. Raises QmodelError for results that could not be written afterwards."""
    from qmodel.planning.capacity import METRICS
    from qmodel.planning.grids import read

    if out is not None and not out.endswith((".csv", ".parquet")):
        raise click.UsageError(f"--out is a name that ends in .csv or .parquet, and not {out}.")
    drawn = [one for one in METRICS if one.startswith(("wait_", "total_"))]
    if metric not in drawn:
        raise click.UsageError(f"--metric is one of {', '.join(drawn)}, and not {metric}.")
    try:
        return read(file)
    except FileNotFoundError:
        raise QmodelError(f"There is no file {file}. `qmodel plan new {file}` writes a first one.") from None


def answer(
    at: Session,
    grid: Grid,
    found: Sequence[Outcome],
    seconds: float,
    out: str | None,
    picture: str | None,
    metric: str,
) -> None:
    """Show the results, and write the requested files."""
    from qmodel.planning.capacity import table as rows_of

    rows = rows_of(grid, found)
    if out is not None:
        _write(rows, out)
    if picture is not None:
        from qmodel.planning import plots

        files.write(picture, plots.picture(grid, found, metric).encode())
    if at.json:
        at.answer({"points": len(grid.points), "runs": grid.runs, "seconds": round(seconds, 3), "rows": rows})
        return
    _show(at, grid, found)
    runs = len(grid.points) * grid.runs
    click.echo(
        f"\n{counted(len(grid.points), 'point')}, {counted(grid.runs, 'run')} each, in {seconds:.1f} s "
        f"({runs / max(seconds, 1e-9):.1f} runs a second). A wait lasts from the put to the start; ± is for 95 %."
    )
    if not all(one.settled for one in found):
        click.echo(
            "growing: waits still grew at the end of the run; there was too much work, or the warmup was too short."
        )


def _write(rows: list[dict[str, Any]], out: str) -> None:
    if out.endswith(".csv"):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        files.write(out, text.getvalue().encode())
        return
    import pyarrow as pa
    from pyarrow import parquet

    try:
        made = pa.Table.from_pylist(rows)
    except pa.ArrowException as error:
        raise QmodelError(f"The values of the grid do not fit into one column: {error}. Write a .csv.") from None
    data = pa.BufferOutputStream()
    parquet.write_table(made, data)
    files.write(out, data.getvalue().to_pybytes())


def _show(at: Session, grid: Grid, found: Sequence[Outcome]) -> None:
    axes = [axis for axis, _ in grid.axes]
    heads = [*axes, "stream", ">busy", *(f">{name.replace('_', ' ')}" for name in SHOWN)]
    rows = []
    for one in found:
        for name, values in one.streams.items():
            told = [str(value) for _, value in one.point.values]
            figures = [_figure(values[metric]) for metric in SHOWN]
            busy = f"{one.busy.mean:.0%}" if one.settled else f"growing, {one.busy.mean:.0%}"
            rows.append([*told, name, busy, *figures])
    table(at, heads, rows)


def _figure(value: Estimate) -> str:
    """Format a duration and its error in one unit, so that the two can be compared."""
    unit, name = next((unit, name) for unit, below, name in UNITS if value.mean < below)
    half = _digits(value.half / unit) if math.isfinite(value.half) else "?"
    return f"{_digits(value.mean / unit)} ± {half} {name}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or not value else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
