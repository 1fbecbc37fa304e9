"""Schedules of job types: the operation that lets one recur.

A run of a recurring job has a queue, a priority, retries and tags, and nothing else that may be said of a job. Where a
job type has more, what recurs is a job type of its own, `schedule:<klass>`, whose jobs put those that are meant. Their
ids are made of the run's, so that there is one for each run, however often it is tried. Where the next run depends on
the end of this one (`after`, `overlap="skip"`), it waits for what it put.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from qmodel.app import options as opts
from qmodel.app.context import Context
from qmodel.app.errors import DeclarationError
from qmodel.client.build import new_recurring
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Recur
from qmodel.contract.refusals import Refusal
from qmodel.errors import DataError, error_of

if TYPE_CHECKING:
    from qmodel.app.application import App
    from qmodel.app.jobtype import JobType
    from qmodel.client.sync import RecurringJob


def recur(kind: JobType[Any, Any, Any, Any], jid: str | None, arguments: Mapping[str, Any], times: Any) -> Recur:
    """The operation that lets a job type recur with some arguments. Raises DeclarationError for what cannot work."""
    try:
        data = kind.data_text(kind.binding.given((), arguments), {})
    except (TypeError, DataError) as error:
        raise DeclarationError(f"The schedule of {kind.klass} cannot be: {error}.", "Give arguments={...}.") from None
    own = {name: value for name, value in kind.given.items() if name in opts.RECURS and name != "queue"}
    more = (kind.given.keys() | kind.makers.keys()) - opts.RECURS
    more |= kind.makers.keys()
    klass = _relay(kind, times) if more else kind.klass
    return _recur(kind, klass, data, {"jid": jid or schedule_id(kind.klass), **times, **own})


def _recur(kind: JobType[Any, Any, Any, Any], klass: str, data: str, options: Mapping[str, Any]) -> Recur:
    from qmodel.model.engine import step
    from qmodel.model.state.store import Store

    wrong = f"The schedule of {kind.klass} cannot be"
    given = {("interval" if name == "every" else name): value for name, value in options.items()}
    try:
        op = new_recurring(kind.queue, klass, text=data, **given)
    except (TypeError, ValueError, AttributeError) as error:
        words = str(error).replace("interval", "every")
        raise DeclarationError(f"{wrong}: {words}.", "See Queue.recur.") from error
    reply = step(Store(), 0, op)
    if type(reply) is Refusal:
        refused = error_of(reply)
        named = getattr(refused, "argument", "").removesuffix("_ms").replace("interval", "every")
        what = f"{named} = {options.get(named)!r}." if named else refused.sentence
        raise DeclarationError(f"{wrong}: {what}", refused.next_step)
    return op


def _relay(kind: JobType[Any, Any, Any, Any], times: Mapping[str, Any]) -> str:
    """The job type whose jobs put those of another one, declared if it is not there."""
    waits = times.get("after") is not None or times.get("overlap") == "skip"
    if waits and ("unique" in kind.given or "unique" in kind.makers):
        raise DeclarationError(
            f"The schedule of {kind.klass} cannot wait for its jobs, which are unique: another one may stand for them.",
            "Leave out unique, or after and overlap: a unique job does not overlap.",
        )

    def put(context: Context, **arguments: Any) -> None:
        if context.waited:
            return
        made = kind.made((), arguments)
        if waits:
            context.wait_for(made, on_failure="ignore")
        context.spawn(made)

    name = PREFIX + kind.klass + (WAITS if waits else "")
    if name not in kind.app.jobs:
        kind.app.job(name=name, queue=kind.queue, serializer=kind.serializer)(put)
    return name


PREFIX, WAITS = "schedule:", ":waits"


def kind_of(klass: str) -> str:
    """The job type of which jobs are made by those of another one, or itself."""
    return klass.removeprefix(PREFIX).removesuffix(WAITS)


def left_over(app: App) -> Iterator[RecurringJob]:
    """The schedules that job types of an app once declared and no longer do. Nobody ends them for that: an older
    program may still be at work.
    """
    for queue in app.queues:
        for known in app.client.queues[queue].recurring(0, MOST):
            klass = kind_of(known.klass)
            if klass in app.jobs and known.jid == schedule_id(klass) and known.jid not in app.schedules:
                yield known


_VISIBLE = re.compile(r"[!-~]{1,100}")


def schedule_id(klass: str) -> str:
    """The id of the schedule of a job type: the same whenever a program is started."""
    word = klass if _VISIBLE.fullmatch(klass) else hashlib.sha256(klass.encode()).hexdigest()[:32]
    return f"schedule.{word}"
