"""The wire: encode an operation as plain strings, and decode its reply.

    FCALL qmodel_v1_<operation> 1 <prefix> <now> <request> <argument> ...

Required arguments come first, in order. All others are `name value` pairs; a list repeats its name for each item.
`docs/wire.md` is generated from the same catalogue. The server sends a job as its stored record
(`lua/state/records.lua`), so it has no work with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from qmodel.contract import replies
from qmodel.contract.arguments import Flag, ListOf, Operations, Whole
from qmodel.contract.events import EVENTS, WHOLE, Event, Fact
from qmodel.contract.operations import CATALOGUE, Operation, Spec
from qmodel.contract.reasons import Reason
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import HISTORY, Failure, Job, Stage, Stages, record
from qmodel.wire.layout import named, positional

Raw = Any
"""A reply as it comes from the server: nested lists of bytes, whole numbers and None."""


class Unencodable(ValueError):
    """Raised for an argument whose type cannot be encoded."""


# ---- operations


def encode(op: Operation, now: int | None = None) -> list[str]:
    """Encode an operation: now, request, arguments. Only types are checked, not values. Raises Unencodable."""
    if now is not None and type(now) is not int:
        raise Unencodable("now")
    return ["" if now is None else str(now), _text(getattr(op, "request", "")), *_arguments(op)]


def _encoder(spec: Spec) -> Callable[[Any], list[str]]:
    """Make the function that encodes the arguments of one class of operations.

    Its source is generated, with a line for each argument, and compiled, like the engine's checks. For a put this
    saves two thirds of the time.
    """
    known: dict[str, Any] = {"scalar": _scalar, "write": _write}
    lines = ["def arguments(op):", " out = ["]
    for a in positional(spec):
        known[f"kind_{a.name}"] = a.kind
        plain = "str(v) if type(v := op.{0}) is int" if isinstance(a.kind, Whole) else _PLAIN
        lines.append(f"  {plain} else scalar(kind_{{0}}, v),".format(a.name))
    lines.append(" ]")
    for a in named(spec):
        known |= {f"kind_{a.name}": a.kind, f"default_{a.name}": object() if a.required else a.default}
        lines += ["v = op.{0}", "if v is not default_{0}: write(out, '{0}', kind_{0}, default_{0}, v)"]
        lines[-2:] = [" " + line.format(a.name) for line in lines[-2:]]
    exec("\n".join([*lines, " return out"]), known)
    made: Callable[[Any], list[str]] = known["arguments"]
    return made


_PLAIN = "v if type(v := op.{0}) is str and v.isascii()"


def _arguments(op: Operation) -> list[str]:
    return _ENCODERS[type(op)](op)


def _write(out: list[str], name: str, kind: Any, default: Any, value: Any) -> None:
    if value == default:
        if type(value) is not type(default):  # 0 given for False, say
            raise Unencodable(name)
        return
    if type(kind) not in (ListOf, Operations):
        out += (name, _scalar(kind, value))
        return
    if type(value) is not tuple:
        raise Unencodable(name)
    if type(kind) is Operations:
        for one in value:
            if type(one).__name__ != kind.of:
                raise Unencodable(name)
            inner = _arguments(one)
            if getattr(one, "request", "") != "":
                inner += ("request", _text(one.request))
            out += (name, str(len(inner)), *inner)
    else:
        for one in value:
            out += (name, _scalar(kind.item, one))
        if not value:
            out += ("no", name)


def _scalar(kind: Any, value: Any) -> str:
    if type(value) is str:
        return _text(value) if kind.wire not in ("whole", "digits", "flag") else _raise(kind.wire)
    if kind.wire in ("whole", "digits") and type(value) is int:
        return str(value)
    if type(kind) is Flag and type(value) is bool:
        return "1" if value else "0"
    return _raise(kind.wire)


_ENCODERS = {spec.cls: _encoder(spec) for spec in CATALOGUE.values()}


def _raise(what: str) -> str:
    raise Unencodable(what)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise Unencodable("text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Unencodable("text") from None
    return value


# ---- replies


def _utf8(raw: bytes) -> str:
    """Read a text. The library stores any bytes; those that are not UTF-8 become lone surrogates, which no argument may
    have: one such job does not keep a worker from the others.
    """
    return raw.decode("utf-8", "surrogateescape")


def decode(op: Operation, raw: Raw) -> Any:
    """Decode the reply of an operation, or its Refusal."""
    if type(raw) is not list:
        return SHAPES[op.spec.reply](_unpacked(op.spec.reply, raw))
    if raw[0] == b"OK":
        return SHAPES[op.spec.reply](raw[1] if len(raw) > 1 else None)
    return Refusal(_utf8(raw[0]), tuple(_str(fact) for fact in raw[1:]))


def listed(op: Operation | type[Operation], raw: Raw) -> list[Raw]:
    """Give the reply of an operation as a list, `OK` or a refusal's code first, without decoding it."""
    return raw if type(raw) is list else [b"OK", _unpacked(op.spec.reply, raw)]


