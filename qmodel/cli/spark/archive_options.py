"""The options that all commands on the archive have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def archive_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Which archive, which namespace of it, and who does the work."""
    options = (
        click.option(
            "--to", "root", required=True, metavar="DIR", help="The archive: a folder, or s3://, gs://, hdfs://."
        ),
        click.option("--namespace", metavar="NAME", help="Only this namespace."),
        click.option(
            "--local",
            type=click.IntRange(1),
            metavar="N",
            help="Without Spark, in so many processes of this machine.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def ranges(found: Any) -> str:
    """Ranges of sequences, for a person; the first twenty.

    >>> ranges([(1, 1), (4, 9)])
    '1, 4 to 9'
    """
    shown = [f"{first:,} to {last:,}" if first < last else f"{first:,}" for first, last in found]
    return ", ".join(shown[:20]) + (f", and {len(shown) - 20} more" if len(shown) > 20 else "")
