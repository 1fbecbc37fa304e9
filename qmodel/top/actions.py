"""The actions of `qmodel.present.actions`, bound to keys: what a key does to a queue, a group, a job or a worker.

Some keys look first: `p` pauses a queue, or unpauses a paused one. Bulk actions continue until no job is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from qmodel.client.aio import AsyncClient
from qmodel.client.defaults import BY_HAND
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.present import bulk
from qmodel.present.actions import ACTIONS, Once, Signal, Stepwise, outcome, question
from qmodel.present.fields import Fields
from qmodel.present.numbers import counted


class Prepared(NamedTuple):
    """A prepared action: its question, or nothing; and the function that performs it and gives its outcome."""

    question: str
    perform: Callable[[], Awaitable[str]]


def prepared(client: AsyncClient, name: str, asked: str | None = None, **given: str) -> Prepared:
    """Prepare an action on the fields `given`; `asked` replaces its question."""
    action, fields = ACTIONS[name], Fields(given.items())

    async def perform() -> str:
        if isinstance(action, Signal):
            await action.send(client.workers, fields)
            return action.tell(fields)
        if isinstance(action, Stepwise):
            return await _step_by_step(client, action, fields)
        assert isinstance(action, Once)
        return outcome(action, fields, await client.execute_many(await _operations(client, action, fields)))

    return Prepared(question(action, fields) if asked is None else asked, perform)


async def _operations(client: AsyncClient, action: Once, fields: Fields) -> list[ops.Operation]:
    if action.look is None:
        return list(action.make(fields))
    return list(action.choose(fields, await client.execute(action.look(fields))))


async def _step_by_step(client: AsyncClient, action: Stepwise, fields: Fields) -> str:
    done, cursor = 0, ""
    while True:
        step = action.read(await client.execute(action.step(fields, cursor)))
        done, cursor = done + step.done, step.cursor
        if not step.more:
            return action.tell(fields, step._replace(done=done))


# ---- what the keys do


async def pause(client: AsyncClient, queue: str) -> Prepared:
    """Pause a queue, or unpause a paused one; ask before the pauses of others are removed."""
    counts: replies.QueueCounts = await client.execute(ops.Queue(queue))
    if not counts.paused:
        return prepared(client, "pause", queue=queue)
    others = ", ".join(one.reason for one in counts.pauses if one.reason != BY_HAND)
    asked = f"Queue {queue} is paused for another reason ({others}). Unpause it?" if others else ""
    return prepared(client, "unpause", asked, queue=queue)


async def drain(client: AsyncClient, queue: str) -> Prepared:
    """Cancel the jobs of a queue that have not begun."""
    return prepared(client, "drain", queue=queue)


async def retry_group(client: AsyncClient, group: str) -> Prepared:
    """Retry the jobs of a failure group, each in its own queue."""
    return await _of_group(client, "retry", group)


async def cancel_group(client: AsyncClient, group: str) -> Prepared:
    """Cancel the jobs of a failure group."""
    return await _of_group(client, "cancel", group)


async def _of_group(client: AsyncClient, kind: str, group: str) -> Prepared:
    page: replies.Page = await client.execute(ops.Failed(group, 0, 1))

    async def perform() -> str:
        done, passed, cursor = 0, 0, ""
        while True:
            step: replies.Bulk = await client.execute(bulk.operation(kind, {"group": group}, cursor))
            done, passed, cursor = done + step.done, passed + step.passed, step.cursor
            if not cursor:
                return bulk.outcome(kind, done, passed)

    known = bulk.KINDS[kind]
    return Prepared(f"{known.label} {counted(page.total, 'failed job')} of group {group}? {known.effect}", perform)


async def retry_job(client: AsyncClient, jid: str) -> Prepared:
    """Retry a failed job."""
    return prepared(client, "retry-jobs", jid=jid)


async def cancel_job(client: AsyncClient, jid: str) -> Prepared:
    """Cancel a job."""
    return prepared(client, "cancel-jobs", jid=jid)


async def revoke_job(client: AsyncClient, jid: str) -> Prepared:
    """Revoke a job."""
    return prepared(client, "revoke-jobs", jid=jid)


async def take_lease(client: AsyncClient, jid: str) -> Prepared:
    """Take the lease of a job from its worker."""
    return prepared(client, "timeout", jid=jid)


async def quiet_worker(client: AsyncClient, worker: str) -> Prepared:
    """Make a worker take no more jobs; make a quiet one take jobs again."""
    told = (await client.workers.signals()).get(worker)
    return prepared(client, "resume" if told is not None and told.signal == "quiet" else "quiet", worker=worker)


async def stop_worker(client: AsyncClient, worker: str) -> Prepared:
    """Stop a worker when its jobs have ended."""
    return prepared(client, "stop", worker=worker)


KEYS: dict[tuple[str, str], Callable[[AsyncClient, str], Awaitable[Prepared]]] = {
    ("pause", "queue"): pause,
    ("cancel", "queue"): drain,
    ("retry", "group"): retry_group,
    ("cancel", "group"): cancel_group,
    ("retry", "job"): retry_job,
    ("cancel", "job"): cancel_job,
    ("revoke", "job"): revoke_job,
    ("take", "job"): take_lease,
    ("pause", "worker"): quiet_worker,
    ("cancel", "worker"): stop_worker,
}
"""What a key does, by the key's name and by what the cursor is on."""
