"""What `qmodel reconcile` and `qmodel spark reconcile` share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from qmodel.cli.session import session
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from qmodel.pipeline.statistics.ordered import OrderedEngine


def answer(engine: OrderedEngine, root: str, namespace: str | None) -> None:
    """Compare an archive with the engine's statistics, and show the differences; exit with 1 if there are any."""
    from qmodel.pipeline.archive.kinds import EVENTS, opened
    from qmodel.pipeline.archive.write import namespace_of
    from qmodel.pipeline.events.gaps import EventsGone
    from qmodel.pipeline.statistics.ordered import fold_of
    from qmodel.pipeline.statistics.reconcile import kept_since, reconcile

    at = session()
    archive, name = opened(root, EVENTS), namespace or namespace_of(at.client)
    fold = fold_of(engine, archive, name, kept_since(at.client))
    try:
        report = reconcile(at.client, fold)
    except EventsGone as gone:
        raise QmodelError(
            f"The archive ends with event {fold.last}, and the server has not all that came after. {gone} "
            f"Archive, and then compare: qmodel spark archive --to {root}"
        ) from None
    if at.json:
        counts = {one: len(getattr(report, one)) for one in ("compared", "gone", "begun", "moving")}
        at.answer({**counts, "differences": [one._asdict() for one in report.differences]})
    else:
        click.echo(str(report))
    if report.differences:
        raise click.exceptions.Exit(1)
