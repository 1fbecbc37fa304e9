"""`app.job`: makes a job type of a function or a class, with types for type checkers.

A first parameter annotated as `Context` is not an argument of `put`. If the first parameter takes any type, a type
checker cannot know whether it is a context, so such a call is checked only at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from qmodel.app import options as opts
from qmodel.app.base import BaseApp
from qmodel.app.context import Context
from qmodel.app.errors import DeclarationError
from qmodel.app.jobtype import JobType

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Awaited = Coroutine[Any, Any, R]


class Performs(Protocol[P, R_co]):
    """A class that can be a job type."""

    def perform(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class PerformsInContext(Protocol[P, R_co]):
    """A class that can be a job type and takes the context as its first argument."""

    def perform(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


class Declaring:
    """Makes job types of functions and classes: `@app.job`, `@app.job(queue="emails", retries=3)`."""

    def __init__(self, app: BaseApp, options: opts.JobOptions) -> None:
        self._app = app
        self._options = options

    @overload
    def __call__(self, target: None = None, /, **options: Unpack[opts.JobOptions]) -> Declaring: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: type[PerformsInContext[P, Awaited[R]]], /
    ) -> JobType[P, R, Concatenate[Context, P], Awaited[R]]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: type[PerformsInContext[P, R]], /
    ) -> JobType[P, R, Concatenate[Context, P], R]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: type[Performs[P, Awaited[R]]], /
    ) -> JobType[P, R, P, Awaited[R]]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: type[Performs[P, R]], /
    ) -> JobType[P, R, P, R]: ...

    @overload
    def __call__(self, target: Callable[Concatenate[object, P], Awaited[R]], /) -> JobType[..., R, ..., Awaited[R]]: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, target: Callable[Concatenate[object, P], R], /
    ) -> JobType[..., R, ..., R]: ...

    @overload
    def __call__(
        self, target: Callable[Concatenate[Context, P], Awaited[R]], /
    ) -> JobType[P, R, Concatenate[Context, P], Awaited[R]]: ...

    @overload
    def __call__(
        self, target: Callable[Concatenate[Context, P], R], /
    ) -> JobType[P, R, Concatenate[Context, P], R]: ...

    @overload
    def __call__(self, target: Callable[P, Awaited[R]], /) -> JobType[P, R, P, Awaited[R]]: ...

    @overload
    def __call__(self, target: Callable[P, R], /) -> JobType[P, R, P, R]: ...

    def __call__(self, target: Any = None, /, **options: Any) -> Any:
        """Declare a job type, or collect its options; later options replace earlier ones. Raises DeclarationError."""
        if target is None:
            opts.check_names(options, opts.DECLARED, "A job type")
            return Declaring(self._app, {**self._options, **options})  # type: ignore[typeddict-item]
        if isinstance(target, str):
            raise DeclarationError(
                f"{target!r} is not a function.", f"To give a name, write @app.job(name={target!r})."
            )
        return self._app.enter(JobType(self._app, target, {**self._options, **options}))
