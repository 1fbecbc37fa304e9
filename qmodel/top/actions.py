"""What `qmodel top` can do to what is shown: each is a question, where something would be lost, and then operations.

A deed on many jobs goes through them a thousand at a step, and says at the end how many there were.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from qmodel.client.aio import AsyncClient
from qmodel.client.fields import BY_HAND
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.top import retry


class Deed(NamedTuple):
    """What is asked before, if anything, and what does it then and says what it has done."""

    question: str
    do: Callable[[], Awaitable[str]]


async def pause(client: AsyncClient, queue: str) -> Deed:
    """Let a queue hand out nothing, or if it does so already, everything again."""
    counts: replies.QueueCounts = await client.execute(ops.Queue(queue))
    others = [one.reason for one in counts.pauses if one.reason != BY_HAND]

    async def stop() -> str:
        await client.queues.pause(queue)
        return f"{queue} is paused"

    async def go_on() -> str:
        await client.queues.unpause(queue)
        return f"{queue} hands out jobs again"

    if not counts.paused:
        return Deed("", stop)
    asked = f"Queue {queue} is paused for another reason ({', '.join(others)}). Let it hand out jobs all the same?"
    return Deed(asked if others else "", go_on)


async def drain(client: AsyncClient, queue: str) -> Deed:
    """Cancel the jobs of a queue that have not begun."""
    counts: replies.QueueCounts = await client.execute(ops.Queue(queue))
    there = counts.waiting + counts.scheduled + counts.depends + counts.throttled

    async def do() -> str:
        done = await client.queues[queue].drain()
        return f"{done.canceled} jobs of {queue} are canceled"

    return Deed(f"Cancel the {there} jobs of queue {queue} that have not begun? They are deleted.", do)


async def retry_group(client: AsyncClient, group: str) -> Deed:
    """Put the jobs of a failure group back into their queues."""
    page: replies.Page = await client.execute(ops.Failed(group, 0, 1))

    async def do() -> str:
        return f"{await client.failed.retry(group=group)} jobs of {group} are back in their queues"

    return Deed(f"Try the {page.total} failed jobs of group {group} again?", do)


async def cancel_group(client: AsyncClient, group: str) -> Deed:
    """Delete the jobs of a failure group."""
    page: replies.Page = await client.execute(ops.Failed(group, 0, 1))

    async def do() -> str:
        done = await client.jobs.cancel_many(group=group)
        stay = f"; {done.passed} stay, for others depend on them" if done.passed else ""
        return f"{done.done} jobs of {group} are deleted{stay}"

    return Deed(f"Delete the {page.total} failed jobs of group {group}?", do)


async def retry_job(client: AsyncClient, jid: str) -> Deed:
    """Put one failed job back into its queue."""

    async def do() -> str:
        retried = retry.done(await client.execute_many(retry.asking(jid)))
        return f"{jid} is back in its queue" if retried else f"{jid} has not failed"

    return Deed("", do)


async def cancel_job(client: AsyncClient, jid: str) -> Deed:
    """Delete a job."""

    async def do() -> str:
        return f"{jid} is deleted" if await client.jobs.cancel(jid) else f"{jid} is complete, or gone"

    return Deed(f"Delete job {jid}? A worker that has it loses it.", do)


async def revoke_job(client: AsyncClient, jid: str) -> Deed:
    """Call a job off."""

    async def do() -> str:
        (state,) = await client.jobs.revoke(jid)
        return f"{jid} is called off: its worker learns of it" if state == "running" else f"{jid} is {state}"

    return Deed(f"Call job {jid} off? It fails, and is not tried again.", do)


async def take_lease(client: AsyncClient, jid: str) -> Deed:
    """Take the lease of a job away from its worker."""

    async def do() -> str:
        await client.jobs.timeout(jid)
        return f"{jid} is the next to be handed out"

    return Deed(f"Take job {jid} from its worker? What it has half done is done again.", do)


async def quiet_worker(client: AsyncClient, worker: str) -> Deed:
    """Let a worker take no more jobs, or if it was told so already, take jobs again."""
    told = (await client.workers.signals()).get(worker)

    async def hush() -> str:
        await client.workers.quiet(worker)
        return f"{worker} is told to take no more jobs"

    async def go_on() -> str:
        await client.workers.resume(worker)
        return f"{worker} is told to take jobs again"

    return Deed("", go_on if told is not None and told.signal == "quiet" else hush)


async def stop_worker(client: AsyncClient, worker: str) -> Deed:
    """Let a worker end when its jobs have ended."""

    async def do() -> str:
        await client.workers.stop(worker)
        return f"{worker} is told to stop"

    return Deed(f"Stop worker {worker}? It ends when its jobs have ended, or its grace is over.", do)


DEEDS: dict[tuple[str, str], Callable[[AsyncClient, str], Awaitable[Deed]]] = {
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
"""What can be done to what."""
