"""`qmodel failures`: show failed jobs by group, the jobs of a group, and retry them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import click

from qmodel.cli import show
from qmodel.cli.session import Session, common, session
from qmodel.contract import operations as ops
from qmodel.contract import redaction, replies
from qmodel.present import bulk, groups
from qmodel.present.actions import ACTIONS, Once, outcome
from qmodel.present.durations import short_duration
from qmodel.present.fields import Fields
from qmodel.present.numbers import counted, number
from qmodel.present.text import arguments, clean, gist


@click.command("failures")
@click.argument("group", required=False)
@click.option("--retry", is_flag=True, help="Retry the jobs, each in its own queue.")
@click.option("--jid", "jids", multiple=True, help="With --retry: only this job; may be given several times.")
@click.option("--queue", help="With --retry: only jobs of this queue.")
@click.option("--klass", help="With --retry: only jobs of this job type.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask before all groups are retried.")
@click.option("--offset", type=click.IntRange(0), default=0, show_default=True, help="The lines to skip.")
@click.option("--count", type=click.IntRange(1, groups.MANY), default=25, show_default=True, help="The most lines.")
@click.option("--full", is_flag=True, help="With GROUP: the whole message of each job, with its traceback.")
def command(group: str | None, retry: bool, **given: Any) -> None:
    """Show the failure groups, each with its number of jobs and its newest message; or the jobs of a GROUP.

    The largest group comes first.

    \b
        qmodel failures                     the groups
        qmodel failures ValueError          the jobs of a group, latest first
        qmodel failures ValueError --full   with their tracebacks
        qmodel failures ValueError --retry  retry all jobs of a group, each in its own queue
        qmodel failures --retry --jid JID   retry this job
        qmodel failures --retry             retry every failed job; asks first
    """
    at = session()
    if not retry and (given["queue"] or given["klass"] or given["jids"]):
        raise click.UsageError("--jid, --queue and --klass go with --retry; `qmodel search --state failed` finds jobs.")
    if retry and given["jids"]:
        if group or given["queue"] or given["klass"]:
            raise click.UsageError("--jid names the jobs: leave GROUP, --queue and --klass out.")
        retry_jobs(at, given["jids"])
    elif retry:
        _retry(at, group, given)
    elif group is None:
        _groups(at, given["offset"], given["count"])
    else:
        _jobs(at, group, given["offset"], given["count"], given["full"])


def _groups(at: Session, offset: int, count: int) -> None:
    tallies, more = groups.shown(at.client.execute(groups.asking(offset)), offset, count)
    newest = _newest(at, [one.name for one in tallies])
    if at.json:
        pairs = [(one, newest.get(one.name)) for one in tallies]
        at.answer([{"group": one.name, "jobs": one.jobs, "newest": job and _plain(job)} for one, job in pairs])
        return
    if not tallies:
        click.echo("Nothing has failed." if not offset else "There are no more groups.")
        return
    now = _now(at)
    rows = [(one.jobs, one.name, *_newest_cells(now, newest.get(one.name))) for one in tallies]
    show.table(at, (">jobs", "group", ">newest", "klass", "queue", "message"), rows, whole=(">newest",))
    click.echo()
    if more:
        click.echo(f"More: qmodel failures --offset {offset + len(tallies)}")
    click.echo(f"Look: qmodel failures '{tallies[0].name}'    Retry: qmodel failures '{tallies[0].name}' --retry")


def _newest(at: Session, names: list[str]) -> dict[str, replies.Job]:
    """Give the latest failed job of each group, in two round trips."""
    pages = at.client.execute_many(ops.Failed(name, 0, 1) for name in names)
    jids = tuple(jid for page in pages if isinstance(page, replies.Page) for jid in page.jids)
    jobs = redaction.shown(at.client.multiget(jids))
    return {job.failure.group: job for job in jobs if job.failure}


def _newest_cells(now: int, job: replies.Job | None) -> tuple[str, ...]:
    if job is None or job.failure is None:
        return ("-", "-", "-", "")
    return (f"{short_duration(now - job.failure.at)} ago", job.klass, job.queue, gist(job.failure.message))


def _jobs(at: Session, group: str, offset: int, count: int, full: bool) -> None:
    page: replies.Page = at.client.execute(ops.Failed(group, offset, count))
    jobs: list[replies.Job] = redaction.shown(at.client.multiget(page.jids))
    if at.json:
        at.answer({"group": group, "total": page.total, "jobs": [_plain(job) for job in jobs]})
    elif not page.total:
        _say_no_group(at, group)
    if not page.total:
        raise click.exceptions.Exit(1)
    if at.json:
        return
    now = _now(at)
    if full:
        for job in jobs:
            _say_whole(now, job)
    else:
        rows = [_line(now, job) for job in jobs]
        show.table(at, ("jid", "klass", "queue", ">failed", "data", "message"), rows, whole=("jid", ">failed"))
    first, last = offset + 1, offset + len(jobs)
    click.echo(f"\n{first} to {last} of {page.total}." if jobs else f"\nTotal: {number(page.total)}.")
    if offset + len(jobs) < page.total and jobs:
        click.echo(f"More: qmodel failures '{group}' --offset {offset + count}")


def _line(now: int, job: replies.Job) -> tuple[str, ...]:
    if job.failure is None:  # it was retried in the meantime
        return (job.jid, job.klass, job.queue, "-", arguments(job.data), job.state)
    failed = f"{short_duration(now - job.failure.at)} ago"
    return (job.jid, job.klass, job.queue, failed, arguments(job.data, 40), gist(job.failure.message))


def _say_whole(now: int, job: replies.Job) -> None:
    failure = job.failure
    when = f"{short_duration(now - failure.at)} ago on {failure.worker or '-'}" if failure else job.state
    click.secho(f"{job.jid}  {job.klass} in {job.queue}, {when}", bold=True)
    if given := arguments(job.data, 1000):
        click.echo(given)
    click.echo(clean(failure.message).rstrip() + "\n" if failure else "")


def _say_no_group(at: Session, group: str) -> None:
    from difflib import get_close_matches

    known = [one.name for one in at.client.execute(groups.asking(0))]
    close = get_close_matches(group, known, 3)
    hint = f" Did you mean {' or '.join(close)}?" if close else " See: qmodel failures"
    click.echo(f"Nothing has failed in group '{group}'.{hint}", err=True)


def _retry(at: Session, group: str | None, given: dict[str, Any]) -> None:
    chosen = {"klass": given["klass"], "group": group}
    if group is None and not given["yes"]:
        filtered = given["queue"] or given["klass"]
        there = at.client.failed.retry(given["queue"], **chosen, preview=True) if filtered else _all(at)
        if not there:
            click.echo("Nothing has failed." if not at.json else '{"retried": 0}')
            return
        click.confirm(f"Retry {counted(there, 'failed job')} of all groups?", abort=True, err=True)
    _say_retried(at, at.client.failed.retry(given["queue"], **chosen))


def retry_jobs(at: Session, jids: Sequence[str]) -> None:
    """Retry failed jobs, by id; exit with 1 if none of them had failed."""
    action, fields = ACTIONS["retry-jobs"], Fields(("jid", jid) for jid in jids)
    assert isinstance(action, Once)
    found = at.client.execute_many(action.make(fields))
    sentence = outcome(action, fields, found)
    done = sum(step.done for step in found)
    if at.json:
        at.answer({"retried": done})
    else:
        click.echo(sentence)
    if not done:
        raise click.exceptions.Exit(1)


def _say_retried(at: Session, done: int) -> None:
    if at.json:
        at.answer({"retried": done})
    else:
        click.echo(bulk.outcome("retry", done))


def _all(at: Session) -> int:
    """Count the failed jobs, from the counts of the groups."""
    found = 0
    for offset in itertools.count(0, groups.MANY):
        page = at.client.execute(groups.asking(offset))
        found += sum(one.jobs for one in page)
        if len(page) < groups.MANY:
            break
    return found


def _plain(job: replies.Job) -> dict[str, Any]:
    failure = job.failure
    return {
        "jid": job.jid,
        "klass": job.klass,
        "queue": job.queue,
        "state": job.state,
        "data": job.data,
        "failed_at": failure.at if failure else None,
        "worker": failure.worker if failure else None,
        "message": failure.message if failure else None,
    }


def _now(at: Session) -> int:
    """Give the current moment: the server's, if it has a clock."""
    if at.now is not None:
        return at.now
    clock = getattr(at.client.backend, "now", None)
    return int(clock()) if clock else time.time_ns() // 1_000_000


common(command)
