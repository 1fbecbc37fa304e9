"""`qmodel archive verify`: check that an archive has each event once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from qmodel.cli.archive.options import EVENTS, archive_options, lost_ranges, place, ranges
from qmodel.cli.on import performing
from qmodel.cli.session import session
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.pipeline.archive.verify import Verdict


@click.command("verify")
@archive_options
@click.option("--record-missing", is_flag=True, help="Record missing events as lost, so that the archiver continues.")
def command(root: str, namespace: str | None, on: str, processes: int, record_missing: bool) -> None:
    """Read all event files; exit with 1 if an event is missing or there twice, or a file is damaged.

    Events that are recorded as lost are listed, and are no error.
    """
    whole, root = True, place(root, EVENTS)
    with performing("archive verify", on, processes) as run:
        from qmodel.pipeline.archive.verify import record_missing as record
        from qmodel.pipeline.archive.verify import verify

        for verdict in list(verify(root, namespace, run=run)):
            _tell(verdict)
            if record_missing and verdict.missing:
                record(root, verdict)
                click.echo(f"{verdict.namespace} recorded as lost: {ranges(verdict.missing)}", err=True)
            accepted = verdict._replace(missing=()) if record_missing else verdict
            whole = whole and accepted.whole
    if not whole:
        raise click.exceptions.Exit(1)


def _tell(verdict: Verdict) -> None:
    at = session()
    if at.json:
        at.answer({**verdict._asdict(), "whole": verdict.whole})
        return
    click.echo(
        f"{verdict.namespace} {counted(verdict.rows, 'event')} up to {verdict.last:,} "
        f"in {counted(verdict.files, 'file')}: " + ("each is there once" if verdict.whole else "NOT WHOLE")
    )
    for what, gaps in (("lost", verdict.holes), ("missing", verdict.missing), ("twice", verdict.twice)):
        if gaps:
            click.echo(f"  {what}: {ranges(gaps)}")
    if verdict.lost:
        click.echo(f"  lost by the server after a fork, in _lost: {lost_ranges(verdict.lost)}")
    for fault in verdict.faults:
        click.echo(f"  {fault}")
