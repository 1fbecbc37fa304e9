"""`qmodel move`: move the jobs of a namespace or deployment into another one."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from qmodel.cli.session import CONNECT_DEADLINE, common, session

if TYPE_CHECKING:
    from qmodel.cli.moved_jobs import Report

PAUSE = 1.0
"""Seconds between two rounds of a run that waits."""

SHOWN = 20
"""The most refused jobs that are told."""


@click.command("move")
@click.argument("target", metavar="TO")
@click.option("-q", "--queue", "queues", multiple=True, help="A queue to move; may be repeated.  [default: all]")
@click.option("--wait", is_flag=True, help="Go on until no unfinished job is left that may still be moved or end.")
def command(target: str, queues: tuple[str, ...], wait: bool) -> None:
    """Move the jobs of the namespace or deployment at --url into the one at TO, the URL of another.

    \b
        qmodel --url 'redis://old/0?prefix=ql:' move 'redis+cluster://n1,n2,n3/0?name=shop&shards=64' --wait
        qmodel --url 'redis+cluster://n1,n2,n3/0?name=shop' move 'redis://one/0?prefix=ql:'

    Let producers put into TO first; workers of both may go on. Waiting, scheduled and throttled jobs keep their
    ids, options, tags and times, and begin with all retries; each is done by one worker. A run that was
    interrupted is begun again. Jobs with dependencies, of requests and of subscriptions, and running ones, end
    where they are. Recurring and failed jobs, options and limits stay. Exit code 1: a job was refused by TO.
    """
    from qmodel.backends import with_option
    from qmodel.cli.moved_jobs import UNFINISHED, left, move
    from qmodel.client.sync import Client

    at = session()
    if at.url == target:
        raise click.UsageError("TO is the URL of the source.")
    with Client(with_option(target, "connect_deadline", CONNECT_DEADLINE)) as other:
        report = move(at.client, other, queues)
        while wait and sum(left(at.client, queues)[state] for state in UNFINISHED) > len(report.refused):
            time.sleep(PAUSE)
            move(at.client, other, queues, report)
        _tell(report, dict(left(at.client, queues)))


def _tell(report: Report, rest: dict[str, int]) -> None:
    at = session()
    if at.json:
        at.answer({"moved": report.moved, "refused": report.refused, "left": rest})
    else:
        click.echo(f"moved: {report.moved:,}")
        for state, count in rest.items():
            click.echo(f"left, {state}: {count:,}")
        for jid, why in list(report.refused.items())[:SHOWN]:
            click.echo(f"not moved: {jid}: {why}", err=True)
        if len(report.refused) > SHOWN:
            click.echo(f"not moved: {len(report.refused) - SHOWN:,} more", err=True)
    if report.refused:
        sys.exit(1)


common(command)
