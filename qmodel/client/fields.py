"""What both clients are made of: conversions, defaults, and the fields of a job.

Nothing here talks to a backend. Python's words are turned into the catalogue's (seconds into
milliseconds, objects into JSON, jobs into ids), and replies back again.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import math
import os
import random
import re
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from qmodel.contract import replies
from qmodel.contract.arguments import NAME_BYTES, Edge
from qmodel.contract.operations import CATALOGUE, Operation, Publish, Put, Recur, Spec, Subscribe
from qmodel.contract.settings import OPTIONS, PER_QUEUE
from qmodel.errors import DataError, NotLoadedError, RefusedError

Duration = float | timedelta
"""How long: a number of seconds, or a timedelta."""

Day = datetime | date | int
"""Which day: a date, a moment in it, or milliseconds since the epoch."""

T = TypeVar("T")

PART: Final = 100
"""How many jobs a search fetches at a time."""

BY_HAND: Final = "by hand"
"""Why a queue is paused when nobody says why."""

LONGEST_SLEEP = 10.0
"""Seconds after which an idle worker looks by himself, should ever a wake-up have been lost."""


class _Keep:
    """Stands for an argument that is not given, where None is a value."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Final[Any] = _Keep()
"""Leave it as it is."""


# ---- from Python to the catalogue


def milliseconds(duration: Duration) -> int:
    """A duration in whole milliseconds.

    >>> milliseconds(1.5), milliseconds(timedelta(minutes=2))
    (1500, 120000)
    """
    return round(seconds_of(duration) * 1000)


def seconds_of(duration: Duration) -> float:
    """A duration in seconds.

    >>> seconds_of(timedelta(minutes=2))
    120.0
    """
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def instant(day: Day | None) -> int | None:
    """A moment of a day in milliseconds since the epoch. A datetime without a zone is taken as UTC.

    >>> instant(date(1970, 1, 2))
    86400000
    """
    if day is None or isinstance(day, int):
        return day
    at = day if isinstance(day, datetime) else datetime.combine(day, time())
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode(value: object) -> str:
    """A Python value as the JSON that is stored."""
    try:
        text = _JSON.encode(value)
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as in the name of a file that is not UTF-8
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise DataError(f"This cannot be stored as JSON: {error}. Convert it first.") from error
    return text


def encode_unless_kept(value: object) -> str | None:
    """The same, or None where it is to stay as it is."""
    return None if value is KEEP else encode(value)


def encode_result(value: object) -> str:
    """A result as the JSON that is stored; no result is no text."""
    return "" if value is None else encode(value)


def jids_of(jobs: Iterable[HasJid | str] | HasJid | str) -> tuple[str, ...]:
    """The ids of jobs, given as jobs or as ids, one or several."""
    if isinstance(jobs, str) or hasattr(jobs, "jid"):
        return (jid_of(cast("HasJid | str", jobs)),)
    return tuple(map(jid_of, jobs))


def edges_of(jobs: Iterable[HasJid | str] | HasJid | str) -> tuple[str, ...]:
    """Dependencies, given as jobs, ids or edges, one or several, as the catalogue writes them.

    >>> edges_of(["a", Edge("b", "fail", "page")])
    ('a', 'b fail page')
    """
    several = (jobs,) if isinstance(jobs, str) or hasattr(jobs, "jid") else jobs
    return tuple(one.text if isinstance(one, Edge) else jid_of(one) for one in cast("Iterable[HasJid | str]", several))


def jid_of(job: HasJid | str) -> str:
    """The id of a job, given as one or as the other."""
    return job if isinstance(job, str) else job.jid


class HasJid(Protocol):
    """A job of either client, or a Put that makes one."""

    @property
    def jid(self) -> str: ...


