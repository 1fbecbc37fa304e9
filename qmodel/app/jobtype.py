"""Job types: functions and classes with the options of their jobs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack

from qmodel import runtime
from qmodel.app import options as opts
from qmodel.app.backoff import delay_of
from qmodel.app.base import BaseApp
from qmodel.app.context import Context
from qmodel.app.errors import BadArguments, BadResult, DeclarationError
from qmodel.app.schedules import PREFIX, WAITS, recur
from qmodel.app.signature import Binding, check_function
from qmodel.app.typed_jobs import TypedJob
from qmodel.client.convert import Duration
from qmodel.contract import operations as ops
from qmodel.contract.arguments import TEXT_BYTES
from qmodel.contract.redaction import HEADERS, NAMES, opened, sealed
from qmodel.errors import DataError

if TYPE_CHECKING:
    from qmodel.app.typed_jobs_aio import AsyncTypedJob
    from qmodel.client.aio import AsyncClient
    from qmodel.client.sync import Client

P = ParamSpec("P")
C = ParamSpec("C")
R = TypeVar("R")
T = TypeVar("T")
Call = Sequence[Any] | Mapping[str, Any]
"""The arguments of one call: a sequence by position, or a mapping by name."""


class Puts(Generic[P, R]):
    """Puts jobs of a job type with certain options."""

    def __init__(self, kind: JobType[P, R, ..., Any], given: dict[str, Any], makers: dict[str, opts.Made]) -> None:
        self._kind = kind
        self.given = given
        self.makers = makers
        self._template: ops.Put | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._kind.klass} in {self._kind.queue}>"

    def options(self, **options: Unpack[opts.CallOptions]) -> Puts[P, R]:
        """Give jobs other options (`qmodel.app.options.CallOptions`): `send.options(delay=60).put("a@b")`.

        Raises DeclarationError for an unknown option, or a value that cannot work.
        """
        klass, names = self._kind.klass, self._kind.binding.names
        opts.check_names(options, opts.CALL, f"A job of {klass}")
        static, makers = opts.apart(klass, options, names, templates=False)
        kept = {name: one for name, one in self.makers.items() if options.get(name) is None}
        given = {
            name: one for name, one in self.given.items() if name not in makers and opts.INSTEAD.get(name) not in static
        }
        made = Puts(self._kind, {**given, **static}, {**kept, **makers})
        made._put  # noqa: B018 (refuse wrong options here and not at the first put)
        return made

    def make(self, /, *args: P.args, **kwargs: P.kwargs) -> ops.Put:
        """Make the job of a call without putting it, for `app.put_many`, `qmodel.client.flows` and requests.

        Raises TypeError for arguments that the function does not take, and DataError for values that cannot be stored.
        """
        return self.made(args, kwargs)

    def put(self, /, *args: P.args, **kwargs: P.kwargs) -> TypedJob[R]:
        """Put a job that calls the function with these arguments. Raises the errors of `make` and `Queue.put`."""
        client = self._kind.app.client
        (op,) = self._at_home(client, [self.made(args, kwargs)])
        return self._job(op, client.execute(op))

    async def aput(self, /, *args: P.args, **kwargs: P.kwargs) -> AsyncTypedJob[R]:
        """Put a job in an event loop."""
        client = self._kind.app.aclient
        (op,) = self._at_home(client, [self.made(args, kwargs)])
        return self._ajob(op, await client.execute(op))

    def put_many(self, calls: Iterable[Call]) -> list[TypedJob[R]]:
        """Put a job for each call, a tuple of arguments or a dictionary by name, a thousand per step.

        All calls are checked before the first is put. Each step puts all of its jobs or none.
        """
        made = self._at_home(self._kind.app.client, self._made_many(calls))
        return [self._job(op, jid) for op, jid in zip(made, self._kind.app.execute_puts(made), strict=True)]

    async def aput_many(self, calls: Iterable[Call]) -> list[AsyncTypedJob[R]]:
        """Put a job for each call in an event loop."""
        made = self._at_home(self._kind.app.aclient, self._made_many(calls))
        return [self._ajob(op, jid) for op, jid in zip(made, await self._kind.app.aexecute_puts(made), strict=True)]

    def _at_home(self, client: Client | AsyncClient, made: list[ops.Put]) -> list[ops.Put]:
        """Give the jobs ids that are at home with their other names, if jobs are spread over shards."""
        homes = client.homes
        if homes is None or self._put.jid:
            return made
        homes.go_on()
        return [homes.at_home(op) for op in made]

    def _made_many(self, calls: Iterable[Call]) -> list[ops.Put]:
        made = []
        for call in calls:
            if isinstance(call, str | bytes) or not isinstance(call, Sequence | Mapping):
                raise TypeError(
                    f"Each call of {self._kind.klass} must be a tuple of arguments or a dictionary, not {call!r}."
                )
            args, kwargs = ((), call) if isinstance(call, Mapping) else (tuple(call), {})
            made.append(self.made(args, kwargs))
        return made

    def made(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ops.Put:
        """Make the put of a call with these positional and named arguments."""
        kind = self._kind
        given = kind.binding.given(args, kwargs)
        put = _copy(self._template or self._put, runtime.urandom(16).hex(), kind.data_text(given, kind.headers()))
        if self.makers:
            complete = kind.binding.complete(given)
            for name, make in self.makers.items():
                setattr(put, name, make(kind.binding.plain(complete) if make.plain else complete))
        return put

    def _job(self, op: ops.Put, jid: str) -> TypedJob[R]:
        if jid == op.jid:
            return TypedJob(self._kind, jid, op)
        job = TypedJob(self._kind, jid)
        job.deduplicated = True
        return job

    def _ajob(self, op: ops.Put, jid: str) -> AsyncTypedJob[R]:
        from qmodel.app.typed_jobs_aio import AsyncTypedJob

        if jid == op.jid:
            return AsyncTypedJob(self._kind, jid, op)
        job = AsyncTypedJob(self._kind, jid)
        job.deduplicated = True
        return job

    @property
    def _put(self) -> ops.Put:
        """The template of all puts. Its id is empty unless the options give one."""
        if self._template is None:
            tried = {**self.given, **{name: make.tried for name, make in self.makers.items()}}
            put = opts.check(self._kind.klass, tried.pop("queue", None) or self._kind.queue, tried)
            put.jid = self.given.get("jid", "")  # type: ignore[misc]
            self._template = put
        return self._template


def _copier() -> Callable[[ops.Put, str, str], ops.Put]:
    """Make a function that copies a put with new data, and a new id if it has none. `dataclasses.replace` is slower."""
    own = {"jid": "given.jid or jid", "data": "data"}
    fields = ", ".join(own.get(a.name, f"given.{a.name}") for a in ops.Put.spec.arguments)
    made: Callable[[ops.Put, str, str], ops.Put] = eval(f"lambda given, jid, data: cls({fields})", {"cls": ops.Put})
    return made


_copy = _copier()


class JobType(Puts[P, R], Generic[P, R, C, T]):
    """A function, or a class with `perform`, as a type of jobs. Calling it calls the function and queues nothing.

    `klass` is its name in the registry, `queue` the queue of its jobs.
    """

    def __init__(self, app: BaseApp, target: Any, options: Mapping[str, Any]) -> None:
        given = opts.given_only(options)
        opts.check_names(given, opts.DECLARED, "A job type")
        self.app = app
        self.target = target
        self.klass = str(given.get("name") or getattr(target, "__name__", ""))
        self.queue: str = given.get("queue", "default")
        self.run = _function(self.klass, target)
        function: Callable[..., Any] = getattr(target, "perform") if isinstance(target, type) else target  # noqa: B009
        self.asynchronous = inspect.iscoroutinefunction(function)
        self.binding = Binding(self.klass, function, method=isinstance(target, type))
        self.delay = delay_of(given.get("backoff", "exponential"))
        self.fail_on = _classes(self.klass, given.get("fail_on", ()))
        self.serializer = given.get("serializer") or app.serializer
        self.redact = opts.redaction(self.klass, given, self.binding)
        self.binding.redact = frozenset(self.redact)
        shared = {name: value for name, value in given.items() if name in opts.SHARED}
        super().__init__(self, *opts.apart(self.klass, shared, self.binding.names, templates=True))
        opts.try_out(self.klass, self._put)
        self.binding.try_to_resolve()
        functools.update_wrapper(self, function if isinstance(target, type) else target, updated=())
        times = {name: value for name, value in given.items() if name in opts.SCHEDULE}
        if not times and "arguments" in given:
            raise DeclarationError(
                f"{self.klass} has arguments for a schedule, but no schedule.", "Give every, cron or after."
            )
        self.recurs = recur(self, None, given.get("arguments", {}), times) if times else None

    def __call__(self, /, *args: C.args, **kwargs: C.kwargs) -> T:
        result: T = self.run(*args, **kwargs)
        return result

    def job(self, jid: str) -> TypedJob[R]:
        """Refer to a job of this type by its id, without fetching it."""
        return TypedJob(self, jid)

    def ajob(self, jid: str) -> AsyncTypedJob[R]:
        """Refer to a job of this type by its id, for an event loop."""
        from qmodel.app.typed_jobs_aio import AsyncTypedJob

        return AsyncTypedJob(self, jid)

    def result(self, jid: str, timeout: Duration = 0) -> R:
        """Wait up to `timeout` (seconds or timedelta) for a job's result. Raises the errors of `Job.wait`."""
        return self.job(jid).wait(timeout)

    async def aresult(self, jid: str, timeout: Duration = 0) -> R:
        """Wait for a job's result in an event loop."""
        return await self.ajob(jid).wait(timeout)

    def schedule(
        self, jid: str | None = None, arguments: Mapping[str, Any] | None = None, **times: Unpack[opts.ScheduleOptions]
    ) -> None:
        """Let jobs of this type recur with these arguments by name. Workers send the schedule when they start.

        `jid`: the id of the schedule, by default made from the job type's name. Raises DeclarationError.
        """
        opts.check_names(times, opts.SCHEDULE, f"A schedule of {self.klass}")
        self.app.add_schedule(recur(self, jid, arguments or {}, opts.given_only(times)))

    def call_text(self, arguments: Mapping[str, Any]) -> str:
        """Encode the data of a call with these arguments by name. Raises TypeError, DataError."""
        return self.data_text(self.binding.given((), arguments), {})

    def relay(self, waits: bool) -> str:
        """Declare the job type that recurs in place of this one; give its name.

        Its jobs put the jobs of this type. If `waits` they end after those have ended.
        """

        def put(context: Context, **arguments: Any) -> None:
            if context.waited:
                return
            made = self.made((), arguments)
            if waits:
                context.wait_for(made, on_failure="ignore")
            context.spawn(made)

        name = PREFIX + self.klass + (WAITS if waits else "")
        if name not in self.app.jobs:
            given = {"name": name, "queue": self.queue, "serializer": self.serializer, "redact": self.redact}
            self.app.enter(JobType(self.app, put, given))
        return name

    # ---- data and results, as text

    def headers(self) -> dict[str, str]:
        """Collect the headers of a job from the hooks of `put`: data that travel with it besides its arguments."""
        found: dict[str, str] = {}
        if "put" in self.app.hooks:
            self.app.hooks.fire("put", self, found)
        return found

    def data_text(self, given: dict[str, Any], headers: Mapping[str, str]) -> str:
        """Encode arguments by name as the stored text. Raises DataError."""
        return self.plain_text(self.binding.plain(given), headers)

    def plain_text(self, plain: dict[str, Any], headers: Mapping[str, str]) -> str:
        """Encode arguments, already converted to JSON's types, as the stored text. Raises DataError."""
        try:
            if self.redact:
                named = {**headers, NAMES: " ".join(self.redact)}
                return sealed(self.serializer.dumps({**plain, HEADERS: named}), self.redact)
            return self.serializer.dumps({**plain, HEADERS: dict(headers)} if headers else plain)
        except DataError as error:
            raise self._culprit(plain, error) from None

    def _culprit(self, plain: Mapping[str, Any], error: DataError) -> DataError:
        """Add to an error the name of the argument that cannot be stored."""
        for name, value in plain.items():
            try:
                self.serializer.dumps(value)
            except DataError as found:
                return DataError(
                    f"Argument {name} of {self.klass}: {found} Or annotate it with its type: dataclasses, models, "
                    "dates and other types are then converted."
                )
        return error

    def load(self, text: str) -> Any:
        """Decode the data of a job from its stored text, headers included. Raises ValueError."""
        return self.serializer.loads(opened(text))

    def take(self, context: Context) -> tuple[list[Any], dict[str, Any]]:
        """Decode the function's arguments from a job, and note them in the context. Raises BadArguments."""
        try:
            data = self.load(context.raw.data)
        except ValueError as error:
            raise BadArguments(f"The data of {self.klass} cannot be read: {error}") from error
        if type(data) is dict and HEADERS in data:
            headers = data.pop(HEADERS)
            context.headers = headers if type(headers) is dict else {}
        context.arguments = given = self.binding.arguments(data)
        return self.binding.call(given, context)

    def next_data(self, context: Context, changed: Mapping[str, Any], waits: bool) -> str:
        """Encode the data of a job's next step: its data with some arguments changed. Raises the errors of `take`."""
        data = self.load(context.raw.data)
        given = self.binding.by_name(data) | self.binding.plain(dict(changed))
        given.pop(HEADERS, None)
        self.binding.check(given)
        return self.plain_text(given, context.next_headers(waits))

    def result_text(self, result: Any) -> str:
        """Encode a result as the stored text; None gives the empty text. Raises BadResult."""
        if result is None:
            return ""
        made = self.binding.result
        try:
            text = self.serializer.dumps(result if made is None else made.dump(result))
            if len(text) * 4 > TEXT_BYTES and len(text.encode()) > TEXT_BYTES:
                raise ValueError(f"it has more than {TEXT_BYTES} bytes. Store it elsewhere, and return its location")
        except Exception as error:
            raise BadResult(f"{self.klass} was performed, but its result cannot be stored: {error}") from error
        return text

    def result_of(self, text: str) -> R:
        """Decode a result from stored text, by the annotation. Raises DataError."""
        value = self.serializer.loads(text)
        made = self.binding.result
        if value is None or made is None:
            return value  # type: ignore[no-any-return]
        try:
            return made.load(value)  # type: ignore[no-any-return]
        except Exception as error:
            raise DataError(f"The stored result of {self.klass} does not fit its annotation: {error}") from error


def _function(klass: str, target: Any) -> Callable[..., Any]:
    """Give the function to call for a job. For a class, each job gets a new object."""
    check = target
    if isinstance(target, type):
        perform = getattr(target, "perform", None)
        if not callable(perform):
            raise DeclarationError(f"The class {klass} has no method perform.", "Write def perform(self, ...).")
        try:
            inspect.signature(target).bind()
        except TypeError as error:
            raise DeclarationError(
                f"{klass}() cannot be called without arguments: {error}.", "The arguments of a job belong to perform."
            ) from None
        check = perform
    elif not callable(target) or not klass:
        raise DeclarationError(
            f"{target!r} is neither a function nor a class.", "Decorate a function, or a class with perform."
        )
    check_function(klass, check)
    return (lambda *args, **kwargs: target().perform(*args, **kwargs)) if isinstance(target, type) else target


def _classes(klass: str, given: Any) -> tuple[type[BaseException], ...]:
    classes = given if isinstance(given, tuple) else (given,)
    if not all(isinstance(one, type) and issubclass(one, BaseException) for one in classes):
        raise DeclarationError(
            f"{klass} cannot have fail_on = {given!r}.", "Give exception classes: (ValueError, KeyError)."
        )
    return classes
