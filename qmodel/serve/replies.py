"""Write replies for the wire: the inverse of qmodel/wire/codec.py, byte for byte as the Lua library writes them.

A job is sent as its record. The record has fields that no reply shows: its sequence number and its request ids. They
are written from the model's own job if there is one. For a reply of another backend they are empty; readers of replies
ignore them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from qmodel.contract import replies
from qmodel.contract.events import Event
from qmodel.contract.refusals import Refusal
from qmodel.model.state.records import Job
from qmodel.model.state.store import Store
from qmodel.serve.resp import encode, write
from qmodel.wire import as_json, codec

Raw = Any
"""A value that serve.resp writes: nested lists of text, whole numbers and None."""

INLINE: Final = 1024
"""Data of more bytes are written outside of the record."""


def reply(shape: str, value: Any, store: Store | None = None) -> Raw:
    """Convert a reply, or a Refusal, for the wire; `store` is the model's store if the reply comes from the model."""
    raw = listed(shape, value, store)
    found = raw[1] if raw[0] == "OK" else raw
    if found is None or type(found) in (str, int):
        return raw if found is None else found
    match shape:
        case "jobs" if raw[0] == "OK":
            packed = _packed(found)
        case "completed_and_popped" if raw[0] == "OK":
            packed = _packed(found[1])
            packed = None if packed is None else f"{found[0]}\n{packed}"
        case _:
            packed = None
    return raw if packed is None else packed


def _packed(jobs: Iterable[Raw]) -> str | None:
    """Write jobs as one text; None, if one of them has more than an id, a state and a record."""
    parts = []
    for jid, state, record, *more in jobs:
        if more:
            return None
        parts.append(f"{jid}\t{state}\t{size(record)}\n{record}")
    return "".join(parts)


def listed(shape: str, value: Any, store: Store | None = None) -> Raw:
    """Convert a reply, or a Refusal, to a list, as the journal keeps it."""
    if type(value) is Refusal:
        return [value.code, *value.facts]
    return ["OK", SHAPES[shape](value, store)]


def _same(value: Any, store: Store | None) -> Raw:
    return value


# ---- jobs


def size(text: str) -> int:
    """Count the bytes of a text."""
    return len(text) if text.isascii() else len(encode(text))


def job(view: replies.Job, store: Store | None) -> Raw:
    """Convert a job: its id, its state, its record, and the rarer fields if it has any."""
    jid, state = view.jid, view.state
    stored = store.jobs.get(jid) if store is not None else None  # None for a due run that is not made yet
    apart = len(view.data) > INLINE or size(view.data) > INLINE
    record = _record(view, stored, apart)
    if not (view.tracked or apart or view.dependencies or view.dependents):
        return [jid, state, record]
    return [
        jid, state, record, view.data if apart else "", 1 if view.tracked else 0, view.dependencies, view.dependents,
    ]  # fmt: skip


def _record(view: replies.Job, stored: Job | None, apart: bool) -> str:
    """Write a job's record, as lua/state/records.lua writes it."""
    state, seq, put_request, grant = view.state, 0, "", ""
    if stored is not None:
        state, seq, put_request, grant = stored.state, stored.seq, stored.put_request, stored.grant
    data = "" if apart else view.data
    stages = view.history.kept() if isinstance(view.history, replies.Stages) else view.history
    more = _more(view, stored, apart) if apart or _has_more(view) else ""
    return (
        f"{state}\t{seq}\t{len(stages)}\t{size(more)}\t{view.queue}\t{view.ready_at}\t{view.retries}\t"
        f"{view.remaining}\t{view.worker}\t{view.token}\t{grant}\t{view.popped_at}\t{view.expires_at}\t{view.ended_at}\t"
        f"{view.klass}\t{view.priority}\t{view.put_at}\t{put_request}\t{size(data)}\n{data}"
        + "".join([_stage(stage) for stage in stages])
        + more
    )


def _has_more(view: replies.Job) -> bool:
    """Whether a job has any of the fields that are rarely used."""
    return bool(
        view.tags
        or view.failure
        or view.dependencies
        or view.dependents
        or view.result
        or view.progress
        or view.options
    )


def _more(view: replies.Job, stored: Job | None, apart: bool) -> str:
    """Write the rarely used fields; tags are separated by the byte 255, which does not occur in UTF-8."""
    waits = len(stored.dependencies if stored is not None else view.dependencies)
    group, message, failed_at, failed_worker = view.failure or _NO_FAILURE
    options = _options(view.options)
    sizes = f"{size(view.result)}\t{size(view.progress)}\t{size(message)}"
    return (
        f"{waits}\t{len(view.dependents)}\t{_BETWEEN_TAGS.join(view.tags)}\t{group}\t{failed_at}\t{failed_worker}\t"
        f"{1 if apart else 0}\t{sizes}\t{options}\n{view.result}{view.progress}{message}"
    )


