"""The base of an app: everything that job types, contexts and schedules use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from qmodel.app.carried import Carried
from qmodel.app.connections import Connection
from qmodel.app.errors import DeclarationError
from qmodel.app.hooks import Event, Hook, Hooks, Middleware, logger
from qmodel.app.schedules import kind_of, schedule_id
from qmodel.app.serializers import Json, Serializer
from qmodel.client.sync import Client, Job, RecurringJob
from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.errors import ScheduleOver

if TYPE_CHECKING:
    from qmodel.client.aio import AsyncClient, AsyncJob

F = TypeVar("F", bound=Callable[..., Any])


class AnyJobType(Protocol):
    """The part of a job type that an app uses."""

    klass: str
    queue: str
    target: Any
    recurs: ops.Recur | None
    redact: tuple[str, ...]
    binding: Any
    serializer: Serializer

    def load(self, text: str) -> Any:
        """Decode the data of a job."""


K = TypeVar("K", bound=AnyJobType)


class BaseApp:
    """An app without its decorator: its job types and schedules, its hooks, and the connection to its jobs."""

    def __init__(
        self, url: str | None = None, *, imports: Iterable[str] = (), serializer: Serializer | None = None
    ) -> None:
        self.connection = Connection(url)
        self.imports = (imports,) if isinstance(imports, str) else tuple(imports)
        self.serializer: Serializer = Json() if serializer is None else serializer
        self.hooks = Hooks()
        self.carried = Carried()
        self.middlewares: list[Middleware] = []
        self.has_asynchronous_middleware = False
        self._jobs: dict[str, AnyJobType] = {}
        self._schedules: dict[str, ops.Recur] = {}
        self.jobs: Mapping[str, AnyJobType] = MappingProxyType(self._jobs)
        self.schedules: Mapping[str, ops.Recur] = MappingProxyType(self._schedules)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}: {', '.join(self.jobs) or 'no job types'}>"

    # ---- declaring

    def enter(self, kind: K) -> K:
        """Add a job type to the registry."""
        before = self._jobs.get(kind.klass)
        if before is not None and not may_replace(before, kind):
            raise DeclarationError(
                f"There is a job type {kind.klass!r} already: {place(before.target)}.",
                f"Give one of them another name: @app.job(name={kind.klass + '2'!r}).",
            )
        if kind.recurs is not None:
            self.add_schedule(kind.recurs)
        self._jobs[kind.klass] = kind
        return kind

    def add_schedule(self, schedule: ops.Recur) -> None:
        """Register a schedule. Workers send it to the engine when they start."""
        if schedule.jid in self._schedules and self._schedules[schedule.jid].klass != schedule.klass:
            raise DeclarationError(f"There is a schedule {schedule.jid!r} already.", "Give one of them another jid.")
        self._schedules[schedule.jid] = schedule

    def middleware(self, function: F) -> F:
        """Run a function around each attempt. It gets the context and yields once; there the job is performed.

        An exception of the job is raised at the `yield`. A function that returns a context manager works too.
        """
        made = Middleware(function)
        self.middlewares.append(made)
        self.has_asynchronous_middleware |= made.asynchronous
        return function

    def on(self, event: Event) -> Callable[[Hook], Hook]:
        """Call a function at an event (`qmodel.app.hooks.EVENTS`). Raises DeclarationError for an unknown event."""

        def add(hook: Hook) -> Hook:
            self.hooks.add(event, hook)
            return hook

        return add

    def carry(self, *variables: ContextVar[str]) -> None:
        """Let context variables with texts, such as a tenant or the id of a request, go along with each job.

        The job is performed with the values of its put, and its log lines have them. A variable without a value is left
        out. Raises DeclarationError for two variables of one name.
        """
        if variables and not self.carried:
            self.on("put")(self.carried.inject)
            self.middleware(self.carried.around)
        for variable in variables:
            self.carried.add(variable)

    # ---- where its jobs are

    @property
    def url(self) -> str:
        """The URL of its backend."""
        return self.connection.url

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues of its job types, in the order of their declaration; `default` if there are no job types."""
        return tuple(dict.fromkeys(kind.queue for kind in self.jobs.values())) or ("default",)

    @property
    def client(self) -> Client:
        """The client of this process, opened at its first use; a forked child gets its own."""
        return self.connection.client

    @property
    def aclient(self) -> AsyncClient:
        """The asynchronous client of the running event loop. Raises RuntimeError if none runs."""
        return self.connection.aclient

    @contextmanager
    def using(
        self, client: Client | None = None, aclient: AsyncClient | None = None, url: str | None = None
    ) -> Iterator[Self]:
        """Use other clients within a block, for tests; for example clients with a clock of their own.

        With a `url` the app uses only that backend: closing the app does not close the clients, and a process forked
        within the block gets NotHere instead of a connection to the app's own URL.
        """
        with self.connection.lent(client, aclient, url):
            yield self

    def close(self) -> None:
        """Close the connection of this process. It is opened again when it is needed."""
        self.connection.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.connection.aclose()

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

    # ---- putting

    def put_many(self, jobs: Iterable[ops.Put]) -> list[Job]:
        """Put jobs from `make`, of any job types, a thousand per step. Each step puts all of its jobs or none."""
        puts = list(jobs)
        return [self.client._put(op, jid) for op, jid in zip(puts, self.execute_puts(puts), strict=True)]

    async def aput_many(self, jobs: Iterable[ops.Put]) -> list[AsyncJob]:
        """Do the same in an event loop."""
        puts = list(jobs)
        return [self.aclient._put(op, jid) for op, jid in zip(puts, await self.aexecute_puts(puts), strict=True)]

    def execute_puts(self, puts: list[ops.Put]) -> list[str]:
        """Put jobs, a thousand per step; give for each the id of the job that stands for it."""
        jids: list[str] = []
        for start in range(0, len(puts), MOST):
            jids += self.client.execute(ops.PutMany(tuple(puts[start : start + MOST])))
        return jids

    async def aexecute_puts(self, puts: list[ops.Put]) -> list[str]:
        """Do the same in an event loop."""
        jids: list[str] = []
        for start in range(0, len(puts), MOST):
            jids += await self.aclient.execute(ops.PutMany(tuple(puts[start : start + MOST])))
        return jids

    # ---- schedules

    def tell_schedules(self, client: Client | None = None) -> list[str]:
        """Send the declared schedules to the engine; give their ids. Workers do so when they start, by their `client`.

        A known schedule with the same times continues unchanged. A schedule without any future run is logged.
        """
        client = client or self.client
        told = []
        for declared in self._schedules.values():
            schedule = declared if client.homes is None else replace(declared, jid=f"{{{declared.jid}}}")
            try:
                client.execute(schedule)
            except ScheduleOver as over:
                logger().warning("%s", over)
                continue
            told.append(schedule.jid)
            if schedule.kind == "cron":
                client.recurring[schedule.jid].advance()
        for stale in self._left_over(client):
            logger().warning(
                "Job type %s no longer declares the schedule %s, which continues. To end it: qmodel op unrecur %s",
                *(kind_of(stale.klass), stale.jid, stale.jid),
            )
        return told

    def _left_over(self, client: Client) -> Iterator[RecurringJob]:
        """The schedules that job types of this app once declared and no longer do.

        They are reported and not ended: an older program may still be at work.
        """
        for queue in self.queues:
            for known in client.queues[queue].recurring(0, MOST):
                klass, jid = kind_of(known.klass), known.jid.strip("{}")
                if klass in self.jobs and jid == schedule_id(klass) and jid not in self.schedules:
                    yield known


def may_replace(before: AnyJobType, after: AnyJobType) -> bool:
    """Whether a declaration repeats an earlier one, as when a notebook's cell is run again."""
    one, other = before.target, after.target
    same = (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)
    return same and one.__module__ == "__main__" and hasattr(sys, "ps1")


def place(target: Any) -> str:
    """Name the place of a definition, for messages."""
    return f"{target.__module__}.{target.__qualname__}"
