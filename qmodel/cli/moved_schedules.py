"""Moving recurring jobs from one namespace or deployment to another, so that whoever dies may begin again.

A recurring job moves in four steps:

1. It is held in the source: it moves to the queue `~leaving/<queue>`, which is paused, so none of its runs is made. A
   paused one moves to `~leaving-paused/<queue>`, and is unpaused there, for a paused one does not show its next moment.
2. It is created in the target, in the queue `~arriving/<queue>`, which is paused too, with its next moment and the
   number of its last run.
3. It is deleted in the source.
4. It moves to its queue in the target.

So at most one of both makes its runs, and the source has it until the target has all of it. After a death, the next run
holds it again and replaces what has arrived; what has arrived and is not in the source any more takes step 4.

One that waits for the end of a run stays until that run has ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from qmodel.cli.moved_jobs import PAGE, Report, SameNamespace, counts
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Schedule

LEAVING: Final = "~leaving/"
LEAVING_PAUSED: Final = "~leaving-paused/"
ARRIVING: Final = "~arriving/"
REASON: Final = "recurring jobs move"
"""The reason of the pauses of these queues."""


def move_schedules(source: Client, target: Client, queues: tuple[str, ...], report: Report) -> None:
    """Move all recurring jobs of some queues, or of all, that can be moved now; add to the report."""
    for queue, jid in list(_listed(target, (ARRIVING,))):
        if not any(_get(source, one) for one in (jid, jid[1:-1])):
            target.execute(ops.RecurUpdate(jid, queue=queue))
            report.recurring += 1
    for _, jid in _listed(source, (ARRIVING,)):
        report.refused[_name(jid)] = "it has not quite arrived here: run the move into this namespace again first"
    listed = _listed(source, (LEAVING, LEAVING_PAUSED, ""))
    named = [(queue, jid) for queue, jid in listed if not queues or queue in queues]
    wanted = [(queue, jid) for queue, jid in named if _may_move(source, jid) and _name(jid) not in report.refused]
    for queue in dict.fromkeys(queue for queue, _ in wanted):
        source.backend.execute_many([ops.Pause((prefix + queue,), REASON) for prefix in (LEAVING, LEAVING_PAUSED)])
        target.backend.execute(ops.Pause((ARRIVING + queue,), REASON))
    for _, jid in wanted:
        _move_one(source, target, jid, report)
    _forget(source, (LEAVING, LEAVING_PAUSED), wanted)
    _forget(target, (ARRIVING,), wanted)


def _forget(client: Client, prefixes: tuple[str, ...], wanted: list[tuple[str, str]]) -> None:
    """Forget the queues that held recurring jobs, and their pauses; also what a run that died has left."""
    listed = {one.name: one.recurring for one in counts(client) if one.name.startswith(prefixes)}
    names = dict.fromkeys([*listed, *(prefix + queue for queue, _ in wanted for prefix in prefixes)])
    client.backend.execute_many([ops.Forget((name,)) for name in names if not listed.get(name)])


def _listed(client: Client, prefixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """List recurring jobs in queues with one of these prefixes: the queue without the prefix, and the id."""
    for one in counts(client):
        prefix = next((prefix for prefix in prefixes if one.name.startswith(prefix)), None)
        if prefix is not None and not (prefix == "" and one.name.startswith(ARRIVING)):
            for offset in range(0, one.recurring, PAGE):
                page = client.execute(ops.Recurring(one.name, offset, PAGE))
                yield from ((one.name.removeprefix(prefix), jid) for jid in page.jids)


def _get(client: Client, jid: str) -> Schedule | None:
    """Find a recurring job; None also for an id that a deployment refuses."""
    found = client.backend.execute(ops.RecurGet(jid)) if jid else None
    return found if isinstance(found, Schedule) else None


def _name(jid: str) -> str:
    """Give the name of a recurring job among those that were refused."""
    return f"recurring job {jid}"


def _may_move(source: Client, jid: str) -> bool:
    """Whether a recurring job exists, and waits for no end of a run."""
    found = _get(source, jid)
    return found is not None and not found.open


def _move_one(source: Client, target: Client, jid: str, report: Report) -> None:
    """Move a recurring job; add to the report."""
    held = _hold(source, jid, report)
    if held is None:
        return
    queue, paused = _place(held)
    recur = _recur(held, jid if target.homes is None or "{" in jid else f"{{{jid}}}")
    found = _get(target, recur.jid)
    if found is not None and found.queue.startswith((LEAVING, LEAVING_PAUSED)):
        _give_back(source, held)
        raise SameNamespace("The two URLs lead to the same jobs. Give another one to move to.")
    arrives = found is None or found.queue.startswith(ARRIVING)
    if arrives:
        why = _create(target, recur, queue, held, paused, found is not None)
    else:
        why = "" if _alike(found, held, queue) else "its id is taken there"
    if why:
        report.refused[_name(jid)] = why
        _give_back(source, held)
        return
    source.execute(ops.Unrecur(jid))
    if arrives:
        target.execute(ops.RecurUpdate(recur.jid, queue=queue))
    report.recurring += 1


def _hold(source: Client, jid: str, report: Report) -> Schedule | None:
    """Hold a recurring job; give it as it is then. None: it stays, for it is refused, gone, or waits for a run."""
    found = _get(source, jid)
    if found is None:
        return None
    queue = found.queue
    if not queue.startswith((LEAVING, LEAVING_PAUSED)):
        queue = (LEAVING_PAUSED if found.paused else LEAVING) + queue
        reply = source.backend.execute(ops.RecurUpdate(jid, queue=queue))
        if isinstance(reply, Refusal):
            report.refused[_name(jid)] = reply.sentence
            return None
    if queue.startswith(LEAVING_PAUSED):
        source.backend.execute(ops.RecurUnpause(jid))
    held = _get(source, jid)
    if held is not None and (held.open or not (held.next_at or held.kind == "cron")):
        _give_back(source, held)
        return None
    return held


def _place(held: Schedule) -> tuple[str, bool]:
    """Give the queue of a held recurring job, and whether it was paused."""
    if held.queue.startswith(LEAVING_PAUSED):
        return held.queue.removeprefix(LEAVING_PAUSED), True
    return held.queue.removeprefix(LEAVING), False


def _give_back(source: Client, held: Schedule) -> None:
    """Let a held recurring job be as it was."""
    queue, paused = _place(held)
    if paused:
        source.backend.execute(ops.RecurPause(held.jid))
    source.backend.execute(ops.RecurUpdate(held.jid, queue=queue))


def _recur(held: Schedule, jid: str) -> ops.Recur:
    """Make the `recur` of a held recurring job that arrives: what it was, from its next moment on."""
    same = ("klass", "data", "interval_ms", "priority", "retries", "tags", "backlog", "kind", "cron", "due_at")
    more = ("end_at", "missed", "catchup_ms", "overlap", "runs", "throttles")
    return ops.Recur(
        ARRIVING + _place(held)[0],
        jid,
        start_at=held.start_at if held.kind == "cron" else held.next_at,
        limit=held.limit and held.limit - held.made,
        fair_key=held.fair_key or None,
        fair_weight=held.fair_weight or None,
        **{name: getattr(held, name) for name in same + more},
    )


def _create(target: Client, recur: ops.Recur, queue: str, held: Schedule, paused: bool, again: bool) -> str:
    """Create a recurring job in the queue `~arriving/<queue>`; say why not, or give an empty text.

    It is created at its next moment if that is past: so no run that is due is skipped.
    """
    layout = getattr(target.backend, "layout", None)
    refused: Any = None if layout is None else layout.route(replace(recur, queue=queue))
    if isinstance(refused, Refusal):
        return refused.sentence
    if again:
        target.execute(ops.Unrecur(recur.jid))
    now = min(time.time_ns() // 1_000_000, held.next_at or held.last_at)
    reply = target.backend.execute(recur, now)
    if isinstance(reply, Refusal):
        return reply.sentence
    if paused:
        target.execute(ops.RecurPause(recur.jid))
    return ""


def _alike(found: Schedule | None, held: Schedule, queue: str) -> bool:
    """Whether the target has declared the same recurring job itself."""
    same = ("klass", "data", "kind", "interval_ms", "cron")
    return found is not None and found.queue == queue and all(getattr(found, n) == getattr(held, n) for n in same)
