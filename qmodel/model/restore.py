"""From a snapshot back to a store of the model; and snapshots as text.

A snapshot holds everything that the model's decisions depend on. It does not hold the events, only how many are kept: a
restored store cannot show them.
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import Iterable
from dataclasses import fields
from itertools import chain
from typing import Any

from qmodel.contract.arguments import awaited_request
from qmodel.contract.operations import Put
from qmodel.contract.replies import Failure
from qmodel.model.snapshot import REQUEST, SCHEDULE, UNIQUE, Record, Snapshot
from qmodel.model.sorted_list import Ordered
from qmodel.model.state import aging, families, throttles
from qmodel.model.state.config import value
from qmodel.model.state.records import (
    NONE,
    ConcurrencyKey,
    Day,
    Job,
    Message,
    ParkedJobs,
    Part,
    Queue,
    Request,
    Sample,
    Schedule,
    Subscription,
    Throttle,
    Turns,
    Unique,
    Worker,
)
from qmodel.model.state.store import Store, configure

SAME = ("seq", "epoch", "journaled", "workers_passed")
"""The parts of a snapshot that are equal in the store. LISTS become sorted lists."""

OLDER_REQUEST = {
    "reached": None, "deadline_at": 0, "lease_ms": 0, "open_until": 0, "fail_fast": False, "reason": "",
    "ending": False, "keep_places": False, "data": "",
}  # fmt: skip
"""The fields that the record of a request of an older version may not have."""

OLDER_SCHEDULE = {"fair_key": "", "fair_weight": 0}
"""The fields that the record of a recurring job of an older version may not have."""

QUEUE_FIELDS = tuple(name for name in Queue.__slots__ if name not in ("ends", "parked", "pauses", "turns"))
"""The fields of a queue that are equal in its record, or a sorted list of it."""

LISTS = ("crons", "completed", "failed", "keeping")


def store(of: Snapshot) -> Store:
    """Make a store from a snapshot."""
    made = Store()
    for name in SAME:
        setattr(made, name, getattr(of, name))
    for name in LISTS:
        setattr(made, name, Ordered(getattr(of, name)))
    made.tracked = _by_value(of.tracked)
    configure(made, _by_value(of.config))
    made.events = deque([(0, "")] * of.events, value(made, "max-events"))
    made.epochs = list(of.epochs) or [(0, of.epoch)]
    made.recorded = deque(maxlen=value(made, "max-journal"))
    made.messages = Ordered(Message(*one) for one in of.messages)
    made.metadata = {klass: dict(notes) for klass, notes in of.metadata.items()}
    made.requests = dict(of.requests)
    made.cascade = dict.fromkeys(of.cascade)
    made.results = {jid: {other: tuple(one) for other, *one in kept} for jid, kept in of.results.items()}  # type: ignore[misc]
    made.request_states = {state: Ordered(entries) for state, entries in of.request_states.items()}
    made.groups.update({name: Ordered(entries) for name, entries in of.groups.items()})
    made.newest.update({klass: Ordered(entries) for klass, entries in of.newest.items()})
    made.tags = {tag: Ordered(jobs) for tag, jobs in of.tags.items()}
    _add_objects(made, of)
    return made


def _add_objects(made: Store, of: Snapshot) -> None:
    made.jobs = {jid: _job(jid, record) for jid, record in of.jobs.items()}
    made.queues = {name: _queue(record) for name, record in of.queues.items()}
    for queue in made.queues.values():
        for first, _, _, jid in queue.ready.until(aging.BOUND, queue.ready.size):
            made.jobs[jid].aged = first
    made.concurrency_keys = {name: _concurrency_key(record) for name, record in of.lines.items()}
    made.requested = {id: _request(id, record) for id, record in of.requested.items()}
    _add_marks(made)
    made.schedules = {
        jid: _with(Schedule(jid), OLDER_SCHEDULE | record, SCHEDULE) for jid, record in of.schedules.items()
    }
    subscribed = sorted(of.subscriptions.items(), key=lambda one: int(one[1]["seq"]))
    made.subscriptions = {name: _subscription(name, record) for name, record in subscribed}
    made.workers = {name: _worker(record) for name, record in of.workers.items()}
    _add_throttles(made, of)
    made.days.update({key: _day(record) for key, record in of.days.items()})
    made.uniques = {key: _with(Unique(key, "", "", 0, 0), record, UNIQUE) for key, record in of.uniques.items()}
    made.unique_ends = Ordered((one.ends, 0, key) for key, one in made.uniques.items() if one.ends)


def _add_marks(made: Store) -> None:
    """Give the dependents of each job and request the marks that the other ends of their edges have."""
    for jid, job in made.jobs.items():
        for other, mark in job.dependencies.items():
            id = awaited_request(other)
            (made.requested[id] if id else made.jobs[other]).dependents[jid] = mark


def _with(made: Any, record: Record, names: Iterable[str]) -> Any:
    for name in names:
        setattr(made, name, record[name])
    return made


def _by_value(found: dict[str, int]) -> dict[str, int]:
    """Order a dictionary by its values, which are sequences: the order in which it was filled."""
    return dict(sorted(found.items(), key=lambda one: one[1]))


def _job(jid: str, record: Record) -> Job:
    made = Job(jid)
    marks = dict(record["marks"])
    for name in Job.__slots__:
        if name in record:
            setattr(made, name, record[name])
    made.tags = dict(record["tags"]) or NONE
    made.options = dict(record["options"]) or NONE
    made.failure = Failure(*record["failure"]) if record["failure"] is not None else None
    made.dependencies = {other: marks.get(other, 0) for other in record["dependencies"]} or NONE
    made.dependents = dict.fromkeys(record["dependents"], 0) or NONE  # the other jobs hold their marks
    made.history = list(chain.from_iterable(record["history"]))
    return made


def _queue(record: Record) -> Queue:
    made = Queue()
    for name in QUEUE_FIELDS:
        found = record[name]
        setattr(made, name, Ordered(found) if type(getattr(made, name)) is Ordered else found)
    made.pauses = dict(record["pauses"])
    made.ends = dict(record.get("ends", {}))  # older ones have none
    made.parked = {name: _parked(one) for name, one in record["gates"].items()}
    made.turns = {priority: _turns(one) for priority, one in record.get("turns", {}).items()}  # older ones have none
    return made


def _turns(record: Record) -> Turns:
    made = Turns()
    made.jobs, made.next = record["jobs"], dict(record["next"])
    made.order = Ordered((turn, 0, key) for key, turn in record["next"].items())
    return made


def _parked(record: Record) -> ParkedJobs:
    made = ParkedJobs()
    made.moment, made.parked, made.admitted = record["moment"], Ordered(record["parked"]), Ordered(record["let"])
    return made


def _concurrency_key(record: Record) -> ConcurrencyKey:
    made = ConcurrencyKey()
    made.active, made.parked = dict.fromkeys(record["active"]), Ordered(record["parked"])
    return made


def _outcomes(ended: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """The outcomes of sub-requests, each with the sequence of its end; older snapshots have their ids alone."""
    return {
        jid: (outcome, seq) for jid, outcome, seq in ((one, "", 0) if isinstance(one, str) else one for one in ended)
    }


def _request(id: str, record: Record) -> Request:
    made: Request = _with(Request(id, "", 0, 0, 0), {**OLDER_REQUEST, **record}, REQUEST)
    given, yielded = set(record.get("given", ())), set(record.get("yielded", ()))  # older ones have none
    made.unfinished = {jid: int(jid in given) + 2 * int(jid in yielded) for jid in record["unfinished"]}
    made.ended = _outcomes(record["ended"])
    made.order = list(record.get("order", ()))  # older ones have none
    return made


def _subscription(name: str, record: Record) -> Subscription:
    made: Subscription = _with(Subscription(name), record, ("seq", "position", "patterns"))
    given = {key: _option(key, text) for key, text in record["options"]}
    names = ("klass", "priority", "retries", "delay_ms", "tags")
    made.put = Put(record["queue"], "", data="", **{key: record[key] for key in names}, **given)
    return made


def _option(name: str, text: str) -> Any:
    """Read an argument of a put from the option of a job."""
    return text == "1" if name == "lifo" else int(text) if name.endswith(("_ms", "_weight")) else text


def _worker(record: Record) -> Worker:
    made: Worker = _with(Worker(), record, ("seen_at",))
    made.held, made.grants = _by_value(record["held"]), dict(record["grants"])
    return made


def _add_throttles(made: Store, of: Snapshot) -> None:
    made.throttles = {name: _throttle(record) for name, record in of.throttles.items()}
    made.cooling = Ordered((one.cools_at, 0, name) for name, one in made.throttles.items() if one.cools_at)
    for name, one in made.throttles.items():
        if throttles.is_set(one):
            families.keep(made, name, one.generation)


def _throttle(record: Record) -> Throttle:
    made = Throttle()
    for name, found in record.items():
        setattr(made, name, Ordered(found) if name in ("held", "claims") else found)
    made.queues = set(record["queues"])
    return made


def _day(record: Record) -> Day:
    made: Day = _with(Day(), record, ("failures", "failed", "retries", "swept"))
    made.wait, made.run = _sample(record["wait"]), _sample(record["run"])
    made.minutes = {minute: list(counts) for minute, counts in record["minutes"].items()}
    made.tags = {name: _part(part) for name, part in record["tags"].items()}
    made.workers = {name: _part(part) for name, part in record["workers"].items()}
    return made


def _part(record: Record) -> Part:
    made = Part()
    made.wait, made.run = _sample(record["wait"]), _sample(record["run"])
    return made


def _sample(record: Record) -> Sample:
    made: Sample = _with(Sample(), record, ("count", "mean", "squares"))
    made.bins = dict(record["bins"])
    return made


# ---- as text


def dumps(of: Snapshot) -> str:
    """Write a snapshot as JSON, with lists of pairs in place of dictionaries, because their keys may be tuples."""
    return json.dumps({field.name: _plain(getattr(of, field.name)) for field in fields(Snapshot)}, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(one)] for key, one in value.items()]}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def loads(text: str) -> Snapshot:
    """Read a snapshot that `dumps` wrote; raises ValueError for anything else, or for a version with other parts."""
    try:
        return Snapshot(
            **{name: _read(value) if type(value) in _NESTED else value for name, value in json.loads(text).items()}
        )
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"this is no snapshot of a namespace, or one of another version: {error}") from error


_NESTED = (dict, list)


def _read(value: Any) -> Any:
    """Restore dictionaries and tuples. Nearly all values of a large state are neither, and cost no call."""
    if type(value) is dict:
        return {
            (_read(key) if type(key) is list else key): (_read(one) if type(one) in _NESTED else one)
            for key, one in value["pairs"]
        }
    return tuple([_read(one) if type(one) in _NESTED else one for one in value])


def pack(of: Snapshot) -> bytes:
    """Write a snapshot as compressed JSON. Bytes of data that are not UTF-8 are escaped, as JSON has them."""
    return gzip.compress(dumps(of).encode("utf-8", "backslashreplace"), 3)


def unpack(packed: bytes) -> Snapshot:
    """Read what `pack` wrote. Raises what gzip and `loads` raise for other bytes."""
    return loads(gzip.decompress(packed).decode())