def new_job(
    queue: str,
    klass: str,
    data: object = None,
    *,
    text: str | None = None,
    priority: int | None = None,
    delay: Duration = 0,
    retries: int | None = None,
    tags: Iterable[str] | None = None,
    depends: Iterable[HasJid | str] | HasJid | str | None = None,
    jid: str | None = None,
    lifo: bool = False,
    lease: Duration | None = None,
    timeout: Duration | None = None,
    ttl: Duration | None = None,
    ordered: str | None = None,
    throttles: Iterable[str] | str = (),
    cost: int | None = None,
    dead_queue: str | None = None,
    keep_complete: Duration | None = None,
    keep_failed: Duration | None = None,
    unique: str | None = None,
    unique_mode: str | None = None,
    unique_for: Duration | None = None,
    unique_max: Duration | None = None,
) -> Put:
    """The operation that puts a job, as `Queue.put` describes it."""
    if text is not None and data is not None:
        raise TypeError("give either data, which is stored as JSON, or text, which is stored as it is")
    return Put(
        queue,
        os.urandom(16).hex() if jid is None else jid,
        klass,
        encode(data) if text is None else text,
        priority=priority,
        delay_ms=milliseconds(delay),
        retries=retries,
        tags=None if tags is None else _several(tags),
        depends=None if depends is None else edges_of(depends),
        lifo=True if lifo else None,
        lease_ms=_maybe_milliseconds(lease),
        timeout_ms=_maybe_milliseconds(timeout),
        unique=unique,
        unique_mode=unique_mode,
        unique_ms=_maybe_milliseconds(unique_for),
        unique_max_ms=_maybe_milliseconds(unique_max),
        ttl_ms=_maybe_milliseconds(ttl),
        ordered=ordered,
        throttles=_several(throttles) or None,
        cost=cost,
        dead_queue=dead_queue,
        keep_complete_ms=_maybe_milliseconds(keep_complete),
        keep_failed_ms=_maybe_milliseconds(keep_failed),
    )


def _maybe_milliseconds(duration: Duration | None) -> int | None:
    return None if duration is None else milliseconds(duration)


