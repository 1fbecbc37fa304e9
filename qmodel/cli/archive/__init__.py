"""`qmodel archive`: keep all events, and the journal, in Parquet. Each command is in a module of its name."""

from __future__ import annotations

import click

from qmodel.cli.archive import compact, delta, run, verify
from qmodel.cli.session import common


@click.group("archive")
def command() -> None:
    """Keep all events, and the journal, in Parquet.

    ARCHIVE is a folder, or s3://, gs://, hdfs://. It has events/ and journal/.

    \b
        qmodel archive run /data/shop --every 1m
        qmodel archive compact /data/shop
        qmodel archive verify /data/shop
    """


for one in (run, compact, verify, delta):
    command.add_command(common(one.command))
