"""`qmodel spark archive`: archive all events, in Parquet."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import click

from qmodel.cli.session import common, session
from qmodel.cli.spark.archive_options import adding_options, archive_options, lost_ranges, ranges
from qmodel.cli.spark.execute import performing
from qmodel.errors import ConnectError, QmodelError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from qmodel.pipeline.archive.write import Progress
    from qmodel.processes import Run


@click.command("archive")
@archive_options
@adding_options
def command(
    root: str,
    namespace: str | None,
    local: int | None,
    every: int | None,
    skip_gaps: bool,
    on_fork: str,
    rows: int | None,
) -> None:
    """Add all new events to the archive.

    It may be killed and restarted at any time: the names of the files say what is archived. If the server no longer
    keeps events that are not archived, the exit code is 1, and the message names them: archive more often, or raise
    max-events.

    If the server lost events that are archived already (a failover, a restored backup), nothing is added, and the exit
    code is 1. With --on-fork keep, those are moved to _lost, and the server's own are added.

    \b
        qmodel --url redis://host spark archive --to /data/events --every 1m
        qmodel --url redis://host spark archive --to /data/events --local 2
    """
    add(root, namespace, local, every, skip_gaps=skip_gaps, on_fork=on_fork, rows=rows)


def add(
    root: str,
    namespace: str | None,
    local: int | None,
    every: int | None,
    *,
    skip_gaps: bool,
    on_fork: str,
    rows: int | None,
    more: Callable[[str], None] = lambda url: None,
) -> None:
    """Add new events, once or in an interval (ms), on Spark or in `local` processes; `more` is called after them."""
    url = session().url
    if url.startswith("memory:"):
        raise QmodelError("Other processes read the events, so this needs a server: say --url redis://localhost:6379/0")
    stop = threading.Event()
    if every is not None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
    with performing("archive", local) as run:
        from qmodel.pipeline.archive.commit import Busy

        while True:
            try:
                _once(url, root, namespace or "", run, skip_gaps, on_fork, rows)
                more(url)
            except (Busy, ConnectError) as error:
                if every is None:
                    raise
                click.echo(f"{error} Retrying.", err=True)
            if every is None or stop.wait(every / 1000):
                return


def _once(url: str, root: str, namespace: str, run: Run, skip_gaps: bool, on_fork: str, rows: int | None) -> None:
    from qmodel.pipeline.archive.write import ROWS, archive

    warned = False
    found = archive(url, root, namespace=namespace, run=run, rows=rows or ROWS, skip_gaps=skip_gaps, on_fork=on_fork)
    for progress in _sentence(found):
        _tell(progress)
        if not warned and progress.margin < progress.kept / 4:
            warned = True
            click.echo(
                f"Warning: {progress.margin:,} more events, and some would have been lost before they were archived: "
                f"the server keeps {progress.kept:,}. Archive more often, or keep more: "
                f"qmodel op config-set max-events {min(progress.kept * 4, 10**7)}",
                err=True,
            )


def _sentence(found: Iterator[Progress]) -> Iterator[Progress]:
    """Describe missing events, and what to do."""
    from qmodel.pipeline.events.gaps import EventsGone

    try:
        yield from found
    except EventsGone as gone:
        raise QmodelError(
            f"Events {ranges(gone.gaps)} are gone from the server, and are not in the archive; nothing was added. With "
            f"--skip-gaps the gap is recorded and archiving continues after it. To prevent further gaps, archive more "
            f"often, or let the server keep more events: qmodel op config-set max-events 1000000"
        ) from None


def _tell(progress: Progress) -> None:
    at = session()
    if at.json:
        lists = {"holes": [list(hole) for hole in progress.holes], "lost": [list(one) for one in progress.lost]}
        at.answer({**progress._asdict(), **lists})
        return
    if progress.lost:
        click.echo(f"{progress.namespace} lost by the server, moved to _lost: {lost_ranges(progress.lost)}", err=True)
    behind = progress.newest - progress.last
    click.echo(
        f"{progress.namespace} {counted(progress.rows, 'event')} in {counted(progress.files, 'file')}, "
        f"up to {progress.last:,}" + (f", {behind:,} to go" if behind else "")
    )
    if progress.holes:
        click.echo(f"{progress.namespace} recorded as lost: {ranges(progress.holes)}", err=True)


common(command)
