"""One attempt: from a leased job to its outcome. Workers and tests both use this code.

`perform` and `aperform` do not report the outcome to the engine, but they put the children that the job spawned. An
exception of the job becomes the outcome and is not raised. Only exceptions meant for the worker are raised:
KeyboardInterrupt, and the cancellation of the performing task.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import traceback
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from qmodel.app.context import _CURRENT, Context
from qmodel.app.errors import (
    BadArguments,
    BadResult,
    Cancelled,
    DeclarationError,
    Fail,
    Release,
    Retry,
    WaitFor,
)
from qmodel.app.loops import run
from qmodel.app.outcome import UNKNOWN_MS, Completed, Failed, Outcome, Released, Retried, Unknown
from qmodel.client import flows
from qmodel.client.failure import MESSAGE_BYTES
from qmodel.client.fields import Fields
from qmodel.contract import replies
from qmodel.contract.operations import PutMany
from qmodel.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from qmodel.app.application import App
    from qmodel.app.jobtype import JobType

Job = replies.Job | Fields

FINAL = (BadArguments, BadResult, DeclarationError)
"""Exceptions after which another attempt is useless."""


def perform(app: App, job: Job, context: Context | None = None) -> Outcome:
    """Perform one attempt of a leased job; give its outcome.

    Asynchronous functions and middleware run in an event loop of this thread.
    """
    raw = job.raw if isinstance(job, Fields) else job
    here = Context(app, raw) if context is None else context
    kind = app.jobs.get(raw.klass)
    if kind is None:
        return _unknown(app, here)
    if kind.asynchronous or app.has_asynchronous_middleware:
        return run(lambda: aperform(app, raw, here))
    mark = _CURRENT.set(here)
    try:
        outcome = _perform(app, kind, here)
    finally:
        _CURRENT.reset(mark)
    _tell(app, here, outcome)
    return outcome


async def aperform(app: App, job: Job, context: Context | None = None) -> Outcome:
    """Perform one attempt of a leased job in an event loop; a plain function runs in a thread."""
    raw = job.raw if isinstance(job, Fields) else job
    here = Context(app, raw) if context is None else context
    kind = app.jobs.get(raw.klass)
    if kind is None:
        return _unknown(app, here)
    mark = _CURRENT.set(here)
    try:
        outcome = await _aperform(app, kind, here)
    finally:
        _CURRENT.reset(mark)
    _tell(app, here, outcome)
    return outcome


def _unknown(app: App, context: Context) -> Unknown:
    raw, (least, most) = context.raw, UNKNOWN_MS
    delay_ms = min(max(raw.popped_at - raw.put_at, least), most)
    outcome = Unknown(context.klass, did_you_mean(context.klass, app.jobs), tuple(app.jobs), delay_ms)
    app.hooks.fire("after", context, outcome)
    return outcome


def _tell(app: App, context: Context, outcome: Outcome) -> None:
    if isinstance(outcome, Retried | Failed):
        app.hooks.fire("failure", context, outcome)
    app.hooks.fire("after", context, outcome)


# ---- in a thread


def _perform(app: App, kind: JobType[Any, Any, Any, Any], context: Context) -> Outcome:
    try:
        args, kwargs = kind.take(context)
        app.hooks.fire("before", context, None)
        if app.middlewares:
            with ExitStack() as stack:
                result = None
                for one in app.middlewares:
                    stack.enter_context(one.open(context))
                result = kind.run(*args, **kwargs)
        else:
            result = kind.run(*args, **kwargs)
        text = kind.result_text(_final(kind, result))
        _put(app, context)
        return Completed(text)
    except BaseException as error:
        try:
            outcome = outcome_of(kind, context, error)
            stand = _put(app, context) if isinstance(error, Release) else {}
        except Exception as other:
            return outcome_of(kind, context, other)
        if isinstance(error, WaitFor) and isinstance(outcome, Released):
            return replace(outcome, depends=error.edges(stand))
        return outcome


def _final(kind: JobType[Any, Any, Any, Any], result: Any) -> Any:
    """Return a result. Raises BadResult for a coroutine that was not awaited."""
    if inspect.iscoroutine(result):
        result.close()
        raise BadResult(f"{kind.klass} returned a coroutine, which nobody awaits. Declare it with `async def`.")
    return result


def _children(context: Context) -> Iterator[PutMany]:
    """Make the operations that put the spawned children, as `Client.put_flow` does, each child once."""
    if context.spawned:
        for number, part in enumerate(flows.in_parts(flows.named(context.spawned, context.flow))):
            yield PutMany(part, f"{context.flow}-{number}")


def _put(app: App, context: Context) -> dict[str, str]:
    """Put the spawned children; give for each the id of the job that stands for it."""
    stand: dict[str, str] = {}
    for op in _children(context):
        stand |= zip((put.jid for put in op.jobs), app.client.execute(op), strict=True)
    return stand


# ---- in an event loop


async def _aperform(app: App, kind: JobType[Any, Any, Any, Any], context: Context) -> Outcome:
    try:
        args, kwargs = kind.take(context)
        app.hooks.fire("before", context, None)
        async with AsyncExitStack() as stack:
            result = None
            for one in app.middlewares:
                manager = one.open(context)
                if hasattr(manager, "__aenter__"):
                    await stack.enter_async_context(manager)
                else:
                    stack.enter_context(manager)
            if kind.asynchronous:
                result = await kind.run(*args, **kwargs)
            else:
                result = _given(await asyncio.to_thread(_plain, kind, args, kwargs))
        text = kind.result_text(_final(kind, result))
        await _aput(app, context)
        return Completed(text)
    except asyncio.CancelledError as error:
        return _cancelled(kind, context, error)
    except BaseException as error:
        try:
            outcome = outcome_of(kind, context, error)
            stand = await _aput(app, context) if isinstance(error, Release) else {}
        except Exception as other:
            return outcome_of(kind, context, other)
        if isinstance(error, WaitFor) and isinstance(outcome, Released):
            return replace(outcome, depends=error.edges(stand))
        return outcome


class _Stopped:
    """A StopIteration that a plain function raised. A future cannot hold it, so its awaiter would wait for ever."""

    def __init__(self, error: StopIteration) -> None:
        self.error = error


def _plain(kind: JobType[Any, Any, Any, Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    here = os.getpid()
    try:
        return kind.run(*args, **kwargs)
    except StopIteration as error:
        return _Stopped(error)
    finally:
        if os.getpid() != here:  # the job forked, and this is the child: it would perform other jobs
            os._exit(0)


def _given(result: Any) -> Any:
    if isinstance(result, _Stopped):
        raise result.error
    return result


async def _aput(app: App, context: Context) -> dict[str, str]:
    stand: dict[str, str] = {}
    for op in _children(context):
        stand |= zip((put.jid for put in op.jobs), await app.aclient.execute(op), strict=True)
    return stand


def _cancelled(kind: JobType[Any, Any, Any, Any], context: Context, error: asyncio.CancelledError) -> Outcome:
    """Make the outcome of a cancellation. The worker's own cancellation is raised again."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        if not context.cancelled:
            raise error
        task.uncancel()
    return outcome_of(kind, context, error)


