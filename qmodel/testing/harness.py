"""The harness: a queue for one test, with a clock of its own, in which jobs are performed when the test says so.

Operations go to the model or to a real server, as they do in production. What differs is said here and nowhere else:

- Time is that of a `VirtualClock`, and stands still until it is advanced.
- No worker is there. `manual`: jobs are performed when they are drained. `inline`: whatever makes a job ready performs
  it before it returns, and raises the exception of a job that fails, after that was recorded as ever; a job that is put
  by a job follows when that one has ended. `live`: other threads or processes of the test perform them.
- Who waits for a result that nobody can bring is told so at once, but in `live`. Inside a job others are performed
  meanwhile, as other workers would.
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
from qmodel.client.fields import Duration, milliseconds, new_job
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.testing.apps import Apps, result_of
from qmodel.testing.assertions import Assertions
from qmodel.testing.attempts import Function
from qmodel.testing.backend import AsyncTimedBackend, TimedBackend
from qmodel.testing.clock import VirtualClock
from qmodel.testing.results import AsyncGuard, Guard, WouldWait
from qmodel.testing.steps import Steps, adrive, drive
from qmodel.testing.targets import place
from qmodel.testing.worker import Drained, Work, inside

P = ParamSpec("P")
R = TypeVar("R")

Mode = Literal["manual", "inline", "live"]
MODES = ("manual", "inline", "live")

TAKING = (ops.Pop, ops.PopAny, ops.CompleteAndPop, ops.Heartbeat)
"""What an inline queue does not follow up: who takes jobs by hand wants to have them."""

NEVER = 1 << 62

HERE = "testing://"
"""The URL of an App that is in a harness: workers have to use its client, which knows the time."""


class Harness(Assertions):
    """A queue for one test.

    `app`: the App whose jobs are put and performed here, or several. `perform`: a function that is given each job, or
    one for each klass; it goes before what the App would do. `url`: `memory://` for the model, or that of a server, on
    which a namespace of its own is made. `mode`: manual, inline or live. `clock`: one that others share; or `start`,
    when its own begins.

    Within `with Harness(app) as qm:` the App's jobs are here, and not at its URL.

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
        self._place = place(url)
        self.url = self._place.url
        self.client = Client(TimedBackend(self._place.backend, self.clock, self._after))
        abackend = AsyncTimedBackend(self._place.open_async, self.clock, self._aafter)
        self.aclient = AsyncClient(abackend)
        self.client._results = Guard(self.client, self._meanwhile)
        self.aclient._results = AsyncGuard(self.aclient, self._meanwhile)
        self.look = Client(TimedBackend(self._place.backend, self.clock))
        self.apps = () if app is None else (app,) if isinstance(app, App) else tuple(app)
        self.performer = Apps(self.apps, perform, abackend.close)
        self._work = Work(self.look, self.clock, self.performer)
        self._workers: list[VirtualWorker] = []
        self._using = ExitStack()
        self._enter()

    # ---- performing

    def perform_by(self, perform: Function | Mapping[str, Function]) -> None:
        """Let jobs be performed by a function that is given each, or by one for each klass."""
        self.performer.perform = perform

    def drain_queue(self, *queues: str, with_scheduled: bool | Duration = False, with_safety: bool = True) -> Drained:
        """Perform what is ready in some queues, or in all, and what becomes ready by that; give how it ended.

        `with_scheduled`: also what is ready later, delays and retries: the clock goes on to it, as far as it takes
        (True), or so long at most (seconds or timedelta). `with_safety`: a job that raises is recorded as it is in
        production; without, its exception leaves this call as well.
        """
        done = Drained()
        drive(self._drain(done, queues, with_scheduled, with_safety))
        return done

    async def adrain_queue(
        self, *queues: str, with_scheduled: bool | Duration = False, with_safety: bool = True
    ) -> Drained:
        """The same in an event loop, in which the jobs are performed."""
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
        yield from self._work.drain(done, queues or None, until=until, safely=with_safety)
        if until not in (None, NEVER):
            yield from self.clock.travel(max(until or 0, self.clock.now()))

    @overload
    def perform_job(self, job_type: Puts[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def perform_job(self, job_type: str, /, data: object = None) -> Any: ...

    def perform_job(self, job_type: Puts[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """Perform one attempt at a job with these arguments, now; give its result, or raise what it raised.

        Arguments and result become text and are read again, as in production, and middleware and hooks are called. The
        job passes by its queue, and is nowhere afterwards; what it puts is there.
        """
        return drive(self._perform_job(job_type, args, kwargs))

    @overload
    async def aperform_job(self, job_type: Puts[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    async def aperform_job(self, job_type: str, /, data: object = None) -> Any: ...

    async def aperform_job(self, job_type: Puts[..., Any] | str, /, *args: Any, **kwargs: Any) -> Any:
        """The same in an event loop, in which the job is performed."""
        return await adrive(self._perform_job(job_type, args, kwargs))

    def _perform_job(self, job_type: Puts[..., Any] | str, args: Any, kwargs: Any) -> Steps[Any]:
        if isinstance(job_type, str):
            put = new_job("default", job_type, *args, **kwargs)
        else:
            put = job_type.make(*args, **kwargs)
        ending = yield from self._work.perform_one(put)
        if self.mode == "inline":
            yield from self._inline()
        if ending is None:
            raise LookupError(f"{put.klass} lost its job while it was performed: it was canceled, or its time was up.")
        return result_of(ending, self.performer.kind(put.klass))

    def worker(self, *queues: str, with_safety: bool = True) -> VirtualWorker:
        """A worker of some queues, or of all, for a `with` block (`async with` in an event loop).

        It performs what is ready at its beginning and at its end, and whenever the clock is advanced in between: each
        job at the moment at which it is ready. As any worker it tells the schedules of job types when it begins. It
        gives the `Drained` that it counts in.
        """
        return VirtualWorker(self, queues, with_safety)

    @contextmanager
    def testing_mode(self, mode: Mode) -> Iterator[Self]:
        """Another mode for a `with` block."""
        before, self.mode = self.mode, _known(mode)
        try:
            yield self
        finally:
            self.mode = before

    # ---- what the clock asks

    def next_at(self) -> int:
        """The next moment at which something becomes due by itself, or 0."""
        return self._work.next_at()

    def arrive(self) -> Steps[None]:
        """Let happen what is due: with a worker, or inline, it is performed; else it is only made."""
        if self.mode == "inline":
            yield from self._inline()
        for worker in self._workers:
            yield from worker.work()
        self._work.fire()

    # ---- inline

    def _after(self, executed: Sequence[ops.Operation]) -> None:
        if self._follows(executed) and not self._work.active:
            drive(self._inline())

    async def _aafter(self, executed: Sequence[ops.Operation]) -> None:
        if not self._follows(executed):
            return
        while self._work.active and not inside.get():  # another task performs, and takes these jobs too
            await asyncio.sleep(0)
        if not self._work.active:
            await adrive(self._inline())

    def _follows(self, executed: Sequence[ops.Operation]) -> bool:
        return self.mode == "inline" and any(not op.spec.reads and not isinstance(op, TAKING) for op in executed)

    def _inline(self) -> Steps[None]:
        done = Drained()
        yield from self._work.perform_ready(done)
        for error in done.errors:
            error.add_note("qmodel: raised by a job that was performed inline; the queue has recorded it.")
            raise error

    # ---- waiting

    def _meanwhile(self, missing: Sequence[str], timeout: float) -> Steps[bool]:
        if self.mode == "live":
            return True
        if inside.get():
            done = Drained()
            yield from self._work.perform_ready(done)
        left = [job for job in self.look.jobs.get_many(missing) if job.state not in ("complete", "failed")]
        if left:
            raise WouldWait(left[0].jid, timeout, self._why(left[0].state))
        return False

    def _why(self, state: str) -> str:
        what = {
            "waiting": "With drain_queue it is performed.",
            "scheduled": "With clock.advance its time comes.",
            "running": "Somebody has popped it, and has to finish it.",
        }
        return f"it is {state}, and in the mode {self.mode} nobody performs it by itself. {what.get(state, '')}".strip()

    # ---- its life

    def _enter(self) -> None:
        self.clock.enter(self)
        self._using.callback(self.clock.leave, self)
        for app in self.apps:
            self._using.enter_context(app.using(self.client, self.aclient, HERE))

    def close(self) -> None:
        """Give the Apps back their own clients, and delete what is left on a server."""
        self._using.close()
        self._place.clean()
        self.client.close()

    async def aclose(self) -> None:
        """The same, and give back the connections of the event loop."""
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
    """Performs jobs whenever the clock is advanced, for as long as its block lasts."""

    def __init__(self, harness: Harness, queues: Sequence[str], safely: bool) -> None:
        self._harness = harness
        self._queues = queues or None
        self._safely = safely
        self.done = Drained()

    def work(self) -> Steps[None]:
        """Perform what is ready."""
        yield from self._harness._work.perform_ready(self.done, self._queues, safely=self._safely)

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
