"""The harness: a queue for one test, with its own clock; jobs are performed when the test says so.

Operations go to the model or to a real server, as in production. The differences are only these:

- Time is that of a `VirtualClock`, and stands still until the test advances it.
- There is no worker. `manual`: jobs are performed when the test drains a queue. `inline`: a call that makes a job ready
  also performs it before it returns, and raises the exception of a failed job after the failure was recorded as usual;
  a job that is put by a job is performed after that one has ended. `live`: other threads or processes of the test
  perform the jobs.
- Waiting for a result that cannot come raises `WouldWait` at once, except in `live`. When a job waits for another job,
  that one is performed meanwhile, as another worker would do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, ParamSpec, Self, TypeVar, overload

from qmodel.app import App, Puts
from qmodel.client.aio import AsyncClient
from qmodel.client.build import new_job
from qmodel.client.convert import Duration, milliseconds
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.testing.apps import Apps, result_of
from qmodel.testing.assertions import Assertions
from qmodel.testing.attempts import Function
from qmodel.testing.backend import AsyncTimedBackend, TimedBackend
from qmodel.testing.clock import VirtualClock
from qmodel.testing.results import AsyncCheckedResults, CheckedResults, WouldWait
from qmodel.testing.steps import Steps, adrive, drive
from qmodel.testing.targets import open_target
from qmodel.testing.worker import Drained, JobRunner, performing

P = ParamSpec("P")
R = TypeVar("R")

Mode = Literal["manual", "inline", "live"]
MODES = ("manual", "inline", "live")

TAKING = (ops.Pop, ops.PopAny, ops.CompleteAndPop, ops.Heartbeat)
"""Operations after which an inline queue performs nothing: a test that pops jobs itself wants to hold them."""

NEVER = 1 << 62

HERE = "testing://"
"""The URL of an App in a harness: workers must use the App's client, which has the virtual time."""