# ---- what an exception means


def outcome_of(kind: JobType[Any, Any, Any, Any], context: Context, error: BaseException) -> Outcome:
    """Make the outcome of a job that raised an exception. Exceptions meant for the worker are raised again.

    Values of redacted arguments are left out of its group and its message.
    """
    outcome = _outcome_of(kind, context, error)
    if isinstance(outcome, Retried | Failed):
        return replace(outcome, group=context.scrub(outcome.group), message=context.scrub(outcome.message))
    return outcome


def _outcome_of(kind: JobType[Any, Any, Any, Any], context: Context, error: BaseException) -> Outcome:
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise error
    if isinstance(error, Cancelled) or (isinstance(error, asyncio.CancelledError) and context.cancelled):
        return Released()
    if isinstance(error, Release):
        return _released(kind, context, error)
    if isinstance(error, Fail):
        group, message = _text(error.group), _text(error.message)
        return Failed(group, message or group or _told(error), error)
    if isinstance(error, FINAL) or (kind.fail_on and isinstance(error, kind.fail_on)):
        return Failed(type(error).__name__, _told(error), error)
    if isinstance(error, Retry):
        delay_ms = delay_after(kind, context.attempt, error) if error.delay_ms is None else error.delay_ms
        cause = error.__cause__
        group = "Retry" if cause is None else type(cause).__name__
        message = _text(error.message) if cause is None else _told(cause)
        notes = getattr(error, "__notes__", ())
        return Retried(delay_ms, group, "\n".join([message, *notes]), cause or error)
    delay_ms = delay_after(kind, context.attempt, error)
    return Retried(delay_ms, type(error).__name__, _told(error), error)


def _text(given: object) -> str:
    """Make text of what a job gave as a group or a message, often an exception: the worker reports only text."""
    if isinstance(given, str):
        return given
    try:
        return "" if given is None else str(given)
    except Exception:
        return type(given).__name__


def delay_after(kind: JobType[Any, Any, Any, Any], attempt: int, error: BaseException) -> int:
    """Compute the delay of the next try in milliseconds. If the backoff raises, the error gets a note about it."""
    try:
        return kind.delay(attempt, error)
    except Exception as wrong:
        error.add_note(f"qmodel: the backoff of {kind.klass} raised {wrong!r}; the job is retried after 30 seconds.")
        return 30_000


def _released(kind: JobType[Any, Any, Any, Any], context: Context, error: Release) -> Outcome:
    waits = isinstance(error, WaitFor)
    if not (waits or error.arguments or context.spawned):
        return Released(error.delay_ms)
    try:
        data = kind.next_data(context, error.arguments, waits)
    except (TypeError, DataError) as wrong:
        return Failed("BadArguments", f"{kind.klass} was released with invalid arguments: {wrong}", wrong)
    return Released(error.delay_ms, data)


_HERE = str(Path(__file__).parent)


def _told(error: BaseException) -> str:
    """Format an exception with its traceback, which starts at the job's own function."""
    if isinstance(error, FINAL) and error.__cause__ is None:
        return str(error)
    text = "".join(traceback.format_exception(type(error), error, _own(error.__traceback__)))
    return text.encode(errors="backslashreplace")[-MESSAGE_BYTES:].decode(errors="ignore")


def _own(trace: TracebackType | None) -> TracebackType | None:
    """Remove the frames of this package from the start of a traceback."""
    first = trace
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace or first


def _is_ours(filename: str) -> bool:
    return filename.startswith(_HERE) or filename.endswith(
        ("contextlib.py", "asyncio/threads.py", "concurrent/futures/thread.py")
    )