def _unpacked(shape: str, raw: Raw) -> Raw:
    """Take apart a reply that is one text or a number."""
    if shape == "jobs":
        return _jobs_in(raw, 0)
    if shape == "completed_and_popped":
        state, _, rest = raw.partition(b"\n")
        return [state, _jobs_in(rest, 0)]
    return raw


def _jobs_in(raw: bytes, at: int) -> list[list[bytes]]:
    """Split jobs that are one text: for each its id, its state and the size of its record, and the record."""
    found = []
    while at < len(raw):
        stop = raw.index(b"\n", at)
        jid, state, size = raw[at:stop].split(b"\t")
        at = stop + 1 + int(size)
        found.append([jid, state, raw[stop + 1 : at]])
    return found


def _str(raw: Raw) -> str:
    return _utf8(raw) if type(raw) is bytes else str(raw)


def _strs(raw: Sequence[Raw]) -> tuple[str, ...]:
    return tuple(_utf8(one) for one in raw)


def _int(text: str) -> int:
    return int(text) if text else 0


def job(raw: Raw) -> Job:
    """Read a job."""
    jid, state, text, apart, tracked, dependencies, dependents = raw if len(raw) == 7 else (*raw, b"", 0, (), ())
    head, _, body = text.partition(b"\n")
    f = _utf8(head).split("\t")
    size, stop = int(f[18]), len(body) - int(f[3])
    tags, failure, result, progress, options = ((), None, "", "", ()) if f[3] == "0" else _more(body[stop:])
    return record(Job, (
        _utf8(jid), f[14], f[4], _utf8(state), _utf8(apart) or _utf8(body[:size]), int(f[15]), int(f[6]),
        int(f[7]), tags, f[8], int(f[9]), int(f[12]), int(f[16]), int(f[5]), int(f[11]), int(f[13]), result, progress,
        failure, tracked == 1, _strs(dependencies), _strs(dependents), stages(body[size:stop]), options,
    ))  # fmt: skip


def _more(raw: bytes) -> tuple[tuple[str, ...], Failure | None, str, str, tuple[tuple[str, str], ...]]:
    """Read the parts that few jobs have: tags, failure, result, progress, options.

    Tags are separated by the byte 0xFF, which does not occur in UTF-8.
    """
    head, _, texts = raw.partition(b"\n")
    f = head.split(b"\t")
    at, end = int(f[7]), int(f[7]) + int(f[8])
    tags = tuple(_utf8(tag) for tag in f[2].split(b"\xff")) if f[2] else ()
    failure = Failure(_utf8(f[3]), _utf8(texts[end:]), int(f[4]), _utf8(f[5])) if f[3] else None
    return tags, failure, _utf8(texts[:at]), _utf8(texts[at:end]), options(f[10])


def options(raw: bytes) -> tuple[tuple[str, str], ...]:
    """Read a job's options as pairs of name and value, separated by the byte 0xFF."""
    pairs = (_utf8(one).partition("=") for one in raw.split(b"\xff")) if raw else ()
    return tuple((name, value) for name, _, value in pairs)


def history(raw: bytes) -> list[Stage]:
    """Read a job's history."""
    return list(stages(raw))


