"""`qmodel advance-schedules`: tell the next moments of cron expressions."""

from __future__ import annotations

import click

from qmodel.cli.convert import DURATION
from qmodel.cli.session import common, session


@click.command("advance-schedules")
@click.option("--ahead", type=DURATION, default="1h", show_default=True, help="Of those that need them within so long.")
def command(ahead: int) -> None:
    """Tell the server the next moments of jobs that recur by cron, and print for how many it did.

    The server knows no calendar: somebody tells it up to a hundred moments ahead, a month at most. Any number of
    processes may do so, and whenever they like.
    """
    at = session()
    count = at.client.advance_schedules(ahead / 1000)
    if at.json:
        at.answer(count)
    else:
        click.echo(count)


common(command)
