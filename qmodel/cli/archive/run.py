"""`qmodel archive run`: add all new events, and entries of the journal, to the archive."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.archive.options import EVENTS, JOURNAL, adding_options, archive_options, lost_ranges, place, ranges
from qmodel.cli.on import performing
from qmodel.cli.session import session
from qmodel.errors import ConnectError, QmodelError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmodel.pipeline.archive.write import Progress
    from qmodel.processes import Run


@click.command("run")
@archive_options
@click.option("--journal", is_flag=True, help="Archive the journal, too; `qmodel audit ARCHIVE` audits it.")
@click.option("--no-events", is_flag=True, help="With --journal: only the journal.")
@click.option("--take", is_flag=True, help="With --journal: also keep the state that the server has now.")
@adding_options
def command(
    root: str,
    namespace: str | None,
    on: str,
    processes: int,
    journal: bool,
    no_events: bool,
    take: bool,
    every: int | None,
    on_fork: str,
    **adding: Any,
) -> None:
    """Add all new events to the archive.

    It may be killed and restarted at any time: the names of the files say what is archived. If the server no longer
    keeps events that are not archived, the exit code is 1, and the message names them: archive more often, or raise
    max-events. If the server lost events that are archived (a failover, a restored backup), nothing is added, and the
    exit code is 1; with --on-fork keep, those are moved to _lost, and the server's own are added.

    Of a deployment, all shards are archived, each as a namespace with its prefix.

    With --take, a segment of the journal begins: `qmodel audit ARCHIVE` executes segments side by side.
    """
    if not journal and (no_events or take):
        raise click.UsageError("--no-events and --take are about the journal: give --journal, too.")
    events = None if no_events else place(root, EVENTS)
    entries = place(root, JOURNAL) if journal else None
    stop = threading.Event()
    if every is not None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
    with performing("archive run", on, processes) as run:
        from qmodel.pipeline.archive.commit import Busy

        while True:
            try:
                for url in _urls(namespace):
                    if events:
                        _once(url, events, namespace or "", run, on_fork=on_fork, **adding)
                    if entries:
                        _journal(url, entries, namespace or "", take, on_fork, bool(adding["skip_gaps"]))
            except (Busy, ConnectError) as error:
                if every is None:
                    raise
                click.echo(f"{error} Retrying.", err=True)
            if every is None or stop.wait(every / 1000):
                return


def _urls(namespace: str | None) -> list[str]:
    """List the URLs of the namespaces to archive: of a deployment, those of its shards."""
    at = session()
    if at.url.startswith("memory:"):
        raise QmodelError("Other processes read the events, so this needs a server: say --url redis://localhost:6379/0")
    if at.client.shards and namespace:
        raise click.UsageError("Each shard of a deployment is a namespace of its own in the archive: no --namespace.")
    from qmodel.backends.redis.namespaces import urls_of_shards

    return urls_of_shards(at.url, at.client.shards)


def _journal(url: str, root: str, namespace: str, take: bool, on_fork: str, skip_gaps: bool) -> None:
    """Add the new entries of the journal, and keep the state after them if asked."""
    from qmodel.client.sync import Client
    from qmodel.pipeline.archive.write import namespace_of
    from qmodel.pipeline.journal import archive
    from qmodel.pipeline.journal.pages import EntriesGone

    at, state = session(), None
    found = archive.archive(url, root, namespace=namespace, on_fork=on_fork, skip_gaps=skip_gaps)
    try:
        added = sum(count for _, count in found)
    except EntriesGone as gone:
        raise QmodelError(
            f"Entries {ranges([(gone.first, gone.last)])} of the journal are gone from the server, and are not in the "
            f"archive. With --skip-gaps the gap is recorded and archiving continues after it; add --take, because an "
            f"audit of later entries begins with a state. To prevent further gaps, archive more often, or let the "
            f"server keep more entries: qmodel op config-set max-journal 1000000"
        ) from None
    if take:
        from qmodel.backends.redis.take_snapshot import taken

        with Client(url) as client:
            state = archive.keep(root, namespace or namespace_of(client), taken(url))
    if at.json:
        at.answer({"entries": added} | ({} if state is None else {"state": state}))
        return
    kept = "" if state is None else f" A state is kept after {state}."
    click.echo(f"{counted(added, 'entry', 'entries')} of the journal added.{kept}")


def _once(url: str, root: str, namespace: str, run: Run, *, rows: int | None, **adding: Any) -> None:
    """Add the events up to the newest one."""
    from qmodel.pipeline.archive.write import ROWS, archive

    warned = False
    found = archive(url, root, namespace=namespace, run=run, rows=rows or ROWS, **adding)
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
