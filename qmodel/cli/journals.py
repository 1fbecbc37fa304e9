"""`qmodel journals`: archive journals, and audit the archive on this machine."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import click

from qmodel.cli import audit
from qmodel.cli.live import need
from qmodel.cli.session import common, session
from qmodel.cli.spark.archive_options import lost_ranges, on_fork_option
from qmodel.present.numbers import counted


@click.command("journals")
@click.argument("root", metavar="ARCHIVE")
@click.option("--add", is_flag=True, help="Only add new entries to the archive.")
@click.option("--take", is_flag=True, help="Add new entries, and keep the state that the server has now.")
@on_fork_option
@click.option("--namespace", metavar="NAME", help="The name of the namespace in the archive.  [default: its prefix]")
@click.option("--after", default=0, type=click.IntRange(0), help="Audit from the first state after this entry on.")
@click.option("--save", is_flag=True, help="Keep the state with which each namespace ends.")
@click.option("--processes", type=click.IntRange(1), help="The segments to audit at a time.  [default: cores]")
@click.option("--most", default=10, show_default=True, type=click.IntRange(1), help="The most differences to show.")
def command(root: str, add: bool, take: bool, on_fork: str, namespace: str | None, **auditing: Any) -> None:
    """Archive journals in Parquet, and audit them: execute their operations once more, on the model.

    With --add (for cron) new entries of the server are added to ARCHIVE, a folder. Without it the whole archive is
    audited: each namespace from its beginning, or from a state that --take or --save kept; the segments between states
    run side by side. `qmodel spark audit` does the same on Spark. Exit code 1 if something differs.
    """
    need("pyarrow", "arrow", "journals")
    at = session()
    from qmodel.pipeline.archive.kinds import JOURNAL, opened
    from qmodel.pipeline.journal import archive

    root = opened(root, JOURNAL).root
    if not (add or take):
        _audit(root, **auditing)
        return
    came = sum(rows for _, rows in archive.archive(at.url, root, namespace=namespace or "", on_fork=on_fork))
    said: dict[str, Any] = {"added": came}
    if take:
        from qmodel.backends.redis.take_snapshot import taken
        from qmodel.client.sync import Client
        from qmodel.pipeline.archive.write import namespace_of

        with Client(at.url) as client:
            said["state"] = archive.keep(root, namespace or namespace_of(client), taken(at.url))
    audit.told(
        at,
        said,
        f"{counted(came, 'entry', 'entries')} added." + (f" A state is kept after {said['state']}." if take else ""),
    )


def _audit(root: str, after: int, save: bool, processes: int | None, most: int) -> None:
    from qmodel.pipeline.audit import findings
    from qmodel.pipeline.journal import archive
    from qmodel.processes import processes as in_processes

    segments = archive.all_segments(root, after)
    _tell_lost(root)
    began, count = time.monotonic(), (processes or os.cpu_count() or 1) if len(segments) > 1 else 1
    with in_processes(count) as run:
        rows = [row for found in run(partial(findings.audited, root, save=save), segments) for row in found]
    audit.answer(session(), rows, most, time.monotonic() - began)


def _tell_lost(root: str) -> None:
    """Name the entries that exist twice: those that a server lost, and its own with the same numbers."""
    from qmodel.pipeline.archive.layout import Archive

    archive = Archive(root)
    for namespace in archive.namespaces():
        if lost := archive.lost(namespace):
            click.echo(
                f"{namespace}: the server forked, and entries exist twice. Not audited, in _lost: {lost_ranges(lost)}",
                err=True,
            )


common(command)