def fingerprint(klass: str, data: object = None) -> str:
    """A key for `put(unique=...)` that is the same for the same klass and data, and for no others, all but certainly.

    The order of a dictionary's keys does not matter. What is hashed says how long each part is, so that none runs into
    the next.

    >>> fingerprint("Send", {"to": 1, "cc": 2}) == fingerprint("Send", {"cc": 2, "to": 1})
    True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(f"{len(klass)}:{klass}{len(text)}:{text}".encode()).hexdigest()


def new_recurring(
    queue: str,
    klass: str,
    data: object = None,
    *,
    interval: Duration | None = None,
    cron: str | None = None,
    tz: str = "UTC",
    after: Duration | None = None,
    jid: str | None = None,
    text: str | None = None,
    offset: Duration = 0,
    start: Day | None = None,
    end: Day | None = None,
    catchup: Duration = 60,
    tags: Iterable[str] = (),
    **others: Any,
) -> Recur:
    """The operation that lets a job recur, as `Queue.recur` describes it."""
    if text is not None and data is not None:
        raise TypeError("give either data, which is stored as JSON, or text, which is stored as it is")
    if [interval, cron, after].count(None) != 2:
        raise TypeError("give one of interval, cron and after")
    expression = ""
    if cron is not None:
        from qmodel.client.cron import spec  # it needs a package of its own

        expression = spec(cron, tz)
    return Recur(
        queue,
        os.urandom(16).hex() if jid is None else jid,
        klass,
        encode(data) if text is None else text,
        milliseconds(interval or after or 0),
        milliseconds(offset),
        tags=_several(tags),
        kind="cron" if cron is not None else "interval" if after is None else "after",
        cron=expression,
        start_at=instant(start) or 0,
        end_at=instant(end) or 0,
        catchup_ms=milliseconds(catchup),
        **others,
    )


def new_message(subject: str, data: object = None, *, text: str | None = None, delay: Duration = 0) -> Publish:
    """The operation that publishes a message, as `Client.publish` describes it."""
    if text is not None and data is not None:
        raise TypeError("give either data, which is stored as JSON, or text, which is stored as it is")
    return Publish(subject, encode(data) if text is None else text, milliseconds(delay))


def new_subscription(
    name: str,
    patterns: Iterable[str] | str,
    queue: str,
    klass: str,
    *,
    priority: int = 0,
    delay: Duration = 0,
    retries: int = 5,
    tags: Iterable[str] = (),
    lifo: bool = False,
    lease: Duration | None = None,
    timeout: Duration | None = None,
    ttl: Duration | None = None,
    dead_queue: str | None = None,
    ordered: str | None = None,
    after: int | None = None,
    since: Day | None = None,
) -> Subscribe:
    """The operation that begins a subscription, as `Subscriptions.add` describes it."""
    return Subscribe(
        name,
        _several(patterns),
        queue,
        klass,
        priority,
        milliseconds(delay),
        retries,
        _several(tags),
        lifo=lifo,
        lease_ms=_maybe_milliseconds(lease),
        timeout_ms=_maybe_milliseconds(timeout),
        ttl_ms=_maybe_milliseconds(ttl),
        dead_queue=dead_queue,
        ordered=ordered,
        after=after,
        since=instant(since),
    )


def _several(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def shuffled(names: Iterable[str], weights: Mapping[str, float]) -> list[str]:
    """Names in an order drawn by their weights, one after the other without putting back (Efraimidis and Spirakis,
    Information Processing Letters 97, 2006). A name that has no weight has 1; each must be above 0.
    """
    unknown = sorted(weights.keys() - set(names))
    if unknown or not all(weight > 0 for weight in weights.values()):
        raise ValueError(f"weights are numbers above 0 of queues that are named; {unknown or weights} is not")
    return sorted(names, key=lambda name: math.log(1 - random.random()) / weights.get(name, 1), reverse=True)


# ---- defaults


def fresh_request() -> str:
    """A new request id: 128 random bits in 22 characters."""
    return binascii.b2a_base64(os.urandom(16))[:22].decode()


def _copier(spec: Spec) -> Callable[[Any, str], Operation]:
    """What copies operations of one class, with a request id; `dataclasses.replace` takes five times as long."""
    fields = ", ".join("request" if a.name == "request" else f"op.{a.name}" for a in spec.arguments)
    made: Callable[[Any, str], Operation] = eval(f"lambda op, request: cls({fields})", {"cls": spec.cls})
    return made


_WITH_REQUEST = {
    spec.cls: _copier(spec) for spec in CATALOGUE.values() if any(a.name == "request" for a in spec.arguments)
}


def with_request(op: Operation) -> Operation:
    """The operation, with a fresh request id if it takes one and has none: it may be sent twice."""
    copy = _WITH_REQUEST.get(type(op))
    return copy(op, fresh_request()) if copy is not None and not op.request else op  # type: ignore[attr-defined]


_ODD = re.compile("[\x00-\x1f\x7f]")


def default_worker() -> str:
    """The name of this thread among all workers: `<hostname>-<pid>-<thread>`."""
    return _worker(os.getpid(), threading.current_thread().name, threading.get_ident())


@lru_cache(1000)
def _worker(pid: int, thread: str, number: int) -> str:
    name = f"{os.uname().nodename}-{pid}-{_ODD.sub('?', thread)}"
    return name if len(name.encode()) <= NAME_BYTES else f"{name[:40]}-{pid}-{number}"


# ---- from the catalogue to Python


def moment(at: int) -> datetime | None:
    """A time in milliseconds as an aware datetime in UTC; 0, which is never, as None.

    >>> moment(1500)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    return EPOCH + timedelta(milliseconds=at) if at else None


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Listing(list[T]):
    """A part of a longer list; `total` is the length of the whole."""

    def __init__(self, items: Iterable[T], total: int) -> None:
        super().__init__(items)
        self.total = total


