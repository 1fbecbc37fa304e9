"""`qmodel reconcile`: compare the figures of an archive with the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from qmodel.cli.engine import engine_options, started
from qmodel.cli.session import common, session
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from qmodel.pipeline.statistics.ordered import OrderedEngine


@click.command("reconcile")
@click.argument("archive")
@click.option("--namespace", help="The archive's name of the namespace at --url.  [default: its prefix]")
@engine_options
def command(archive: str, namespace: str | None, on: str, memory: str, threads: int) -> None:
    """Compare the statistics that the engine keeps with those of its events, to the last bit.

    Both follow from the same transitions in different ways. A difference means that events or counts were lost or
    altered; then a table is shown, and the exit code is 1. ARCHIVE is what `qmodel archive run` fills; newer
    events are read from the server. Days that the engine no longer keeps (stats-history) are not compared.

    With --on spark, one task for each queue folds its days in order.
    """
    with started("reconcile", on, memory, threads) as engine:
        _answer(engine, archive, namespace)


def _answer(engine: OrderedEngine, root: str, namespace: str | None) -> None:
    """Compare, and show the differences; exit with 1 if there are any."""
    from qmodel.pipeline.archive.kinds import EVENTS, opened
    from qmodel.pipeline.archive.write import namespace_of
    from qmodel.pipeline.events.gaps import EventsGone, named
    from qmodel.pipeline.statistics.ordered import fold_of
    from qmodel.pipeline.statistics.reconcile import kept_since, reconcile

    at = session()
    if at.client.shards:
        raise click.UsageError("This compares one namespace: give the URL of a shard, with its prefix.")
    archive, name = opened(root, EVENTS), namespace or namespace_of(at.client)
    fold = fold_of(engine, archive, name, kept_since(at.client))
    try:
        report = reconcile(at.client, fold)
    except EventsGone as gone:
        raise QmodelError(
            f"The archive ends with event {fold.last}, and the server has not all that came after: events "
            f"{named(gone.gaps)} are gone. Archive, and then compare: qmodel archive run {root} --skip-gaps"
        ) from None
    if at.json:
        counts = {one: len(getattr(report, one)) for one in ("compared", "gone", "begun", "moving")}
        at.answer({**counts, "differences": [one._asdict() for one in report.differences]})
    else:
        click.echo(str(report))
    if report.differences:
        raise click.exceptions.Exit(1)


common(command)
