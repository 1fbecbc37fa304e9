"""The asynchronous client: the catalogue as Python objects.

The synchronous client, `qmodel/client/sync.py`, is generated from this file by `./dev docs`, which removes each
`await`. Code without one stands in modules of its own and serves both.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, Unpack, overload

from qmodel.backends import AsyncBackend
from qmodel.client import flows, remote
from qmodel.client.aio_executor import AsyncExecutor
from qmodel.client.aio_requests import AsyncRequest, AsyncRequests
from qmodel.client.aio_results import AsyncResults
from qmodel.client.build import new_job, new_message, new_recurring, new_subscription
from qmodel.client.convert import (
    Day,
    Duration,
    HasJid,
    edges_of,
    encode,
    encode_result,
    encode_unless_kept,
    instant,
    jid_of,
    jids_of,
    milliseconds,
    seconds_of,
)
from qmodel.client.defaults import BY_HAND, KEEP, LONGEST_SLEEP, SEARCH_PAGE
from qmodel.client.failure import failure_of, note_lost
from qmodel.client.fields import AsyncJobFields
from qmodel.client.flow_graph import Graph
from qmodel.client.flows import Flow
from qmodel.client.options import MoveOptions, PutOptions, RecurOptions, SubscribeOptions
from qmodel.client.outcomes import result_of
from qmodel.client.queue_order import shuffled
from qmodel.client.recurring_fields import RecurringFields
from qmodel.client.settings import AsyncConfigItems, from_setting, to_setting
from qmodel.client.subscription_fields import SubscriptionFields
from qmodel.client.values import DependencyResults, Listing
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.events import Event
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import Refusal
from qmodel.errors import (
    JobNotFound,
    LockLost,
    QmodelError,
    RefusedError,
    ScheduleNotFound,
    SubscriptionNotFound,
    WorkerNotSeen,
    error_of,
)


class AsyncClient(AsyncExecutor):
    """A connection to the jobs of one namespace.

    `backend` is a URL (`memory://`, `memory://name`, `redis://localhost:6379/0`) or an open
    backend. `worker` is the name under which this client takes jobs; by default each thread has its
    own, `<hostname>-<pid>-<thread>`.

        async with AsyncClient("memory://") as client:
            await client.queues["emails"].put("Send", {"to": 1})
            while job := await client.queues["emails"].pop():
                async with job:
                    print(job.data)

    A refused operation raises a RefusedError of its own class (`qmodel.errors`), and changed
    nothing. Durations are seconds or timedeltas, times are aware datetimes in UTC.
    """

    def __init__(self, backend: str | AsyncBackend = "memory://", *, worker: str | None = None) -> None:
        super().__init__(backend, worker=worker)
        self._turn = 0
        self.queues = AsyncQueues(self)
        self.jobs = AsyncJobs(self)
        self.failed = AsyncFailed(self)
        self.workers = AsyncWorkers(self)
        self.recurring = AsyncRecurring(self)
        self.subscriptions = AsyncSubscriptions(self)
        self.requests = AsyncRequests(self)
        self.tags = AsyncTags(self)
        self.throttles = AsyncThrottles(self)
        self.tracked = AsyncTracked(self)
        self.uniques = AsyncUniques(self)
        self.config = AsyncConfig(self)
        self.metadata = AsyncKlasses(self)
        self._results = AsyncResults(self)

    async def publish(self, subject: str, data: object = None, *, text: str | None = None, delay: Duration = 0) -> int:
        """Publish a message; give its number.

        Each subscription that wants its subject gets a job `<subscription>:<number>` for it, ready after
        `delay`, with these data and `job.subject`. It is kept for those who subscribe later. Refused with
        BadSubject.
        """
        return int(await self.execute(new_message(subject, data, text=text, delay=delay)))

    async def messages(self, after: int = 0, count: int = 25) -> list[replies.Message]:
        """Give the messages that are kept, after a number, oldest first."""
        return list(await self.execute(ops.Messages(after, count)))

    async def trim(self, count: int = MOST) -> int:
        """Drop the oldest messages that are kept, up to `count`, 1000 at most; give how many. Subscriptions that are
        behind get them before.
        """
        return int(await self.execute(ops.Trim(count)))

    async def put_many(self, jobs: Iterable[ops.Put]) -> list[AsyncJob]:
        """Put up to 1000 jobs, made by `Queue.new`, in one step: all of them or none.

        They may go to different queues, and depend on each other in any order.
        """
        new = tuple(jobs)
        if not new:
            return []
        stand = await self.execute(ops.PutMany(new))
        return [self._put(op, jid) for op, jid in zip(new, stand, strict=True)]

    async def put_new(self, jobs: Iterable[ops.Put]) -> int:
        """Put those of up to 1000 jobs, made by `Queue.new`, whose ids are free, in one step; give how many.

        Jobs that are there are passed over, whatever has become of them. So what is loaded in bulk, under ids that come
        from what it is, may be sent as often as its sender likes, for as long as its jobs are kept.
        """
        new = tuple(jobs)
        return int(await self.execute(ops.PutNew(new))) if new else 0

    def _put(self, op: ops.Put, jid: str) -> AsyncJob:
        """The job that stands for one that was put: itself, or another one."""
        if jid == op.jid:
            return AsyncJob(self, jid, given=op)
        job = AsyncJob(self, jid)
        job.deduplicated = True
        return job

    async def put_flow(self, jobs: Flow | Iterable[ops.Put], flow: str | None = None) -> list[AsyncJob]:
        """Put jobs that wait for each other, made by `qmodel.client.flows` or `Queue.new`, in any order and number.

        Up to 1000 are put in one step, all of them or none; more in several, none before those for which it waits.
        With the id of a `flow` the jobs get ids made of that, `<flow>-1` and so on, and the same flow may be put again,
        to go on where it broke off: nothing is doubled as long as complete jobs are kept (options jobs-history and
        jobs-history-count).

        Refused with FlowError, DependencyNotFound, DependencyCycle or DependencyLimit.
        """
        given = jobs.jobs if isinstance(jobs, Flow) else tuple(jobs)
        given = given if flow is None else flows.named(given, flow)
        for number, part in enumerate(flows.in_parts(given)):
            await self.execute(ops.PutMany(part, "" if flow is None else f"{flow}-{number}"))
        return [AsyncJob(self, op.jid, given=op) for op in given]

    async def flow(self, job: HasJid | str, most: int = MOST) -> Graph:
        """Look at the flow of a job, as it is now: up to `most` jobs, and the edges between them.

        See `qmodel.client.flow_graph` for how far that goes, and `svg()` and `mermaid()` for pictures.
        """
        graph = Graph(jid_of(job), most)
        while wanted := graph.wanted():
            graph.add(wanted, await self.execute(ops.Multiget(wanted)))
        return graph

    @overload
    async def pop(
        self,
        queues: Iterable[str],
        count: None = None,
        *,
        worker: str | None = None,
        timeout: float | None = None,
        order: Literal["ordered", "round-robin", "weighted"] = "ordered",
        weights: Mapping[str, float] | None = None,
        request: str = "",
    ) -> AsyncJob | None: ...

    @overload
    async def pop(
        self,
        queues: Iterable[str],
        count: int,
        *,
        worker: str | None = None,
        timeout: float | None = None,
        order: Literal["ordered", "round-robin", "weighted"] = "ordered",
        weights: Mapping[str, float] | None = None,
        request: str = "",
    ) -> list[AsyncJob]: ...

    async def pop(
        self,
        queues: Iterable[str],
        count: int | None = None,
        *,
        worker: str | None = None,
        timeout: float | None = None,
        order: Literal["ordered", "round-robin", "weighted"] = "ordered",
        weights: Mapping[str, float] | None = None,
        request: str = "",
    ) -> AsyncJob | list[AsyncJob] | None:
        """Lease the next job of the first queue that has one, or up to `count` jobs, in one step.

        `ordered` looks at the queues in the order given, `round-robin` begins one further each
        time, and `weighted` draws the order by `weights`: of queues with the weights 3 and 1 the
        first comes first three times out of four. A queue without a weight has 1. See `Queue.pop`.

        Who asks again with the `request` id of an answer that was lost, and for the same queues, is given the same
        jobs again, as long as all of them are leased to the worker by that.
        """
        names = [queues] if isinstance(queues, str) else list(queues)

        def ordered() -> list[str]:
            if order == "weighted":
                return shuffled(names, weights or {})
            if order == "ordered" or not names:
                return names
            turn = self._turn % len(names)
            self._turn += 1
            return names[turn:] + names[:turn]

        found = await self._pop(ordered, 1 if count is None else count, worker, timeout, request)
        if count is not None:
            return found
        return found[0] if found else None

    async def _pop(
        self, ordered: Callable[[], list[str]], count: int, worker: str | None, timeout: float | None, request: str
    ) -> list[AsyncJob]:
        """Pop, and while there is nothing, sleep until something may be there.

        What becomes ready while it is asked until when to sleep has to be seen before the sleep: so it pops once more.
        """
        worker = worker or self.worker
        deadline = time.monotonic() + (timeout or 0)
        last = tries = 0
        while queues := ordered():
            found = await self._take(queues, worker, count, False, request)
            if found or (left := deadline - time.monotonic()) <= 0:
                return found
            next_at = await self._next_at(queues)
            if found := await self._take(queues, worker, count, True, request):
                return found
            tries = tries + 1 if next_at == last else 0
            last = next_at
            await self.backend.wait(queues, min(left, LONGEST_SLEEP, await self._until(next_at, tries)))
        return []

    async def _take(self, queues: Sequence[str], worker: str, count: int, wait: bool, request: str) -> list[AsyncJob]:
        op = ops.Pop(queues[0], worker, count, wait, request)
        many = ops.PopAny(tuple(queues), worker, count, wait, request)
        found = await self.execute(op if len(queues) == 1 else many)
        return self._jobs(found)

    async def _next_at(self, queues: Sequence[str]) -> int:
        """The next moment at which a job of some queues becomes ready by itself, or 0."""
        counts = await self.execute_many([ops.Queue(name) for name in queues])
        return min((one.next_at for one in counts if getattr(one, "next_at", 0)), default=0)

    async def _until(self, at: int, tries: int) -> float:
        """The seconds until a moment, and a little more each time that it turned out too early."""
        if not at:
            return LONGEST_SLEEP
        return max(at - await self._now(), 0) / 1000 + 0.001 * 2.0 ** min(tries, 10)

    @overload
    async def peek(self, queue: str, count: None = None) -> AsyncJob | None: ...

    @overload
    async def peek(self, queue: str, count: int) -> list[AsyncJob]: ...

    async def peek(self, queue: str, count: int | None = None) -> AsyncJob | list[AsyncJob] | None:
        """Show the job that a pop would give next, or up to `count` of them, ignoring pauses."""
        found = self._jobs(await self.execute(ops.Peek(queue, 1 if count is None else count)))
        if count is not None:
            return found
        return found[0] if found else None

    async def complete_many(self, jobs: Iterable[AsyncJob | tuple[AsyncJob, Any]]) -> None:
        """Complete up to 1000 leased jobs in one step, all or none; alone or as (job, result)."""
        pairs = [job if isinstance(job, tuple) else (job, None) for job in jobs]
        if not pairs:
            return
        done = [ops.Complete(job.jid, await job._lease(), encode_result(result)) for job, result in pairs]
        states = await self.execute(ops.CompleteMany(tuple(done)))
        for (job, _), op, state in zip(pairs, done, states, strict=True):
            job._ended(state, result=op.result)

    async def journal(self, after: int = 0, page: int = MOST) -> AsyncIterator[replies.Recorded]:
        """Go through the entries of the journal after a number, oldest first, up to the newest, so many at a time.

        There are entries while the option `journal` is 1. Numbers have no gaps: a jump means that older entries are
        no longer kept (option max-journal). To go on later, pass the number of the last entry seen.
        """
        while found := await self.execute(ops.Journal(after, page)):
            for entry in found:
                after = entry.number
                yield entry
            if len(found) < page:
                return

    async def advance_schedules(self, ahead: Duration = 3600) -> int:
        """Tell the next moments of the recurring jobs whose cron expression needs them within `ahead`;
        gives for how many it did.

        Somebody has to, now and then: any client, any number of them, for the moments after one are
        taken once. Somebody else's expression that cannot be read is passed over with a warning.
        """
        from qmodel.client.cron import advances

        found = await self.execute(ops.RecurringUnset(milliseconds(ahead), MOST))
        told = list(advances(found, await self._now()))
        known = await self.execute_many(told)
        return sum(last_at != op.after for op, last_at in zip(told, known, strict=True))

    async def follow(self, after: int = 0, *, timeout: Duration = math.inf) -> AsyncIterator[Event]:
        """Go through the events after a sequence number, oldest first, and wait for those to come.

        It ends when none has come for `timeout` seconds (or timedelta); by default it never does. To
        go on later, pass the sequence of the last event seen. Follow with a client of its own where
        the events come faster than they are looked at.
        """
        patience = seconds_of(timeout)
        until = time.monotonic() + patience
        while True:
            async for event in self.events(after):
                after = event.seq
                yield event
                until = time.monotonic() + patience
            left = until - time.monotonic()
            if left <= 0:
                return
            await self.backend.wait_events(after, min(left, LONGEST_SLEEP))

    async def wait(self, jobs: Iterable[HasJid | str], timeout: Duration = math.inf) -> list[Any]:
        """Sleep until all of some jobs have ended, or `timeout` (seconds or timedelta) is up; give their results in the
        order asked for.

        In the place of a job without a result stands the exception that `AsyncJob.wait` would raise. All who wait by
        one client share one connection, so that thousands may.
        """
        jids = jids_of(jobs)
        seconds = seconds_of(timeout)
        ended = await self._results.wait(jids, seconds) if jids else {}
        return [result_of(jid, ended.get(jid), seconds) for jid in jids]

    async def _bulk(self, op: ops.CancelMany | ops.Clean | ops.RetryMany) -> replies.Bulk:
        """Go through all that an operation on many jobs is to look at, a step for each 1000."""
        done = passed = 0
        while True:
            part: replies.Bulk = await self.execute(op)
            done, passed = done + part.done, passed + part.passed
            if not part.cursor:
                return replies.Bulk(done, passed, "")
            op = replace(op, cursor=part.cursor)

    def request(self, id: str, queue: str, *, limit: int, priority: int = 0) -> AsyncRequest:
        """A request that a `with` block opens and closes: jobs of a queue, at most `limit` of which run at a time."""
        return AsyncRequest(self, id, ops.RequestOpen(id, queue, limit, priority))

    def _jobs(self, found: Iterable[replies.Job]) -> list[AsyncJob]:
        return [AsyncJob(self, job.jid, job) for job in found]

    async def _listing(self, op: ops.Operation) -> Listing[AsyncJob]:
        """The jobs of a page of ids; one that vanished in between is left out."""
        page = await self.execute(op)
        return Listing(await self.jobs.get_many(page.jids), page.total)


class AsyncQueues:
    """The queues, by name: `client.queues["emails"]`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def __getitem__(self, name: str) -> AsyncQueue:
        """A queue by name, whether or not anything was ever put there."""
        return AsyncQueue(self._client, name)

    async def __aiter__(self) -> AsyncIterator[AsyncQueue]:
        offset = 0
        while page := await self.counts(offset, MOST):
            for name in (one.name for one in page):
                yield self[name]
            offset += MOST

    async def counts(self, offset: int = 0, count: int = 25) -> list[replies.QueueCounts]:
        """List the queues, first seen first, with the number of jobs in each state."""
        return list(await self._client.execute(ops.Queues(offset, count)))

    async def pause(self, *queues: str, reason: str = BY_HAND, duration: Duration = 0) -> int:
        """Stop handing out jobs of queues, at once; give how many were not paused before.

        Each reason has a pause of its own, and a queue goes on when none is left. One with a
        duration ends by itself.
        """
        return int(await self._client.execute(ops.Pause(queues, reason, milliseconds(duration))))

    async def unpause(self, *queues: str, reason: str | None = None) -> int:
        """End the pauses of queues, or only those for a reason; give how many go on by that."""
        return int(await self._client.execute(ops.Unpause(queues, reason)))

    async def forget(self, *queues: str) -> int:
        """Take empty queues off the list, with their pauses; give how many were on it.

        Refused with QueueNotEmpty.
        """
        return int(await self._client.execute(ops.Forget(queues)))


