"""Replies, shown to people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from qmodel.cli.convert import format_duration, format_moment
from qmodel.cli.session import Session
from qmodel.contract import replies
from qmodel.contract.events import BETWEEN_TAGS, Event
from qmodel.contract.operations import Operation
from qmodel.contract.reasons import Reason
from qmodel.contract.redaction import shown
from qmodel.contract.settings import OPTIONS, meant_by
from qmodel.present import describe
from qmodel.present.numbers import counted
from qmodel.present.text import clean, on_a_line


def reply(at: Session, op: Operation, found: Any) -> None:
    """Print an operation's reply for a person."""
    shape = op.spec.reply
    if shape in _SHAPES:
        _SHAPES[shape](at, op, found)
    elif isinstance(found, tuple):
        for one in found:
            click.echo(one)
    elif op.spec.name.startswith("config_"):
        click.echo(_setting(op.option, found))  # type: ignore[attr-defined]
    else:
        click.echo(found)


def table(at: Session, columns: Sequence[str], rows: Iterable[Sequence[object]], whole: Sequence[str] = ()) -> None:
    """Draw a table; a `>` before a column's name means numbers, and columns in `whole` are never folded."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        drawn.add_column(
            column.lstrip(">"),
            justify="right" if column.startswith(">") else "left",
            overflow="fold",
            no_wrap=column in whole,
        )
    for row in rows:
        drawn.add_row(*(Text(clean(str(cell))) for cell in row))
    at.console().print(drawn)


JOB_COLUMNS = ("jid", "klass", "queue", "state", ">priority", ">remaining", "worker", "data")


def jobs(at: Session, found: Sequence[replies.Job]) -> None:
    """Draw jobs, a line each; long data is shortened."""
    if not found:
        click.echo("No jobs.")
        return
    table(
        at,
        JOB_COLUMNS,
        (
            (j.jid, j.klass, j.queue, j.state, j.priority, j.remaining, j.worker or "-", shortened(j.data))
            for j in found
        ),
    )


def shortened(text: str, most: int = 40) -> str:
    """Shorten a text to one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _jobs(at: Session, op: Any, found: tuple[replies.Job, ...]) -> None:
    jobs(at, found)
    if op.spec.name == "pop":
        for job in found:
            click.echo(
                f"Leased to {job.worker} until {format_moment(job.expires_at)}. "
                f"Finish it with: qmodel op complete {job.jid} --token {job.token}"
            )


def _completed_and_popped(at: Session, op: Any, found: replies.CompletedAndPopped) -> None:
    click.echo(found.state)
    jobs(at, found.jobs)


def _job(at: Session, op: Any, job: replies.Job | None) -> None:
    if job is None:
        click.echo(f"There is no job {op.jid}.")
        return
    lines = [
        ("klass", job.klass),
        ("queue", job.queue),
        ("state", job.state),
        ("data", job.data),
        ("priority", job.priority),
        ("retries", f"{job.remaining} of {job.retries} left"),
        ("tags", ", ".join(job.tags)),
        ("put at", format_moment(job.put_at)),
        ("ready at", format_moment(job.ready_at)),
        ("popped at", format_moment(job.popped_at)),
        ("worker", f"{job.worker} (token {job.token})" if job.worker else ""),
        ("expires at", format_moment(job.expires_at) if job.expires_at else ""),
        ("ended at", format_moment(job.ended_at)),
        ("progress", job.progress),
        ("result", job.result),
        ("depends on", ", ".join(job.dependencies)),
        ("dependents", ", ".join(job.dependents)),
        ("tracked", "yes" if job.tracked else ""),
    ]
    click.echo(click.style(f"job {job.jid}", bold=True))
    for name, value in lines:
        if value not in ("", "-"):
            click.echo(f"  {name:<11} {clean(str(value))}")
    if job.failure is not None:
        click.echo(f"  {'failure':<11} {clean(job.failure.group)} at {format_moment(job.failure.at)}")
        for line in job.failure.message.splitlines():
            click.echo(f"  {'':<11} {clean(line)}")
    click.echo("  history")
    for stage in job.history:
        facts = clean(on_a_line(stage.what, stage.named))
        click.echo(f"    {format_moment(stage.at)}  {stage.what:<10} {facts}")