def _options(given: tuple[tuple[str, str], ...]) -> str:
    return _BETWEEN_TAGS.join(f"{name}={value}" for name, value in given)


_NO_FAILURE: Final = ("", "", 0, "")
_BETWEEN_TAGS: Final = "\udcff"


def _stage(stage: replies.Kept) -> str:
    what, at, facts = stage
    if what in _WITH_MESSAGE:
        message = str(facts[-1]).replace("\\", "\\\\").replace("\n", "\\n")
        facts = (*facts[:-1], message)
    return f"{what}\t{at}\t{facts[0]}\n" if len(facts) == 1 else f"{what}\t{at}\t{facts[0]}\t{facts[1]}\n"


_WITH_MESSAGE: Final = frozenset(what for what, names in replies.HISTORY.items() if names[-1] == "message")
"""The stages with a text of several lines."""


def _jobs(views: Iterable[replies.Job], store: Store | None) -> Raw:
    return [job(view, store) for view in views]


# ---- other replies


def event(one: Event) -> str:
    """Write an event as the text of its one field: its time, its name, and its facts."""
    return "\t".join([str(one.at), one.event, *map(str, one.facts)])


def _sample(sample: replies.Sample) -> Raw:
    return [sample.count, f"{sample.mean:.17g}", f"{sample.squares:.17g}", sample.histogram]


def _stats(stats: replies.Stats, _: Store | None) -> Raw:
    return [stats.queue, stats.day, _sample(stats.wait), _sample(stats.run), *stats[4:]]


def _queue(counts: replies.QueueCounts, _: Store | None = None) -> Raw:
    return [*counts[:6], 1 if counts.paused else 0, *counts[7:]]


def _schedule(found: replies.Schedule) -> Raw:
    return [*found[:-4], 1 if found.paused else 0, *found[-3:]]


def _each(write: Callable[[Any], Raw]) -> Callable[[Any, Store | None], Raw]:
    return lambda values, _: [write(one) for one in values]


def _recorded(one: replies.Recorded) -> Raw:
    """Convert an entry of the journal, with its call and its outcome as they are written for the wire."""
    now, op = as_json.read(one.call)
    outcome = listed(op.spec.reply, as_json.found(op, one.outcome))
    return [str(one.number), str(one.seq), op.spec.name, write(codec.encode(op, now)), write(outcome), str(one.epoch)]


SHAPES: Final[dict[str, Callable[[Any, Store | None], Raw]]] = {
    "jid": _same,
    "jids": _same,
    "names": _same,
    "state": _same,
    "number": _same,
    "lease": lambda lease, _: [lease.expires_at, 1 if lease.revoked else 0],
    "job": lambda view, store: None if view is None else job(view, store),
    "jobs": _jobs,
    "completed_and_popped": lambda done, store: [done.state, _jobs(done.jobs, store)],
    "page": _same,
    "results": _same,
    "tallies": _same,
    "tracked": lambda tracked, store: [_jobs(tracked.jobs, store), tracked.expired],
    "schedule": lambda found, _: None if found is None else _schedule(found),
    "schedules": _each(_schedule),
    "reasons": _same,
    "throttle": _same,
    "throttles": _same,
    "used_throttles": _same,
    "unique": _same,
    "subscription": _same,
    "subscriptions": _same,
    "messages": _same,
    "request": lambda found, _: found and [int(one) if isinstance(one, bool) else one for one in found],
    "sub_requests": _same,
    "forgotten": _same,
    "drained": _same,
    "found": lambda found, store: [found.cursor, _jobs(found.jobs, store)],
    "bulk": _same,
    "cleaned": _same,
    "entries": _same,
    "queues": _each(_queue),
    "queue": _queue,
    "workers": _same,
    "worker": _same,
    "stats": _stats,
    "metrics": _same,
    "events": _each(lambda one: [str(one.seq), event(one), str(one.epoch)]),
    "newest": lambda value, _: [str(value.seq), str(value.epoch)],
    "recorded": _each(_recorded),
    "settings": _each(lambda setting: [setting.option, setting.value, 1 if setting.is_set else 0]),
}
"""The writer of each shape of reply in the catalogue; qmodel.wire.codec reads them."""
