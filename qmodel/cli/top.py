"""`qmodel top`: a live view of the queues."""

from __future__ import annotations

import sys

import click

from qmodel.cli.live import impatient, need
from qmodel.cli.session import common, session


@click.command("top")
@click.option("--interval", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between looks.")
@click.option("--page", default=50, show_default=True, type=click.IntRange(5, 500), help="The lines of a page.")
@click.option("--read-only", is_flag=True, help="Disable the keys that change something.")
def command(interval: float, page: int, read_only: bool) -> None:
    """Watch queues, running jobs, failures and workers; pause, retry and cancel.

    \b
        1 2 3 4   queues, running jobs, failures, workers     enter   open it; escape: back
        p         pause or unpause a queue                    r       retry a failed job or group
        c         cancel a job, group or queue; asks first    x t     revoke a job; take its lease
        n b       next page, previous page                      / ? q   find a job, all keys, quit
    """
    at = session()
    if at.url.partition("://")[0] in ("memory", "embedded"):
        raise click.UsageError(f"No other process can reach {at.url}: it would stay empty. Give --url of a server.")
    need("textual", "top", "top")
    if not sys.stdout.isatty():
        raise click.UsageError("It needs a terminal. For programs: qmodel queues --json, or qmodel exporter --once.")
    at.url = impatient(at.url)
    at.client.newest()  # errors of the URL or the server are printed before the screen changes
    from qmodel.cli import without_password
    from qmodel.client.aio import AsyncClient
    from qmodel.top.app import Top

    Top(AsyncClient(at.url), without_password(at.url), interval=interval, read_only=read_only, page=page).run()


common(command)