def _page(at: Session, op: Any, page: replies.Page) -> None:
    if op.spec.name in ("recurring", "requests"):
        for jid in page.jids:
            click.echo(jid)
    elif page.jids:
        jobs(at, shown(at.client.multiget(page.jids)))
    first = op.offset + 1 if page.jids else op.offset
    click.echo(f"{first} to {op.offset + len(page.jids)} of {page.total}")


def _schedule(at: Session, op: Any, found: replies.Schedule | None) -> None:
    if found is None:
        click.echo(f"There is no recurring job {op.jid}.")
        return
    rows = found._asdict() | {
        "tags": ", ".join(found.tags) or "-",
        "backlog": found.backlog or "all",
        "limit": found.limit or "-",
        "due_at": ", ".join(map(format_moment, found.due_at[:3])) + f" ({len(found.due_at)} in all)",
        "paused": "yes" if found.paused else "no",
    }
    for name, value in rows.items():
        text = value
        if name.endswith("_ms"):
            text = format_duration(value)
        elif name.endswith("_at") and name != "due_at":
            text = format_moment(value)
        click.echo(f"{name.removesuffix('_ms'):>9}  {text}")


def _schedules(at: Session, op: Any, found: tuple[replies.Schedule, ...]) -> None:
    rows = ((one.jid, one.queue, one.cron, format_moment(one.last_at)) for one in found)
    table(at, ("recurring job", "queue", "cron", "known until"), rows) if found else click.echo("None.")


def _subscription(at: Session, op: Any, found: replies.Subscription | None) -> None:
    if found is None:
        click.echo(f"There is no subscription {op.subscription}.")
        return
    rows = found._asdict() | {
        "patterns": " ".join(found.patterns),
        "delay_ms": format_duration(found.delay_ms),
        "tags": ", ".join(found.tags) or "-",
        "options": ", ".join(f"{name}={value}" for name, value in found.options) or "-",
        "behind": counted(found.behind, "message"),
    }
    for name, value in rows.items():
        click.echo(f"{name.removesuffix('_ms'):>9}  {value}")


def _subscriptions(at: Session, op: Any, found: tuple[replies.Subscription, ...]) -> None:
    rows = ((one.name, " ".join(one.patterns), one.queue, one.klass, one.behind) for one in found)
    table(at, ("subscription", "patterns", "queue", "klass", ">behind"), rows) if found else click.echo("None.")


def _messages(at: Session, op: Any, found: tuple[replies.Message, ...]) -> None:
    rows = ((one.seq, format_moment(one.at), one.subject, shortened(one.data)) for one in found)
    table(at, (">number", "published at", "subject", "data"), rows) if found else click.echo("None.")


def _request(at: Session, op: Any, found: replies.Request | None) -> None:
    if found is None:
        click.echo(f"There is no request {op.id}.")
        return
    for name, value in found._asdict().items():
        moment = name.endswith(("_at", "_until"))
        click.echo(f"{name:>11}  {format_moment(value) if moment else value}")


def _sub_requests(at: Session, op: Any, found: replies.SubRequests) -> None:
    if found.jobs:
        table(at, ("jid", "outcome", "state", "group", "result"), (tuple(one) for one in found.jobs))
    else:
        click.echo("No sub-requests.")
    if found.next:
        click.echo(f"There are more: --offset {found.next}")


def _forgotten(at: Session, op: Any, found: replies.Forgotten) -> None:
    click.echo(f"{found.left} left to forget; {found.deleted} jobs deleted, {found.stay} stay")


def _tallies(at: Session, op: Any, found: tuple[replies.Tally, ...]) -> None:
    first = "group" if op.spec.name == "failed_groups" else "tag"
    table(at, (first, ">jobs"), found) if found else click.echo("None.")


