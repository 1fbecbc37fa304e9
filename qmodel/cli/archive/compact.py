"""`qmodel archive compact`: merge many small files into few large ones."""

from __future__ import annotations

from datetime import date

import click

from qmodel.cli.archive.options import EVENTS, archive_options, place
from qmodel.cli.convert import DURATION
from qmodel.cli.on import performing
from qmodel.cli.session import session
from qmodel.present.numbers import counted


@click.command("compact")
@archive_options
@click.option("--day", "days", multiple=True, metavar="YYYY-MM-DD", help="Only this day, even if it is not closed.")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="The most rows of a file.  [default: 1000000]")
@click.option(
    "--grace",
    type=DURATION,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="Keep merged files for readers that listed them before; a later run deletes them.",
)
def command(
    root: str, namespace: str | None, on: str, processes: int, days: tuple[str, ...], rows: int | None, grace: int
) -> None:
    """Merge the event files of each closed day: few large ones are read faster than many small ones.

    A day is closed when the archive has a later one. It may be killed at any time; merged files are not
    touched again. Archivers may add files meanwhile.
    """
    for day in days:
        _check_day(day)
    at, root = session(), place(root, EVENTS)
    with performing("archive compact", on, processes) as run:
        from qmodel.pipeline.archive.compact import MOST, compact
        from qmodel.pipeline.archive.kinds import opened

        opened(root, EVENTS).chosen(namespace)
        done = 0
        for one in compact(root, namespace, days=days or None, most=rows or MOST, grace=grace / 1000, run=run):
            done += 1
            if at.json:
                at.answer(one._asdict())
            else:
                merged = f"{counted(one.before, 'file')} merged into {one.after}, {counted(one.rows, 'row')}"
                click.echo(f"{one.namespace} {one.day}: {merged}")
        if not done and not at.json:
            click.echo("Nothing to merge.")


def _check_day(day: str) -> None:
    try:
        known = date.fromisoformat(day).isoformat() == day
    except ValueError:
        known = False
    if not known:
        raise click.BadParameter(f"{day!r} is not a day. Write it as 2026-11-21.", param_hint="--day")
