"""`qmodel qless-convert`: put the jobs of the original qless or reqless into a namespace of qmodel."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from qmodel.backends import without_password
from qmodel.cli.session import Session, common, session
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation

if TYPE_CHECKING:
    from qmodel.dialects.qless.conversion import Report
    from qmodel.dialects.qless.original import Original

EVERY = 500
"""After how many jobs the progress is shown anew."""


@click.command("qless-convert")
@click.argument("source", metavar="FROM")
@click.option("--prefix", default="ql:", show_default=True, help="The prefix of the original's keys.")
@click.option("--look", is_flag=True, help="Count what is there, and convert nothing.")
def command(source: str, prefix: str, look: bool) -> None:
    """Put the jobs of the original qless or reqless into an empty namespace of qmodel.

    \b
        qmodel qless-convert redis://localhost/0 --look
        qmodel --url 'redis://localhost/1?prefix=ql:' qless-convert redis://localhost/0

    FROM is the URL of the server with the original's keys; they are read, and stay. Stop all workers
    and clients first. Jobs keep their ids, states, order, priorities, tags, dependencies, leases, retries
    and failures; queues, recurring jobs, options, pauses and throttles come along. docs/qless.md says what
    does not.
    """
    found = _read(source, prefix)
    at = session()
    if look:
        at.answer(_counts(found))
        return
    _need_empty(at, source, prefix)
    report = _converted(at, found)
    if at.json:
        at.answer({"converted": dict(report.converted), "refused": report.refused})
    else:
        for kind, count in sorted(report.converted.items()):
            click.echo(f"{kind}: {count:,}")
        for name, why in report.refused:
            click.echo(f"not converted: {name}: {why}", err=True)
    if report.refused:
        sys.exit(1)


def _read(source: str, prefix: str) -> Original:
    """Read the original's keys. Raises ClickException if there are none, or no server."""
    import redis

    from qmodel.dialects.qless.original import read

    try:
        client: Any = redis.Redis.from_url(source, decode_responses=True, encoding_errors="surrogateescape", protocol=2)
        found = read(client, prefix)
        client.close()
    except TypeError as error:  # redis-py does not know an option
        why = f"{without_password(source)} has options of qmodel's URLs, and no namespace of qmodel is read."
        raise click.ClickException(f"{why} FROM is redis://host:port/database; give the prefix as --prefix.") from error
    except (redis.RedisError, ValueError) as error:
        why = f"{without_password(source)} cannot be read: {error}"
        raise click.ClickException(f"{why.rstrip('.')}. FROM is redis://host:port/database.") from error
    if not found.jobs and not found.schedules and not found.config:
        raise click.ClickException(
            f"There is nothing of qless at {without_password(source)} behind the prefix {prefix}. "
            "Is it another database or prefix?"
        )
    return found


def _counts(found: Original) -> dict[str, int]:
    counts = {"queues": len(found.queues), "recurring": len(found.schedules), "options": len(found.config)}
    for job in found.jobs.values():
        counts[job.state] = counts.get(job.state, 0) + 1
    return counts


def _need_empty(at: Session, source: str, prefix: str) -> None:
    """Raise ClickException unless the namespace is empty, and another one than the original's."""
    from qmodel.backends.redis.common import check_namespace
    from qmodel.backends.redis.url import options_of

    if not at.url.startswith("memory:"):
        ours, theirs = options_of(at.url), options_of(source)
        check_namespace(ours)
        if ours.prefix == prefix and ours.connection == theirs.connection:
            raise click.ClickException(
                f"--url names the namespace of the original itself: {without_password(at.url)}. "
                "Give another database or server."
            )
    if at.client.execute(ops.Queues(0, 1)):
        raise click.ClickException(
            f"{without_password(at.url)} is not empty. Give a database or a prefix that nobody has used."
        )


def _converted(at: Session, found: Original) -> Report:
    from qmodel.client.request_ids import with_request
    from qmodel.dialects.qless.conversion import convert

    backend = at.client.backend
    shown = 0

    def execute(op: Operation, now: int) -> Any:
        return backend.execute(with_request(op), now)

    def progress(report: Report) -> None:
        nonlocal shown
        done = report.converted.total()
        if sys.stderr.isatty() and done >= shown + EVERY:
            shown = done
            click.echo(f"\r{done:,} of {len(found.jobs):,} jobs and more ...", nl=False, err=True)

    report = convert(found, execute, time.time_ns() // 1_000_000 if at.now is None else at.now, progress)
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)
    return report


common(command)
