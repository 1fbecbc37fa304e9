"""`qmodel move`: move the jobs of a namespace or deployment into another one."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from qmodel.cli.session import CONNECT_DEADLINE, Session, common, session
from qmodel.errors import ConnectError

if TYPE_CHECKING:
    from qmodel.cli.moved_jobs import Report
    from qmodel.client.sync import Client

PAUSE = 1.0
"""Seconds between two rounds of a run that waits."""

SHOWN = 20
"""The most refusals that are told."""


@click.command("move")
@click.argument("target", metavar="TO")
@click.option("-q", "--queue", "queues", multiple=True, help="A queue to move; may be repeated.  [default: all]")
@click.option("--wait", is_flag=True, help="Go on until no unfinished job is left that may still be moved or end.")
@click.option(
    "--failed",
    type=click.Choice(["leave", "retry"]),
    default="leave",
    show_default=True,
    help="Leave failed jobs, or retry and move them.",
)
def command(target: str, queues: tuple[str, ...], wait: bool, failed: str) -> None:
    """Move the jobs of the namespace or deployment at --url into the one at TO, the URL of another.

    \b
        qmodel --url 'redis://old/0?prefix=ql:' move 'redis+cluster://n1,n2,n3/0?name=shop&shards=64' --wait
        qmodel --url 'redis+cluster://n1,n2,n3/0?name=shop' move 'redis://one/0?prefix=ql:'

    Let producers put into TO first; workers of both may go on. A run that was interrupted is begun again.

    Waiting, scheduled and throttled jobs keep their ids, options, tags and times, and begin with all retries; each is
    done by one worker. Recurring jobs go on with their next moment; in a deployment the id `nightly` becomes
    `{nightly}`. Without --queue, options, limits and subscriptions are copied first; what TO has set itself stays.

    Jobs with dependencies, of requests and of subscriptions, and running ones, end where they are. With --failed retry,
    failed jobs begin anew: in TO, or here, if a worker takes one before it is moved. Complete jobs, requests, pauses,
    kept messages, metadata and statistics stay; the answer counts what is left and says what to do. Exit code 1:
    something was refused by TO, or is set differently there.
    """
    from qmodel.cli.moved_jobs import UNFINISHED, Report, left, move, retry_failed
    from qmodel.cli.moved_schedules import move_schedules
    from qmodel.cli.moved_settings import copy_settings

    def move_all() -> None:
        move_schedules(at.client, other, queues, report)
        move(at.client, other, queues, report)

    def waits() -> bool:
        rest = left(at.client, queues)
        return sum(rest[kind] for kind in (*UNFINISHED, "recurring")) > len(report.refused)

    at = session()
    report = Report()
    if at.url == target:
        raise click.UsageError("TO is the URL of the source.")
    if target.startswith(IN_PROCESS) and not at.url.startswith(IN_PROCESS):
        raise click.UsageError(f"The jobs of {target} would end with this command. Give TO the URL of a server.")
    with _opened(at, target) as other:
        if not queues:
            copy_settings(at.client, other, report)
        move_all()
        if failed == "retry":
            retry_failed(at.client, queues)
            move_all()
        while wait and waits():
            time.sleep(PAUSE)
            move_all()
        _tell(report, dict(left(at.client, queues)))


def _opened(at: Session, target: str) -> Client:
    """Open TO. If it cannot be reached, the message is about its URL and not about --url."""
    from qmodel.backends import with_option
    from qmodel.client.sync import Client

    try:
        return Client(with_option(target, "connect_deadline", CONNECT_DEADLINE))
    except ConnectError:
        at.url, at.url_from = target, "TO"
        raise


IN_PROCESS = ("memory://", "embedded://")
"""What the URLs of jobs in the memory of this process begin with."""

NEXT = {
    "waiting": "put meanwhile, refused, or tied to other jobs: move again, or let it end here",
    "scheduled": "put meanwhile, refused, or tied to other jobs: move again, or let it end here",
    "throttled": "put meanwhile, refused, or tied to other jobs: move again, or let it end here",
    "depends": "ends here, after the jobs that it depends on",
    "running": "ends here; --wait waits for it",
    "stalled": "ends here, as soon as a worker takes it; --wait waits for it",
    "recurring": "refused, or waits for the end of a run; move again after it",
    "failed": "move them with --failed retry, or cancel them",
    "complete": "kept here for jobs-history",
    "requests": "end here with their jobs",
    "paused queues": "pause them in TO with `qmodel pause`",
}
"""What to do with what is left, by its kind."""


def _tell(report: Report, rest: dict[str, int]) -> None:
    at = session()
    stays = {**report.refused, **report.kept}
    if at.json:
        facts = {"moved": report.moved, "recurring": report.recurring, "copied": report.copied}
        at.answer({**facts, "refused": report.refused, "kept": report.kept, "left": rest})
    else:
        click.echo(f"moved: {report.moved:,}")
        if report.recurring:
            click.echo(f"moved, recurring: {report.recurring:,}")
        for kind, count in report.copied.items():
            click.echo(f"copied, {kind}: {count:,}")
        for kind, count in rest.items():
            click.echo(f"left, {kind}: {count:,} ({NEXT[kind]})")
        for name, why in list(stays.items())[:SHOWN]:
            click.echo(f"not moved: {name}: {why}", err=True)
        if len(stays) > SHOWN:
            click.echo(f"not moved: {len(stays) - SHOWN:,} more", err=True)
    if stays:
        sys.exit(1)


common(command)
