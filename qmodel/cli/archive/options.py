"""The common options of commands on the archive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from qmodel.cli.convert import DURATION
from qmodel.cli.live import need
from qmodel.cli.on import on_options

EVENTS, JOURNAL = "events", "journal"
"""The kinds of rows (`qmodel.pipeline.archive.kinds`, which needs pyarrow)."""


def archive_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command what all have: the archive, and where the work is done."""
    options = (
        click.argument("root", metavar="ARCHIVE"),
        click.option("--namespace", metavar="NAME", help="Only this namespace."),
        on_options,
        click.option("--processes", type=click.IntRange(1), default=1, show_default=True, help="With --on local."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def adding_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that adds events the options --every, --skip-gaps, --on-fork and --rows."""
    every = "Continue, and read new events in this interval: 10s, 1m."
    on_fork = click.option(
        "--on-fork",
        type=click.Choice(["stop", "keep"]),
        default="stop",
        show_default=True,
        help="If the server lost what is archived: stop, or keep that aside in _lost, and go on.",
    )
    options = (
        click.option("--every", type=DURATION, metavar="TIME", help=every),
        click.option("--skip-gaps", is_flag=True, help="Record what is missing as lost, and continue."),
        on_fork,
        click.option("--rows", type=click.IntRange(1), metavar="N", help="The events of a task.  [default: 100000]"),
    )
    for option in reversed(options):
        function = option(function)
    return function


def place(root: str, kind: str) -> str:
    """Find the folder of a kind in the archive."""
    need("pyarrow", "arrow", "archive")
    from qmodel.pipeline.archive.kinds import opened

    return opened(root, kind, apart=True).root


def lost_ranges(found: Any) -> str:
    """Format ranges of events or entries that a server lost.

    >>> lost_ranges([(7, 101, 110)])
    '101 to 110 of epoch 7'
    """
    return ", ".join(f"{ranges([(first, last)])} of epoch {epoch}" for epoch, first, last in found)


def ranges(found: Any) -> str:
    """Format ranges of sequence numbers; the first twenty.

    >>> ranges([(1, 1), (4, 9)])
    '1, 4 to 9'
    """
    shown = [f"{first:,} to {last:,}" if first < last else f"{first:,}" for first, last in found]
    return ", ".join(shown[:20]) + (f", and {len(shown) - 20} more" if len(shown) > 20 else "")
