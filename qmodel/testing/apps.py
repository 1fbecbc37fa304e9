"""Perform the jobs of Apps, with the same function that workers use."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from qmodel.app import (
    App,
    Completed,
    Context,
    Failed,
    JobType,
    Outcome,
    Release,
    Released,
    Retried,
    Retry,
    aperform,
    perform,
)
from qmodel.client.sync import Job
from qmodel.contract.replies import Job as Raw
from qmodel.errors import hint
from qmodel.testing.attempts import Ending, EndKind, Function, Functions, NobodyPerforms
from qmodel.testing.steps import Attempt

END_KINDS: Mapping[type[Outcome], EndKind] = {
    Completed: "completed",
    Failed: "failed",
    Retried: "retried",
    Released: "released",
}


class Apps:
    """Performs jobs with the given functions, or else with the Apps that have their job types.

    `leave` closes the connections of an event loop that was opened for one job.
    """

    def __init__(
        self,
        apps: Iterable[App],
        perform: Function | Mapping[str, Function] | None,
        leave: Callable[[], Awaitable[None]],
    ) -> None:
        self.apps = tuple(apps)
        self.perform = perform
        self._leave = leave

    def kind(self, klass: str) -> JobType[..., Any, ..., Any] | None:
        """Find the job type of a klass; None if no App has it. Raises NobodyPerforms if several Apps have it."""
        found = [app.jobs[klass] for app in self.apps if klass in app.jobs]
        if len(found) > 1:
            raise NobodyPerforms(
                f"{len(found)} Apps have a job type {klass}. Name the one under test: the option qmodel_app of pytest "
                "(module:app), a fixture of this name, or Harness(app)."
            )
        return found[0] if found else None

    def attempt(self, job: Job) -> Attempt:
        """Make an attempt of a leased job."""
        if callable(self.perform) or job.klass in (self.perform or ()):
            return Functions(self.perform).attempt(job)
        kind = self.kind(job.klass)
        if kind is None:
            known = sorted({klass for app in self.apps for klass in app.jobs})
            close = hint(job.klass, known, "There are")
            raise NobodyPerforms(f"Nothing here performs {job.klass} (job {job.jid} in {job.queue}). {close}")
        return AppAttempt(kind, job.raw, self._leave)


class AppAttempt:
    """An attempt of a job of an App."""

    def __init__(self, kind: JobType[..., Any, ..., Any], raw: Raw, leave: Callable[[], Awaitable[None]]) -> None:
        assert isinstance(kind.app, App)
        self._app, self._kind, self._raw, self._leave = kind.app, kind, raw, leave

    def run(self) -> Ending:
        """Perform it, in a new event loop if it needs one."""
        app = self._app
        if self._kind.asynchronous or app.has_asynchronous_middleware:
            return _in_a_loop(self._arun_and_leave)
        return self._ending(perform(app, self._raw, Context(app, self._raw)))

    async def arun(self) -> Ending:
        """Perform the job in the running event loop."""
        app = self._app
        return self._ending(await aperform(app, self._raw, Context(app, self._raw)))

    async def _arun_and_leave(self) -> Ending:
        try:
            return await self.arun()
        finally:
            await self._leave()

    def _ending(self, outcome: Outcome) -> Ending:
        error = getattr(outcome, "error", None)
        wanted = isinstance(error, Retry)  # the job asked for the retry, so there is no error
        operation = outcome.operation(self._raw)
        return Ending(END_KINDS[type(outcome)], operation, None if wanted else error, outcome)


def _in_a_loop(make: Callable[[], Awaitable[Ending]]) -> Ending:
    """Run a coroutine in a new event loop; in another thread if an event loop already runs in this one."""

    async def run() -> Ending:
        return await make()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    found: list[Ending] = []
    raised: list[BaseException] = []
    here = contextvars.copy_context()

    def beside() -> None:
        try:
            found.append(here.run(asyncio.run, run()))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


def result_of(ending: Ending, kind: JobType[..., Any, ..., Any] | None) -> Any:
    """Decode the result of an attempt, or raise its exception."""
    if ending.error is not None:
        raise ending.error
    if isinstance(ending.outcome, Released):
        raise Release(ending.outcome.delay_ms / 1000)
    if isinstance(ending.outcome, Retried):
        assert ending.outcome.error is not None
        raise ending.outcome.error
    text: str = getattr(ending.operation, "result")  # noqa: B009
    if not text:
        return None
    return json.loads(text) if kind is None else kind.result_of(text)


def known_apps() -> list[App]:
    """List all Apps of this process that are still referenced."""
    found = App.known()
    if len({klass for app in found for klass in app.jobs}) < sum(len(app.jobs) for app in found):
        found.clear()
        gc.collect()  # if two Apps have the same job type, one may belong to a test that has ended
        found = App.known()
    return found
