"""Batches: one call of a function performs many jobs, and each job has its own outcome.

    @app.job(queue="index")
    @batched(100, wait=0.05)
    def index(documents: list[str]) -> list[int]:
        return search_engine.add_all(documents)

    index.put("a document")

Each job has one argument and is a job like any other, with its own retries, result, lease and history. Jobs that a
worker runs at the same time are collected up to the given size, or until the first of them has waited for the given
time; then one of them calls the function with the list of all arguments. So the worker needs a concurrency of at least
the size, which costs least in an event loop (`--runner async`). If each job runs in its own process, there are no
batches.
"""

from __future__ import annotations

import copy
import functools
import inspect
import threading
import typing
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from qmodel import runtime
from qmodel.app.errors import DeclarationError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from concurrent.futures import Future

A = TypeVar("A")
R = TypeVar("R")


class BatchError(RuntimeError):
    """The call for a batch ended without a result for this job."""


class _Declaring:
    """The decorator that `batched` returns: it makes a function for one job from a function for a list."""

    def __init__(self, size: int, wait: float, item: str | None) -> None:
        self._size, self._wait, self._item = size, wait, item

    @overload
    def __call__(
        self, function: Callable[[list[A]], Awaitable[Sequence[R | BaseException]]]
    ) -> Callable[[A], Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(self, function: Callable[[list[A]], Awaitable[None]]) -> Callable[[A], Coroutine[Any, Any, None]]: ...

    @overload
    def __call__(self, function: Callable[[list[A]], Sequence[R | BaseException]]) -> Callable[[A], R]: ...

    @overload
    def __call__(self, function: Callable[[list[A]], None]) -> Callable[[A], None]: ...

    def __call__(self, function: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
        """Make a function for one item from a function for a list of them."""
        parameters = list(inspect.signature(function).parameters.values())
        if len(parameters) != 1:
            raise DeclarationError(
                f"{function.__name__} takes {len(parameters)} arguments.",
                "A batched function takes one argument, a list.",
            )
        name = self._item or _singular(parameters[0].name)
        return _described(function, name, _made(function, name, self._size, self._wait))


def batched(size: int, *, wait: float = 0.05, item: str | None = None) -> _Declaring:
    """Let a function that takes a list perform up to `size` jobs at once. The first job waits up to `wait` seconds for
    others.

    The function returns as many results in the same order, or None. A result that is an exception is raised in its job;
    an exception of the function is raised in all jobs. `item` is the name of each job's argument, by default the name
    of the list without its last s.
    """
    if size < 1 or wait < 0:
        raise DeclarationError(
            f"A batch cannot have the size {size} and the wait {wait:g} s.",
            "The size is at least 1, the wait at least 0.",
        )
    return _Declaring(size, wait, item)


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") and len(name) > 1 else name


def _made(function: Callable[[list[Any]], Any], name: str, size: int, wait: float) -> Callable[..., Any]:
    """Make the function for one job. Its argument may also be given by name."""
    if inspect.iscoroutinefunction(function):
        meeting = _AsyncCollector(function, size, wait)

        async def aone(*args: Any, **kwargs: Any) -> Any:
            return await meeting.one(*args, **_renamed(kwargs, name))

        return aone
    waiting = _Collector(function, size, wait)
    return lambda *args, **kwargs: waiting.one(*args, **_renamed(kwargs, name))


def _renamed(kwargs: dict[str, Any], name: str) -> dict[str, Any]:
    return {"item": kwargs[name]} if kwargs.keys() == {name} else kwargs


def _described(function: Callable[..., Any], name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """Give the function for one job the signature and annotations for one item and one result."""
    functools.update_wrapper(made, function)
    try:
        hints = typing.get_type_hints(function)
    except NameError:  # an annotation names something defined later, so the types are unknown
        hints = {}
    of = hints.get(next(iter(inspect.signature(function).parameters)), Any)
    notes = {name: _inside(of), "return": _inside(hints.get("return", Any))}
    parameter = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=notes[name])
    made.__annotations__ = notes
    made.__signature__ = inspect.Signature([parameter], return_annotation=notes["return"])  # type: ignore[attr-defined]
    del made.__wrapped__  # type: ignore[attr-defined]
    return made


def _inside(annotation: Any) -> Any:
    """Find the item type of a list annotation; Any if it is unknown. Exceptions among the item types do not count."""
    found = typing.get_args(annotation)
    if annotation is type(None) or not found:
        return None if annotation in (None, type(None)) else Any
    kinds = [one for one in typing.get_args(found[0]) if not (isinstance(one, type) and issubclass(one, BaseException))]
    return kinds[0] if len(kinds) == 1 and len(typing.get_args(found[0])) == 2 else found[0]


class _Batch(Generic[A]):
    """The jobs of one call, and their results."""

    def __init__(self) -> None:
        self.items: list[A] = []
        self.results: Sequence[Any] | None = None
        self.error: BaseException | None = BatchError(
            "The job that called the function for the whole batch was ended. Try again."
        )

    def give(self, results: Any, name: str) -> None:
        """Store the function's results."""
        self.results, self.error = results, None
        if results is not None and (not isinstance(results, Sequence) or len(results) != len(self.items)):
            count = len(results) if isinstance(results, Sequence) else f"a {type(results).__name__}"
            self.error = BatchError(
                f"{name} returned {count} for {counted(len(self.items), 'job')}. "
                "Return a list with one result for each job, or None."
            )

    def result(self, place: int) -> Any:
        """Give the result of one job, or raise its exception. Each job gets its own exception object with its
        traceback; a BatchError, if Python cannot copy that of the function.
        """
        if isinstance(self.error, BatchError):
            raise BatchError(*self.error.args) from self.error.__cause__
        if self.error is not None:
            raise _copied(self.error)
        found = None if self.results is None else self.results[place]
        if isinstance(found, BaseException):
            raise found
        return found


def _copied(error: BaseException) -> BaseException:
    """Copy an exception, so that it means for each job what it means for the first: `fail_on`, Retry, Fail."""
    try:
        made = copy.copy(error)
    except Exception:
        made = None
    if type(made) is not type(error):
        made = BatchError(f"{type(error).__name__}: {error}")
        made.__cause__ = error
        return made
    made.__cause__, made.__context__ = error.__cause__, error.__context__
    return made.with_traceback(error.__traceback__)


class _Collector:
    """Collects the jobs of a function into batches, in threads."""

    def __init__(self, function: Callable[[list[Any]], Any], size: int, wait: float) -> None:
        self._function, self._size, self._wait = function, size, wait
        self._lock = runtime.Lock()
        self._open: tuple[_Batch[Any], threading.Event, threading.Event] | None = None

    def one(self, item: Any) -> Any:
        """Perform one job as part of a batch."""
        with self._lock:
            batch, full, done = self._open = self._open or (_Batch(), runtime.Event(), runtime.Event())
            place = len(batch.items)
            batch.items.append(item)
            if len(batch.items) == self._size:
                self._open = None
                full.set()
        if place:
            while not done.wait(0.5):  # return to Python now and then, so that the job can be told to stop
                pass
            return batch.result(place)
        try:
            full.wait(self._wait)
            self._shut(batch)
            batch.give(self._function(batch.items), self._function.__name__)
        except Exception as error:
            batch.error = error
            raise
        finally:
            self._shut(batch)
            done.set()
        return batch.result(place)

    def _shut(self, batch: _Batch[Any]) -> None:
        with self._lock:
            if self._open is not None and self._open[0] is batch:
                self._open = None


class _AsyncCollector:
    """Collects the jobs of a function into batches, in event loops: one, or that of each thread of a worker."""

    def __init__(self, function: Callable[[list[Any]], Any], size: int, wait: float) -> None:
        self._function, self._size, self._wait = function, size, wait
        self._lock = runtime.Lock()
        self._open: tuple[_Batch[Any], Future[None], Future[None]] | None = None

    async def one(self, item: Any) -> Any:
        """Perform one job as part of a batch."""
        import asyncio  # costs 15 ms, which an event loop has paid already
        from concurrent.futures import Future

        with self._lock:
            batch, full, done = self._open = self._open or (_Batch(), Future(), Future())
            place = len(batch.items)
            batch.items.append(item)
            if len(batch.items) == self._size:
                self._open = None
                full.set_result(None)
        if place:
            await asyncio.shield(asyncio.wrap_future(done))  # the end of this job is not that of the others
            return batch.result(place)
        try:
            try:
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(full)), self._wait)
            except TimeoutError:
                self._shut(batch)
            batch.give(await self._function(batch.items), self._function.__name__)
        except Exception as error:
            batch.error = error
            raise
        finally:
            self._shut(batch)
            done.set_result(None)
        return batch.result(place)

    def _shut(self, batch: _Batch[Any]) -> None:
        with self._lock:
            if self._open is not None and self._open[0] is batch:
                self._open = None
