"""The synchronous client: the catalogue as Python objects.

Generated from `qmodel/client/aio.py` by `./dev docs` (tools/sync_client.py). Edit that file, not this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, Unpack, overload

from qmodel import runtime
from qmodel.backends import Backend, confirming
from qmodel.client import flows, job_types, profiles, remote
from qmodel.client.build import new_job, new_message, new_recurring, new_subscription, request_open
from qmodel.client.convert import (
    Awaited,
    Day,
    Dependencies,
    Duration,
    HasJid,
    awaited_of,
    edges_of,
    encode,
    encode_result,
    encode_unless_kept,
    instant,
    jid_of,
    jids_of,
    milliseconds,
    names_of,
    seconds_of,
)
from qmodel.client.cursor import Cursor, cursor_of, number_of
from qmodel.client.defaults import BY_HAND, KEEP, LONGEST_SLEEP, SEARCH_PAGE
from qmodel.client.failure import failure_of, note_lost
from qmodel.client.fields import JobFields
from qmodel.client.flow_graph import Graph
from qmodel.client.flows import Flow
from qmodel.client.job_types import JobTypes
from qmodel.client.options import MoveOptions, PutOptions, RecurOptions, RequestOptions, SubscribeOptions
from qmodel.client.outcomes import result_of
from qmodel.client.profiles import Profile
from qmodel.client.queue_order import shuffled
from qmodel.client.recurring_fields import RecurringFields
from qmodel.client.settings import QUEUE_OPTIONS, ConfigItems, from_setting, to_setting
from qmodel.client.spans import Spans
from qmodel.client.subscription_fields import SubscriptionFields
from qmodel.client.sync_requests import Request, Requests
from qmodel.client.sync_results import WaitingExecutor
from qmodel.client.values import DependencyResults, Listing
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST, names_family
from qmodel.contract.events import Event
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import Refusal
from qmodel.errors import (
    Forked,
    JobNotFound,
    LockLost,
    QmodelError,
    RefusedError,
    ScheduleNotFound,
    SubscriptionNotFound,
    WorkerNotSeen,
    error_of,
)


class Client(WaitingExecutor):
    """A connection to the jobs of one namespace.

    `backend` is a URL (`memory://`, `memory://name`, `redis://localhost:6379/0`) or an open backend. `worker` is the
    name under which this client takes jobs; by default each thread has its own, `<hostname>-<pid>-<thread>`.

        with Client("memory://") as client:
            client.queues["emails"].put("Send", {"to": 1})
            while job := client.queues["emails"].pop():
                with job:
                    print(job.data)

    A refused operation changes nothing and raises a subclass of RefusedError (`qmodel.errors`). Durations are seconds
    or timedeltas, times are aware datetimes in UTC.
    """

    def __init__(self, backend: str | Backend = "memory://", *, worker: str | None = None) -> None:
        super().__init__(backend, worker=worker)
        self._turn = 0
        self.queues = Queues(self)
        self.jobs = Jobs(self)
        self.failed = Failed(self)
        self.workers = Workers(self)
        self.recurring = Recurring(self)
        self.subscriptions = Subscriptions(self)
        self.requests = Requests(self)
        self.tags = Tags(self)
        self.throttles = Throttles(self)
        self.tracked = Tracked(self)
        self.uniques = Uniques(self)
        self.config = Config(self)
        self.metadata = Klasses(self)

    def confirmed(self, replicas: int = 0, *, local: bool = False) -> Client:
        """Give a client on the same connections that returns when so many replicas have what it did, or, with `local`,
        when it is on the server's disk.

        Only operations that change something are confirmed. One that was executed and not confirmed before the deadline
        raises NotConfirmed. Jobs in the memory of this process need no confirmation.
        """
        return Client(confirming(self.backend, replicas, local), worker=self._worker)

    def job_types(self, events: int = job_types.EVENTS) -> JobTypes:
        """Compute figures by job type from the newest `events`: counts, jobs in a minute, percentiles of how long jobs
        waited and ran (milliseconds), and the most frequent groups of failures.

        The types of up to 200 jobs that were put earlier are looked up; `unknown` counts the events of others.
        """
        latest = self.latest(events)
        earlier = self.multiget(job_types.unnamed(latest)[: job_types.LOOKED_UP])
        return job_types.figures(latest, {job.jid: job.klass for job in earlier})

    def publish(self, subject: str, data: object = None, *, text: str | None = None, delay: Duration = 0) -> int:
        """Publish a message; give its number.

        Each subscription with a matching pattern gets a job `<subscription>:<number>`, ready after `delay`, with the
        message's data and `job.subject`. The message is kept for later subscribers. Refused with BadSubject.
        """
        return int(self.execute(new_message(subject, data, text=text, delay=delay)))

    def messages(self, after: int | Cursor = 0, count: int = 25) -> list[replies.Message]:
        """List the kept messages after a number, oldest first.

        In a deployment each shard numbers its messages: pass a Cursor, which moves with what is listed.
        """
        if self.shards:
            return self._messages_of_shards(cursor_of(after), count)
        return list(self.execute(ops.Messages(number_of(after), count)))

    def trim(self, count: int = MOST) -> int:
        """Delete up to `count` (at most 1000) of the oldest kept messages; give the number deleted.

        Subscriptions that are behind get them first.
        """
        return int(self.execute(ops.Trim(count)))

    def put_many(self, jobs: Iterable[ops.Put]) -> list[Job]:
        """Put up to 1000 jobs, made by `Queue.new`, in one step: all or none.

        They may go to different queues, and may depend on each other in any order.
        """
        new = tuple(jobs)
        if not new:
            return []
        stand = self.execute(ops.PutMany(new))
        self._go_on()
        return [self._put(op, jid) for op, jid in zip(new, stand, strict=True)]

    def put_new(self, jobs: Iterable[ops.Put]) -> int:
        """Put up to 1000 jobs, made by `Queue.new`, in one step, and skip those with existing ids; give the number put.

        Existing jobs are skipped in any state. So a bulk load with ids derived from its content may be sent any number
        of times, as long as its jobs are kept.
        """
        new = tuple(jobs)
        count = int(self.execute(ops.PutNew(new))) if new else 0
        self._go_on()
        return count

    def _go_on(self) -> None:
        """In a deployment, let the next jobs without names go to the next shard."""
        if self.homes is not None:
            self.homes.go_on()

    def _put(self, op: ops.Put, jid: str) -> Job:
        """Make the object for a put: the new job, or the job that stands for it."""
        if jid == op.jid:
            return Job(self, jid, given=op)
        job = Job(self, jid)
        job.deduplicated = True
        return job

    def put_flow(self, jobs: Flow | Iterable[ops.Put], flow: str | None = None) -> list[Job]:
        """Put any number of jobs that wait for each other, made by `qmodel.client.flows` or `Queue.new`, in any order.

        Up to 1000 are put in one step, all or none. More are put in several steps, each job after its dependencies.
        With a `flow` id the jobs get ids made from it, `<flow>-1` and so on. Then the same flow may be put again after
        an interruption: no job is put twice as long as complete jobs are kept (options jobs-history and
        jobs-history-count).

        Refused with FlowError, DependencyNotFound, DependencyCycle or DependencyLimit.
        """
        given = jobs.jobs if isinstance(jobs, Flow) else tuple(jobs)
        given = given if flow is None else flows.named(given, flow)
        for number, part in enumerate(flows.in_parts(given)):
            self.execute(ops.PutMany(part, "" if flow is None else f"{flow}-{number}"))
        self._go_on()
        return [Job(self, op.jid, given=op) for op in given]

    def flow(self, job: HasJid | str, most: int = MOST) -> Graph:
        """Fetch the current flow of a job: up to `most` jobs, and the edges between them.

        `qmodel.client.flow_jobs` says how far the walk goes; `svg()` and `mermaid()` draw it.
        """
        graph = Graph(jid_of(job), most)
        while wanted := graph.wanted():
            graph.add(wanted, self.multiget(wanted))
        return graph

    @overload
    def pop(
        self,
        queues: Iterable[str],
        count: None = None,
        *,
        worker: str | None = None,
        timeout: float | None = None,
        order: Literal["ordered", "round-robin", "weighted"] = "ordered",
        weights: Mapping[str, float] | None = None,
        request: str = "",
    ) -> Job | None: ...

    @overload
    def pop(
        self,
        queues: Iterable[str],
        count: int,
        *,
        worker: str | None = None,
        timeout: float | None = None,
        order: Literal["ordered", "round-robin", "weighted"] = "ordered",
        weights: Mapping[str, float] | None = None,
        request: str = "",
    ) -> list[Job]: ...

    def pop(
        self,
        queues: Iterable[str],
        count: int | None = None,
        *,
        worker: str | None = None,
        timeout: float | None = None,
        order: Literal["ordered", "round-robin", "weighted"] = "ordered",
        weights: Mapping[str, float] | None = None,
        request: str = "",
    ) -> Job | list[Job] | None:
        """Lease the next job of the first queue that has one, or up to `count` jobs, in one step.

        `ordered` tries the queues in the given order. `round-robin` starts one queue further each time. `weighted`
        draws the order by `weights`: of two queues with weights 3 and 1, the first is tried first three times out of
        four. A queue without a weight has 1. See `Queue.pop`.

        If a reply was lost, a pop with the same `request` id and queues gets the same jobs again, as long as the worker
        still has all these leases.
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

        found = self._pop(ordered, 1 if count is None else count, worker, timeout, request)
        if count is not None:
            return found
        return found[0] if found else None

    def _pop(
        self, ordered: Callable[[], list[str]], count: int, worker: str | None, timeout: float | None, request: str
    ) -> list[Job]:
        """Pop; while there is no job, sleep until there may be one.

        A job may become ready while the wake-up time is read, so the client pops once more before it sleeps.
        """
        worker = worker or self.worker
        deadline = runtime.monotonic() + (timeout or 0)
        last = tries = 0
        while queues := ordered():
            found = self._take(queues, worker, count, False, request)
            if found or (left := deadline - runtime.monotonic()) <= 0:
                return found
            next_at = self._next_at(queues)
            if found := self._take(queues, worker, count, True, request):
                return found
            tries = tries + 1 if next_at == last else 0
            last = next_at
            self.backend.wait(queues, min(left, LONGEST_SLEEP, self._until(next_at, tries)))
        return []

    def _take(self, queues: Sequence[str], worker: str, count: int, wait: bool, request: str) -> list[Job]:
        op = ops.Pop(queues[0], worker, count, wait, request)
        many = ops.PopAny(tuple(queues), worker, count, wait, request)
        found = self.execute(op if len(queues) == 1 else many)
        return self._jobs(found)

    def _next_at(self, queues: Sequence[str]) -> int:
        """Find the next moment at which a scheduled job of some queues becomes ready, or 0."""
        counts = self.execute_many([ops.Queue(name) for name in queues])
        return min((one.next_at for one in counts if getattr(one, "next_at", 0)), default=0)

    def _until(self, at: int, tries: int) -> float:
        """Give the seconds until a moment, and a little more after each try that was too early."""
        if not at:
            return LONGEST_SLEEP
        return max(at - self._now(), 0) / 1000 + 0.001 * 2.0 ** min(tries, 10)

    @overload
    def peek(self, queue: str, count: None = None) -> Job | None: ...

    @overload
    def peek(self, queue: str, count: int) -> list[Job]: ...

    def peek(self, queue: str, count: int | None = None) -> Job | list[Job] | None:
        """Show the next job that a pop would lease, or up to `count` jobs. Pauses are ignored."""
        found = self._jobs(self.execute(ops.Peek(queue, 1 if count is None else count)))
        if count is not None:
            return found
        return found[0] if found else None

    def complete_many(self, jobs: Iterable[Job | tuple[Job, Any]]) -> None:
        """Complete up to 1000 leased jobs in one step, all or none. Each is a job or a pair (job, result)."""
        pairs = [job if isinstance(job, tuple) else (job, None) for job in jobs]
        if not pairs:
            return
        done = [ops.Complete(job.jid, job._lease(), encode_result(result)) for job, result in pairs]
        states = self.execute(ops.CompleteMany(tuple(done)))
        for (job, _), op, state in zip(pairs, done, states, strict=True):
            job._ended(state, result=op.result)

    def journal(
        self, after: int | Cursor = 0, page: int = MOST, *, epoch: int | None = None
    ) -> Iterator[replies.Recorded]:
        """Iterate over the journal's entries after a number, oldest first, up to the newest; `page` per round trip.

        The journal records while the option `journal` is 1. Numbers have no gaps: a jump means that older entries are
        no longer kept (option max-journal). To go on later, pass the number and the epoch of the last entry seen. Of
        heavy entries fewer come in a round trip. Raises Forked if that entry is not part of the server's history any
        more, because the server lost the end of its log.

        In a deployment each shard has a journal: pass a Cursor, which moves with each entry. The entries of a shard
        come in their order, those of all shards page by page.
        """
        if self.shards:
            for entry in self._journal_of_shards(cursor_of(after), page):
                yield entry
            return
        number = number_of(after)
        while found := self.execute(ops.Journal(number, page, epoch)):
            for entry in found:
                number, epoch = entry.number, entry.epoch
                yield entry

    def advance_schedules(self, ahead: Duration = 3600) -> int:
        """Send the engine the next moments of recurring jobs with cron expressions that run out within `ahead`; give
        their number.

        Some client has to do this now and then. Any number of clients may: the engine takes the moments after one only
        once. An expression that this client cannot read is skipped with a warning.
        """
        from qmodel.client.cron import advances

        found = self.execute(ops.RecurringUnset(milliseconds(ahead), MOST))
        if not found:
            return 0
        sent = list(advances(found, self._now_at(found[0].queue)))
        known = self.execute_many(sent)
        return sum(last_at != op.after for op, last_at in zip(sent, known, strict=True))

    def follow(
        self,
        after: int | Cursor = 0,
        *,
        epoch: int | None = None,
        timeout: Duration = math.inf,
        on_fork: Callable[[Forked], object] | None = None,
    ) -> Iterator[Event]:
        """Iterate over the events after a sequence number, oldest first, and wait for new ones.

        It ends when no event has come for `timeout` (seconds or timedelta); by default it never ends. To go on later,
        pass the sequence number and the epoch of the last event seen. If events come faster than they are handled, use
        a separate client for this.

        If the server has lost events that were read already, Forked is raised. With `on_fork`, that function gets the
        error instead: the events after its `common` are taken back, and the server's own events after it come next. It
        may be called again, with an earlier one.

        In a deployment pass a Cursor, as for `events`; a fork of a shard is always raised.
        """
        patience = seconds_of(timeout)
        if self.shards:
            for event in self._follow_shards(cursor_of(after), patience):
                yield event
            return
        read = Spans(number_of(after), epoch)
        until = runtime.monotonic() + patience
        while True:
            try:
                for event in self.events(read.after, epoch=read.epoch):
                    read.add(event)
                    yield event
                    until = runtime.monotonic() + patience
            except Forked as fork:
                if on_fork is None:
                    raise
                on_fork(fork)
                read.take_back(int(fork.common))
                continue
            left = until - runtime.monotonic()
            if left <= 0:
                return
            self.backend.wait_events(read.after, min(left, LONGEST_SLEEP))

    def _follow_shards(self, cursor: Cursor, patience: float) -> Iterator[Event]:
        backend: Any = getattr(self.backend, "backend", self.backend)
        until = runtime.monotonic() + patience
        while True:
            for event in self.events(cursor):
                yield event
                until = runtime.monotonic() + patience
            left = until - runtime.monotonic()
            if left <= 0:
                return
            backend.wait_after([place.seq for place in cursor.places], min(left, LONGEST_SLEEP))

    def begin_epoch(self, epoch: int | None = None) -> int:
        """Begin an epoch, so that no token and no id of an event is issued again; give its number.

        Do this after a backup was restored into a running server, if the server cannot notice it: see semantics.md. By
        default the number is made from the time. Refused with EpochPassed unless it is greater than the current one.
        """
        if epoch is None:
            current = (self.position()).epoch
            epoch = max(self._now() // 1000 * 10**6 + runtime.randbelow(10**6), current + 10**6)
        return int(self.execute(ops.BeginEpoch(epoch)))

    def wait(self, jobs: Iterable[HasJid | str], timeout: Duration = math.inf) -> list[Any]:
        """Sleep until all given jobs have ended, or `timeout` (seconds or timedelta) has passed; give their results in
        the given order.

        For a job without a result the list holds the exception that `Job.wait` would raise. All waiters of one
        client share one connection, so there may be thousands.
        """
        jids = jids_of(jobs)
        seconds = seconds_of(timeout)
        ended = self._results.wait(jids, seconds) if jids else {}
        return [result_of(jid, ended.get(jid), seconds) for jid in jids]

    def _bulk(self, op: ops.CancelMany | ops.RetryMany) -> replies.Bulk:
        """Repeat an operation on many jobs until all have been examined, 1000 per step."""
        done = passed = 0
        while True:
            part: replies.Bulk = self.execute(op)
            done, passed = done + part.done, passed + part.passed
            if not part.cursor:
                return replies.Bulk(done, passed, "")
            op = replace(op, cursor=part.cursor)

    def request(self, id: str, queue: str, *, limit: int, priority: int = 0, **ends: Unpack[RequestOptions]) -> Request:
        """Make a request that a `with` block opens and closes: jobs of a queue with at most `limit` running at
        a time. The other arguments are the options of `qmodel.client.options.RequestOptions`.
        """
        return Request(self, id, request_open(id, queue, limit, priority, ends))

    def _jobs(self, found: Iterable[replies.Job]) -> list[Job]:
        return [Job(self, job.jid, job) for job in found]

    def _listing(self, op: ops.Operation) -> Listing[Job]:
        """Fetch the jobs of a page of ids. Jobs deleted meanwhile are left out."""
        page = self.execute(op)
        return Listing(self.jobs.get_many(page.jids), page.total)


class Queues:
    """The queues, by name: `client.queues["emails"]`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, name: str) -> Queue:
        """Refer to a queue by name, whether or not it has ever had a job."""
        return Queue(self._client, name)

    def __iter__(self) -> Iterator[Queue]:
        offset = 0
        while page := self.counts(offset, MOST):
            for name in (one.name for one in page):
                yield self[name]
            offset += MOST

    def counts(self, offset: int = 0, count: int = 25) -> list[replies.QueueCounts]:
        """List the queues, first seen first, with the number of jobs in each state."""
        return list(self._client.execute(ops.Queues(offset, count)))

    def pause(self, *queues: str, reason: str = BY_HAND, duration: Duration = 0) -> int:
        """Pause queues at once: their jobs are not leased. Give how many were not paused before.

        Each reason has its own pause. A queue is paused until none is left. A pause with a duration ends by itself.
        """
        return int(self._client.execute(ops.Pause(queues, reason, milliseconds(duration))))

    def unpause(self, *queues: str, reason: str | None = None) -> int:
        """End the pauses of queues, or only those with a reason; give how many are no longer paused."""
        return int(self._client.execute(ops.Unpause(queues, reason)))

    def forget(self, *queues: str) -> int:
        """Remove empty queues and their pauses from the list; give how many were on it.

        Refused with QueueNotEmpty.
        """
        return int(self._client.execute(ops.Forget(queues)))


class Queue:
    """One queue."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def throttle(self) -> Throttle:
        """The throttle of the queue. All its jobs pass it without naming it."""
        return Throttle(self.client, "queue/" + self.name)

    @property
    def config(self) -> QueueConfig:
        """The options of this queue, which go before those of the namespace."""
        return QueueConfig(self.client, self.name)

    def new(self, klass: str, data: object = None, **options: Unpack[PutOptions]) -> ops.Put:
        """Make a job for `put_many`, with the arguments of `put`. Its `jid` is known before the put."""
        op, homes = new_job(self.name, klass, data, **options), self.client.homes
        return op if homes is None or options.get("jid") is not None else homes.at_home(op)

    def put(self, klass: str, data: object = None, **options: Unpack[PutOptions]) -> Job:
        """Put a job into this queue: a new one, or with the `jid` of an existing job, that job, which moves here.

        `klass` names the code that performs the job, and `data` is stored as JSON. The other arguments are the options
        of `qmodel.client.options.PutOptions`. On an existing job `priority`, `retries`, `tags` and `depends` keep their
        values if they are not given; all other options are set anew by each put.

        Refused with DependencyNotFound, DependencyCycle, DependencyLimit or OverCapacity. Raises TypeError for an
        unknown option.
        """
        op = self.new(klass, data, **options)
        jid = self.client.execute(op)
        self.client._go_on()
        return self.client._put(op, jid)

    def recur(self, klass: str, data: object = None, **options: Unpack[RecurOptions]) -> RecurringJob:
        """Let a job recur in this queue: put a run of it every `interval`, at the moments of a `cron` expression, or
        each time `after` the end of the run before. Exactly one of the three is given.

        The runs are jobs `<jid>-1`, `<jid>-2` and so on, with `klass` and `data`. The other arguments are the options
        of `qmodel.client.options.RecurOptions`.

        With the `jid` of an existing recurring job everything is replaced but the number of its last run. If its
        times are the same, it continues as it was, unless `restart` is set: so a program can declare its recurring jobs
        each time it starts. Refused with ScheduleOver if no run would ever be due. Raises ValueError for an invalid
        cron expression or time zone, and TypeError for an unknown option.
        """
        op = new_recurring(self.name, klass, data, **options)
        if self.client.homes is not None and options.get("jid") is None:
            op = replace(op, jid=f"{{{op.jid}}}")
        self.client.execute(op)
        made = self.client.recurring[op.jid]
        return made if made.kind != "cron" or made.raw.due_at else made.advance()

    def recurring(self, offset: int = 0, count: int = 25) -> Listing[RecurringJob]:
        """List the jobs that recur here, next due first."""
        page = self.client.execute(ops.Recurring(self.name, offset, count))
        found = self.client.execute_many(ops.RecurGet(jid) for jid in page.jids)
        return Listing((RecurringJob(self.client, one) for one in found if one is not None), page.total)

    def fire(self, count: int = MOST) -> int:
        """Put up to `count` due runs of recurring jobs, as a pop would, without leasing one; give the number."""
        return int(self.client.execute(ops.Fire(self.name, count)))

    def put_many(self, jobs: Iterable[ops.Put | tuple[str, object]]) -> list[Job]:
        """Put up to 1000 jobs in one step, all or none. Each is made by `new`, or a pair (klass, data)."""
        new = [self.new(*job) if isinstance(job, tuple) else job for job in jobs]
        return self.client.put_many(new)

    @overload
    def pop(self, count: None = None, *, worker: str | None = None, timeout: float | None = None) -> Job | None: ...

    @overload
    def pop(self, count: int, *, worker: str | None = None, timeout: float | None = None) -> list[Job]: ...

    def pop(
        self, count: int | None = None, *, worker: str | None = None, timeout: float | None = None
    ) -> Job | list[Job] | None:
        """Lease the next job to this worker, or up to `count` jobs; None, or an empty list, if there is none.

        Without `timeout` it returns at once. With one it sleeps up to so many seconds (`math.inf`: for ever) and wakes
        up when a job becomes ready. The job belongs to this worker until its lease ends (option heartbeat, 60 seconds);
        finish it or renew the lease before that. As a context manager the job finishes itself:

            while job := queue.pop(timeout=60):
                with job:
                    send(job.data)
        """
        if count is None:
            return self.client.pop([self.name], worker=worker, timeout=timeout)
        return self.client.pop([self.name], count, worker=worker, timeout=timeout)

    @overload
    def peek(self, count: None = None) -> Job | None: ...

    @overload
    def peek(self, count: int) -> list[Job]: ...

    def peek(self, count: int | None = None) -> Job | list[Job] | None:
        """Show the next job that a pop would lease, or up to `count` jobs. Pauses are ignored."""
        if count is None:
            return self.client.peek(self.name)
        return self.client.peek(self.name, count)

    @property
    def counts(self) -> replies.QueueCounts:
        """The number of jobs in each state, and when the next scheduled job becomes ready."""
        counts: replies.QueueCounts = self.client.execute(ops.Queue(self.name))
        return counts

    def length(self) -> int:
        """Count its jobs in all states but complete and failed."""
        return int(self.client.execute(ops.Length(self.name)))

    def pause(self, reason: str = BY_HAND, *, duration: Duration = 0) -> bool:
        """Pause the queue at once: its jobs are not leased. Say whether it was not paused before."""
        return bool(self.client.queues.pause(self.name, reason=reason, duration=duration))

    def unpause(self, reason: str | None = None) -> bool:
        """End its pauses, or only the one with a reason; say whether it is no longer paused."""
        return bool(self.client.queues.unpause(self.name, reason=reason))

    def forget(self) -> bool:
        """Remove the empty queue from the list; say whether it was there. Refused with QueueNotEmpty."""
        return bool(self.client.queues.forget(self.name))

    def drain(self, count: int | None = None) -> replies.Drained:
        """Cancel its jobs that have not begun; with a `count` (at most 1000) only so many, in one step.

        Jobs with dependents in other queues stay, and jobs with more than 1000 dependencies.
        """
        if count is not None:
            drained: replies.Drained = self.client.execute(ops.Drain(self.name, count))
            return drained
        canceled = 0
        while (step := self.drain(MOST)).canceled:
            canceled += step.canceled
        return replies.Drained(canceled, step.left)

    def obliterate(self, *, force: bool = False) -> int:
        """Delete the queue with its jobs in any state, recurring jobs, pauses and throttle; give the number of jobs
        deleted.

        Refused with QueueBusy while jobs run or are stalled, unless `force` takes them from their workers; and with
        HasDependents while a job of another queue depends on one of its jobs.
        """
        gone = 0
        op = ops.Obliterate(self.name, force)
        while True:
            part: replies.Bulk = self.client.execute(op)
            gone += part.done
            if not part.cursor and not (part.passed and part.done):
                return gone
            op = replace(op, cursor=part.cursor)

    def stats(self, day: Day | None = None, *, tag: str | None = None, worker: str | None = None) -> replies.Stats:
        """Read its wait times, run times, failures and retries of one UTC day, by default today.

        With a `tag` or a `worker`, the wait and run times of the jobs with this tag, or of this worker. They are
        counted by the first `stats-tags` tags of a day (100), and by workers only if the option `stats-workers` is set.
        """
        stats: replies.Stats = self.client.execute(ops.Stats(self.name, instant(day), tag, worker))
        return stats

    def metrics(self, count: int = 60, at: Day | None = None) -> tuple[replies.Minute, ...]:
        """Count how its jobs ended in each of the last `count` minutes, or of the minutes up to `at`; oldest first."""
        minutes: tuple[replies.Minute, ...] = self.client.execute(ops.Metrics(self.name, instant(at), count))
        return minutes

    def unfail(self, group: str | None = None) -> int:
        """Retry the failed jobs of this queue, of a group or all; return how many."""
        return self.client.failed.retry(self.name, group=group)

    def waiting(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List its waiting jobs in order, then the jobs that became due since the last pop."""
        return self.client._listing(ops.Waiting(self.name, offset, count))

    def scheduled(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List its scheduled jobs, soonest first."""
        return self.client._listing(ops.Scheduled(self.name, offset, count))

    def throttled(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List its jobs that are ready but wait for a throttle, longest ready first."""
        return self.client._listing(ops.Throttled(self.name, offset, count))

    def depending(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List its jobs that wait for dependencies, in the order of their puts."""
        return self.client._listing(ops.Depending(self.name, offset, count))

    def running(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List its jobs under a valid lease, soonest to expire first."""
        return self.client._listing(ops.Running(self.name, offset, count))

    def stalled(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List its jobs with a lease that lapsed or was taken away, longest first."""
        return self.client._listing(ops.Stalled(self.name, offset, count))


class Job(JobFields):
    """One job.

    Its fields are as they were when it was fetched; `refresh` fetches it again. As a context manager the job finishes
    itself. At the end of the block it is completed. If an exception leaves the block, it fails, in a group named after
    the exception's class and with the traceback as message; on KeyboardInterrupt, SystemExit and cancellation it is
    released instead. The exception is not suppressed. A job that was finished inside the block stays as it is.
    """

    def __init__(
        self,
        client: Client,
        jid: str,
        known: replies.Job | None = None,
        *,
        given: ops.Put | None = None,
    ) -> None:
        super().__init__(jid, known, given)
        self.client = client

    def refresh(self) -> Self:
        """Fetch the job again. Raises JobNotFound if it no longer exists."""
        known = self.client.execute(ops.Get(self.jid))
        if known is None:
            raise error_of(Refusal("JOB_NOT_FOUND", (self.jid,)))
        self._known = known
        return self

    def _lease(self) -> int:
        """Give the lease token that this object knows."""
        if self._known is None:
            self.refresh()
        return self.token

    # ---- finishing

    def complete(
        self,
        result: object = None,
        *,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Dependencies = (),
    ) -> str:
        """Complete the job, and make the jobs that waited for it ready; or move it to a `next` queue.

        `result` and new `data` are stored as JSON. `delay` and `depends` go with `next` only. Gives the job's state.
        Refused with LockLost if another worker has it now.
        """
        op = ops.Complete(
            self.jid,
            self._lease(),
            encode_result(result),
            encode_unless_kept(data),
            next,
            milliseconds(delay),
            edges_of(depends),
        )
        state: str = self.client.execute(op)
        self._ended(state, result=op.result)
        return state

    @overload
    def complete_and_pop(
        self,
        result: object = None,
        *,
        queue: str | None = None,
        count: None = None,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Dependencies = (),
    ) -> Job | None: ...

    @overload
    def complete_and_pop(
        self,
        result: object = None,
        *,
        queue: str | None = None,
        count: int,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Dependencies = (),
    ) -> list[Job]: ...

    def complete_and_pop(
        self,
        result: object = None,
        *,
        queue: str | None = None,
        count: int | None = None,
        data: object = KEEP,
        next: str | None = None,
        delay: Duration = 0,
        depends: Dependencies = (),
    ) -> Job | list[Job] | None:
        """Complete the job as `complete` does, and lease the next job of a queue, by default of its own queue."""
        token = self._lease()
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
        reply: replies.CompletedAndPopped = self.client.execute(op)
        self._ended(reply.state, result=op.result)
        found = self.client._jobs(reply.jobs)
        if count is not None:
            return found
        return found[0] if found else None

    def fail(self, group: str, message: str = "", *, data: object = KEEP) -> None:
        """Fail the job. It stays in a failure group until it is retried or deleted. Refused with LockLost."""
        op = ops.Fail(self.jid, self._lease(), group, message, encode_unless_kept(data))
        self.client.execute(op)
        self._ended("failed")

    def retry(self, delay: Duration = 0, *, group: str | None = None, message: str = "") -> int:
        """Return the job to be tried again, now or after a delay. This uses up one retry.

        Gives the number of retries left, or -1 if there were none: then the job has failed, in `group` or else in
        `failed-retries-<queue>`. Refused with LockLost.
        """
        op = ops.Retry(self.jid, self._lease(), milliseconds(delay), group, message)
        remaining = int(self.client.execute(op))
        state = "failed" if remaining < 0 else "scheduled" if op.delay_ms else "waiting"
        self._ended(state, remaining=max(remaining, 0))
        return remaining

    def release(
        self,
        delay: Duration = 0,
        *,
        data: object = KEEP,
        depends: Dependencies = (),
    ) -> str:
        """Return the job to its queue, now or after a delay, without using up a retry; give its state.

        With `depends` it first waits for these jobs and requests, for example its children. Put them before. See `put`.

        Refused with LockLost, DependencyNotFound, DependencyCycle or DependencyLimit.
        """
        op = ops.Release(self.jid, self._lease(), milliseconds(delay), encode_unless_kept(data), edges_of(depends))
        state: str = self.client.execute(op)
        self._ended(state)
        return state

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._finished:
            return
        if error is None:
            self.complete()
            return
        try:
            if isinstance(error, Exception):
                self.fail(*failure_of(error))
            else:
                self.release()
        except (LockLost, JobNotFound) as lost:
            note_lost(error, lost)

    # ---- waiting

    def wait(self, timeout: Duration = math.inf) -> Any:
        """Sleep until the job has ended, and give its result, decoded from JSON; None if it has none.

        A job that is tried again, or was moved to another queue, has not ended. Raises JobFailed with `group` and
        `message` (JobRevoked and JobExpired are subclasses); JobCanceled; ResultNotKept if complete jobs are deleted at
        once; JobNotFound for a job that did not exist before; NotEnded, a TimeoutError, after `timeout` seconds.
        """
        seconds = seconds_of(timeout)
        found = self.client._results.wait((self.jid,), seconds)
        ended = found.get(self.jid)
        if ended is not None and ended.known is not None:
            self._known = ended.known
        result = result_of(self.jid, ended, seconds)
        if isinstance(result, QmodelError):
            raise result
        return result

    # ---- leasing

    def heartbeat(self, *, data: object = KEEP) -> bool:
        """Renew the lease from now, and optionally replace the data. Gives True if the job was revoked: then stop
        working on it. Refused with LockLost.
        """
        op = ops.Heartbeat(self.jid, self._lease(), encode_unless_kept(data))
        lease: replies.Lease = self.client.execute(op)
        self._now_is(expires_at=lease.expires_at)
        return lease.revoked

    def revoke(self) -> str:
        """Revoke the job; give its state after that.

        If no worker runs it, it fails at once, in `revoked-<queue>`. Otherwise the worker learns of it with the next
        heartbeat, and the job fails however the lease ends.
        """
        states: tuple[str, ...] = self.client.execute(ops.Revoke((self.jid,)))
        self._now_is(state=states[0])
        return states[0]

    def replay(self) -> Job:
        """Put the original job of this dead letter again with the letter's data and options, and delete the letter;
        give the original job.

        Refused with NotADeadLetter; with WrongState if the original job exists and has not failed; or HasDependents.
        """
        return Job(self.client, self.client.execute(ops.Replay(self.jid)))

    def timeout(self) -> None:
        """Take the lease away at once: the job is stalled, and the next pop leases it first.

        Refused with WrongState unless it is running.
        """
        self.client.execute(ops.Timeout((self.jid,)))
        self._now_is(state="stalled")

    def progress(self, text: str) -> None:
        """Report progress as text of up to 1024 bytes. Refused with LockLost."""
        self.client.execute(ops.Progress(self.jid, self._lease(), text))
        self._now_is(progress=text)

    # ---- changing

    def why(self) -> list[Reason]:
        """Explain why the job does not run. Each reason has a `code`, its facts by name (`named`), and a `sentence`.

        No reason means that the next pop of its queue leases it.
        """
        return list(self.client.execute(ops.Why(self.jid)))

    def log(self, message: str) -> None:
        """Add a line of up to 1024 bytes to the job's history."""
        self.client.execute(ops.Log(self.jid, message))

    def update(self, data: object = None, *, text: str | None = None) -> None:
        """Replace the data: `data` is stored as JSON, `text` as it is."""
        stored = encode(data) if text is None else text
        self.client.execute(ops.Update(self.jid, stored))
        self._now_is(data=stored)

    def prioritize(self, priority: int) -> None:
        """Change the priority. Lower runs sooner."""
        self.client.execute(ops.Priority(self.jid, priority))
        self._now_is(priority=priority)

    def delay(self, delay: Duration) -> str:
        """Make the job ready after a delay from now; give its state.

        Refused with WrongState unless it is scheduled, waiting, or waits for dependencies.
        """
        op = ops.Delay(self.jid, milliseconds(delay))
        state: str = self.client.execute(op)
        self._now_is(state=state)
        return state

    def promote(self) -> None:
        """Make the job ready now. Refused with WrongState unless it is scheduled."""
        self._now_is(state=self.client.execute(ops.Promote(self.jid)))

    def move(self, queue: str, **options: Unpack[MoveOptions]) -> Job:
        """Put the job anew into another queue, with its klass and data. A worker that holds the job loses it.

        The options are those of `put`: `priority` and `delay`, say.
        """
        moved = self.client.queues[queue].put(self.klass, text=self.text, jid=self.jid, **options)
        self._finished = self._finished or moved.jid == self.jid
        return moved

    def cancel(self, *, cascade: bool = False) -> tuple[str, ...]:
        """Delete the job unless it is complete. A worker that holds it loses it. Gives the ids of the jobs deleted.

        With `cascade` its dependents are deleted too; without it, the operation is refused with HasDependents if there
        are any.
        """
        canceled = self.client.jobs.cancel(self, cascade=cascade)
        self._finished = True
        return canceled

    def delete(self, *, cascade: bool = False) -> tuple[str, ...]:
        """Delete the job, whatever its state. A worker that holds it loses it. Gives the ids of the jobs deleted.

        With `cascade` its dependents are deleted too, as with `cancel`.
        """
        deleted = self.client.jobs.delete(self, cascade=cascade)
        self._finished = True
        return deleted

    # ---- dependencies, tags, tracking

    def depends_on(self, *others: Awaited) -> tuple[str, ...]:
        """Add dependencies on jobs and requests, or change their edges; give all dependencies (the first 1000), jobs by
        their ids and requests as `<id> request`.

        Refused with WrongState unless the job waits for dependencies already.
        """
        jids: tuple[str, ...] = self.client.execute(ops.DependsOn(self.jid, edges_of(others)))
        self._now_is(dependencies=jids)
        return jids

    def depends_off(self, *others: Awaited, all: bool = False) -> tuple[str, ...]:
        """Remove some dependencies, or `all`; give the remaining ones, jobs by their ids and requests as `<id>
        request`.

        Refused with WrongState unless the job waits for dependencies.
        """
        op = ops.DependsOff(self.jid, awaited_of(others), all)
        jids: tuple[str, ...] = self.client.execute(op)
        self._now_is(dependencies=jids)
        return jids

    def results(self) -> DependencyResults:
        """Read the results of its named dependencies (see `Edge`), also if they no longer exist.

        They stay with this job until it is complete. Refused with JobNotFound.
        """
        return DependencyResults(self.client.results_of(self.jid))

    def tag(self, *tags: str) -> tuple[str, ...]:
        """Add tags; give all tags of the job."""
        added: tuple[str, ...] = self.client.execute(ops.TagAdd(self.jid, tags))
        self._now_is(tags=added)
        return added

    def untag(self, *tags: str) -> tuple[str, ...]:
        """Remove tags; give the remaining ones."""
        left: tuple[str, ...] = self.client.execute(ops.TagRemove(self.jid, tags))
        self._now_is(tags=left)
        return left

    def track(self) -> bool:
        """Track the job; say whether it was not tracked before. Tracking outlives the job."""
        new = bool(self.client.execute(ops.Track(self.jid)))
        self._now_is(tracked=True)
        return new

    def untrack(self) -> bool:
        """Stop tracking the job; say whether it was tracked before."""
        was = bool(self.client.execute(ops.Untrack(self.jid)))
        self._now_is(tracked=False)
        return was


class Jobs:
    """All jobs, by id: `client.jobs[jid]`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, jid: str) -> Job:
        """Fetch a job. Raises JobNotFound."""
        return Job(self._client, jid).refresh()

    def get(self, jid: str) -> Job | None:
        """Fetch a job, or None when there is none."""
        known: replies.Job | None = self._client.execute(ops.Get(jid))
        return Job(self._client, jid, known) if known is not None else None

    def get_many(self, jids: Iterable[HasJid | str]) -> list[Job]:
        """Fetch jobs in the given order, 1000 per step. Jobs that do not exist are left out."""
        return self._client._jobs(self._client.multiget(jids_of(jids)))

    def search(
        self,
        queue: str | None = None,
        *,
        state: str | None = None,
        klass: str | None = None,
        tag: str | None = None,
        worker: str | None = None,
        group: str | None = None,
        klass_like: str | None = None,
        jid_like: str | None = None,
        text: str | None = None,
    ) -> Iterator[Job]:
        """Iterate over the jobs that match all criteria. A job that does not change its list meanwhile is found once.

        In `klass_like` and `jid_like` a `*` stands for any characters: `Send*`. `text` must occur in the stored data.

        Give at least a queue, a tag, a group, a worker, or the state complete or failed; otherwise it is refused with
        TooWide.
        """
        cursor = ""
        while True:
            parts = (klass_like, jid_like, text)
            op = ops.Search(queue, state, klass, tag, worker, group, cursor, SEARCH_PAGE, *parts)
            found: replies.Found = self._client.execute(op)
            for known in found.jobs:
                yield Job(self._client, known.jid, known)
            cursor = found.cursor
            if not cursor:
                return

    def cancel_many(
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
        """Cancel the jobs that `search` finds, except complete jobs and jobs with dependents.

        `passed` counts the jobs that stay. With `preview` nothing changes, and `done` counts the matching jobs.
        """
        op = ops.CancelMany(queue, state, klass, tag, worker, group, preview=preview)
        return self._client._bulk(op)

    def clean(
        self,
        state: Literal["complete", "failed"] = "complete",
        older: Duration = 0,
        *,
        queue: str | None = None,
        klass: str | None = None,
        tag: str | None = None,
        group: str | None = None,
        preview: bool = False,
    ) -> replies.Cleaned:
        """Delete complete or failed jobs that ended at least `older` ago.

        Failed jobs with dependents stay, and `passed` counts them. `jids` are the ids of the deleted jobs. With
        `preview` nothing changes, and `done` and `jids` are about the matching jobs.
        """
        op = ops.Clean(state, milliseconds(older), queue, klass, tag, group, preview=preview)
        passed, jids = 0, list[str]()
        while True:
            part: replies.Cleaned = self._client.execute(op)
            passed += part.passed
            jids += part.jids
            if not part.cursor:
                return replies.Cleaned(len(jids), passed, "", tuple(jids))
            op = replace(op, cursor=part.cursor)

    def cancel(self, *jobs: HasJid | str, cascade: bool = False) -> tuple[str, ...]:
        """Delete up to 1000 unfinished jobs in one step, all or none; give the ids of the jobs deleted.

        Unknown and complete jobs are skipped. A job with dependents is deleted only together with them: name them too,
        or use `cascade`. Otherwise it is refused with HasDependents.
        """
        canceled: tuple[str, ...] = self._client.execute(ops.Cancel(jids_of(jobs), cascade))
        return canceled

    def delete(self, *jobs: HasJid | str, cascade: bool = False) -> tuple[str, ...]:
        """Delete up to 1000 jobs in one step, whatever their states, all or none; give the ids of the jobs deleted.

        Unknown jobs are skipped. A worker that holds one loses it. For dependents see `cancel`.
        """
        deleted: tuple[str, ...] = self._client.execute(ops.Cancel(jids_of(jobs), cascade, True))
        return deleted

    def timeout(self, *jobs: HasJid | str) -> tuple[str, ...]:
        """Take leases away, all or none: the jobs are stalled, and the next pop leases them first."""
        taken: tuple[str, ...] = self._client.execute(ops.Timeout(jids_of(jobs)))
        return taken

    def revoke(self, *jobs: HasJid | str) -> tuple[str, ...]:
        """Revoke up to 1000 jobs in one step; give the state of each after that. See `Job.revoke`."""
        states: tuple[str, ...] = self._client.execute(ops.Revoke(jids_of(jobs)))
        return states

    def completed(self, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List the kept complete jobs, latest first."""
        return self._client._listing(ops.Completed(offset, count))


class Failed:
    """The failed jobs, by group."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def groups(self, offset: int = 0, count: int = 25) -> dict[str, int]:
        """List the failure groups by name, with the number of jobs of each."""
        return dict(self._client.execute(ops.FailedGroups(offset, count)))

    def jobs(self, group: str, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List the jobs of a group, latest failure first."""
        return self._client._listing(ops.Failed(group, offset, count))

    def retry(
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
        return (self._client._bulk(op)).done


class Metadata:
    """The metadata of a klass: texts by key, shared by all its jobs."""

    def __init__(self, client: Client, klass: str) -> None:
        self._client = client
        self.klass = klass

    def all(self) -> dict[str, str]:
        """Read all texts by key."""
        return dict(self._client.execute(ops.MetadataGet(self.klass)))

    def set(self, key: str, value: str) -> bool:
        """Store a text; say whether the key is new. Refused with LimitReached at 1000 keys."""
        return bool(self._client.execute(ops.MetadataSet(self.klass, key, value)))

    def increment(self, key: str, by: int = 1) -> int:
        """Add to a whole number, which is 0 if the key is new; give the sum. Refused with NotWhole."""
        return int(self._client.execute(ops.MetadataIncrement(self.klass, key, by)))

    def unset(self, key: str) -> bool:
        """Delete a text; say whether there was one."""
        return bool(self._client.execute(ops.MetadataUnset(self.klass, key)))


class Klasses:
    """The metadata by klass: `client.metadata[klass]`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, klass: str) -> Metadata:
        """Refer to the metadata of a klass, whether or not there are any."""
        return Metadata(self._client, klass)


class Workers:
    """The workers that have leased jobs, by name."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, name: str) -> replies.WorkerJobs:
        """List the ids of a worker's jobs, with valid leases and with lapsed ones."""
        held: replies.WorkerJobs = self._client.execute(ops.Worker(name))
        return held

    def counts(self, offset: int = 0, count: int = 25) -> list[replies.WorkerCounts]:
        """List the workers, latest seen first, with the number of jobs that each holds."""
        return list(self._client.execute(ops.Workers(offset, count)))

    def deregister(self, *names: str) -> int:
        """Remove workers from the list; their leases stay valid. Gives how many were on it."""
        return int(self._client.execute(ops.Deregister(names)))

    def quiet(self, name: str, *others: str) -> None:
        """Tell workers to take no more jobs until `resume`. Their running jobs go on.

        `qmodel worker` obeys within about two seconds (`signals` says whether it has); your own loops around `pop` do
        not. Raises WorkerNotSeen if a worker is not on the list; then no worker gets the signal.
        """
        self._signal("quiet", (name, *others))

    def resume(self, name: str, *others: str) -> None:
        """Tell quiet workers to take jobs again. Otherwise as `quiet`."""
        self._signal("resume", (name, *others))

    def stop(self, name: str, *others: str, now: bool = False) -> None:
        """Tell workers to stop as with SIGTERM: when their running jobs have ended, or their grace period is over. With
        `now` they release these jobs at once. Otherwise as `quiet`.

        The worker's supervisor decides whether a new process starts.
        """
        self._signal("stop now" if now else "stop", (name, *others))

    def signals(self) -> dict[str, remote.Signalled]:
        """Read the last signal to each worker (`quiet`, `resume`, `stop`), and the worker's answer."""
        signals, states = self._client.execute_many(remote.asked())
        return remote.paired(dict(signals), dict(states))

    def profiles(self) -> dict[str, Profile]:
        """Read on which host each `qmodel worker` runs, as which process, with which settings, version and memory.

        Your own loops around `pop` have none. A profile is renewed every five minutes; that of a killed worker stays
        until another worker starts an hour later.
        """
        return profiles.read(self._client.execute(profiles.asked()))

    def _signal(self, signal: remote.Signal, names: tuple[str, ...]) -> None:
        listed = self._listed()
        for name in names:
            if name not in listed:
                raise WorkerNotSeen(name)
        signals, states = self._client.execute_many(remote.asked())
        stale = remote.stale(dict(signals), dict(states), listed)
        for reply in self._client.execute_many([*remote.forgotten(stale), *remote.sent(signal, names)]):
            if isinstance(reply, RefusedError):
                raise reply

    def _listed(self) -> set[str]:
        """Read the names of all workers on the list."""
        names: set[str] = set()
        for offset in count(0, MOST):
            found = self.counts(offset, MOST)
            names.update(one.name for one in found)
            if len(found) < MOST:
                break
        return names


class RecurringJob(RecurringFields):
    """A recurring job. Its fields are as they were when it was fetched; its methods keep them current."""

    def __init__(self, client: Client, raw: replies.Schedule) -> None:
        super().__init__(raw)
        self.client = client

    def refresh(self) -> Self:
        """Fetch the recurring job again. Raises ScheduleNotFound."""
        known: replies.Schedule | None = self.client.execute(ops.RecurGet(self.jid))
        if known is None:
            raise ScheduleNotFound(Refusal("SCHEDULE_NOT_FOUND", (self.jid,)))
        self.raw = known
        return self

    def update(
        self,
        *,
        queue: str | None = None,
        klass: str | None = None,
        data: object = KEEP,
        interval: Duration | None = None,
        priority: int | None = None,
        retries: int | None = None,
        backlog: int | None = None,
        throttles: Iterable[str] | str | None = None,
        fair_key: str | None = None,
        fair_weight: int | None = None,
    ) -> None:
        """Change the given fields for future runs.

        With a new interval the next run is due one such interval after the last one, but not before now; a run that is
        due already stays due. Refused with ScheduleNotFound.
        """
        ms = None if interval is None else milliseconds(interval)
        stored = encode_unless_kept(data)
        named = None if throttles is None else names_of(throttles)
        fixed = self.jid, queue, klass, stored, ms, priority, retries, backlog
        op = ops.RecurUpdate(*fixed, throttles=named, fair_key=fair_key, fair_weight=fair_weight)
        self.client.execute(op)
        self.refresh()

    def tag(self, *tags: str) -> None:
        """Add tags to future runs. Refused with ScheduleNotFound."""
        self.client.execute(ops.RecurTag(self.jid, tags))
        self.refresh()

    def untag(self, *tags: str) -> None:
        """Remove tags from future runs. Refused with ScheduleNotFound."""
        self.client.execute(ops.RecurUntag(self.jid, tags))
        self.refresh()

    def pause(self) -> bool:
        """Pause the recurring job: no run is due until `unpause`. Say whether it was not paused before. Refused with
        ScheduleNotFound.
        """
        changed = bool(self.client.execute(ops.RecurPause(self.jid)))
        self.refresh()
        return changed

    def unpause(self) -> bool:
        """End the pause; runs that were due meanwhile are skipped. Say whether it was paused. Refused with
        ScheduleNotFound, also if no run would ever be due again.
        """
        changed = bool(self.client.execute(ops.RecurUnpause(self.jid)))
        self.refresh()
        return changed

    def run_now(self) -> Job:
        """Put one run now, without changing the schedule. It counts for `limit`. Refused with ScheduleNotFound."""
        while not (jid := self.client.execute(ops.RecurNow(self.jid))):
            continue  # a thousand ids are taken; try the next thousand
        return self.client.jobs[jid]

    def advance(self) -> Self:
        """Send the engine the next moments of its cron expression, as `Client.advance_schedules` does for all."""
        from qmodel.client.cron import advance

        if self.kind == "cron" and not self.client.execute(advance(self.raw, self.client._now_at(self.queue))):
            return self  # it has no more runs, so the fields stay as they were
        return self.refresh()

    def unrecur(self) -> bool:
        """End the recurring job; its runs stay. Say whether it existed."""
        return bool(self.client.execute(ops.Unrecur(self.jid)))


class Recurring:
    """The recurring jobs, by id: `client.recurring[jid]`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, jid: str) -> RecurringJob:
        """Fetch a recurring job. Raises ScheduleNotFound."""
        found = self.get(jid)
        if found is None:
            raise ScheduleNotFound(Refusal("SCHEDULE_NOT_FOUND", (jid,)))
        return found

    def get(self, jid: str) -> RecurringJob | None:
        """Fetch a recurring job, or None when there is none."""
        known: replies.Schedule | None = self._client.execute(ops.RecurGet(jid))
        return RecurringJob(self._client, known) if known is not None else None

    def unrecur(self, jid: str) -> bool:
        """End a recurring job; say whether it existed."""
        return bool(self._client.execute(ops.Unrecur(jid)))


class Throttle:
    """A limit shared by all jobs that name it: `client.throttles["stripe"].set(concurrency=5)`."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def set(
        self,
        concurrency: int | None = None,
        *,
        rate: int | None = None,
        per: Duration | None = None,
        capacity: int | None = None,
        refill: int | None = None,
        every: Duration | None = None,
    ) -> None:
        """Set all limits of the throttle at once. Limits that are not given are removed.

        `concurrency`: how many jobs run at once. `rate`, `per`: how many jobs are claimed in any window of that length
        (seconds or timedelta). `capacity`, `refill`, `every`: a token bucket, full at first; `refill` tokens come back
        in each such time, steadily, and a claim takes the job's cost. Raises BadArgument if one of a group is missing.
        """
        times = None if per is None else milliseconds(per), None if every is None else milliseconds(every)
        op = ops.ThrottleSet(self.name, concurrency, rate, times[0], capacity, refill, times[1])
        self.client.execute(op)

    def unset(self) -> bool:
        """Remove all limits: parked jobs become ready. Say whether there were any."""
        return bool(self.client.execute(ops.ThrottleUnset(self.name)))

    def show(self) -> replies.Throttle:
        """Read the limits and their current use."""
        found: replies.Throttle = self.client.execute(ops.ThrottleGet(self.name))
        return found

    def keys(self) -> Iterator[replies.Throttle]:
        """Go through the throttles under a family that are in use, by name, each with what runs and waits there.

        A throttle is in use while jobs hold it or are parked at it, its window is not empty, or its bucket is not full.
        Throttles with limits of their own, or of another family, are not under this one.
        """
        return Throttles(self.client).used(self.name, under=self.name)


class Throttles:
    """The throttles by name: `client.throttles["stripe"]`. A queue's own is `queue.throttle`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, name: str) -> Throttle:
        return Throttle(self._client, name)

    def family(self, pattern: str) -> Throttle:
        """The family of throttles that match a pattern: `client.throttles.family("tenant-*").set(concurrency=2)` lets
        each tenant run two jobs at once.

        `pattern`: a name with at least one `*`, which stands for any characters, also none. Throttles with limits of
        their own follow these alone; otherwise the longest pattern that matches rules. Raises ValueError without a `*`.
        """
        if not names_family(pattern):
            raise ValueError(f"{pattern!r} is not a family of throttles: write a * for the part that differs")
        return Throttle(self._client, pattern)

    def all(self, offset: int = 0, count: int = 25) -> list[replies.Throttle]:
        """List the throttles that have limits, by name."""
        return list(self._client.execute(ops.Throttles(offset, count)))

    def used(self, match: str = "*", *, under: str | None = None) -> Iterator[replies.Throttle]:
        """Go through the throttles that are in use, by name, whether or not anybody has set limits for them.

        `match`: a name, in which each `*` stands for any characters, also none. `under`: a family, to leave out the
        throttles that do not follow its limits.
        """
        cursor = ""
        while True:
            page: replies.UsedThrottles = self._client.execute(ops.ThrottlesUsed(match, cursor, SEARCH_PAGE))
            for one in page.throttles:
                if under is None or one.family == under:
                    yield one
            cursor = page.cursor
            if not cursor:
                return


class Uniques:
    """The uniqueness keys: under each, one job stands for others."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, key: str) -> replies.Unique | None:
        """Read which job holds a key, since when and until when; None if no job does."""
        held: replies.Unique | None = self._client.execute(ops.UniqueGet(key))
        return held

    def release(self, key: str) -> bool:
        """Release a key, and make the job ready that was kept back until its holder ends. Say whether the key
        was held.
        """
        return bool(self._client.execute(ops.UniqueRelease(key)))


class Subscription(SubscriptionFields):
    """A subscription. Its fields are as they were when it was fetched."""

    def __init__(self, client: Client, raw: replies.Subscription) -> None:
        super().__init__(raw)
        self.client = client

    def catch_up(self) -> None:
        """Deliver all kept messages that it has not got, up to 1000 per step. Refused with SubscriptionNotFound."""
        while self.client.execute(ops.CatchUp(self.name)):
            pass
        self.raw = (self.client.subscriptions[self.name]).raw

    def unsubscribe(self) -> bool:
        """End the subscription; its jobs stay. Say whether it existed."""
        return self.client.subscriptions.remove(self.name)


class Subscriptions:
    """The subscriptions, by name: `client.subscriptions[name]`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, name: str) -> Subscription:
        """Fetch a subscription. Raises SubscriptionNotFound."""
        found = self.get(name)
        if found is None:
            raise SubscriptionNotFound(Refusal("SUBSCRIPTION_NOT_FOUND", (name,)))
        return found

    def get(self, name: str) -> Subscription | None:
        """Fetch a subscription, or None when there is none."""
        known: replies.Subscription | None = self._client.execute(ops.SubscriptionGet(name))
        return Subscription(self._client, known) if known is not None else None

    def page(self, offset: int = 0, count: int = 25) -> list[Subscription]:
        """List the subscriptions, oldest first."""
        found = self._client.execute(ops.Subscriptions(offset, count))
        return [Subscription(self._client, one) for one in found]

    def add(
        self,
        name: str,
        patterns: Iterable[str] | str,
        queue: str,
        klass: str,
        **options: Unpack[SubscribeOptions],
    ) -> Subscription:
        """Add a subscription: each message that fits a pattern becomes a job of a queue. Change it if it exists.

        In a pattern the segment `*` stands for any one segment, and `>` at the end for one or more. The other arguments
        are the options of `qmodel.client.options.SubscribeOptions`. A new subscription gets the messages published from
        now on; with `after` or `since` also kept ones. An existing subscription keeps its position: so a program can
        subscribe each time it starts. Refused with BadPattern and LimitReached.
        """
        op = new_subscription(name, patterns, queue, klass, **options)
        left = self._client.execute(op)
        subscription = self[name]
        if left:
            subscription.catch_up()
        return subscription

    def remove(self, name: str) -> bool:
        """End a subscription; its jobs stay. Say whether it existed."""
        return bool(self._client.execute(ops.Unsubscribe(name)))


class Tags:
    """The jobs by tag."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def top(self, offset: int = 0, count: int = 25) -> dict[str, int]:
        """List the tags of at least two jobs with their counts, most used first."""
        return dict(self._client.execute(ops.TopTags(offset, count)))

    def jobs(self, tag: str, offset: int = 0, count: int = 25) -> Listing[Job]:
        """List the jobs with a tag, in the order of tagging."""
        return self._client._listing(ops.Tagged(tag, offset, count))


class TrackedJobs(NamedTuple):
    """The existing tracked jobs in order of tracking, and the ids of tracked jobs that no longer exist."""

    jobs: list[Job]
    expired: tuple[str, ...]


class Tracked:
    """The tracked jobs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def jobs(self, offset: int = 0, count: int = 25) -> TrackedJobs:
        """List the tracked jobs, and the ids of tracked jobs that no longer exist."""
        reply: replies.TrackedJobs = self._client.execute(ops.Tracked(offset, count))
        return TrackedJobs(self._client._jobs(reply.jobs), reply.expired)

    def add(self, job: HasJid | str) -> bool:
        """Track a job; say whether it was not tracked before."""
        return bool(self._client.execute(ops.Track(jid_of(job))))

    def remove(self, job: HasJid | str) -> bool:
        """Stop tracking a job, existing or not; say whether it was tracked before."""
        return bool(self._client.execute(ops.Untrack(jid_of(job))))


class Config(ConfigItems):
    """The options of the namespace. Durations are seconds and may be set as timedeltas; other values are whole numbers.

    Refused with UnknownOption and BadValue.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getitem__(self, option: str) -> float:
        """Read the value of an option."""
        return from_setting(option, self._client.execute(ops.ConfigGet(option)))

    def all(self) -> dict[str, float]:
        """Read every option with its value."""
        return {s.option: from_setting(s.option, s.value) for s in self.settings()}

    def settings(self) -> list[replies.Setting]:
        """Read every option with its value in its own unit, and whether it was set."""
        return list(self._client.execute(ops.Config()))

    def set(self, option: str, value: Duration) -> float:
        """Set an option; give its value."""
        op = ops.ConfigSet(option, to_setting(option, value))
        return from_setting(option, self._client.execute(op))

    def unset(self, option: str) -> float:
        """Reset an option to its default; give that."""
        return from_setting(option, self._client.execute(ops.ConfigUnset(option)))


class QueueConfig(ConfigItems):
    """The options of a queue: `heartbeat`, how long a lease on one of its jobs lasts, and `aging`, in how long the
    priority of a waiting job improves by one level, both in seconds or as a timedelta; and `fair`, whether the fair
    keys of its jobs take turns, 1 or 0.

    `config.set("heartbeat", 30)` of the queue `emails` sets the option `heartbeat-emails` of the namespace. Refused
    with UnknownOption and BadValue.
    """

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._queue = queue

    def _named(self, option: str) -> str:
        return f"{option}-{self._queue}"

    def __getitem__(self, option: str) -> float:
        """Read the value of an option: that of the namespace, if this queue has none."""
        if option not in QUEUE_OPTIONS:
            self._client.execute(ops.ConfigGet(self._named(option)))  # refused: no queue has it
        return (self.all())[option]

    def all(self) -> dict[str, float]:
        """Read every option with its value."""
        found = {s.option: from_setting(s.option, s.value) for s in self._client.execute(ops.Config())}
        return {option: found.get(self._named(option), found[option]) for option in QUEUE_OPTIONS}

    def set(self, option: str, value: Duration) -> float:
        """Set an option for this queue; give its value."""
        op = ops.ConfigSet(self._named(option), to_setting(self._named(option), value))
        return from_setting(op.option, self._client.execute(op))

    def unset(self, option: str) -> float:
        """Reset an option of this queue to that of the namespace; give that."""
        self._client.execute(ops.ConfigUnset(self._named(option)))
        return self[option]


__all__ = [
    "Client",
    "Config",
    "Failed",
    "Job",
    "Jobs",
    "Queue",
    "QueueConfig",
    "Queues",
    "Recurring",
    "RecurringJob",
    "Tags",
    "Throttle",
    "Throttles",
    "Tracked",
    "TrackedJobs",
    "Uniques",
    "Workers",
]