class AsyncQueue:
    """One queue."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def throttle(self) -> AsyncThrottle:
        """The throttle that all its jobs pass without naming it."""
        return AsyncThrottle(self.client, "queue/" + self.name)

    def new(self, klass: str, data: object = None, **options: Unpack[PutOptions]) -> ops.Put:
        """Make a job for `put_many`, with the arguments of `put`. Its `jid` is known at once."""
        return new_job(self.name, klass, data, **options)

    async def put(self, klass: str, data: object = None, **options: Unpack[PutOptions]) -> AsyncJob:
        """Put a job into this queue: a new one, or with the `jid` of an existing job, that job, which moves here.

        `klass` names the code that performs the job, and `data` is stored as JSON. The other arguments are the options
        of `qmodel.client.options.PutOptions`. On an existing job `priority`, `retries`, `tags` and `depends` keep their
        values if they are not given; all other options are set anew by each put.

        Refused with DependencyNotFound, DependencyCycle, DependencyLimit or OverCapacity. Raises TypeError for an
        unknown option.
        """
        op = self.new(klass, data, **options)
        return self.client._put(op, await self.client.execute(op))

    async def recur(self, klass: str, data: object = None, **options: Unpack[RecurOptions]) -> AsyncRecurringJob:
        """Let a job recur in this queue: put a run of it every `interval`, at the moments of a `cron` expression, or
        each time `after` the end of the run before. Exactly one of the three is given.

        The runs are jobs `<jid>-1`, `<jid>-2` and so on, with `klass` and `data`. The other arguments are the options
        of `qmodel.client.options.RecurOptions`.

        With the `jid` of an existing recurring job everything of it is replaced but the number of its last run. If its
        times are the same it goes on as it was, unless `restart` is set: so a program can declare its recurring jobs
        each time it starts. Refused with ScheduleOver if no run would ever be due. Raises ValueError for an invalid
        cron expression or time zone, and TypeError for an unknown option.
        """
        op = new_recurring(self.name, klass, data, **options)
        await self.client.execute(op)
        made = await self.client.recurring[op.jid]
        return made if made.kind != "cron" or made.raw.due_at else await made.advance()

    async def recurring(self, offset: int = 0, count: int = 25) -> Listing[AsyncRecurringJob]:
        """List the jobs that recur here, next due first."""
        page = await self.client.execute(ops.Recurring(self.name, offset, count))
        found = await self.client.execute_many(ops.RecurGet(jid) for jid in page.jids)
        return Listing((AsyncRecurringJob(self.client, one) for one in found if one is not None), page.total)

    async def fire(self, count: int = MOST) -> int:
        """Make up to `count` runs that are due, as a pop would, and take none; gives how many."""
        return int(await self.client.execute(ops.Fire(self.name, count)))

    async def put_many(self, jobs: Iterable[ops.Put | tuple[str, object]]) -> list[AsyncJob]:
        """Put up to 1000 jobs in one step, all or none: each made by `new`, or as (klass, data)."""
        new = [self.new(*job) if isinstance(job, tuple) else job for job in jobs]
        return await self.client.put_many(new)

    @overload
    async def pop(
        self, count: None = None, *, worker: str | None = None, timeout: float | None = None
    ) -> AsyncJob | None: ...

    @overload
    async def pop(self, count: int, *, worker: str | None = None, timeout: float | None = None) -> list[AsyncJob]: ...

    async def pop(
        self, count: int | None = None, *, worker: str | None = None, timeout: float | None = None
    ) -> AsyncJob | list[AsyncJob] | None:
        """Lease the next job to this worker, or up to `count` jobs; None, or an empty list, when
        there is none.

        Without `timeout` it answers at once; with one it sleeps up to so many seconds, and is woken
        when a job becomes ready (`math.inf`: for ever). The job is this worker's until its lease
        ends (option heartbeat, 60 seconds), and must be finished or given a heartbeat before that.
        As a context manager it finishes itself:

            while job := await queue.pop(timeout=60):
                async with job:
                    send(job.data)
        """
        if count is None:
            return await self.client.pop([self.name], worker=worker, timeout=timeout)
        return await self.client.pop([self.name], count, worker=worker, timeout=timeout)

    @overload
    async def peek(self, count: None = None) -> AsyncJob | None: ...

    @overload
    async def peek(self, count: int) -> list[AsyncJob]: ...

    async def peek(self, count: int | None = None) -> AsyncJob | list[AsyncJob] | None:
        """Show the job that a pop would give next, or up to `count` of them, ignoring a pause."""
        if count is None:
            return await self.client.peek(self.name)
        return await self.client.peek(self.name, count)

    @property
    async def counts(self) -> replies.QueueCounts:
        """How many jobs are in each state, and when the next becomes ready by itself."""
        counts: replies.QueueCounts = await self.client.execute(ops.Queue(self.name))
        return counts

    async def length(self) -> int:
        """How many jobs it has, in any state but complete and failed."""
        return int(await self.client.execute(ops.Length(self.name)))

    async def pause(self, reason: str = BY_HAND, *, duration: Duration = 0) -> bool:
        """Stop handing out its jobs, at once; say whether it was not paused before."""
        return bool(await self.client.queues.pause(self.name, reason=reason, duration=duration))

    async def unpause(self, reason: str | None = None) -> bool:
        """End its pauses, or only that for a reason; say whether it goes on by that."""
        return bool(await self.client.queues.unpause(self.name, reason=reason))

    async def forget(self) -> bool:
        """Take it off the list; say whether it was there. Refused with QueueNotEmpty."""
        return bool(await self.client.queues.forget(self.name))

    async def drain(self, count: int | None = None) -> replies.Drained:
        """Cancel its jobs that have not begun, or up to `count` (1000) of them in one step.

        Jobs on which jobs of other queues depend stay.
        """
        if count is not None:
            drained: replies.Drained = await self.client.execute(ops.Drain(self.name, count))
            return drained
        canceled = 0
        while (step := await self.drain(MOST)).canceled:
            canceled += step.canceled
        return replies.Drained(canceled, step.left)

    async def obliterate(self, *, force: bool = False) -> int:
        """Delete it with its jobs in any state, its recurring jobs, its pauses and its throttle; give
        how many jobs are gone.

        Refused with QueueBusy while jobs run or are stalled, unless `force` takes them from their
        workers; with HasDependents while a job of another queue depends on one of its.
        """
        gone = 0
        op = ops.Obliterate(self.name, force)
        while True:
            part: replies.Bulk = await self.client.execute(op)
            gone += part.done
            if not part.cursor and not (part.passed and part.done):
                return gone
            op = replace(op, cursor=part.cursor)

    async def stats(self, day: Day | None = None) -> replies.Stats:
        """Its wait and run times, failures and retries of a UTC day, by default today."""
        stats: replies.Stats = await self.client.execute(ops.Stats(self.name, instant(day)))
        return stats

    async def metrics(self, count: int = 60, at: Day | None = None) -> tuple[replies.Minute, ...]:
        """What became of its jobs in each of the last `count` minutes, or those up to a moment; the oldest first."""
        minutes: tuple[replies.Minute, ...] = await self.client.execute(ops.Metrics(self.name, instant(at), count))
        return minutes

    async def unfail(self, group: str | None = None) -> int:
        """Retry the failed jobs of this queue, of a group or all; return how many."""
        return await self.client.failed.retry(self.name, group=group)

    async def waiting(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List its waiting jobs: those in order, then those due since the last pop."""
        return await self.client._listing(ops.Waiting(self.name, offset, count))

    async def scheduled(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List its scheduled jobs, soonest first."""
        return await self.client._listing(ops.Scheduled(self.name, offset, count))

    async def throttled(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """The jobs that are ready and wait for a throttle to open, longest ready first."""
        return await self.client._listing(ops.Throttled(self.name, offset, count))

    async def depending(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List its jobs that wait for others, longest waiting first."""
        return await self.client._listing(ops.Depending(self.name, offset, count))

    async def running(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List its jobs under a valid lease, soonest to expire first."""
        return await self.client._listing(ops.Running(self.name, offset, count))

    async def stalled(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List its jobs whose lease lapsed or was taken, longest first."""
        return await self.client._listing(ops.Stalled(self.name, offset, count))


class AsyncJob(AsyncJobFields):
    """One job.

    Its fields tell what was true when it was fetched; `refresh` fetches it anew. As a context
    manager it finishes itself: it is completed at the end of the block, failed when an exception
    leaves the block (into a group named after the exception's class, with the traceback as the
    message), and given back when the block is told to stop (KeyboardInterrupt, SystemExit,
    cancellation). The exception goes on. A job that was finished inside the block is left as it is.
    """

    def __init__(
        self,
        client: AsyncClient,
        jid: str,
        known: replies.Job | None = None,
        *,
        given: ops.Put | None = None,
    ) -> None:
        super().__init__(jid, known, given)
        self.client = client

    async def refresh(self) -> Self:
        """Fetch the job anew. Raises JobNotFound when it is gone."""
        known = await self.client.execute(ops.Get(self.jid))
        if known is None:
            raise error_of(Refusal("JOB_NOT_FOUND", (self.jid,)))
        self._known = known
        return self

    async def _lease(self) -> int:
        """The token under which this object knows the job."""
        if self._known is None:
            await self.refresh()
        return self.token

    # ---- finishing

    async def complete(
        self,
        result: object = None,
        *,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Iterable[HasJid | str] | HasJid | str = (),
    ) -> str:
        """Complete it, and release the jobs that waited for it; or send it on to a `next` queue.

        `result` and the new `data` are stored as JSON. `delay` and `depends` are of use with `next`
        only. Gives the state that the job is in. Refused with LockLost when another worker has it
        now.
        """
        op = ops.Complete(
            self.jid,
            await self._lease(),
            encode_result(result),
            encode_unless_kept(data),
            next,
            milliseconds(delay),
            edges_of(depends),
        )
        state: str = await self.client.execute(op)
        self._ended(state, result=op.result)
        return state

    @overload
    async def complete_and_pop(
        self,
        result: object = None,
        *,
        queue: str | None = None,
        count: None = None,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Iterable[HasJid | str] | HasJid | str = (),
    ) -> AsyncJob | None: ...

    @overload
    async def complete_and_pop(
        self,
        result: object = None,
        *,
        queue: str | None = None,
        count: int,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Iterable[HasJid | str] | HasJid | str = (),
    ) -> list[AsyncJob]: ...

    async def complete_and_pop(
        self,
        result: object = None,
        *,
        queue: str | None = None,
        count: int | None = None,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Iterable[HasJid | str] | HasJid | str = (),
    ) -> AsyncJob | list[AsyncJob] | None:
        """Complete it as `complete` does, and lease the next job of a queue, by default its own."""
        token = await self._lease()
        op = ops.CompleteAndPop(
            self.jid,
            token,
            queue or self.queue,
            self.worker or self.client.worker,
            1 if count is None else count,
            False,
            encode_result(result),
            encode_unless_kept(data),
            next,
            milliseconds(delay),
            edges_of(depends),
        )
        reply: replies.CompletedAndPopped = await self.client.execute(op)
        self._ended(reply.state, result=op.result)
        found = self.client._jobs(reply.jobs)
        if count is not None:
            return found
        return found[0] if found else None

    async def fail(self, group: str, message: str = "", *, data: object = KEEP) -> None:
        """Fail it: it waits in a failure group for a person or a policy. Refused with LockLost."""
        op = ops.Fail(self.jid, await self._lease(), group, message, encode_unless_kept(data))
        await self.client.execute(op)
        self._ended("failed")

    async def retry(self, delay: Duration = 0, *, group: str | None = None, message: str = "") -> int:
        """Give it back to be tried again, now or after a delay; it counts.

        Gives the retries that remain, or -1 when there were none left: then the job has failed, in
        `group` or else in `failed-retries-<queue>`. Refused with LockLost.
        """
        op = ops.Retry(self.jid, await self._lease(), milliseconds(delay), group, message)
        remaining = int(await self.client.execute(op))
        state = "failed" if remaining < 0 else "scheduled" if op.delay_ms else "waiting"
        self._ended(state, remaining=max(remaining, 0))
        return remaining

    async def release(
        self,
        delay: Duration = 0,
        *,
        data: object = KEEP,
        depends: Iterable[HasJid | str] | HasJid | str = (),
    ) -> str:
        """Give it back, now or for later, uncounted; gives its state.

        With `depends` it waits for those jobs first, its children say: put them before. See `put`.

        Refused with LockLost, DependencyNotFound, DependencyCycle or DependencyLimit.
        """
        op = ops.Release(
            self.jid, await self._lease(), milliseconds(delay), encode_unless_kept(data), edges_of(depends)
        )
        state: str = await self.client.execute(op)
        self._ended(state)
        return state

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._finished:
            return
        if error is None:
            await self.complete()
            return
        try:
            if isinstance(error, Exception):
                await self.fail(*failure_of(error))
            else:
                await self.release()
        except (LockLost, JobNotFound) as lost:
            note_lost(error, lost)

    # ---- waiting

    async def wait(self, timeout: Duration = math.inf) -> Any:
        """Sleep until it has ended, and give its result, decoded from JSON; None without one.

        A job that is tried again, or was sent on to another queue, has not ended. Raises JobFailed, with `group` and
        `message` (JobRevoked and JobExpired are kinds of it); JobCanceled; ResultNotKept where complete jobs are
        deleted at once; JobNotFound for a job that was gone before; NotEnded, a TimeoutError, after `timeout` seconds.
        """
        seconds = seconds_of(timeout)
        found = await self.client._results.wait((self.jid,), seconds)
        ended = found.get(self.jid)
        if ended is not None and ended.known is not None:
            self._known = ended.known
        result = result_of(self.jid, ended, seconds)
        if isinstance(result, QmodelError):
            raise result
        return result

    # ---- leasing

    async def heartbeat(self, *, data: object = KEEP) -> bool:
        """Renew the lease from now, and optionally replace the data; gives whether the job was
        revoked: then stop working on it. Refused with LockLost.
        """
        op = ops.Heartbeat(self.jid, await self._lease(), encode_unless_kept(data))
        lease: replies.Lease = await self.client.execute(op)
        self._now_is(expires_at=lease.expires_at)
        return lease.revoked

    async def revoke(self) -> str:
        """Call the job off; gives its state after that.

        When nobody runs it, it fails at once, in `revoked-<queue>`. Its worker, if it has one, learns
        of it by the next heartbeat; however the lease then ends, the job fails.
        """
        states: tuple[str, ...] = await self.client.execute(ops.Revoke((self.jid,)))
        self._now_is(state=states[0])
        return states[0]

    async def replay(self) -> AsyncJob:
        """Put the job anew of which this is a dead letter, with what the letter has, and delete the
        letter; gives that job.

        Refused with NotADeadLetter, WrongState when that job is there and has not failed, or
        HasDependents.
        """
        return AsyncJob(self.client, await self.client.execute(ops.Replay(self.jid)))

    async def timeout(self) -> None:
        """Take the lease away at once: the job is stalled, and the next to be handed out.

        Refused with WrongState when it is not running.
        """
        await self.client.execute(ops.Timeout((self.jid,)))
        self._now_is(state="stalled")

    async def progress(self, text: str) -> None:
        """Say how far it has come, in up to 1024 bytes. Refused with LockLost."""
        await self.client.execute(ops.Progress(self.jid, await self._lease(), text))
        self._now_is(progress=text)

    # ---- changing

    async def why(self) -> list[Reason]:
        """Why it does not run: each reason has a `code`, its facts by name (`named`), and a `sentence`.

        No reason means that the next pop of its queue gives it.
        """
        return list(await self.client.execute(ops.Why(self.jid)))

    async def log(self, message: str) -> None:
        """Add a line of up to 1024 bytes to its history."""
        await self.client.execute(ops.Log(self.jid, message))

    async def update(self, data: object = None, *, text: str | None = None) -> None:
        """Replace its data, stored as JSON; or as `text`, stored as it is."""
        stored = encode(data) if text is None else text
        await self.client.execute(ops.Update(self.jid, stored))
        self._now_is(data=stored)

    async def prioritize(self, priority: int) -> None:
        """Change its priority; lower runs sooner."""
        await self.client.execute(ops.Priority(self.jid, priority))
        self._now_is(priority=priority)

    async def delay(self, delay: Duration) -> str:
        """Make it ready so many seconds from now; gives its state.

        Refused with WrongState unless it is scheduled, waiting, or waits for others.
        """
        op = ops.Delay(self.jid, milliseconds(delay))
        state: str = await self.client.execute(op)
        self._now_is(state=state)
        return state

    async def promote(self) -> None:
        """Make it ready now. Refused with WrongState unless it is scheduled."""
        self._now_is(state=await self.client.execute(ops.Promote(self.jid)))

    async def move(self, queue: str, **options: Unpack[MoveOptions]) -> AsyncJob:
        """Put the job anew into another queue, with its klass and data. A worker that holds the job loses it.

        The options are those of `put`: `priority` and `delay`, say.
        """
        return await self.client.queues[queue].put(self.klass, text=self.text, jid=self.jid, **options)

    async def cancel(self, *, cascade: bool = False) -> tuple[str, ...]:
        """Delete it, unless it is complete; a worker that holds it loses it. Gives the ids of the
        jobs deleted.

        With `cascade` the jobs that depend on it go too; without, it is refused with HasDependents
        if there are any.
        """
        self._finished = True
        return await self.client.jobs.cancel(self, cascade=cascade)

    # ---- dependencies, tags, tracking

    async def depends_on(self, *jobs: HasJid | str) -> tuple[str, ...]:
        """Let it wait for more jobs, or by other edges; gives the ids of all that it waits for (the first 1000).

        Refused with WrongState unless it waits for others already.
        """
        jids: tuple[str, ...] = await self.client.execute(ops.DependsOn(self.jid, edges_of(jobs)))
        self._now_is(dependencies=jids)
        return jids

    async def depends_off(self, *jobs: HasJid | str, all: bool = False) -> tuple[str, ...]:
        """Let it no longer wait for some jobs, or for `all`; gives the ids of those that are left.

        Refused with WrongState unless it waits for others.
        """
        op = ops.DependsOff(self.jid, jids_of(jobs), all)
        jids: tuple[str, ...] = await self.client.execute(op)
        self._now_is(dependencies=jids)
        return jids

    async def results(self) -> DependencyResults:
        """The results of its dependencies that were given names (see `Edge`), also of those that are kept no longer.

        They stay with this job until it is complete. Refused with JobNotFound.
        """
        return DependencyResults(await self.client.execute(ops.Results(self.jid)))

    async def tag(self, *tags: str) -> tuple[str, ...]:
        """Add tags; gives all its tags."""
        added: tuple[str, ...] = await self.client.execute(ops.TagAdd(self.jid, tags))
        self._now_is(tags=added)
        return added

    async def untag(self, *tags: str) -> tuple[str, ...]:
        """Remove tags; gives the tags that are left."""
        left: tuple[str, ...] = await self.client.execute(ops.TagRemove(self.jid, tags))
        self._now_is(tags=left)
        return left

    async def track(self) -> bool:
        """Track it; says whether it was not tracked before. Tracking outlives the job."""
        new = bool(await self.client.execute(ops.Track(self.jid)))
        self._now_is(tracked=True)
        return new

    async def untrack(self) -> bool:
        """Stop tracking it; says whether it was tracked before."""
        was = bool(await self.client.execute(ops.Untrack(self.jid)))
        self._now_is(tracked=False)
        return was


class AsyncJobs:
    """All jobs, by id: `client.jobs[jid]`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __getitem__(self, jid: str) -> AsyncJob:
        """Fetch a job. Raises JobNotFound."""
        return await AsyncJob(self._client, jid).refresh()

    async def get(self, jid: str) -> AsyncJob | None:
        """Fetch a job, or None when there is none."""
        known: replies.Job | None = await self._client.execute(ops.Get(jid))
        return AsyncJob(self._client, jid, known) if known is not None else None

    async def get_many(self, jids: Iterable[HasJid | str]) -> list[AsyncJob]:
        """Fetch jobs in the order asked for, 1000 in a step; those that are gone are left out."""
        wanted = jids_of(jids)
        found: list[AsyncJob] = []
        for start in range(0, len(wanted), MOST):
            op = ops.Multiget(wanted[start : start + MOST])
            found += self._client._jobs(await self._client.execute(op))
        return found

    async def search(
        self,
        queue: str | None = None,
        *,
        state: str | None = None,
        klass: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        group: str | None = None,
    ) -> AsyncIterator[AsyncJob]:
        """Go through the jobs that are all of this, list by list; what does not move in the meantime is
        found once.

        A queue, a tag, a group, a worker, or the state complete or failed has to be given: else it is
        refused with TooWide.
        """
        cursor = ""
        while True:
            op = ops.Search(queue, state, klass, tag, worker, group, cursor, SEARCH_PAGE)
            found: replies.Found = await self._client.execute(op)
            for known in found.jobs:
                yield AsyncJob(self._client, known.jid, known)
            cursor = found.cursor
            if not cursor:
                return

    async def cancel_many(
        self,
        queue: str | None = None,
        *,
        state: str | None = None,
        klass: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        group: str | None = None,
        preview: bool = False,
    ) -> replies.Bulk:
        """Cancel the jobs that `search` finds, but complete ones, and those on which others depend.

        `passed` tells how many of these stay. With `preview` nothing changes, and `done` is how many fit.
        """
        op = ops.CancelMany(queue, state, klass, tag, worker, group, preview=preview)
        return await self._client._bulk(op)

    async def clean(
        self,
        state: Literal["complete", "failed"] = "complete",
        older: Duration = 0,
        *,
        queue: str | None = None,
        klass: str | None = None,
        tag: str | None = None,
        group: str | None = None,
        preview: bool = False,
    ) -> replies.Bulk:
        """Delete complete or failed jobs that ended at least so long ago.

        Failed jobs on which others depend stay, and are counted as `passed`. With `preview` nothing
        changes, and `done` is how many fit.
        """
        op = ops.Clean(state, milliseconds(older), queue, klass, tag, group, preview=preview)
        return await self._client._bulk(op)

    async def cancel(self, *jobs: HasJid | str, cascade: bool = False) -> tuple[str, ...]:
        """Delete up to 1000 unfinished jobs in one step, all of them or none; gives the ids of
        those deleted.

        Unknown and complete jobs are passed over. A job on which another depends is deleted only
        with that other, named too or found by `cascade`; else it is refused with HasDependents.
        """
        canceled: tuple[str, ...] = await self._client.execute(ops.Cancel(jids_of(jobs), cascade))
        return canceled

    async def timeout(self, *jobs: HasJid | str) -> tuple[str, ...]:
        """Take leases away, all or none: the jobs are stalled, and the next to be handed out."""
        taken: tuple[str, ...] = await self._client.execute(ops.Timeout(jids_of(jobs)))
        return taken

    async def revoke(self, *jobs: HasJid | str) -> tuple[str, ...]:
        """Call up to 1000 jobs off in one step; gives the state of each after that. See `Job.revoke`."""
        states: tuple[str, ...] = await self._client.execute(ops.Revoke(jids_of(jobs)))
        return states

    async def completed(self, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List the complete jobs that are kept, latest first."""
        return await self._client._listing(ops.Completed(offset, count))


class AsyncFailed:
    """The failed jobs, by group."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def groups(self, offset: int = 0, count: int = 25) -> dict[str, int]:
        """The failure groups by name, with how many jobs each holds."""
        return dict(await self._client.execute(ops.FailedGroups(offset, count)))

    async def jobs(self, group: str, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List the jobs of a group, latest failure first."""
        return await self._client._listing(ops.Failed(group, offset, count))

    async def retry(
        self,
        queue: str | None = None,
        *,
        jobs: Iterable[HasJid | str] | None = None,
        klass: str | None = None,
        tag: str | None = None,
        group: str | None = None,
        to: str | None = None,
        preview: bool = False,
    ) -> int:
        """Retry failed jobs; return how many.

        All of them, or those of a queue, klass, tag or group, or up to 1000 named ones (`jobs`: jobs or their ids).
        Each begins anew in its own queue, or moves to the queue `to`. With `preview` nothing changes.
        """
        jids = jids_of(jobs) if jobs is not None else None
        op = ops.RetryMany(queue, klass, tag, group, preview=preview, jids=jids, to=to)
        return (await self._client._bulk(op)).done


class AsyncMetadata:
    """What all jobs of a klass share: texts by key."""

    def __init__(self, client: AsyncClient, klass: str) -> None:
        self._client = client
        self.klass = klass

    async def all(self) -> dict[str, str]:
        """All keys with their texts, by key."""
        return dict(await self._client.execute(ops.MetadataGet(self.klass)))

    async def set(self, key: str, value: str) -> bool:
        """Note a text; say whether the key is new. Refused with LimitReached at 1000 keys."""
        return bool(await self._client.execute(ops.MetadataSet(self.klass, key, value)))

    async def increment(self, key: str, by: int = 1) -> int:
        """Add to a whole number, 0 where nothing is noted; give the sum. Refused with NotWhole."""
        return int(await self._client.execute(ops.MetadataIncrement(self.klass, key, by)))

    async def unset(self, key: str) -> bool:
        """Forget a text; say whether there was one."""
        return bool(await self._client.execute(ops.MetadataUnset(self.klass, key)))


class AsyncKlasses:
    """What jobs of a klass share, by klass: `client.metadata[klass]`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def __getitem__(self, klass: str) -> AsyncMetadata:
        """The metadata of a klass, whether or not there are any."""
        return AsyncMetadata(self._client, klass)


class AsyncWorkers:
    """The workers that have taken jobs, by name."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __getitem__(self, name: str) -> replies.WorkerJobs:
        """The ids of the jobs that a worker holds: with a valid lease, and with a lapsed one."""
        held: replies.WorkerJobs = await self._client.execute(ops.Worker(name))
        return held

    async def counts(self, offset: int = 0, count: int = 25) -> list[replies.WorkerCounts]:
        """List the workers, latest seen first, with how many jobs each holds."""
        return list(await self._client.execute(ops.Workers(offset, count)))

    async def deregister(self, *names: str) -> int:
        """Take workers off the list; their leases stay valid. Gives how many were on it."""
        return int(await self._client.execute(ops.Deregister(names)))

    async def quiet(self, name: str, *others: str) -> None:
        """Let workers take no more jobs until they are told to `resume`; what is at hand goes on.

        It is `qmodel worker` that listens to this, within about two seconds (`signals` tells whether it has
        heard), and no loop of your own. Raises WorkerNotSeen for one that is not on the list; then
        none is told.
        """
        await self._signal("quiet", (name, *others))

    async def resume(self, name: str, *others: str) -> None:
        """Let quiet workers take jobs again. Otherwise as `quiet`."""
        await self._signal("resume", (name, *others))

    async def stop(self, name: str, *others: str, now: bool = False) -> None:
        """Let workers end when the jobs at hand have ended, or their grace is over, as by SIGTERM; or
        `now`, giving these back. Otherwise as `quiet`.

        What started the process decides whether another one begins.
        """
        await self._signal("stop now" if now else "stop", (name, *others))

    async def signals(self) -> dict[str, remote.Signalled]:
        """What each worker was told last by `quiet`, `resume` and `stop`, and what it said to that."""
        signals, states = await self._client.execute_many(remote.asked())
        return remote.paired(dict(signals), dict(states))

    async def _signal(self, signal: remote.Signal, names: tuple[str, ...]) -> None:
        listed = await self._listed()
        for name in names:
            if name not in listed:
                raise WorkerNotSeen(name)
        signals, states = await self._client.execute_many(remote.asked())
        stale = remote.stale(dict(signals), dict(states), listed)
        for reply in await self._client.execute_many([*remote.forgotten(stale), *remote.sent(signal, names)]):
            if isinstance(reply, RefusedError):
                raise reply

    async def _listed(self) -> set[str]:
        """The names of all that are on the list."""
        names: set[str] = set()
        for offset in count(0, MOST):
            found = await self.counts(offset, MOST)
            names.update(one.name for one in found)
            if len(found) < MOST:
                break
        return names


class AsyncRecurringJob(RecurringFields):
    """A recurring job. Its fields are as they were when it was read; its methods keep them current."""

    def __init__(self, client: AsyncClient, raw: replies.Schedule) -> None:
        super().__init__(raw)
        self.client = client

    async def refresh(self) -> Self:
        """Read it anew. Raises ScheduleNotFound."""
        known: replies.Schedule | None = await self.client.execute(ops.RecurGet(self.jid))
        if known is None:
            raise ScheduleNotFound(Refusal("SCHEDULE_NOT_FOUND", (self.jid,)))
        self.raw = known
        return self

    async def update(
        self,
        *,
        queue: str | None = None,
        klass: str | None = None,
        data: object = KEEP,
        interval: Duration | None = None,
        priority: int | None = None,
        retries: int | None = None,
        backlog: int | None = None,
    ) -> None:
        """Change what is given, for the runs to come.

        With a new interval the next run is due one such interval after the last one, but not before
        now; one that is due already stays so. Refused with ScheduleNotFound.
        """
        ms = None if interval is None else milliseconds(interval)
        stored = encode_unless_kept(data)
        await self.client.execute(ops.RecurUpdate(self.jid, queue, klass, stored, ms, priority, retries, backlog))
        await self.refresh()

    async def tag(self, *tags: str) -> None:
        """Give the runs to come more tags. Refused with ScheduleNotFound."""
        await self.client.execute(ops.RecurTag(self.jid, tags))
        await self.refresh()

    async def untag(self, *tags: str) -> None:
        """Give the runs to come fewer tags. Refused with ScheduleNotFound."""
        await self.client.execute(ops.RecurUntag(self.jid, tags))
        await self.refresh()

    async def pause(self) -> bool:
        """Let none of its runs be due, until it is let go on; says whether it went on before. Refused
        with ScheduleNotFound.
        """
        changed = bool(await self.client.execute(ops.RecurPause(self.jid)))
        await self.refresh()
        return changed

    async def unpause(self) -> bool:
        """Let it go on; what was due meanwhile is passed over. Says whether it was paused. Refused with
        ScheduleNotFound, also where it would have no run any more.
        """
        changed = bool(await self.client.execute(ops.RecurUnpause(self.jid)))
        await self.refresh()
        return changed

    async def run_now(self) -> AsyncJob:
        """Make one run at once, which moves nothing; it counts. Refused with ScheduleNotFound."""
        while not (jid := await self.client.execute(ops.RecurNow(self.jid))):
            continue  # a thousand ids are taken; it goes on with the next thousand
        return await self.client.jobs[jid]

    async def advance(self) -> Self:
        """Tell the next moments of its cron expression, as `Client.advance_schedules` does for all."""
        from qmodel.client.cron import advance

        if self.kind == "cron" and not await self.client.execute(advance(self.raw, await self.client._now())):
            return self  # it is over: as it was when it was read
        return await self.refresh()

    async def unrecur(self) -> bool:
        """Let it recur no more; the runs that were made stay. Says whether it was there."""
        return bool(await self.client.execute(ops.Unrecur(self.jid)))


class AsyncRecurring:
    """The recurring jobs, by id: `client.recurring[jid]`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __getitem__(self, jid: str) -> AsyncRecurringJob:
        """Fetch a recurring job. Raises ScheduleNotFound."""
        found = await self.get(jid)
        if found is None:
            raise ScheduleNotFound(Refusal("SCHEDULE_NOT_FOUND", (jid,)))
        return found

    async def get(self, jid: str) -> AsyncRecurringJob | None:
        """Fetch a recurring job, or None when there is none."""
        known: replies.Schedule | None = await self._client.execute(ops.RecurGet(jid))
        return AsyncRecurringJob(self._client, known) if known is not None else None

    async def unrecur(self, jid: str) -> bool:
        """Let a job recur no more; says whether it did."""
        return bool(await self._client.execute(ops.Unrecur(jid)))


class AsyncThrottle:
    """A limit that jobs share which name it: `client.throttles["stripe"].set(concurrency=5)`."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def set(
        self,
        concurrency: int | None = None,
        *,
        rate: int | None = None,
        per: Duration | None = None,
        capacity: int | None = None,
        refill: int | None = None,
        every: Duration | None = None,
    ) -> None:
        """Set all its limits at once; those that are not given are none.

        `concurrency`: how many jobs run at once. `rate`, `per`: how many are claimed in any window of
        that length (seconds or timedelta). `capacity`, `refill`, `every`: a bucket of tokens, which is
        full at first; `refill` tokens come back in every such time, steadily, and a claim takes the
        job's cost. Raises BadArgument where one is missing that goes with another.
        """
        times = None if per is None else milliseconds(per), None if every is None else milliseconds(every)
        op = ops.ThrottleSet(self.name, concurrency, rate, times[0], capacity, refill, times[1])
        await self.client.execute(op)

    async def unset(self) -> bool:
        """Take all its limits away: jobs that were parked go on. Says whether it had any."""
        return bool(await self.client.execute(ops.ThrottleUnset(self.name)))

    async def show(self) -> replies.Throttle:
        """Its limits, and how they are used."""
        found: replies.Throttle = await self.client.execute(ops.ThrottleGet(self.name))
        return found


class AsyncThrottles:
    """The throttles by name: `client.throttles["stripe"]`. A queue's own is `queue.throttle`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    def __getitem__(self, name: str) -> AsyncThrottle:
        return AsyncThrottle(self._client, name)

    async def all(self, offset: int = 0, count: int = 25) -> list[replies.Throttle]:
        """Those that have limits, by name."""
        return list(await self._client.execute(ops.Throttles(offset, count)))


class AsyncUniques:
    """The keys under which a job stands for others."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def get(self, key: str) -> replies.Unique | None:
        """Who holds a key, since when and until when; None when nobody does."""
        held: replies.Unique | None = await self._client.execute(ops.UniqueGet(key))
        return held

    async def release(self, key: str) -> bool:
        """Let nobody hold a key, and let the job go on that is kept for after its holder; says whether it was held."""
        return bool(await self._client.execute(ops.UniqueRelease(key)))


class AsyncSubscription(SubscriptionFields):
    """A subscription. Its fields are as they were when it was read."""

    def __init__(self, client: AsyncClient, raw: replies.Subscription) -> None:
        super().__init__(raw)
        self.client = client

    async def catch_up(self) -> None:
        """Give it all messages that it has not got, up to 1000 a step. Refused with SubscriptionNotFound."""
        while await self.client.execute(ops.CatchUp(self.name)):
            pass
        self.raw = (await self.client.subscriptions[self.name]).raw

    async def unsubscribe(self) -> bool:
        """End it; its jobs stay. Says whether it was there."""
        return await self.client.subscriptions.remove(self.name)


class AsyncSubscriptions:
    """The subscriptions, by name: `client.subscriptions[name]`."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __getitem__(self, name: str) -> AsyncSubscription:
        """Fetch a subscription. Raises SubscriptionNotFound."""
        found = await self.get(name)
        if found is None:
            raise SubscriptionNotFound(Refusal("SUBSCRIPTION_NOT_FOUND", (name,)))
        return found

    async def get(self, name: str) -> AsyncSubscription | None:
        """Fetch a subscription, or None when there is none."""
        known: replies.Subscription | None = await self._client.execute(ops.SubscriptionGet(name))
        return AsyncSubscription(self._client, known) if known is not None else None

    async def page(self, offset: int = 0, count: int = 25) -> list[AsyncSubscription]:
        """List the subscriptions, oldest first."""
        found = await self._client.execute(ops.Subscriptions(offset, count))
        return [AsyncSubscription(self._client, one) for one in found]

    async def add(
        self,
        name: str,
        patterns: Iterable[str] | str,
        queue: str,
        klass: str,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscription:
        """Add a subscription: each message that fits a pattern becomes a job of a queue. Change it if it exists.

        In a pattern the segment `*` stands for any one segment, and `>` at the end for one or more. The other arguments
        are the options of `qmodel.client.options.SubscribeOptions`. A new subscription gets the messages published from
        now on; with `after` or `since` also kept ones. An existing subscription goes on where it is: so a program can
        subscribe each time it starts. Refused with BadPattern and LimitReached.
        """
        op = new_subscription(name, patterns, queue, klass, **options)
        left = await self._client.execute(op)
        subscription = await self[name]
        if left:
            await subscription.catch_up()
        return subscription

    async def remove(self, name: str) -> bool:
        """End a subscription; its jobs stay. Says whether it was there."""
        return bool(await self._client.execute(ops.Unsubscribe(name)))


class AsyncTags:
    """The jobs by tag."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def top(self, offset: int = 0, count: int = 25) -> dict[str, int]:
        """The tags that at least two jobs have, most used first, with how many."""
        return dict(await self._client.execute(ops.TopTags(offset, count)))

    async def jobs(self, tag: str, offset: int = 0, count: int = 25) -> Listing[AsyncJob]:
        """List the jobs that have a tag, in the order in which they got it."""
        return await self._client._listing(ops.Tagged(tag, offset, count))


class AsyncTrackedJobs(NamedTuple):
    """The tracked jobs that exist, in order of tracking, and the ids of those that are gone."""

    jobs: list[AsyncJob]
    expired: tuple[str, ...]


class AsyncTracked:
    """The tracked jobs."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def jobs(self, offset: int = 0, count: int = 25) -> AsyncTrackedJobs:
        """Show the tracked jobs, and the ids of tracked jobs that are gone."""
        reply: replies.TrackedJobs = await self._client.execute(ops.Tracked(offset, count))
        return AsyncTrackedJobs(self._client._jobs(reply.jobs), reply.expired)

    async def add(self, job: HasJid | str) -> bool:
        """Track a job; says whether it was not tracked before."""
        return bool(await self._client.execute(ops.Track(jid_of(job))))

    async def remove(self, job: HasJid | str) -> bool:
        """Stop tracking a job, existing or not; says whether it was tracked before."""
        return bool(await self._client.execute(ops.Untrack(jid_of(job))))


class AsyncConfig(AsyncConfigItems):
    """The options of the namespace. Durations are seconds, and may be set as timedeltas; the rest
    are whole numbers.

    Refused with UnknownOption and BadValue.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def __getitem__(self, option: str) -> float:
        """The value of an option."""
        return from_setting(option, await self._client.execute(ops.ConfigGet(option)))

    async def all(self) -> dict[str, float]:
        """Every option with its value."""
        return {s.option: from_setting(s.option, s.value) for s in await self.settings()}

    async def settings(self) -> list[replies.Setting]:
        """Every option with its value in its own unit, and whether somebody set it."""
        return list(await self._client.execute(ops.Config()))

    async def set(self, option: str, value: Duration) -> float:
        """Set an option; gives its value."""
        op = ops.ConfigSet(option, to_setting(option, value))
        return from_setting(option, await self._client.execute(op))

    async def unset(self, option: str) -> float:
        """Set an option back to its default; gives that."""
        return from_setting(option, await self._client.execute(ops.ConfigUnset(option)))


__all__ = [
    "AsyncClient",
    "AsyncConfig",
    "AsyncFailed",
    "AsyncJob",
    "AsyncJobs",
    "AsyncQueue",
    "AsyncQueues",
    "AsyncRecurring",
    "AsyncRecurringJob",
    "AsyncTags",
    "AsyncThrottle",
    "AsyncThrottles",
    "AsyncTracked",
    "AsyncTrackedJobs",
    "AsyncUniques",
    "AsyncWorkers",
]