class DependencyResults(dict[str, Any]):
    """The results of the named dependencies that are complete, by name, decoded from JSON; what is none stays text.

    `all` tells of every named dependency, in the order in which they were named: its name, id and state, and its result
    as text, or the message of its failure.
    """

    def __init__(self, raw: Iterable[replies.Result]) -> None:
        self.all = list(raw)
        super().__init__((one.name, _result(one.result)) for one in self.all if one.state == "complete")


def _result(text: str) -> Any:
    """A result decoded from JSON; one that is none as it is."""
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


class Failure(NamedTuple):
    """Why and when a job last failed, and on which worker."""

    group: str
    message: str
    at: datetime
    worker: str


class Stage(NamedTuple):
    """One entry of a job's history: what happened, when, and its facts by name."""

    what: str
    at: datetime
    facts: dict[str, str | int]


NOTHING: Final[dict[str, Any]] = {}


class Fields:
    """What is known of a job, true at the moment when it was fetched.

    Times are aware datetimes in UTC, or None for never; the same names with `_ms` give the stored
    milliseconds.
    """

    deduplicated = False
    """Whether it stands for the job that was put, which was not put because of it."""

    def __init__(self, jid: str, known: replies.Job | None = None, given: Put | None = None) -> None:
        self.jid: Final = jid
        self._reply = known
        self._given = given
        self._changed: dict[str, Any] = NOTHING

    @property
    def _known(self) -> replies.Job | None:
        """The job as it was fetched, and as what was done since has made it; put together when somebody asks."""
        if self._changed and self._reply is not None:
            self._reply, self._changed = self._reply._replace(**self._changed), NOTHING
        return self._reply

    @_known.setter
    def _known(self, known: replies.Job) -> None:
        self._reply, self._changed = known, NOTHING

    def _load(self) -> replies.Job:
        """What is known of the job, fetched if need be and possible."""
        raise NotImplementedError

    def __repr__(self) -> str:
        basic = self._known or self._given
        name = type(self).__name__
        if basic is None:
            return f"<{name} {self.jid}>"
        state = f": {self._known.state}" if self._known else ""
        return f"<{name} {self.jid}: {basic.klass} in {basic.queue}{state}>"

    def __eq__(self, other: object) -> bool:
        """Jobs are the same when their ids are."""
        return isinstance(other, Fields) and other.jid == self.jid

    def __hash__(self) -> int:
        return hash(self.jid)

    @property
    def raw(self) -> replies.Job:
        """The job as the catalogue replies it."""
        return self._load()

    def _basic(self) -> replies.Job | Put:
        return self._known or self._given or self._load()

    @property
    def klass(self) -> str:
        """Its type: which code performs it."""
        return self._basic().klass

    @property
    def queue(self) -> str:
        """The name of its queue."""
        return self._basic().queue

    @property
    def text(self) -> str:
        """Its data as the text that is stored."""
        return self._basic().data

    @property
    def data(self) -> Any:
        """Its data, decoded from JSON."""
        return self._decode(self.text, "data", "text")

    @property
    def state(self) -> str:
        """waiting, scheduled, depends, running, stalled, complete or failed."""
        return self._load().state

    @property
    def priority(self) -> int:
        """Its priority; lower runs sooner."""
        return self._load().priority

    @property
    def retries(self) -> int:
        """How often it may be tried again."""
        return self._load().retries

    @property
    def remaining(self) -> int:
        """How often it may still be tried again."""
        return self._load().remaining

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags, in the order in which they were added."""
        return self._load().tags

    @property
    def worker(self) -> str:
        """Who holds it, or the empty string."""
        return self._load().worker

    @property
    def token(self) -> int:
        """The token of its lease; each claim makes a new one, and only its holder may finish."""
        return self._load().token

    @property
    def result(self) -> Any:
        """Its result, decoded from JSON; None without one."""
        return self._decode(self._load().result, "result", "result_text")

    @property
    def result_text(self) -> str:
        """Its result as the text that is stored."""
        return self._load().result

    @property
    def progress_text(self) -> str:
        """How far it has come, as its worker last said with `progress`."""
        return self._load().progress

    @property
    def failure(self) -> Failure | None:
        """Why it last failed, if it did and has not been completed since."""
        failure = self._load().failure
        return failure and Failure(failure.group, failure.message, _at(failure.at), failure.worker)

    @property
    def subject(self) -> str | None:
        """What the message was about that became this job; None for one that was put."""
        return self._load().subject

    @property
    def lifo(self) -> bool:
        """Whether it stands before the others of its priority, newest first."""
        return self._load().lifo

    @property
    def lease(self) -> timedelta | None:
        """How long a lease on it lasts, where that is not the queue's heartbeat."""
        return _duration(self._load().lease_ms)

    @property
    def throttles(self) -> tuple[str, ...]:
        """The throttles that it passes whenever it is claimed."""
        return self._load().throttles

    @property
    def cost(self) -> int:
        """The tokens that a claim of it takes from their buckets."""
        return self._load().cost

    @property
    def dead_queue(self) -> str | None:
        """Where a dead letter of it is put when it fails."""
        return self._load().dead_queue

    @property
    def origin(self) -> str | None:
        """The id of the job of which it is a dead letter."""
        return self._load().origin

    @property
    def origin_queue(self) -> str | None:
        """The queue in which that job failed."""
        return self._load().origin_queue

    @property
    def revoked(self) -> bool:
        """Whether it was called off while it was running: its worker should stop."""
        return self._load().revoked

    @property
    def ttl(self) -> timedelta | None:
        """How long from its put it may begin; None also for a job that has begun."""
        return _duration(self._load().ttl_ms)

    @property
    def keep_complete(self) -> timedelta | None:
        """How long it is kept at most once it is complete, if its put said so."""
        return _duration(self._load().keep_complete_ms)

    @property
    def keep_failed(self) -> timedelta | None:
        """How long it is kept at most once it has failed, if its put said so."""
        return _duration(self._load().keep_failed_ms)

    @property
    def longest(self) -> timedelta | None:
        """How long it may run at most from its claim: the `timeout` it was put with."""
        return _duration(self._load().timeout_ms)

    @property
    def ordered(self) -> str | None:
        """The key of which one job after the other starts, if it has one."""
        return self._load().ordered

    @property
    def unique(self) -> str:
        """The key with which it was put, or empty."""
        return self._load().unique

    @property
    def holder(self) -> str:
        """The id of the job that holds its key, where it is kept until that one has ended; or empty."""
        return self._load().holder

    @property
    def spawned_from(self) -> str:
        """The id of the recurring job of which it is a run, or empty."""
        return self._load().spawned_from

    @property
    def tracked(self) -> bool:
        """Whether it is tracked."""
        return self._load().tracked

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The ids of the unfinished jobs that it waits for."""
        return self._load().dependencies

    @property
    def dependents(self) -> tuple[str, ...]:
        """The ids of the jobs that wait for it."""
        return self._load().dependents

    @property
    def history(self) -> tuple[Stage, ...]:
        """What happened to it, oldest first."""
        return tuple(Stage(s.what, _at(s.at), s.named) for s in self._load().history)

    @property
    def expires_at(self) -> datetime | None:
        """When its lease ends, unless a heartbeat renews it."""
        return moment(self.expires_at_ms)

    @property
    def expires_at_ms(self) -> int:
        """The same in milliseconds since the epoch, 0 without a lease."""
        return self._load().expires_at

    @property
    def put_at(self) -> datetime | None:
        """When it was put into its queue."""
        return moment(self.put_at_ms)

    @property
    def put_at_ms(self) -> int:
        """The same in milliseconds since the epoch."""
        return self._load().put_at

    @property
    def ready_at(self) -> datetime | None:
        """When it became, or will become, ready."""
        return moment(self.ready_at_ms)

    @property
    def ready_at_ms(self) -> int:
        """The same in milliseconds since the epoch."""
        return self._load().ready_at

    @property
    def popped_at(self) -> datetime | None:
        """When it was last handed to a worker."""
        return moment(self.popped_at_ms)

    @property
    def popped_at_ms(self) -> int:
        """The same in milliseconds since the epoch, 0 for never."""
        return self._load().popped_at

    @property
    def ended_at(self) -> datetime | None:
        """When it was completed, or failed."""
        return moment(self.ended_at_ms)

    @property
    def ended_at_ms(self) -> int:
        """The same in milliseconds since the epoch, 0 for not yet."""
        return self._load().ended_at

    def _decode(self, text: str, what: str, raw: str) -> Any:
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            message = f"The {what} of job {self.jid} is not JSON ({error}). Read job.{raw} for the text."
            raise DataError(message) from error

    def _now_is(self, **changed: Any) -> None:
        """Note what an operation has made of the job."""
        self._changed = {**self._changed, **changed}

    def _ended(self, state: str, **changed: Any) -> None:
        """Note that the lease has ended, and how."""
        self._finished = True
        self._now_is(state=state, worker="", expires_at=0, **changed)

    _finished = False


def _at(at: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at)


def _duration(duration: int | None) -> timedelta | None:
    return None if duration is None else timedelta(milliseconds=duration)


class SubscriptionFields:
    """The fields of a subscription, as they were when it was read."""

    def __init__(self, raw: replies.Subscription) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {' '.join(self.patterns)} to {self.queue}>"

    @property
    def name(self) -> str:
        """Its name; its jobs are called `<name>:<number of the message>`."""
        return self.raw.name

    @property
    def patterns(self) -> tuple[str, ...]:
        """What it wants."""
        return self.raw.patterns

    @property
    def queue(self) -> str:
        """The queue into which its jobs are put."""
        return self.raw.queue

    @property
    def klass(self) -> str:
        """The code that performs its jobs."""
        return self.raw.klass

    @property
    def behind(self) -> int:
        """How many messages of the past it has not been given yet."""
        return self.raw.behind


class RecurringFields:
    """The fields of a recurring job, as they were when it was read."""

    def __init__(self, raw: replies.Schedule) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        often = f"at {self.raw.cron}" if self.raw.cron else f"every {self.interval}"
        return f"<{type(self).__name__} {self.jid}: {self.klass} in {self.queue} {often}>"

    @property
    def jid(self) -> str:
        """Its id; those of its runs are `<jid>-1`, `<jid>-2` and so on."""
        return self.raw.jid

    @property
    def queue(self) -> str:
        """The queue into which its runs are put."""
        return self.raw.queue

    @property
    def klass(self) -> str:
        """The code that performs its runs."""
        return self.raw.klass

    @property
    def data(self) -> Any:
        """The data of its runs, decoded from JSON."""
        try:
            return json.loads(self.raw.data) if self.raw.data else None
        except ValueError as error:
            raise DataError(f"The data of {self.jid} are not JSON: {error}. See `text`.") from error

    @property
    def text(self) -> str:
        """The data of its runs as they are stored."""
        return self.raw.data

    @property
    def interval(self) -> timedelta:
        """The time from one run to the next: from when each is due or, of the kind `after`, from the end of each."""
        return timedelta(milliseconds=self.raw.interval_ms)

    @property
    def kind(self) -> str:
        """When its runs are due: `interval`, `cron` or `after`."""
        return self.raw.kind

    @property
    def cron(self) -> str:
        """Its cron expression, or empty."""
        return self.raw.cron.rpartition(" ")[0]

    @property
    def tz(self) -> str:
        """The time zone in which its cron expression is read, or empty."""
        return self.raw.cron.rpartition(" ")[2]

    @property
    def start(self) -> datetime | None:
        """The moment before which no run is due, if there is one."""
        return moment(self.raw.start_at)

    @property
    def end(self) -> datetime | None:
        """The moment after which no run is due, if there is one."""
        return moment(self.raw.end_at)

    @property
    def limit(self) -> int:
        """How many runs are made; 0 for any number."""
        return self.raw.limit

    @property
    def made(self) -> int:
        """How many runs were made since it began to recur at these times."""
        return self.raw.made

    @property
    def missed(self) -> str:
        """Which runs are made of several that are due: `all`, `one` or `none`."""
        return self.raw.missed

    @property
    def overlap(self) -> str:
        """Whether a run is made while another one is unfinished: `allow` or `skip`."""
        return self.raw.overlap

    @property
    def unfinished(self) -> int:
        """For how many of its runs it waits before another one is due."""
        return self.raw.open

    @property
    def paused(self) -> bool:
        """Whether it is paused."""
        return self.raw.paused

    @property
    def priority(self) -> int:
        """The priority of its runs: lower runs sooner."""
        return self.raw.priority

    @property
    def retries(self) -> int:
        """How often each of its runs may be tried again."""
        return self.raw.retries

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of its runs."""
        return self.raw.tags

    @property
    def backlog(self) -> int:
        """How many missed runs are made; 0 for all."""
        return self.raw.backlog

    @property
    def runs(self) -> int:
        """The number of its last run; 0 before the first."""
        return self.raw.runs

    @property
    def next_at(self) -> datetime | None:
        """When its next run is due; None while it is paused, waits for the end of a run, or nobody told the next moment
        of its cron expression.
        """
        return moment(self.raw.next_at)