def _queues(at: Session, op: Any, found: tuple[replies.QueueCounts, ...]) -> None:
    if not found:
        click.echo("No queues.")
        return
    names = [name for name in replies.QueueCounts._fields if name not in ("name", "paused", "next_at", "pauses")]
    table(
        at,
        ("queue", *(">" + name for name in names), "paused", "next ready at"),
        (
            (
                one.name,
                *(getattr(one, name) for name in names),
                ", ".join(map(_pause, one.pauses)) or "-",
                format_moment(one.next_at),
            )
            for one in found
        ),
    )


def _pause(one: replies.Pause) -> str:
    return f"{one.reason} until {format_moment(one.until)}" if one.until else one.reason


def _queue(at: Session, op: Any, found: replies.QueueCounts) -> None:
    _queues(at, op, (found,))


def _workers(at: Session, op: Any, found: tuple[replies.WorkerCounts, ...]) -> None:
    if not found:
        click.echo("No workers.")
        return
    told = {name: one.told for name, one in at.client.workers.signals().items()}
    known = at.client.workers.profiles()
    rows = (
        (
            w.name,
            format_moment(w.seen_at),
            w.jobs,
            w.stalled,
            told.get(w.name, ""),
            *describe.profile_row(known.get(w.name)),
        )
        for w in found
    )
    table(at, ("worker", "seen at", ">jobs", ">stalled", "state", *describe.PROFILE_COLUMNS), rows)


def _worker(at: Session, op: Any, found: replies.WorkerJobs) -> None:
    for name, jids in found._asdict().items():
        click.echo(f"{name}: {', '.join(jids) or '-'}")
    profile = at.client.workers.profiles().get(op.worker)
    if profile is not None:
        click.echo(describe.worker(profile))


def _settings(at: Session, op: Any, found: tuple[replies.Setting, ...]) -> None:
    rows = []
    for one in found:
        known = OPTIONS[meant_by(one.option) or one.option]
        value = _setting(one.option, one.value)
        rows.append((one.option, value, "set" if one.is_set else "default", known.purpose))
    table(at, ("option", ">value", "", "purpose"), rows)


def _setting(option: str, value: int) -> str:
    known = OPTIONS.get(meant_by(option) or "")
    if known is None:
        return str(value)
    return format_duration(value) if known.unit == "ms" else f"{value} {known.unit}"


def _lease(at: Session, op: Any, found: replies.Lease) -> None:
    click.echo(f"expires at {format_moment(found.expires_at)}" + ("; revoked: stop" if found.revoked else ""))


def _results(at: Session, op: Any, found: tuple[replies.Result, ...]) -> None:
    table(at, ("name", "jid", "state", "result"), (tuple(one) for one in found))


def _tracked(at: Session, op: Any, found: replies.TrackedJobs) -> None:
    jobs(at, found.jobs)
    if found.expired:
        click.echo("Gone: " + ", ".join(found.expired))


def _throttles(at: Session, op: Any, found: tuple[replies.Throttle, ...]) -> None:
    if not found:
        click.echo("No throttles.")
        return
    rows = (
        (
            one.name,
            f"{one.running} of {one.concurrency}" if one.concurrency else str(one.running),
            f"{one.claims} of {one.rate} in {format_duration(one.rate_ms)}" if one.rate else "-",
            f"{one.tokens} of {one.capacity}, +{one.refill} in {format_duration(one.refill_ms)}"
            if one.capacity
            else "-",
            one.parked,
            format_moment(one.opens_at),
            one.family or "-",
        )
        for one in found
    )
    table(at, ("throttle", ">running", "claims", "tokens", ">parked", "opens at", "family"), rows)


def _throttle(at: Session, op: Any, found: replies.Throttle) -> None:
    _throttles(at, op, (found,))
    if found.holders:
        click.echo("Held by: " + ", ".join(found.holders))


def _used_throttles(at: Session, op: Any, found: replies.UsedThrottles) -> None:
    if found.throttles:
        _throttles(at, op, found.throttles)
    elif not found.cursor:
        click.echo("No throttle of such a name is in use.")
    if found.cursor:
        click.echo(f"More may follow: --cursor '{found.cursor}'")


def _unique(at: Session, op: Any, found: replies.Unique | None) -> None:
    if found is None:
        click.echo("No job holds it.")
        return
    until = f"until {format_moment(found.until)}" if found.until else "until it has ended"
    click.echo(f"{found.jid} holds it since {format_moment(found.since)} ({found.mode}), {until}")
    if found.next:
        click.echo(f"{found.next} is next")