class Harness(Assertions):
    """A queue for one test.

    `app`: the App under test, or several. `perform`: a function that performs each job, or one for each klass; it
    replaces the App's code. `url`: `memory://` for the model, or the URL of a server; the harness creates its own
    namespace there. `mode`: manual, inline or live. `clock`: a clock shared with another harness; or `start`: the time
    at which the harness's own clock begins.

    Within `with Harness(app) as qm:` the App puts its jobs here instead of at its URL.

    >>> with Harness(perform=lambda job: job.data["n"] + 1) as qm:
    ...     job = qm.client.queues["sums"].put("Increment", {"n": 1}, delay=3600)
    ...     _ = qm.assert_enqueued("Increment", args={"n": 1}, delay=3600)
    ...     qm.clock.advance(hours=1)
    ...     qm.drain_queue("sums")
    ...     job.wait()
    Drained(completed=1, failed=0, retried=0, released=0, lost=0)
    2
    """

    def __init__(
        self,
        app: App | Iterable[App] | None = None,
        url: str = "memory://",
        *,
        mode: Mode = "manual",
        perform: Function | Mapping[str, Function] | None = None,
        clock: VirtualClock | None = None,
        start: datetime | int | None = None,
    ) -> None:
        self.mode = _known(mode)
        self.clock = clock or VirtualClock(start)
        self._target = open_target(url)
        self.url = self._target.url
        self.client = Client(TimedBackend(self._target.backend, self.clock, self._after))
        abackend = AsyncTimedBackend(self._target.open_async, self.clock, self._aafter)
        self.aclient = AsyncClient(abackend)
        self.client._results = CheckedResults(self.client, self._meanwhile)
        self.aclient._results = AsyncCheckedResults(self.aclient, self._meanwhile)
        self.look = Client(TimedBackend(self._target.backend, self.clock))
        self.apps = () if app is None else (app,) if isinstance(app, App) else tuple(app)
        self.performer = Apps(self.apps, perform, abackend.close)
        self._runner = JobRunner(self.look, self.clock, self.performer)
        self._workers: list[VirtualWorker] = []
        self._using = ExitStack()
        self._enter()

    # ---- performing

    def perform_by(self, perform: Function | Mapping[str, Function]) -> None:
        """Set the function that performs each job, or one function for each klass."""
        self.performer.perform = perform

    def drain_queue(self, *queues: str, with_scheduled: bool | Duration = False, with_safety: bool = True) -> Drained:
        """Perform the ready jobs of some queues, or of all, and jobs that become ready by that; give the counts.

        `with_scheduled`: also perform delayed jobs and retries; the clock is advanced to them, as far as needed (True),
        or at most so far (seconds or timedelta). `with_safety`: an exception of a job is only recorded, as in
        production; without it the exception is recorded, and raised by this call.
        """
        done = Drained()
        drive(self._drain(done, queues, with_scheduled, with_safety))
        return done

    async def adrain_queue(
        self, *queues: str, with_scheduled: bool | Duration = False, with_safety: bool = True
    ) -> Drained:
        """Do the same in an event loop; the jobs run in it."""
        done = Drained()
        await adrive(self._drain(done, queues, with_scheduled, with_safety))
        return done

    def _drain(
        self, done: Drained, queues: Sequence[str], with_scheduled: bool | Duration, with_safety: bool
    ) -> Steps[None]:
        until = None
        if isinstance(with_scheduled, bool):
            until = NEVER if with_scheduled else None
        else:
            until = self.clock.now() + milliseconds(with_scheduled)
        yield from self._runner.drain(done, queues or None, until=until, safely=with_safety)
        if until not in (None, NEVER):
            yield from self.clock.travel(max(until or 0, self.clock.now()))

    @overload
    def perform_job(self, job_type: Puts[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def perform_job(self, job_type: str, /, data: object = None) -> Any: ...

    def perform_job(self, job_type: Puts[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Perform one attempt of a job with these arguments now; give its result, or raise its exception.

        Arguments and result are encoded and decoded as in production, and middleware and hooks are called. The job does
        not enter its queue, and does not exist afterwards; jobs that it puts do.
        """
        return drive(self._perform_job(job_type, args, kwargs))

    @overload
    async def aperform_job(self, job_type: Puts[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    async def aperform_job(self, job_type: str, /, data: object = None) -> Any: ...

    async def aperform_job(self, job_type: Puts[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Do the same in an event loop; the job runs in it."""
        return await adrive(self._perform_job(job_type, args, kwargs))

    def _perform_job(self, job_type: Puts[..., Any] | str, args: Any, kwargs: Any) -> Steps[Any]:
        if isinstance(job_type, str):
            put = new_job("default", job_type, *args, **kwargs)
        else:
            put = job_type.make(*args, **kwargs)
        ending = yield from self._runner.perform_one(put)
        if self.mode == "inline":
            yield from self._inline()
        if ending is None:
            raise LookupError(f"{put.klass} lost its job while it was performed: it was canceled, or its lease ended.")
        return result_of(ending, self.performer.kind(put.klass))

    def worker(self, *queues: str, with_safety: bool = True) -> VirtualWorker:
        """Make a worker of some queues, or of all, for a `with` block (`async with` in an event loop).

        It performs ready jobs at the start and at the end of the block, and whenever the clock is advanced in between:
        each job at the time at which it becomes ready. Like any worker it declares the schedules of job types when it
        starts. The block gets the `Drained` with its counts.
        """
        return VirtualWorker(self, queues, with_safety)

    @contextmanager
    def testing_mode(self, mode: Mode) -> Iterator[Self]:
        """Use another mode for a `with` block."""
        before, self.mode = self.mode, _known(mode)
        try:
            yield self
        finally:
            self.mode = before

    # ---- called by the clock

    def next_at(self) -> int:
        """Compute the next time at which something becomes due by itself, or 0."""
        return self._runner.next_at()

    def arrive(self) -> Steps[None]:
        """Handle what is due: a worker, or an inline queue, performs it; otherwise due runs are only made."""
        if self.mode == "inline":
            yield from self._inline()
        for worker in self._workers:
            yield from worker.work()
        self._runner.fire()

    # ---- inline

    def _after(self, executed: Sequence[ops.Operation]) -> None:
        if self._follows(executed) and not self._runner.active:
            drive(self._inline())

    async def _aafter(self, executed: Sequence[ops.Operation]) -> None:
        if not self._follows(executed):
            return
        while self._runner.active and not performing.get():  # another task performs, and takes these jobs too
            await asyncio.sleep(0)
        if not self._runner.active:
            await adrive(self._inline())

    def _follows(self, executed: Sequence[ops.Operation]) -> bool:
        return self.mode == "inline" and any(not op.spec.reads and not isinstance(op, TAKING) for op in executed)

    def _inline(self) -> Steps[None]:
        done = Drained()
        yield from self._runner.perform_ready(done)
        for error in done.errors:
            error.add_note("qmodel: raised by a job that was performed inline; the queue has recorded it.")
            raise error

    # ---- waiting

    def _meanwhile(self, missing: Sequence[str], timeout: float) -> Steps[bool]:
        if self.mode == "live":
            return True
        if performing.get():
            done = Drained()
            yield from self._runner.perform_ready(done)
        left = [job for job in self.look.jobs.get_many(missing) if job.state not in ("complete", "failed")]
        if left:
            raise WouldWait(left[0].jid, timeout, self._why(left[0].state))
        return False

    def _why(self, state: str) -> str:
        what = {
            "waiting": "drain_queue performs it.",
            "scheduled": "clock.advance makes it ready.",
            "running": "It was popped, and must be finished first.",
        }
        return f"it is {state}, and in the mode {self.mode} no worker performs it. {what.get(state, '')}".strip()

    # ---- open and close

    def _enter(self) -> None:
        self.clock.enter(self)
        self._using.callback(self.clock.leave, self)
        for app in self.apps:
            self._using.enter_context(app.using(self.client, self.aclient, HERE))

    def close(self) -> None:
        """Restore the clients of the Apps, and delete the harness's keys on a server."""
        self._using.close()
        self._target.clean()
        self.client.close()

    async def aclose(self) -> None:
        """Do the same, and close the connections of the event loop."""
        self.close()
        await self.aclient.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<Harness {self.mode} at {self.clock}>"


class VirtualWorker:
    """Performs jobs whenever the clock is advanced, until its `with` block ends."""

    def __init__(self, harness: Harness, queues: Sequence[str], safely: bool) -> None:
        self._harness = harness
        self._queues = queues or None
        self._safely = safely
        self.done = Drained()

    def work(self) -> Steps[None]:
        """Perform the ready jobs."""
        yield from self._harness._runner.perform_ready(self.done, self._queues, safely=self._safely)

    def _begin(self) -> None:
        for app in self._harness.apps:
            app.tell_schedules()
        self._harness._workers.append(self)

    def __enter__(self) -> Drained:
        self._begin()
        drive(self.work())
        return self.done

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._harness._workers.remove(self)
        if error is None:
            drive(self.work())

    async def __aenter__(self) -> Drained:
        self._begin()
        await adrive(self.work())
        return self.done

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._harness._workers.remove(self)
        if error is None:
            await adrive(self.work())


def _known(mode: Mode) -> Mode:
    if mode not in MODES:
        raise ValueError(f"{mode!r} is no mode. Modes: {', '.join(MODES)}.")
    return mode
