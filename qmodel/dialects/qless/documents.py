"""qless as two documents of 2012 define it: a script for each operation, with its own order of arguments.

`000` is the later document, `001` the earlier one. In both, lower priorities run first, a worker that lost its job gets
an empty reply instead of an error, pop and peek reply a list of jobs, and a job's data and history have another shape.
Keys come before arguments. A call without a time uses the server's time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qmodel.contract import operations as ops
from qmodel.contract.replies import Job
from qmodel.dialects.qless.commands import execute, moment
from qmodel.dialects.qless.session import Answer, Engine, QlessError, Session
from qmodel.model import engine
from qmodel.model.state.store import Store

Words = list[str]
Place = int | str
"""The position of a given argument, `n*` for all from the n-th on, `now` for the time of the call, `=text` for a fixed
text.
"""

Translation = tuple[Place, ...] | Callable[[Session, Words], tuple[Place, ...]]

NO_KLASS = "job"
"""The klass of jobs that are put by calls of the earlier document, which has no klass."""


def _configure(session: Session, given: Words) -> tuple[Place, ...]:
    return ("config.set", "now", 0, 1) if len(given) > 1 else ("config.unset", "now", 0)


def _tag(session: Session, given: Words) -> tuple[Place, ...]:
    return ("tag", "now", "0*") if given[:1] == ["get"] else ("tag", 2, 0, 1, "3*")


def _track(session: Session, given: Words) -> tuple[Place, ...]:
    return ("track", 2, 0, 1) if given else ("track", "now")


def _holder(session: Session, jid: str) -> Job:
    """Find the job, which holds its worker's name: calls of the earlier document name no worker."""
    job: Job | None = session.ask("Get", ops.Get(jid))
    if job is None or not job.worker:
        raise QlessError(f"Job {jid} is not running", by_state=True)
    return job


def _complete(session: Session, given: Words) -> tuple[Place, ...]:
    job = _holder(session, given[0] if given else "")
    data = given[1] if len(given) > 1 else job.data
    said: tuple[Place, ...] = ("complete", "now", 0, "=" + job.worker, "=" + job.queue, "=" + data)
    names = (("=next", 2), ("=delay", 3))
    return said + tuple(word for name, place in names if len(given) > place for word in (name, place))


def _fail(session: Session, given: Words) -> tuple[Place, ...]:
    return ("fail", 3, 0, "=" + _holder(session, given[0] if given else "").worker, 1, 2)


def _put(session: Session, given: Words) -> tuple[Place, ...]:
    said: tuple[Place, ...] = ("put", 3, "=", 0, 1, "=" + NO_KLASS, 2, 6 if len(given) > 6 else "=0")
    names = (("=priority", 4), ("=tags", 5))
    return said + tuple(word for name, place in names if len(given) > place for word in (name, place))


SHARED: dict[str, Translation] = {
    "cancel": ("cancel", "now", 0),
    "failed": ("failed", "now", "0*"),
    "get": ("get", "now", 0),
    "getconfig": ("config.get", "now", "0*"),
    "peek": ("peek", 2, 0, 1),
    "pop": ("pop", 3, 0, 1, 2),
    "setconfig": _configure,
    "stats": ("stats", "now", 0, 1, "2*"),
}

DOCUMENTS: dict[str, dict[str, Translation]] = {
    "000": SHARED
    | {
        "complete": ("complete", 3, 0, 1, 2, 4, "5*"),
        "depends": ("depends", "now", 0, "1*"),
        "fail": ("fail", 4, 0, 1, 2, 3, "5*"),
        "heartbeat": ("heartbeat", 2, 0, 1, "3*"),
        "jobs": ("jobs", 1, 0, "2*"),
        "priority": ("priority", "now", 0, 1),
        "put": ("put", 4, "=", 0, 1, 2, 3, 5, "6*"),
        "queues": ("queues", 0, "1*"),
        "retry": ("retry", 3, 0, 1, 2, "4*"),
        "tag": _tag,
        "track": _track,
        "workers": ("workers", 0, "1*"),
    },
    "001": SHARED
    | {
        "complete": _complete,
        "fail": _fail,
        "heartbeat": ("heartbeat", "now", 0, 1, "3*"),
        "put": _put,
    },
}
"""The calls of each document: the command, its time, and the positions of its arguments."""


IGNORED: dict[tuple[str, str], tuple[Place, ...]] = {("001", "pop"): (4,)}
"""Positions of arguments that are accepted and ignored: the option `heartbeat` says when a lease ends, and not the
expiration that a pop of the earlier document has.
"""


def call_document(
    store: Store, document: str, operation: str, given: Sequence[str], now: int, step: Engine = engine.step
) -> Answer:
    """Execute one call of a document, keys first; `now` (milliseconds) is the time of a call without its own. `step`
    executes its operations.
    """
    if operation not in DOCUMENTS.get(document, {}):
        raise QlessError(f"Unknown command {operation}")
    words = list(given)
    session = Session(store, now, document=True, step=step)
    try:
        translation = DOCUMENTS[document][operation]
        places = translation(session, words) if callable(translation) else translation
        command, when, *arguments = places
        _refuse_surplus(operation, words, (when, *arguments, *IGNORED.get((document, operation), ())))
        if when != "now":
            session.now = moment(words[int(when)] if int(when) < len(words) else None)
        return execute(session, str(command), _placed(words, arguments))
    except QlessError as refused:
        if refused.by_state:
            return Answer(None, session.published)
        raise


def _refuse_surplus(operation: str, given: Words, places: Sequence[Place]) -> None:
    """Refuse a call with an argument that nothing understands. Raises QlessError."""
    last = -1
    for place in places:
        if isinstance(place, int):
            last = max(last, place)
        elif place.endswith("*"):
            return
    if len(given) > last + 1:
        raise QlessError(f"{operation.capitalize()}(): Unexpected argument {given[last + 1]}")


def _placed(given: Words, places: Sequence[Place]) -> Words:
    """Collect the arguments at some positions, up to the first that is not given."""
    found: Words = []
    for place in places:
        if isinstance(place, int):
            if place >= len(given):
                break
            found.append(given[place])
        elif place.startswith("="):
            found.append(place[1:])
        else:
            found += given[int(place[:-1]) :]
    return found
