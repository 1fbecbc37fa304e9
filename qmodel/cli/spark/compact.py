"""`qmodel spark compact`: merge many small files into few large ones."""

from __future__ import annotations

import click

from qmodel.cli.session import common, session
from qmodel.cli.spark.archive_options import archive_options
from qmodel.cli.spark.execute import performing
from qmodel.present.numbers import counted


@click.command("compact")
@archive_options
@click.option("--day", "days", multiple=True, metavar="YYYY-MM-DD", help="Only this day, even if it is not closed.")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="The most rows of a file.  [default: 1000000]")
def command(root: str, namespace: str | None, local: int | None, days: tuple[str, ...], rows: int | None) -> None:
    """Merge the files of each closed day: few large ones are read faster than many small ones.

    A day is closed when the archive has a later one. It may be killed at any time; merged files are not
    touched again. Archivers may add files meanwhile.

    \b
        qmodel spark compact --to /data/events
    """
    merge(root, namespace, local, days, rows)


def merge(root: str, namespace: str | None, local: int | None, days: tuple[str, ...], rows: int | None) -> None:
    """Merge files, on Spark or in `local` processes, and print the days with merged files."""
    at = session()
    with performing("compact", local) as run:
        from qmodel.pipeline.archive.compact import MOST, compact

        done = 0
        for one in compact(root, namespace, days=days or None, most=rows or MOST, run=run):
            done += 1
            if at.json:
                at.answer(one._asdict())
            else:
                merged = f"{counted(one.before, 'file')} merged into {one.after}, {counted(one.rows, 'row')}"
                click.echo(f"{one.namespace} {one.day}: {merged}")
        if not done and not at.json:
            click.echo("Nothing to merge.")


common(command)
