"""Jobs that are performed many at once: one call of a function for all that are at hand, and for each job its own end.

    @app.job(queue="index")
    @batched(100, wait=0.05)
    def index(documents: list[str]) -> list[int]:
        return search_engine.add_all(documents)

    index.put("a document")

Each job has one argument, and stays a job like any other: it has its own retries, result, lease and history. Those that
a worker has at hand at the same time meet here, up to so many, or until the first of them has waited for so long; then
one of them calls the function with the list of all. So a worker needs a concurrency of as many, which costs least in an
event loop (`--runner async`); where each job has a process of its own, none meets another.
"""

from __future__ import annotations

import functools
import inspect
import threading
import typing
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from qmodel.app.errors import DeclarationError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    import asyncio

A = TypeVar("A")
R = TypeVar("R")


class BatchError(RuntimeError):
    """The call for all of a batch ended without anything for this job."""


class _Declaring:
    """What `batched` gives: it takes the function for all, and gives the one for each."""

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
        """Make of a function for a list one for each of its items."""
        parameters = list(inspect.signature(function).parameters.values())
        if len(parameters) != 1:
            raise DeclarationError(
                f"{function.__name__} takes {len(parameters)} arguments.", "What is batched takes one, a list."
            )
        name = self._item or _singular(parameters[0].name)
        return _described(function, name, _made(function, name, self._size, self._wait))


def batched(size: int, *, wait: float = 0.05, item: str | None = None) -> _Declaring:
    """Let a function that takes a list perform up to `size` jobs at once; the first waits up to `wait` seconds for
    others.

    It gives as many results, in the same order, or None; a result that is an exception is raised in the job of its
    place, and what the function raises, in all of them. `item` is the name of the argument of each job, by default that
    of the list without its last s.
    """
    if size < 1 or wait < 0:
        raise DeclarationError(
            f"A batch cannot have the size {size} and wait for {wait:g} s.", "Give 1 or more, and 0 or more."
        )
    return _Declaring(size, wait, item)


def _singular(name: str) -> str:
    return name[:-1] if name.endswith("s") and len(name) > 1 else name


def _made(function: Callable[[list[Any]], Any], name: str, size: int, wait: float) -> Callable[..., Any]:
    """The function for each; its argument is called as it should be by who calls it by name."""
    if inspect.iscoroutinefunction(function):
        meeting = _AsyncMeeting(function, size, wait)

        async def aone(*args: Any, **kwargs: Any) -> Any:
            return await meeting.one(*args, **_renamed(kwargs, name))

        return aone
    waiting = _Meeting(function, size, wait)
    return lambda *args, **kwargs: waiting.one(*args, **_renamed(kwargs, name))


def _renamed(kwargs: dict[str, Any], name: str) -> dict[str, Any]:
    return {"item": kwargs[name]} if kwargs.keys() == {name} else kwargs


def _described(function: Callable[..., Any], name: str, made: Callable[..., Any]) -> Callable[..., Any]:
    """Let the function for each look like one that takes an item and gives a result."""
    functools.update_wrapper(made, function)
    try:
        hints = typing.get_type_hints(function)
    except NameError:  # a name that is to come: then nobody knows the types
        hints = {}
    of = hints.get(next(iter(inspect.signature(function).parameters)), Any)
    notes = {name: _inside(of), "return": _inside(hints.get("return", Any))}
    parameter = inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=notes[name])
    made.__annotations__ = notes
    made.__signature__ = inspect.Signature([parameter], return_annotation=notes["return"])  # type: ignore[attr-defined]
    del made.__wrapped__  # type: ignore[attr-defined]
    return made


def _inside(annotation: Any) -> Any:
    """What a list is of; anything, where that is not known. An exception in the place of a result is none."""
    found = typing.get_args(annotation)
    if annotation is type(None) or not found:
        return None if annotation in (None, type(None)) else Any
    kinds = [one for one in typing.get_args(found[0]) if not (isinstance(one, type) and issubclass(one, BaseException))]
    return kinds[0] if len(kinds) == 1 and len(typing.get_args(found[0])) == 2 else found[0]


class _Batch(Generic[A]):
    """Jobs that met, and what became of them."""

    def __init__(self) -> None:
        self.items: list[A] = []
        self.results: Sequence[Any] | None = None
        self.error: BaseException | None = BatchError("The job that called for all of the batch was ended. Try again.")

    def give(self, results: Any, name: str) -> None:
        """Keep what the function gave."""
        self.results, self.error = results, None
        if results is not None and (not isinstance(results, Sequence) or len(results) != len(self.items)):
            count = len(results) if isinstance(results, Sequence) else f"a {type(results).__name__}"
            self.error = BatchError(
                f"{name} gave {count} for {counted(len(self.items), 'job')}: give a list of as many, or None."
            )

    def result(self, place: int) -> Any:
        """The result for one, or what it should raise: one of its own, for a traceback belongs to one job."""
        if self.error is not None:
            raise BatchError(f"{type(self.error).__name__}: {self.error}") from self.error
        found = None if self.results is None else self.results[place]
        if isinstance(found, BaseException):
            raise found
        return found


class _Meeting:
    """Where the jobs of a function meet, in threads."""

    def __init__(self, function: Callable[[list[Any]], Any], size: int, wait: float) -> None:
        self._function, self._size, self._wait = function, size, wait
        self._lock = threading.Lock()
        self._open: tuple[_Batch[Any], threading.Event, threading.Event] | None = None

    def one(self, item: Any) -> Any:
        """Be performed with others."""
        with self._lock:
            batch, full, done = self._open = self._open or (_Batch(), threading.Event(), threading.Event())
            place = len(batch.items)
            batch.items.append(item)
            if len(batch.items) == self._size:
                self._open = None
                full.set()
        if place:
            while not done.wait(0.5):  # now and then in Python, so that it can be told to stop
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


class _AsyncMeeting:
    """Where the jobs of a function meet, in an event loop."""

    def __init__(self, function: Callable[[list[Any]], Any], size: int, wait: float) -> None:
        self._function, self._size, self._wait = function, size, wait
        self._open: tuple[_Batch[Any], asyncio.Event, asyncio.Event] | None = None

    async def one(self, item: Any) -> Any:
        """Be performed with others."""
        import asyncio  # 15 ms that only an event loop has paid already

        batch, full, done = self._open = self._open or (_Batch(), asyncio.Event(), asyncio.Event())
        place = len(batch.items)
        batch.items.append(item)
        if len(batch.items) == self._size:
            self._open = None
            full.set()
        if place:
            await done.wait()
            return batch.result(place)
        try:
            try:
                await asyncio.wait_for(full.wait(), self._wait)
            except TimeoutError:
                self._shut(batch)
            batch.give(await self._function(batch.items), self._function.__name__)
        except Exception as error:
            batch.error = error
            raise
        finally:
            self._shut(batch)
            done.set()
        return batch.result(place)

    def _shut(self, batch: _Batch[Any]) -> None:
        if self._open is not None and self._open[0] is batch:
            self._open = None