def stages(raw: bytes) -> Stages:
    """Read a job's history as the tuple that a reply has."""
    found: list[Any] = []
    for line in _utf8(raw).split("\n")[:-1]:
        what, when, facts = line.split("\t", 2)
        found += what, int(when), _FACTS[what](facts)
    return record(Stages, found)


def _unquoted(text: str) -> str:
    """Undo the escapes in a log line: `\\n` is a line end, `\\\\` is a backslash."""
    return "\\".join(part.replace("\\n", "\n") for part in text.split("\\\\"))


def _facts(what: str, names: tuple[str, ...]) -> Callable[[str], tuple[Fact, ...]]:
    """Make the function that reads the facts of one kind of stage: one or two facts."""
    if what == "log":
        return lambda text: (_unquoted(text),)
    if len(names) == 1:
        return lambda text: (_fact(names[0], text),)
    one, two = (_unquoted if name == "message" else int if name in WHOLE else str for name in names)

    def pair(text: str) -> tuple[Fact, ...]:
        first, _, second = text.partition("\t")
        return one(first), two(second)

    return pair


_FACTS = {what: _facts(what, names) for what, names in HISTORY.items()}


def _fact(name: str, text: str) -> Fact:
    return int(text) if name in WHOLE else text


def event(raw: Raw) -> Event:
    """Read an event: its sequence, its text, and its epoch."""
    text: Any = _utf8(raw[1])
    at, kind, *facts = text.split("\t")
    for place in _WHOLE[kind]:
        facts[place] = int(facts[place])
    return record(Event, (int(raw[0]), int(at), kind, tuple(facts), int(raw[2])))


_WHOLE = {kind: tuple(place for place, name in enumerate(names) if name in WHOLE) for kind, names in EVENTS.items()}
"""For each event, the positions of the facts that are whole numbers."""


def _jobs(raw: Raw) -> tuple[Job, ...]:
    return tuple(map(job, raw))


def _sample(raw: Raw) -> replies.Sample:
    return replies.Sample(raw[0], float(raw[1]), float(raw[2]), tuple(raw[3]))


def _stats(raw: Raw) -> replies.Stats:
    return replies.Stats(_utf8(raw[0]), raw[1], _sample(raw[2]), _sample(raw[3]), *raw[4:])


def _queue(raw: Raw) -> replies.QueueCounts:
    name, waiting, scheduled, depends, running, stalled, paused, *rest, pauses = raw
    reasons = tuple(replies.Pause(_utf8(one[0]), one[1]) for one in pauses)
    counts = (_utf8(name), waiting, scheduled, depends, running, stalled, paused == 1, *rest, reasons)
    return replies.QueueCounts(*counts)


def _schedule(raw: Raw) -> replies.Schedule:
    jid, queue, klass, data, priority, retries, tags, interval, backlog, runs, next_at, kind, cron, due_at, *rest = raw
    last_at, offset, start_at, end_at, limit, made, missed, catchup, overlap, unfinished, paused, throttles, *fair = (
        rest
    )
    fair_key, fair_weight = fair
    jid, queue, klass, data = map(_str, (jid, queue, klass, data))
    return replies.Schedule(
        jid, queue, klass, data, priority, retries, _strs(tags), interval, backlog, runs, next_at,
        _str(kind), _str(cron), tuple(due_at), last_at, offset, start_at, end_at, limit, made, _str(missed), catchup,
        _str(overlap), unfinished, paused == 1, _strs(throttles), _str(fair_key), fair_weight,
    )  # fmt: skip


def _reason(raw: Raw) -> Reason:
    return Reason(_utf8(raw[0]), _strs(raw[1]))


def _throttle(raw: Raw) -> replies.Throttle:
    name, *numbers, holders, family = raw
    return record(replies.Throttle, (_utf8(name), *numbers, _strs(holders), _utf8(family)))


def _unique(raw: Raw) -> replies.Unique:
    key, mode, jid, since, until, following = raw
    return replies.Unique(_str(key), _str(mode), _str(jid), since, until, _str(following))


def recorded(raw: Raw) -> replies.Recorded:
    """Read an entry of the journal."""
    from qmodel.wire import journal  # imported late: most clients never read a journal

    return journal.recorded(raw, decode)


