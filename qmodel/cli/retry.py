"""`qmodel retry`: retry failed jobs, by id."""

from __future__ import annotations

import click

from qmodel.cli import failures
from qmodel.cli.session import common, session


@click.command("retry")
@click.argument("jids", nargs=-1, required=True, metavar="JID...")
def command(jids: tuple[str, ...]) -> None:
    """Retry failed jobs, by id: put each back into its queue, with the retries that it had at first.

    `qmodel failures GROUP --retry` retries all jobs of a failure group. A worker that gives an attempt up uses the
    operation `qmodel op retry`.
    """
    failures.retry_jobs(session(), jids)


common(command)