def _reasons(at: Session, op: Any, found: tuple[Reason, ...]) -> None:
    for one in found:
        moments = (f"{name} {format_moment(int(fact))}" for name, fact in one.named.items() if name in MOMENTS)
        click.echo(" ".join([one.sentence, *(f"({moment})" for moment in moments)]))
    if not found:
        click.echo("Nothing blocks it: the next pop of its queue leases it.")


MOMENTS = ("ended_at", "expires_at", "free_at", "ready_at", "opens_at", "until", "seen_at")


def _drained(at: Session, op: Any, found: replies.Drained) -> None:
    click.echo(f"{found.canceled} canceled, {found.left} left")


def _entries(at: Session, op: Any, found: tuple[replies.Entry, ...]) -> None:
    table(at, ("key", "text"), found) if found else click.echo("None.")


def _found(at: Session, op: Any, found: replies.Found) -> None:
    jobs(at, found.jobs)
    if found.cursor:
        click.echo(f"More may follow: --cursor '{found.cursor}'")


def _bulk(at: Session, op: Any, found: replies.Bulk | replies.Cleaned) -> None:
    done = {"cancel_many": "canceled", "retry_many": "retried"}.get(op.spec.name, "deleted")
    passed = "left" if op.spec.name == "obliterate" else "passed over"
    fit = "fit" if getattr(op, "preview", False) else done
    click.echo(f"{found.done} {fit}" + (f", {found.passed} {passed}" if found.passed else ""))
    if found.cursor:
        click.echo(f"More may follow: --cursor '{found.cursor}'")


def _events(at: Session, op: Any, found: tuple[Event, ...]) -> None:
    for event in found:
        facts = " ".join(f"{name}={str(fact).replace(BETWEEN_TAGS, ',')}" for name, fact in event.named.items())
        click.echo(f"{event.seq:>8}  {format_moment(event.at)}  {event.event:<12} {facts}")


def _recorded(at: Session, op: Any, found: tuple[replies.Recorded, ...]) -> None:
    for one in found:
        click.echo(f"{one.number:>8}  {one.seq:>8}  {shortened(one.call, 200)}\n{'':20}{shortened(one.outcome, 200)}")


def _stats(at: Session, op: Any, found: replies.Stats) -> None:
    from qmodel.cli import picture

    part = f"tag {op.tag}" if op.tag is not None else f"worker {op.worker}" if op.worker is not None else ""
    click.echo(picture.of(found, part=part))


def _metrics(at: Session, op: Any, found: tuple[replies.Minute, ...]) -> None:
    rows = [(format_moment(one.at), *one[1:]) for one in found if any(one[1:])]
    click.echo(f"{sum(one.completed for one in found):,} completed in {counted(len(found), 'minute')}.")
    if rows:
        table(at, ("minute", ">completed", ">failed", ">retried", ">run ms"), rows)


_SHAPES: dict[str, Callable[[Session, Any, Any], None]] = {
    "jobs": _jobs,
    "job": _job,
    "completed_and_popped": _completed_and_popped,
    "page": _page,
    "results": _results,
    "schedule": _schedule,
    "schedules": _schedules,
    "subscription": _subscription,
    "subscriptions": _subscriptions,
    "messages": _messages,
    "tallies": _tallies,
    "queues": _queues,
    "queue": _queue,
    "workers": _workers,
    "worker": _worker,
    "settings": _settings,
    "lease": _lease,
    "tracked": _tracked,
    "reasons": _reasons,
    "throttle": _throttle,
    "throttles": _throttles,
    "used_throttles": _used_throttles,
    "unique": _unique,
    "request": _request,
    "sub_requests": _sub_requests,
    "forgotten": _forgotten,
    "drained": _drained,
    "found": _found,
    "bulk": _bulk,
    "cleaned": _bulk,
    "entries": _entries,
    "events": _events,
    "recorded": _recorded,
    "stats": _stats,
    "metrics": _metrics,
}