def _subscription(raw: Raw) -> replies.Subscription:
    name, patterns, queue, klass, priority, retries, delay_ms, tags, given, behind = raw
    name, queue, klass = map(_str, (name, queue, klass))
    pairs = tuple((_str(option), _str(value)) for option, value in given)
    return replies.Subscription(
        name, _strs(patterns), queue, klass, priority, retries, delay_ms, _strs(tags), pairs, behind
    )


def _message(raw: Raw) -> replies.Message:
    seq, at, due_at, subject, data = raw
    return replies.Message(seq, at, due_at, _str(subject), _str(data))


def _request(raw: Raw) -> replies.Request:
    id, queue, priority, limit, state, *counts, fail_fast, reason, dependents, data, keep_places = raw
    ends = bool(fail_fast), _str(reason), dependents, _str(data), bool(keep_places)
    facts = _str(id), _str(queue), priority, limit, _str(state), *counts, *ends
    return replies.Request._make(facts)


def _tally(raw: Raw) -> replies.Tally:
    return replies.Tally(_utf8(raw[0]), raw[1])


def _worker(raw: Raw) -> replies.WorkerCounts:
    return replies.WorkerCounts(_utf8(raw[0]), *raw[1:])


def _each(read: Callable[[Raw], Any]) -> Callable[[Raw], tuple[Any, ...]]:
    return lambda raw: tuple(map(read, raw))


SHAPES: dict[str, Callable[[Raw], Any]] = {
    "jid": _str,
    "jids": _strs,
    "names": _strs,
    "state": _str,
    "number": int,
    "lease": lambda raw: replies.Lease(int(raw[0]), raw[1] == 1),
    "job": lambda raw: None if raw is None else job(raw),
    "jobs": _jobs,
    "completed_and_popped": lambda raw: replies.CompletedAndPopped(_utf8(raw[0]), _jobs(raw[1])),
    "results": _each(lambda raw: replies.Result(*map(_str, raw))),
    "page": lambda raw: replies.Page(raw[0], _strs(raw[1])),
    "tallies": _each(_tally),
    "tracked": lambda raw: replies.TrackedJobs(_jobs(raw[0]), _strs(raw[1])),
    "schedule": lambda raw: None if raw is None else _schedule(raw),
    "schedules": _each(_schedule),
    "reasons": _each(_reason),
    "throttle": _throttle,
    "throttles": _each(_throttle),
    "used_throttles": lambda raw: replies.UsedThrottles(_utf8(raw[0]), tuple(map(_throttle, raw[1]))),
    "found": lambda raw: replies.Found(_utf8(raw[0]), _jobs(raw[1])),
    "entries": _each(lambda raw: replies.Entry(*_strs(raw))),
    "bulk": lambda raw: replies.Bulk(raw[0], raw[1], _utf8(raw[2])),
    "cleaned": lambda raw: replies.Cleaned(raw[0], raw[1], _utf8(raw[2]), _strs(raw[3])),
    "unique": lambda raw: None if raw is None else _unique(raw),
    "subscription": lambda raw: None if raw is None else _subscription(raw),
    "subscriptions": _each(_subscription),
    "messages": _each(_message),
    "request": lambda raw: None if raw is None else _request(raw),
    "sub_requests": lambda raw: replies.SubRequests(raw[0], tuple(replies.SubRequest(*_strs(one)) for one in raw[1])),
    "forgotten": lambda raw: replies.Forgotten(*raw),
    "drained": lambda raw: replies.Drained(*raw),
    "queues": _each(_queue),
    "queue": _queue,
    "workers": _each(_worker),
    "worker": lambda raw: replies.WorkerJobs(_strs(raw[0]), _strs(raw[1])),
    "stats": _stats,
    "metrics": _each(lambda raw: replies.Minute(*raw)),
    "events": _each(event),
    "newest": lambda raw: replies.Newest(int(raw[0]), int(raw[1])),
    "recorded": _each(recorded),
    "settings": _each(lambda raw: replies.Setting(_utf8(raw[0]), raw[1], raw[2] == 1)),
}
"""How each shape of reply in the catalogue is read."""
