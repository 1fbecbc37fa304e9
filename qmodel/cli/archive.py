"""`qmodel archive`: keep all events, and the journal, in Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from qmodel.cli.live import need
from qmodel.cli.session import common
from qmodel.cli.spark import archive, compact, verify
from qmodel.cli.spark.archive_options import adding_options
from qmodel.present.numbers import counted


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what all have: the archive, and where the work is done."""
    options = (
        click.argument("root", metavar="ARCHIVE"),
        click.option("--namespace", metavar="NAME", help="Only this namespace."),
        click.option("--on", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Where."),
        click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="With --on local."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.group("archive")
def command() -> None:
    """Keep all events, and the journal, in Parquet.

    ARCHIVE is a folder, or s3://, gs://, hdfs://. It has events/ and journal/.

    \b
        qmodel archive run /data/shop --every 1m
        qmodel archive compact /data/shop
        qmodel archive verify /data/shop
    """


@command.command("run")
@_options
@click.option("--journal", is_flag=True, help="Archive the journal as well; `qmodel journals ARCHIVE` audits it.")
@adding_options
def run(
    root: str,
    namespace: str | None,
    on: str,
    processes: int,
    journal: bool,
    every: int | None,
    skip_gaps: bool,
    on_fork: str,
    rows: int | None,
) -> None:
    """Add all new events to the archive.

    It may be killed and restarted at any time: the names of the files say what is archived. If the server no longer
    keeps events that are not archived, the exit code is 1, and the message names them. If the server lost events that
    are archived (a failover, a restored backup), nothing is added, and the exit code is 1; with --on-fork keep, those
    are moved to _lost, and the server's own are added.
    """

    def add_journal(url: str) -> None:
        from qmodel.pipeline.archive.kinds import JOURNAL
        from qmodel.pipeline.journal.archive import archive as add_entries

        there = _place(root, JOURNAL)
        added = sum(count for _, count in add_entries(url, there, namespace=namespace or "", on_fork=on_fork))
        click.echo(f"{counted(added, 'entry', 'entries')} of the journal added.", err=True)

    archive.add(
        _place(root),
        namespace,
        _local(on, processes),
        every,
        skip_gaps=skip_gaps,
        on_fork=on_fork,
        rows=rows,
        more=add_journal if journal else lambda url: None,
    )


@command.command("compact")
@_options
@click.option("--day", "days", multiple=True, metavar="YYYY-MM-DD", help="Only this day, even if it is not closed.")
@click.option("--rows", type=click.IntRange(1), metavar="N", help="The most rows of a file.  [default: 1000000]")
def compacted(
    root: str, namespace: str | None, on: str, processes: int, days: tuple[str, ...], rows: int | None
) -> None:
    """Merge the event files of each closed day: few large ones are read faster than many small ones.

    A day is closed when the archive has a later one. It may be killed at any time.
    """
    compact.merge(_place(root), namespace, _local(on, processes), days, rows)


@command.command("verify")
@_options
@click.option("--record-missing", is_flag=True, help="Record missing events as lost, so that the archiver continues.")
def verified(root: str, namespace: str | None, on: str, processes: int, record_missing: bool) -> None:
    """Read all event files; exit with 1 if an event is missing or there twice, or a file is damaged."""
    verify.check(_place(root), namespace, _local(on, processes), record_missing)


def _place(root: str, kind: str = "events") -> str:
    """Find the folder of a kind in the archive."""
    need("pyarrow", "arrow", "archive")
    from qmodel.pipeline.archive.kinds import opened

    return opened(root, kind, apart=True).root


def _local(on: str, processes: int) -> int | None:
    return processes if on == "local" else None


for one in (run, compacted, verified):
    common(one)
