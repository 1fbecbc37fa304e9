"""`qmodel types`: the figures of each job type, from the newest events."""

from __future__ import annotations

import click

from qmodel.cli import show
from qmodel.cli.convert import format_duration
from qmodel.cli.session import common, session
from qmodel.client import job_types
from qmodel.client.job_types import Durations, TypeFigures
from qmodel.present.numbers import counted, number

COLUMNS = (
    "job type",
    ">put",
    ">started",
    ">completed",
    ">a minute",
    ">retried",
    ">failed",
    ">lost",
    "wait",
    "run",
    "why",
)


@click.command("types")
@click.option(
    "--events", type=click.IntRange(1, 100_000), default=job_types.EVENTS, show_default=True,
    help="How many of the newest events to read.",
)  # fmt: skip
def command(events: int) -> None:
    """Show counts, rates, waits and runs by job type, and why jobs failed; the busiest type first.

    The figures come from the newest events. Waits and runs are percentiles: 50, 95 and 99 of 100 were at most so long.
    """
    at = session()
    found = at.client.job_types(events)
    if at.json:
        at.answer(job_types.as_json(found))
        return
    if not found.types:
        click.echo("No jobs in the newest events.")
        return
    show.table(at, COLUMNS, map(_row, found.types), whole=("job type", "wait", "run"))
    seconds = format_duration(found.end_at - found.begin_at)
    click.echo(f"\nFrom {counted(found.events, 'event')} of {seconds}. wait, run: p50 p95 p99.")
    if found.unknown:
        click.echo(f"Left out: {counted(found.unknown, 'event')} of jobs that were put earlier.")


def _row(one: TypeFigures) -> tuple[str, ...]:
    counts = (one.put, one.popped, one.completed)
    rest = (one.retried, one.failed, one.lost)
    why = ", ".join(f"{group} ({number(count)})" for group, count in one.groups)
    rate = f"{one.per_minute:.1f}"
    return (one.klass, *map(number, counts), rate, *map(number, rest), _three(one.wait), _three(one.run), why)


def _three(found: Durations) -> str:
    shown = " ".join(map(format_duration, (found.p50, found.p95, found.p99)))
    return shown if found.samples else "-"


common(command)
