"""The context of an attempt: the current job, for the function that performs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

from qmodel import runtime
from qmodel.app.base import BaseApp
from qmodel.app.errors import Cancelled, DeclarationError, Release, WaitFor
from qmodel.client.convert import Duration, HasJid, jid_of
from qmodel.client.flows import Flow
from qmodel.client.values import DependencyResults
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.redaction import NAMES, SEALED, names_in, opened, scrubbed, spellings
from qmodel.errors import JobNotFound, LockLost, QmodelError

if TYPE_CHECKING:
    from qmodel.client.sync import Job

STEP, WAITED = "step", "waited"
"""The headers with the number of the step (of steps with children), and how often the job has waited for others."""

BETWEEN = 0.1
"""The least time between two progress reports with numbers, in seconds."""

LINE_BYTES = 1024
"""The longest line of a job's log, and the longest progress."""

FLOW_CHARACTERS = 48
"""Longer job ids are hashed before ids of children are made from them: the start of those is also a request id."""


class Context:
    """The current job: its properties, reports about it, and whether it should stop.

    A parameter annotated `Context` gets it, and `qmodel.app.current()` returns it anywhere in the attempt. Methods that
    call the server have an awaitable form for `async` functions: `alog`, `aprogress`, `aheartbeat`, `aresults`.
    """

    def __init__(self, app: BaseApp, job: replies.Job) -> None:
        self.app = app
        self.raw = job
        self.headers: Mapping[str, str] = {}
        self.arguments: Mapping[str, Any] = {}
        self.spawned: list[ops.Put] = []
        self._secrets: tuple[Mapping[str, Any], frozenset[str]] | None = None
        self._job: Job | None = None
        self._reason: str | None = None
        self._told_at = -BETWEEN

    def __repr__(self) -> str:
        return f"<Context {self.jid}: {self.klass} in {self.queue}, attempt {self.attempt}>"

    # ---- the job

    @property
    def job(self) -> Job:
        """The job as an object of the client."""
        if self._job is None:
            from qmodel.client.sync import Job

            self._job = Job(self.app.client, self.raw.jid, self.raw)
        return self._job

    @property
    def jid(self) -> str:
        """Its id."""
        return self.raw.jid

    @property
    def klass(self) -> str:
        """Its job type."""
        return self.raw.klass

    @property
    def queue(self) -> str:
        """Its queue."""
        return self.raw.queue

    @property
    def worker(self) -> str:
        """The worker that holds it."""
        return self.raw.worker

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1. Only retries count."""
        return self.raw.retries - self.raw.remaining + 1

    # ---- redacted arguments

    def scrub(self, text: str) -> str:
        """Replace the values of redacted arguments in a text by `[redacted]`; each of at least three characters."""
        if self._secrets is None or self._secrets[0] is not self.arguments:
            self._secrets = self.arguments, self._collected()
        return scrubbed(text, self._secrets[1]) if self._secrets[1] else text

    def _collected(self) -> frozenset[str]:
        """Collect what the values of redacted arguments may look like in a text."""
        kind, stored = self.app.jobs.get(self.klass), self.raw.data
        own = kind.redact if kind is not None else ()
        if not own and NAMES not in stored and SEALED not in stored:
            return frozenset()
        try:
            data = kind.load(stored) if kind is not None else self.app.serializer.loads(opened(stored))
            given = kind.binding.by_name(data) if kind is not None else data
        except (ValueError, TypeError):
            return frozenset()
        found: set[str] = set()
        for name in {*names_in(data), *own}:
            for given_as in (given, self.arguments) if isinstance(given, dict) else ():
                found |= spellings(given_as.get(name))
        return frozenset(found)

    # ---- reports and changes

    def log(self, text: str) -> None:
        """Add a line to the job's history. It is cut to 1024 bytes."""
        self.app.client.execute(ops.Log(self.jid, _line(self.scrub(text))))

    async def alog(self, text: str) -> None:
        """Add a line to the job's history, in an event loop."""
        await self.app.aclient.execute(ops.Log(self.jid, _line(self.scrub(text))))

    def progress(self, done: float | str, total: float | None = None) -> None:
        """Report progress: a number, alone or of a total, or a text. Raises Cancelled if the lease is lost.

        Numbers are sent at most ten times a second, and always when the total is reached. So a loop may report each.
        """
        with _Held(self):
            if self._is_time(done, total):
                self.app.client.execute(self._progress(done, total))

    async def aprogress(self, done: float | str, total: float | None = None) -> None:
        """Report progress, in an event loop."""
        with _Held(self):
            if self._is_time(done, total):
                await self.app.aclient.execute(self._progress(done, total))

    def _is_time(self, done: float | str, total: float | None) -> bool:
        now = runtime.monotonic()
        if not isinstance(done, str) and done != total and now - self._told_at < BETWEEN:
            return False
        self._told_at = now
        return True

    def _progress(self, done: float | str, total: float | None) -> ops.Progress:
        said = f"{done}" if total is None else f"{done}/{total}"
        return ops.Progress(
            self.jid, self.raw.token, _line(self.scrub(said) if total is None or isinstance(done, str) else said)
        )

    def heartbeat(self) -> None:
        """Renew the lease now; the worker also does so by itself. Raises Cancelled if the job should stop."""
        with _Held(self):
            self._heard(self.app.client.execute(ops.Heartbeat(self.jid, self.raw.token)))

    async def aheartbeat(self) -> None:
        """Renew the lease now, in an event loop."""
        with _Held(self):
            self._heard(await self.app.aclient.execute(ops.Heartbeat(self.jid, self.raw.token)))

    def _heard(self, lease: replies.Lease) -> None:
        if lease.revoked:
            self.cancel("it was revoked")
        self.check()

    # ---- going on later

    def release(self, delay: Duration = 0, **arguments: Any) -> NoReturn:
        """End this attempt and run the job again after a delay. This does not count as a failure.

        `arguments` replace the job's arguments of the same names for the next step.
        """
        raise Release(delay, arguments)

    def spawn(self, *children: ops.Put | Flow) -> tuple[str, ...]:
        """Put jobs, made by `make` or `qmodel.client.flows`, when this attempt ends or waits for them; give their ids.

        The ids are made from this job's id, so a repeated attempt puts none of them twice.
        """
        jids = []
        for child in children:
            for put in child.jobs if isinstance(child, Flow) else (child,):
                self.spawned.append(put)
                jids.append(f"{self.flow}-{len(self.spawned)}")
        return tuple(jids)

    def wait_for(self, *others: ops.Put | Flow | HasJid | str, on_failure: str = "fail") -> NoReturn:
        """End this attempt, and run the job again when other jobs are complete; by default the spawned ones.

        Jobs from `make` are put as with `spawn`. `on_failure`: what the failure of one does to this job (block, fail,
        ignore, cancel). Afterwards `results` has their results by position: "0", "1" and so on.
        """
        known = []
        for other in others:
            if isinstance(other, Flow):
                spawned = dict(zip((put.jid for put in other.jobs), self.spawn(other), strict=True))
                known += [spawned[jid] for jid in other.last]
            else:
                known += self.spawn(other) if isinstance(other, ops.Put) else (jid_of(other),)
        if not others:
            known = [f"{self.flow}-{number}" for number in range(1, len(self.spawned) + 1)]
        first = self._named
        if first + len(known) > MOST:
            raise DeclarationError(
                f"{self.klass} waits for {first + len(known)} jobs; a job may wait for at most {MOST}.",
                "Use a request for the others, or let the children wait for children of their own.",
            )
        if not known:
            raise DeclarationError(f"{self.klass} waits for nothing.", "Give jobs to wait_for, or spawn jobs first.")
        raise WaitFor(known, on_failure, first)

    @property
    def flow(self) -> str:
        """The start of the ids of this attempt's children: the job's id, the number of jobs that it has waited for, and
        the step, if earlier steps had children.
        """
        jid = self.jid
        if len(jid) > FLOW_CHARACTERS:
            import hashlib

            jid = hashlib.sha256(jid.encode()).hexdigest()[:32]
        return f"{jid}.{self._named}{self.step}"

    @property
    def step(self) -> str:
        """The number of this step if earlier steps had children: `.1` and so on."""
        return self.headers.get(STEP, "")

    def next_headers(self, waits: bool) -> Mapping[str, str]:
        """Make the headers of the next step, so that its children get other ids than those of this step."""
        if waits:
            return {**self.headers, WAITED: str(self.waited + 1)}
        if self.spawned:
            return {**self.headers, STEP: f".{int(self.step[1:] or 0) + 1}"}
        return self.headers

    @property
    def waited(self) -> int:
        """How often the job has waited with `wait_for` before: 0 the first time. It makes no call."""
        return int(self.headers.get(WAITED, 0))

    @property
    def _named(self) -> int:
        """How many named results it has, including those of the dependencies of its put."""
        return int(self.raw.option("results") or 0)

    @property
    def results(self) -> DependencyResults:
        """The results of the jobs that it waited for, by name; `all` includes failed jobs."""
        return self._results(self.app.client.results_of(self.jid))

    async def aresults(self) -> DependencyResults:
        """Read the results of the jobs that it waited for, in an event loop."""
        return self._results(await self.app.aclient.results_of(self.jid))

    def _results(self, raw: Iterable[replies.Result]) -> DependencyResults:
        found = DependencyResults(raw)
        for name, text in ((one.name, one.result) for one in found.all if one.name in found and one.result):
            found[name] = self.app.serializer.loads(text)
        return found

    # ---- stopping

    @property
    def cancelled(self) -> bool:
        """Whether the job should stop: it was revoked, its lease is lost, or its worker stops. It makes no call."""
        return self._reason is not None

    @property
    def reason(self) -> str:
        """Why the job should stop, or empty."""
        return self._reason or ""

    def check(self) -> None:
        """Raise Cancelled if it should stop."""
        if self._reason is not None:
            raise Cancelled(self._reason)

    def cancel(self, reason: str) -> None:
        """Request the job to stop; called by the worker. The first reason is kept."""
        if self._reason is None:
            self._reason = reason


class _Held:
    """A block that needs the lease. If the lease is lost, the job is told to stop."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._context.check()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LockLost | JobNotFound):
            self._context.cancel(str(error))
            self._context.check()


def _line(text: str) -> str:
    """Cut a text to a line that may be stored."""
    encoded = text.encode(errors="backslashreplace")
    if len(encoded) <= LINE_BYTES:
        return encoded.decode()
    return encoded[: LINE_BYTES - 3].decode(errors="ignore") + "..."


_CURRENT: ContextVar[Context] = ContextVar("qmodel_job")


class NoJob(QmodelError, RuntimeError):
    """The code does not run inside an attempt."""

    def __init__(self) -> None:
        super().__init__("There is no current job here. Use it inside a job; elsewhere use app.client.")


def current() -> Context:
    """Give the context of the current attempt. Raises NoJob outside of one."""
    found = _CURRENT.get(None)
    if found is None:
        raise NoJob
    return found
