"""Schedules of job types: the operation that lets a job type recur.

A run of a recurring job has a queue, a priority, retries and tags, and no other options. If a job type has more
options, a relay job type `schedule:<klass>` recurs instead, and its jobs put the actual jobs. Their ids are made from
the run's id, so there is one for each run, however often the run is tried. If the next run depends on the end of this
one (`after`, `overlap="skip"`), the relay job waits for the job that it put.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Protocol

from qmodel.app import options as opts
from qmodel.app.errors import DeclarationError
from qmodel.client.build import new_recurring
from qmodel.contract.operations import Recur
from qmodel.contract.refusals import Refusal
from qmodel.errors import DataError, error_of


class Recurs(Protocol):
    """The part of a job type that its schedule uses."""

    klass: str
    queue: str
    given: dict[str, Any]
    makers: dict[str, opts.Made]

    def call_text(self, arguments: Mapping[str, Any]) -> str:
        """The data of a call with these arguments by name."""

    def relay(self, waits: bool) -> str:
        """The name of the job type whose jobs put the jobs of this one."""


def recur(kind: Recurs, jid: str | None, arguments: Mapping[str, Any], times: Any) -> Recur:
    """Build the operation that makes a job type recur with some arguments. Raises DeclarationError."""
    try:
        data = kind.call_text(arguments)
    except (TypeError, DataError) as error:
        raise DeclarationError(f"The schedule of {kind.klass} is invalid: {error}.", "Give arguments={...}.") from None
    own = {name: value for name, value in kind.given.items() if name in opts.RECURS and name != "queue"}
    more = (kind.given.keys() | kind.makers.keys()) - opts.RECURS
    more |= kind.makers.keys()
    klass = _relay(kind, times) if more else kind.klass
    return _recur(kind, klass, data, {"jid": jid or schedule_id(kind.klass), **times, **own})


def _recur(kind: Recurs, klass: str, data: str, options: Mapping[str, Any]) -> Recur:
    from qmodel.model.engine import step
    from qmodel.model.state.store import Store

    wrong = f"The schedule of {kind.klass} is invalid"
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


def _relay(kind: Recurs, times: Mapping[str, Any]) -> str:
    """Give the klass of the relay job type, which recurs in place of a job type. Raises DeclarationError."""
    waits = times.get("after") is not None or times.get("overlap") == "skip"
    if waits and ("unique" in kind.given or "unique" in kind.makers):
        raise DeclarationError(
            f"The schedule of {kind.klass} cannot wait for its jobs, which are unique: a run may be deduplicated.",
            "Remove unique, or remove after and overlap: a unique job does not overlap anyway.",
        )
    return kind.relay(waits)


PREFIX, WAITS = "schedule:", ":waits"


def kind_of(klass: str) -> str:
    """Find the actual job type of a relay job type; any other klass is returned as it is."""
    return klass.removeprefix(PREFIX).removesuffix(WAITS)


_VISIBLE = re.compile(r"[!-~]{1,100}")


def schedule_id(klass: str) -> str:
    """Give the id of a job type's schedule. It is the same each time the program starts."""
    word = klass if _VISIBLE.fullmatch(klass) else hashlib.sha256(klass.encode()).hexdigest()[:32]
    return f"schedule.{word}"