class AsyncJobFields(Fields):
    """The fields of an AsyncJob: what is not known yet has to be awaited."""

    def _load(self) -> replies.Job:
        if self._known is None:
            raise NotLoadedError(f"Only the id of job {self.jid} is known: `await job.refresh()` fetches the rest.")
        return self._known


class JobFields(Fields):
    """The fields of a Job: what is not known yet is fetched."""

    def _load(self) -> replies.Job:
        if self._known is None:
            self.refresh()
            assert self._known is not None
        return self._known

    def refresh(self) -> Any:
        """Fetch the job anew."""
        raise NotImplementedError


# ---- how a `with` block ends


def failure_of(error: BaseException) -> tuple[str, str]:
    """The group and message of a job that failed: the exception's class, its traceback's end."""
    message = "".join(traceback.format_exception(error)).encode(errors="backslashreplace")
    return type(error).__name__[:80], message[-MESSAGE_BYTES:].decode(errors="ignore")


MESSAGE_BYTES = 60_000


def note_lost(error: BaseException, lost: RefusedError) -> None:
    """Say on an exception that it could not be recorded, because the lease was lost before."""
    error.add_note(f"qmodel: the failure was not recorded. {lost}")


# ---- options


def is_duration(option: str) -> bool:
    """Whether the value of an option is a duration."""
    known = OPTIONS.get("heartbeat" if option.startswith(PER_QUEUE) else option)
    return known is not None and known.unit == "ms"


def to_setting(option: str, value: Duration) -> int:
    """An option's value in its own unit, from seconds or a timedelta where it is a duration."""
    if is_duration(option) or isinstance(value, timedelta):
        return milliseconds(value)
    return cast(int, value)


def from_setting(option: str, value: int) -> float:
    """An option's value for Python: seconds where it is a duration."""
    if not is_duration(option):
        return value
    return value // 1000 if value % 1000 == 0 else value / 1000


class AsyncOptions:
    """Nothing more: an assignment cannot be awaited."""


class Options:
    """`config[option] = value`, `del config[option]`, iteration: where nothing is awaited."""

    def set(self, option: str, value: Duration) -> float:
        """Set an option."""
        raise NotImplementedError

    def unset(self, option: str) -> float:
        """Set an option back to its default."""
        raise NotImplementedError

    def all(self) -> dict[str, float]:
        """Every option with its value."""
        raise NotImplementedError

    def __setitem__(self, option: str, value: Duration) -> None:
        """Set an option: seconds or a timedelta where it is a duration."""
        self.set(option, value)

    def __delitem__(self, option: str) -> None:
        """Set an option back to its default."""
        self.unset(option)

    def __iter__(self) -> Iterator[str]:
        """The names of the options."""
        return iter(self.all())
