"""`qmodel advance-schedules`: compute the next moments of cron expressions."""

from __future__ import annotations

import click

from qmodel.cli.convert import DURATION
from qmodel.cli.session import common, session


@click.command("advance-schedules")
@click.option(
    "--ahead", type=DURATION, default="1h", show_default=True, help="Only schedules that need moments within this time."
)
def command(ahead: int) -> None:
    """Compute the next moments of jobs that recur by cron, and print the number of these jobs.

    The server knows no calendar: a client gives it up to 100 moments ahead, of a month at most. Any number of processes
    may do so, at any time.
    """
    at = session()
    count = at.client.advance_schedules(ahead / 1000)
    if at.json:
        at.answer(count)
    else:
        click.echo(count)


common(command)
