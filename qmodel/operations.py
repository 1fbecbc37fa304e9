"""The catalogue: what can be asked of the queue.

One class per operation. Its fields are its arguments (their annotations say what is accepted), its docstring says
what it does, and the decorator says what it replies, why it may be refused and which events it may cause. The Python
API, the command line, the wire protocol, the generated tests and the documentation derive from this file; only the
two implementations (`qmodel/ops`, `lua/ops`) are written by hand.

Operations are frozen for the type checker. Enforcing it at run time would make each one five times as expensive to
build (2.3 microseconds against 0.4, a sixth of the whole step), so it is not enforced.

How a resend is recognised (law 4) is part of an operation's meaning:

- `read`: it changes nothing.
- `job`: the job remembers the request that put it.
- `grant`: the worker remembers what each request was granted, until one of those leases ends.
- `lease`: the job's history holds the outcome of each token; of a job that was not kept, the last 1000 replies do.
- `memo`: the namespace remembers the replies of the last 1000 requests.
- `same`: doing it again sets the same value again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform, get_type_hints

from qmodel.arguments import (
    Amount,
    AnyDependencies,
    AnyJids,
    AnyTags,
    Backlog,
    Capacity,
    Concurrency,
    Cost,
    Count,
    Cron,
    Cursor,
    Daily,
    Data,
    Dependencies,
    Ended,
    Group,
    Instant,
    Instants,
    Interval,
    IntervalOrNone,
    Jid,
    Jids,
    Kind,
    Klass,
    Limit,
    LineKey,
    LineLimit,
    LogLine,
    Message,
    MetadataKey,
    MetadataValue,
    Milliseconds,
    Missed,
    Offset,
    Operations,
    Option,
    Overlap,
    Patterns,
    PriorityLevel,
    QueueName,
    QueueNames,
    Rate,
    Reason,
    Refill,
    RequestId,
    RequestName,
    RequestState,
    Retries,
    ScheduleId,
    ScheduleKind,
    Sequence,
    State,
    Subject,
    SubscriptionName,
    Switch,
    Tag,
    Tags,
    ThrottleIds,
    ThrottleName,
    Token,
    UniqueKey,
    UniqueMode,
    Value,
    WorkerName,
    WorkerNames,
)

Resend = Literal["read", "job", "grant", "lease", "memo", "same"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its name, its kind, and its default if it may be left out."""

    name: str
    kind: Kind
    required: bool
    default: Any

    @property
    def optional(self) -> bool:
        """Whether it may be left out, and is no request: clients give one with every call."""
        return not self.required and self.name != "request"


@dataclass(frozen=True, slots=True)
class Spec:
    """All that the catalogue knows of one operation."""

    name: str
    cls: type[Operation]
    summary: str
    arguments: tuple[Argument, ...]
    reply: str
    resend: Resend
    refusals: tuple[str, ...]
    events: tuple[str, ...]
    finishes: bool

    @property
    def cascades(self) -> bool:
        """Whether what follows from failures is seen to at its end."""
        return set(_CASCADE.split()) <= set(self.events)

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.resend == "read"


class Operation:
    """Base of all operations.

    `named` says whether any argument was given that may be left out, but for the request. Most calls leave all of them
    out: so what these ask for is behind one question, in the checks as in the verbs.
    """

    __slots__ = ("named",)
    spec: ClassVar[Spec]
    named: bool


_BURIED = " failed dead_lettered put retired"
_CASCADE = _BURIED + " canceled unblocked throttled"
"""What an operation may cause that fails a job, or goes on with what follows from a failure before it."""

CATALOGUE: dict[str, Spec] = {}
"""Every operation by its name on the wire, in the order of this file."""

T = TypeVar("T", bound=Operation)


def _arguments(cls: type[Operation]) -> tuple[Argument, ...]:
    hints = get_type_hints(cls, include_extras=True)
    found = []
    for field in fields(cls):  # type: ignore[arg-type]
        hint = hints[field.name]
        if not hasattr(hint, "__metadata__"):  # `Kind | None`
            hint = next(part for part in hint.__args__ if hasattr(part, "__metadata__"))
        required = field.default is MISSING
        found.append(Argument(field.name, hint.__metadata__[0], required, None if required else field.default))
    return tuple(found)


def _constructor(arguments: tuple[Argument, ...], annotations: dict[str, Any]) -> Callable[..., None]:
    """What makes operations of a class: as dataclasses write it, and what was `named` besides."""
    taken = [a.name if a.required else f"{a.name}=default_{a.name}" for a in arguments]
    kept = [f" self.{a.name} = {a.name}" for a in arguments]
    given = [f"{a.name} is not {'None' if a.default is None else f'default_{a.name}'}" for a in arguments if a.optional]
    known: dict[str, Any] = {f"default_{a.name}": a.default for a in arguments}
    lines = [f"def __init__({', '.join(['self', *taken])}):", *kept, " self.named = False"]
    if given:
        lines += [f" if {' or '.join(given)}:", "  self.named = True"]
    exec("\n".join(lines), known)
    made: Callable[..., None] = known["__init__"]
    made.__annotations__ = annotations
    return made


@dataclass_transform(frozen_default=True, kw_only_default=False)
def operation(
    reply: str, resend: Resend, refusals: str = "", events: str = "", finishes: bool = False
) -> Callable[[type[T]], type[T]]:
    """Enter a class in the catalogue.

    `reply` names a shape of qmodel.wire; `refusals` and `events` are the codes and kinds besides BAD_ARGUMENT that can
    occur; `finishes` marks what a full server must still accept, so that it drains.
    """

    def enter(cls: type[T]) -> type[T]:
        made: type[T] = dataclass(slots=True, eq=True, unsafe_hash=True)(cls)
        arguments = _arguments(made)
        made.__init__ = _constructor(arguments, made.__init__.__annotations__)  # type: ignore[method-assign]
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        summary = (cls.__doc__ or "").partition("\n")[0]
        made.spec = CATALOGUE[name] = Spec(
            name,
            made,
            summary,
            arguments,
            reply,
            resend,
            tuple(refusals.split()),
            tuple(events.split()),
            finishes,
        )
        return made

    return enter


_DEPENDENCY = "DEPENDENCY_NOT_FOUND DEPENDENCY_CYCLE DEPENDENCY_LIMIT"
_HELD = "JOB_NOT_FOUND LOCK_LOST"
_ENDS = " skipped unrecurred unthrottled request_done"
"""What a job's end may cause besides."""
_REPLAY = "JOB_NOT_FOUND NOT_A_DEAD_LETTER WRONG_STATE HAS_DEPENDENTS DEPENDENCY_LIMIT"
_RUNS = "fired renumbered missed" + _ENDS
_TAKEN = "popped promoted lock_lost unpaused" + _CASCADE + " " + _RUNS


# ---- putting


@operation("jid", "job", _DEPENDENCY + " OVER_CAPACITY", "lock_lost deduplicated" + _CASCADE + _ENDS)
class Put(Operation):
    """Put a job into a queue: a new one, or an existing one, which moves there.

    A worker that holds the job loses it. What is not given keeps its value on an existing job, and is priority 0,
    5 retries, no tags and no dependencies on a new one. The job starts anew: `remaining` is reset, result and progress
    are cleared; history and the last failure stay. Dependencies that are complete count as met.

    How this stage is to be run is said anew by each put: with `lifo` it stands before the others of its priority,
    newest first; a lease lasts `lease_ms` instead of the queue's heartbeat; no lease lasts longer than `timeout_ms`
    from its claim, however often it is renewed; and a job that no worker has begun within `ttl_ms` of the put fails, in
    `expired-<queue>`, when its queue is next popped. However it fails in the end, a dead letter of it is put into
    `dead_queue`. Of the jobs with one `ordered` key one after the other starts, in the order in which they become
    ready, whatever their queues: each holds the key from then until it ends.

    Once complete it is kept for `keep_complete_ms` at most, once failed for `keep_failed_ms`, and with 0 it is deleted
    in the step in which it ends. What the options say of all jobs holds besides.

    It passes up to 8 `throttles` whenever it is claimed, and takes `cost` tokens (1) from the buckets of these and of
    its queue.

    A dependency may be an edge, `<jid> <policy> <name>`: what its failure does to this job (block: it waits on; fail:
    it fails too, into `failed-dependencies-<queue>`; ignore: the dependency counts as met; cancel: it is canceled), and
    perhaps a name under which its result is kept with this job until that is complete.

    With a key (`unique`) nothing is put where another job stands for this one: then the reply names that one. It does
    so until it has ended, or for `unique_ms`; in the mode `window` for `unique_ms` from its put, whatever becomes of
    it. The mode of who comes says what else happens. `debounce`: while the other has not begun, its data become the
    ones that came last and its delay starts again, until `unique_max_ms` from its put. `again`: while it has not begun,
    its data become the ones that came last; if it has, this job is put, and kept until the other has ended.
    """

    queue: QueueName
    jid: Jid
    klass: Klass
    data: Data
    priority: PriorityLevel | None = None
    delay_ms: Milliseconds = 0
    retries: Retries | None = None
    tags: AnyTags | None = None
    depends: AnyDependencies | None = None
    lifo: Switch | None = None
    lease_ms: Interval | None = None
    timeout_ms: Interval | None = None
    ttl_ms: Interval | None = None
    dead_queue: QueueName | None = None
    keep_complete_ms: Milliseconds | None = None
    keep_failed_ms: Milliseconds | None = None
    throttles: ThrottleIds | None = None
    cost: Cost | None = None
    ordered: LineKey | None = None
    unique: UniqueKey | None = None
    unique_mode: UniqueMode | None = None
    unique_ms: Interval | None = None
    unique_max_ms: Interval | None = None
    request: RequestId = ""


@operation(
    "jids",
    "job",
    _DEPENDENCY + " DUPLICATE_JID DUPLICATE_KEY OVER_CAPACITY",
    "lock_lost deduplicated" + _CASCADE + _ENDS,
)
class PutMany(Operation):
    """Put up to 1000 jobs in one step; they may depend on each other in any order."""

    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


@operation(
    "number",
    "memo",
    _DEPENDENCY + " DUPLICATE_JID OVER_CAPACITY",
    "deduplicated" + _CASCADE,
)
class PutNew(Operation):
    """Put those of up to 1000 jobs whose ids are free, in one step; replies how many.

    Jobs that are there are passed over, whatever has become of them. So what is loaded in bulk may be sent as often as
    its sender likes, for as long as its jobs are kept.
    """

    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


# ---- taking


@operation("jobs", "grant", "", _TAKEN)
class Pop(Operation):
    """Lease the next jobs of a queue to a worker: lapsed ones first, then in the queue's order.

    Before that the runs of recurring jobs that are due are made, as `fire` does.

    A job whose throttles are not all open is parked; of parked jobs as many go on as their throttles have room for, to
    stand at the end of their priority. Where the queue's own throttle is closed, nothing is given.

    With `wait` an empty answer counts the caller as idle, and a job that becomes ready leaves a wake-up for it.
    """

    queue: QueueName
    worker: WorkerName
    count: Count = 1
    wait: Switch = False
    request: RequestId = ""


@operation("jobs", "grant", "", _TAKEN)
class PopAny(Operation):
    """Lease the next jobs of several queues to a worker, as `pop` does: all that the first has, then the second's.

    The caller says the order; no queue is looked at beyond `count` jobs, or after the step has told 1000 events. With
    `wait` an empty answer counts the caller as idle in each queue.
    """

    queues: QueueNames
    worker: WorkerName
    count: Count = 1
    wait: Switch = False
    request: RequestId = ""


@operation("jobs", "read")
class Peek(Operation):
    """Show the jobs that a pop would give next, ignoring pauses; due runs of recurring jobs as they would be made.

    Jobs that are parked are left out, and no throttle is asked.
    """

    queue: QueueName
    count: Count = 1


# ---- finishing


@operation("state", "lease", _HELD + " " + _DEPENDENCY, "completed advanced" + _CASCADE + _ENDS, finishes=True)
class Complete(Operation):
    """Complete a leased job, and release the jobs that waited for it; or send it on to a `next` queue.

    `delay_ms` and `depends` are of use with `next` only: the job is put there as `put` would.
    """

    jid: Jid
    token: Token
    result: Data = ""
    data: Data | None = None
    next: QueueName | None = None
    delay_ms: Milliseconds = 0
    depends: AnyDependencies = ()


@operation("names", "lease", _HELD + " DUPLICATE_JID", "completed" + _CASCADE + _ENDS, finishes=True)
class CompleteMany(Operation):
    """Complete up to 1000 leased jobs in one step; all of them or none."""

    jobs: Annotated[tuple[Complete, ...], Operations("Complete")]


@operation(
    "completed_and_popped",
    "grant",
    _HELD + " " + _DEPENDENCY,
    "completed advanced " + _TAKEN,
)
class CompleteAndPop(Operation):
    """Complete a leased job as `complete` does, and lease the next ones as `pop` does, in one step."""

    jid: Jid
    token: Token
    queue: QueueName
    worker: WorkerName
    count: Count = 1
    wait: Switch = False
    result: Data = ""
    data: Data | None = None
    next: QueueName | None = None
    delay_ms: Milliseconds = 0
    depends: AnyDependencies = ()
    request: RequestId = ""


@operation("jid", "lease", _HELD, _CASCADE + _ENDS, finishes=True)
class Fail(Operation):
    """Fail a leased job: it waits in a failure group for a person or a policy."""

    jid: Jid
    token: Token
    group: Group
    message: Message
    data: Data | None = None


@operation("number", "lease", _HELD, "retried" + _CASCADE + _ENDS, finishes=True)
class Retry(Operation):
    """Give a leased job back to be tried again, now or after a delay; it counts.

    Replies the retries that remain, or -1 when there were none left: then the job has failed, in `group` or else in
    `failed-retries-<queue>`.
    """

    jid: Jid
    token: Token
    delay_ms: Milliseconds = 0
    group: Group | None = None
    message: Message = ""


@operation("state", "lease", _HELD + " " + _DEPENDENCY, "released" + _CASCADE + _ENDS, finishes=True)
class Release(Operation):
    """Give a leased job back, now or for later, without counting it as a retry (step jobs).

    With `depends` it waits for those jobs, its children say, and is handed out again after them. These may be edges, as
    with `put`.
    """

    jid: Jid
    token: Token
    delay_ms: Milliseconds = 0
    data: Data | None = None
    depends: AnyDependencies = ()


# ---- leasing


@operation("lease", "same", _HELD, finishes=True)
class Heartbeat(Operation):
    """Renew a lease from now, and optionally update the job's data.

    Replies the new expiry, and whether the job was revoked: then its worker should stop.
    """

    jid: Jid
    token: Token
    data: Data | None = None


@operation("jids", "memo", "JOB_NOT_FOUND WRONG_STATE", "lock_lost" + _CASCADE + _ENDS, finishes=True)
class Timeout(Operation):
    """Take leases away at once: the jobs are stalled, and the next to be handed out."""

    jids: Jids
    request: RequestId = ""


@operation("names", "memo", "JOB_NOT_FOUND DEPENDENCY_LIMIT", "revoked" + _CASCADE + _ENDS, finishes=True)
class Revoke(Operation):
    """Call jobs off: those that nobody runs fail at once, in `revoked-<queue>`, and wait for no other job any longer.

    A running one is told so by its next heartbeat. However its lease then ends, by complete, retry, release, fail or
    timeout or because it runs out, it fails in that group and is not tried again; what it gave as result and data is
    kept. Replies the state of each job after that, in the order asked for; complete and failed ones stay as they are.
    """

    jids: Jids
    request: RequestId = ""


# ---- changing


@operation("jid", "memo", "JOB_NOT_FOUND", "updated")
class Update(Operation):
    """Replace a job's data."""

    jid: Jid
    data: Data
    request: RequestId = ""


@operation("number", "memo", "JOB_NOT_FOUND", "prioritized")
class Priority(Operation):
    """Change a job's priority; a waiting job keeps its place in time among its new equals."""

    jid: Jid
    priority: PriorityLevel
    request: RequestId = ""


@operation("state", "memo", "JOB_NOT_FOUND WRONG_STATE", "delayed unthrottled throttled")
class Delay(Operation):
    """Make a scheduled, waiting or throttled job ready in `delay_ms` from now, or a dependent one not before then."""

    jid: Jid
    delay_ms: Milliseconds
    request: RequestId = ""


@operation("state", "memo", "JOB_NOT_FOUND WRONG_STATE", "promoted throttled")
class Promote(Operation):
    """Make a scheduled job ready now."""

    jid: Jid
    request: RequestId = ""


@operation("jid", "memo", "JOB_NOT_FOUND", "logged")
class Log(Operation):
    """Add a line to a job's history."""

    jid: Jid
    message: LogLine
    request: RequestId = ""


@operation("jid", "memo", _HELD, "progressed")
class Progress(Operation):
    """Say how far a leased job has come."""

    jid: Jid
    token: Token
    progress: LogLine
    request: RequestId = ""


# ---- removing


@operation(
    "jids", "memo", "HAS_DEPENDENTS CANCEL_LIMIT", "canceled lock_lost unblocked throttled" + _ENDS, finishes=True
)
class Cancel(Operation):
    """Delete jobs that are not complete; running ones are lost to their workers.

    A job on which another depends is canceled only with that other, named too or found by `cascade`. Unknown and
    complete jobs are passed over. Replies the jobs canceled.
    """

    jids: Jids
    cascade: Switch = False
    request: RequestId = ""


@operation("drained", "memo", "", "canceled unblocked throttled" + _ENDS, finishes=True)
class Drain(Operation):
    """Cancel up to `count` jobs of a queue that have not begun; those on which others depend stay."""

    queue: QueueName
    count: Count = 1000
    request: RequestId = ""


@operation("bulk", "memo", "TOO_WIDE", "canceled lock_lost" + _ENDS, finishes=True)
class CancelMany(Operation):
    """Cancel the jobs that `search` finds for the same arguments, but complete ones, and those on which others depend.

    Up to 1000 jobs are looked at, from `cursor` on, and up to `count` canceled. With `preview` nothing changes, and the
    reply says how many fit.
    """

    queue: QueueName | None = None
    state: State | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    worker: WorkerName | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    request: RequestId = ""


@operation("bulk", "memo", "", "retired canceled", finishes=True)
class Clean(Operation):
    """Delete complete or failed jobs that ended at least `older_ms` ago, but those on which others depend.

    Up to 1000 jobs are looked at, oldest first, from `cursor` on, and up to `count` deleted: the complete jobs of all
    queues stand in one list. With `preview` nothing changes, and the reply says how many fit.
    """

    state: Ended
    older_ms: Milliseconds = 0
    queue: QueueName | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    request: RequestId = ""


@operation(
    "bulk",
    "memo",
    "QUEUE_BUSY HAS_DEPENDENTS CANCEL_LIMIT",
    "canceled retired lock_lost unblocked throttled unlimited forgotten" + _ENDS,
    finishes=True,
)
class Obliterate(Operation):
    """Delete a queue: its jobs in any state, those that recur in it, and when nothing is left what is known of it.

    It is refused while jobs run or are stalled, unless `force` is given: then they are lost to their workers. A job on
    which one of another queue depends is in the way. Up to 1000 jobs are looked at, from `cursor` on, and up to `count`
    deleted, each with those of the queue that depend on it. The reply says how many are gone, how many the queue still
    has, and the cursor to go on from. In the step in which it has none, and that looked at all, the queue is forgotten,
    with its pauses and its own throttle. Its statistics and options stay.
    """

    queue: QueueName
    force: Switch = False
    cursor: Cursor = ""
    count: Count = 1000
    request: RequestId = ""


# ---- dependencies


@operation(
    "jids", "memo", "JOB_NOT_FOUND WRONG_STATE " + _DEPENDENCY, "blocked skipped unrecurred request_done" + _CASCADE
)
class DependsOn(Operation):
    """Add dependencies to a job that waits for others; replies all that it now waits for.

    They may be edges, as with `put`. One that the job has already is from now on as it is given here.
    """

    jid: Jid
    dependencies: Dependencies
    request: RequestId = ""


@operation("jids", "memo", "JOB_NOT_FOUND WRONG_STATE DEPENDENCY_LIMIT", "unblocked throttled")
class DependsOff(Operation):
    """Remove dependencies of a job that waits for others, or with `all` every one; replies those that are left."""

    jid: Jid
    dependencies: AnyJids = ()
    all: Switch = False
    request: RequestId = ""


@operation("results", "read", "JOB_NOT_FOUND")
class Results(Operation):
    """Show what became of the dependencies of a job that were given names, in the order in which they were named.

    Of a complete one its result, of one that failed and is ignored the message of its failure.
    """

    jid: Jid


# ---- deduplication


@operation("unique", "read")
class UniqueGet(Operation):
    """Show which job holds a key, or nothing."""

    unique: UniqueKey


@operation("number", "memo", "", "unique_released unblocked throttled")
class UniqueRelease(Operation):
    """Let nobody hold a key: the next put with it is accepted. A job that was kept for after the holder goes on.

    Replies 1, or 0 if nobody held it.
    """

    unique: UniqueKey
    request: RequestId = ""


# ---- tags and tracking


@operation("names", "memo", "JOB_NOT_FOUND", "tagged")
class TagAdd(Operation):
    """Add tags to a job; replies all its tags."""

    jid: Jid
    tags: Tags
    request: RequestId = ""


@operation("names", "memo", "JOB_NOT_FOUND", "untagged")
class TagRemove(Operation):
    """Remove tags from a job; replies the tags that are left."""

    jid: Jid
    tags: Tags
    request: RequestId = ""


@operation("page", "read")
class Tagged(Operation):
    """List the jobs that have a tag, in the order in which they got it."""

    tag: Tag
    offset: Offset = 0
    count: Count = 25


@operation("tallies", "read")
class TopTags(Operation):
    """List the tags that at least two jobs have, most used first."""

    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "JOB_NOT_FOUND", "tracked")
class Track(Operation):
    """Track a job; replies 1, or 0 if it was tracked already. Tracking outlives the job."""

    jid: Jid
    request: RequestId = ""


@operation("number", "memo", "", "untracked")
class Untrack(Operation):
    """Stop tracking a job, whether or not it still exists; replies 1, or 0 if it was not tracked."""

    jid: Jid
    request: RequestId = ""


@operation("tracked", "read")
class Tracked(Operation):
    """Show the tracked jobs, and the ids of tracked jobs that are gone."""

    offset: Offset = 0
    count: Count = 25


# ---- failures


@operation("tallies", "read")
class FailedGroups(Operation):
    """List the failure groups by name, with how many jobs each holds."""

    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Failed(Operation):
    """List the jobs of a failure group, latest failure first."""

    group: Group
    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "", "unfailed throttled")
class Unfail(Operation):
    """Move the longest failed jobs of a group to a queue, to be tried anew; replies how many."""

    queue: QueueName
    group: Group
    count: Count = 25
    request: RequestId = ""


@operation("jid", "memo", _REPLAY, "canceled put lock_lost")
class Replay(Operation):
    """Put the job anew of which this is a dead letter, into its queue and as the letter has it, and delete the letter.

    Klass, data, priority, retries and tags are those of the letter; `lifo`, `lease_ms`, `timeout_ms` and `dead_queue`
    are as the job was put. If the job is there it must be failed. Replies its id.
    """

    jid: Jid
    request: RequestId = ""


@operation("bulk", "memo", "", "unfailed throttled")
class RetryMany(Operation):
    """Put failed jobs back into their own queues, to be tried anew: of a queue, klass, tag or group, or all.

    Up to 1000 jobs are looked at, from `cursor` on, and up to `count` retried. With `preview` nothing changes, and the
    reply says how many fit.
    """

    queue: QueueName | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 1000
    preview: Switch = False
    request: RequestId = ""


# ---- requests


@operation("state", "memo", "REQUEST_CONFLICT", "request_opened request_forgotten")
class RequestOpen(Operation):
    """Open a request: a set of jobs of a queue, its sub-requests, of which at most `limit` run at a time.

    Its sub-requests have its priority; requests of one priority take turns. Of a request that is there already, opened
    alike, its state is replied.
    """

    id: RequestName
    queue: QueueName
    limit: LineLimit
    priority: PriorityLevel = 0
    request: RequestId = ""


_PUTS = _DEPENDENCY + " DUPLICATE_JID OVER_CAPACITY JOB_EXISTS REQUEST_STATE"


@operation("number", "memo", "REQUEST_NOT_FOUND " + _PUTS, "put request_forgotten" + _CASCADE)
class RequestAdd(Operation):
    """Add up to 1000 sub-requests to an open request; replies how many are new.

    Each is a put into the request's queue, without a priority, an `ordered` or a `unique` key. One that the request has
    had already is passed over, whatever became of it.
    """

    id: RequestName
    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


@operation("state", "memo", "REQUEST_NOT_FOUND", "request_closed request_done", finishes=True)
class RequestClose(Operation):
    """Let an open request end with its last sub-request: at once, if there is none left; replies its state."""

    id: RequestName
    request: RequestId = ""


@operation(
    "state",
    "memo",
    "REQUEST_CONFLICT " + _PUTS,
    "request_opened put request_closed request_done request_forgotten" + _CASCADE,
)
class RequestPut(Operation):
    """Open a request, add all its sub-requests, and close it, in one step; replies its state."""

    id: RequestName
    queue: QueueName
    limit: LineLimit
    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    priority: PriorityLevel = 0
    request: RequestId = ""


@operation("request", "read")
class RequestGet(Operation):
    """Show a request and how far it has come, or nothing."""

    id: RequestName


@operation("page", "read")
class Requests(Operation):
    """List the requests in a state, longest in it first."""

    state: RequestState = "open"
    offset: Offset = 0
    count: Count = 25


@operation("state", "memo", "REQUEST_NOT_FOUND REQUEST_STATE", "request_tuned unthrottled")
class RequestTune(Operation):
    """Change the priority or the limit of a request that has not ended.

    A lower limit takes nothing away from who runs or is next; a higher one lets more through at once.
    """

    id: RequestName
    priority: PriorityLevel | None = None
    limit: LineLimit | None = None
    request: RequestId = ""


@operation(
    "number",
    "memo",
    "REQUEST_NOT_FOUND HAS_DEPENDENTS CANCEL_LIMIT",
    "request_canceled canceled revoked request_done",
    finishes=True,
)
class RequestCancel(Operation):
    """Call a request off: nothing more of it is handed out, and up to 1000 sub-requests that nobody runs are canceled.

    Those that run are revoked, and counted as canceled when they end. Replies how many are left to cancel: ask again
    until there are none. A sub-request on which another job depends is canceled only with that one.
    """

    id: RequestName
    request: RequestId = ""


@operation("number", "memo", "REQUEST_NOT_FOUND REQUEST_STATE", "request_forgotten", finishes=True)
class RequestForget(Operation):
    """Forget up to 1000 sub-requests of a request that has ended, and with the last of them the request.

    Replies how many are left to forget. The jobs stay.
    """

    id: RequestName
    request: RequestId = ""


# ---- recurring jobs


@operation("jid", "memo", "SCHEDULE_OVER", "recurred")
class Recur(Operation):
    """Let a job recur: runs of it are put, as jobs of their own that are called `<jid>-1`, `<jid>-2` and so on.

    Of the kind `interval` a run is due every `interval_ms`, first in `offset_ms` from `start_at` or else from now, at
    exact multiples, whenever it is made, and ready at that moment. Of the kind `cron` runs are due at the moments
    `due_at`, at most 100 in ascending order; `cron` says where they come from and is only kept. Of the kind `after`
    each run is due `interval_ms` after the one before has ended, in whatever way.

    None is due before `start_at` or after `end_at`, and no more than `limit` are made; 0 stands for no bound. Of
    several that are due `missed` has all made, or the last `one`, or `none` that is later than `catchup_ms`; those
    missed by more than `backlog` intervals are passed over, and 0 keeps all. With `overlap` at `skip` nothing is due
    while a run is unfinished, and what was due meanwhile is passed over.

    Of a recurring job that exists already everything is replaced but the number of its last run. If its kind, interval,
    offset, expression and start are the same it goes on as it was, unless `restart` is set: then, and if one of them is
    another, its times and the count of its runs begin anew. It stays paused if it is.
    """

    queue: QueueName
    jid: ScheduleId
    klass: Klass
    data: Data
    interval_ms: IntervalOrNone
    offset_ms: Milliseconds = 0
    priority: PriorityLevel = 0
    retries: Retries = 5
    tags: AnyTags = ()
    backlog: Backlog = 0
    kind: ScheduleKind = "interval"
    cron: Cron = ""
    due_at: Instants = ()
    start_at: Instant = 0
    end_at: Instant = 0
    limit: Limit = 0
    missed: Missed = "all"
    catchup_ms: Milliseconds = 60_000
    overlap: Overlap = "allow"
    restart: Switch = False
    request: RequestId = ""


@operation("number", "memo", "", "unrecurred")
class Unrecur(Operation):
    """Let a job recur no more; the runs that were made stay. Replies 1, or 0 if there was no such recurring job."""

    jid: ScheduleId
    request: RequestId = ""


@operation("schedule", "read")
class RecurGet(Operation):
    """Show a recurring job, or nothing."""

    jid: ScheduleId


@operation("jid", "memo", "SCHEDULE_NOT_FOUND", "recur_updated unrecurred")
class RecurUpdate(Operation):
    """Change what is given of a recurring job; runs that were made stay as they are.

    With a new interval the next run is due one such interval after the last one, but not before now; one that is due
    already stays so. One of the kind `cron` has no interval. In a new queue the next run is due when it was.
    """

    jid: ScheduleId
    queue: QueueName | None = None
    klass: Klass | None = None
    data: Data | None = None
    interval_ms: Interval | None = None
    priority: PriorityLevel | None = None
    retries: Retries | None = None
    backlog: Backlog | None = None
    request: RequestId = ""


@operation("names", "memo", "SCHEDULE_NOT_FOUND", "recur_updated")
class RecurTag(Operation):
    """Add tags to a recurring job, for the runs to come; replies all its tags."""

    jid: ScheduleId
    tags: Tags
    request: RequestId = ""


@operation("names", "memo", "SCHEDULE_NOT_FOUND", "recur_updated")
class RecurUntag(Operation):
    """Remove tags from a recurring job, for the runs to come; replies the tags that are left."""

    jid: ScheduleId
    tags: Tags
    request: RequestId = ""


@operation("number", "memo", "SCHEDULE_NOT_FOUND", "recur_paused")
class RecurPause(Operation):
    """Let nothing of a recurring job be due, until it is let go on; replies 1, or 0 if it was paused already."""

    jid: ScheduleId
    request: RequestId = ""


@operation("number", "memo", "SCHEDULE_NOT_FOUND", "recur_unpaused missed unrecurred")
class RecurUnpause(Operation):
    """Let a recurring job go on; what was due meanwhile is passed over. Replies 1, or 0 if it was not paused."""

    jid: ScheduleId
    request: RequestId = ""


@operation("jid", "memo", "SCHEDULE_NOT_FOUND", "fired put renumbered unrecurred")
class RecurNow(Operation):
    """Make one run of a recurring job at once, though it is not due, or paused, or another is unfinished.

    It counts, and does not move the next one. Replies the run, or nothing if the ids of the next thousand are taken.
    """

    jid: ScheduleId
    request: RequestId = ""


@operation("number", "same", "", "recur_advanced unrecurred")
class RecurAdvance(Operation):
    """Tell the next moments of a recurring job of the kind `cron`, if `after` is the last one that is known.

    They are at most 100, in ascending order, and as many are taken as make 100 with those to come. To tell none says
    that there are none. Replies the last moment known, from which to tell on, or 0 if it recurs no more. So anybody may
    tell them, and however often: the moments after one are taken once.
    """

    jid: ScheduleId
    after: Instant
    due_at: Instants = ()


@operation("schedules", "read")
class RecurringUnset(Operation):
    """Show recurring jobs of all queues whose known moments have passed, or will have in `ahead_ms`; soonest first."""

    ahead_ms: Milliseconds = 0
    count: Count = 25


@operation("page", "read")
class Recurring(Operation):
    """List the recurring jobs of a queue, next due first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("number", "memo", "", _CASCADE + " fired renumbered missed" + _ENDS)
class Fire(Operation):
    """Make the runs of a queue that are due, and take none of them; replies how many were made.

    Before that the jobs fail that did not begin within their time to live, as a pop would have it; and ended ones are
    deleted that were put with `keep_complete_ms` or `keep_failed_ms`, up to 1000 that are due.

    Recurring jobs take turns, a run each, until none is due or `count` runs have been tried. A run whose id belongs
    to a job already gets the next number.
    """

    queue: QueueName
    count: Count = 1000
    request: RequestId = ""


# ---- throttles


@operation("jid", "memo", "", "limited")
class ThrottleSet(Operation):
    """Set all limits of a throttle at once; those that are not given are none.

    `concurrency` is how many jobs that name it run at once; those whose lease ran out count until it is known. `rate`
    is how many are claimed in any window of `rate_ms`. `capacity` is that of a bucket of tokens, which is full at
    first, and of which a claim takes the job's cost; `refill` tokens come back in every `refill_ms`, steadily. A rate
    needs its time, a capacity its refill and its time, and one limit at least must be given. `queue/<queue>` is the
    throttle of all jobs of a queue. Jobs that run already count.
    """

    throttle: ThrottleName
    concurrency: Concurrency | None = None
    rate: Rate | None = None
    rate_ms: Interval | None = None
    capacity: Capacity | None = None
    refill: Refill | None = None
    refill_ms: Daily | None = None
    request: RequestId = ""


@operation("number", "memo", "", "unlimited")
class ThrottleUnset(Operation):
    """Take all limits from a throttle; parked jobs go on. Replies 1, or 0 if it had none."""

    throttle: ThrottleName
    request: RequestId = ""


@operation("throttle", "read")
class ThrottleGet(Operation):
    """Show the limits of a throttle, and how they are used; zeros for one never seen."""

    throttle: ThrottleName


@operation("throttles", "read")
class Throttles(Operation):
    """List the throttles that have limits, by name."""

    offset: Offset = 0
    count: Count = 25


# ---- messages and subscriptions


@operation("number", "memo", "BAD_SUBJECT", "published put passed_over caught_up trimmed throttled")
class Publish(Operation):
    """Publish a message: each subscription that wants its subject gets a job for it; replies the message's number.

    The jobs are called `<subscription>:<number>`; their data are the message's, their option `subject` is its subject.
    They are ready in `delay_ms` from now. The message is kept for those who subscribe later, by messages-history and
    messages-history-count. A subscription that is behind gets it when its turn comes.
    """

    subject: Subject
    data: Data
    delay_ms: Milliseconds = 0
    request: RequestId = ""


@operation("number", "memo", "BAD_PATTERN LIMIT_REACHED", "subscribed put passed_over caught_up throttled")
class Subscribe(Operation):
    """Let each message that fits a pattern become a job of a queue; replies how many messages it is behind.

    A pattern is a subject in which a segment may be `*`, for any one, and the last one `>`, for one or more. A message
    that fits several becomes one job. The jobs are ready `delay_ms` after the message is due; what the other arguments
    say of them is what they say in `put`.

    A subscription begins with what is published from now on; or, of the messages that are kept, with those after the
    number `after`, and not before the moment `since`. Up to `count` of these are looked at in this step, others with
    `catch_up`; until it has got them all, what is published waits for its turn. Of a subscription that exists already
    everything is replaced but how far it has come. With a queue of its own it can be paused, counted and drained alone.
    """

    subscription: SubscriptionName
    patterns: Patterns
    queue: QueueName
    klass: Klass
    priority: PriorityLevel = 0
    delay_ms: Milliseconds = 0
    retries: Retries = 5
    tags: AnyTags = ()
    lifo: Switch = False
    lease_ms: Interval | None = None
    timeout_ms: Interval | None = None
    ttl_ms: Interval | None = None
    dead_queue: QueueName | None = None
    ordered: LineKey | None = None
    after: Sequence | None = None
    since: Instant | None = None
    count: Count = 1000
    request: RequestId = ""


@operation("number", "memo", "SUBSCRIPTION_NOT_FOUND", "put passed_over caught_up throttled")
class CatchUp(Operation):
    """Give a subscription that is behind the next messages, up to `count`; replies how many are left."""

    subscription: SubscriptionName
    count: Count = 1000
    request: RequestId = ""


@operation("number", "memo", "", "unsubscribed")
class Unsubscribe(Operation):
    """End a subscription; the jobs that it has got stay. Replies 1, or 0 if there was none."""

    subscription: SubscriptionName
    request: RequestId = ""


@operation("subscription", "read")
class SubscriptionGet(Operation):
    """Show a subscription, or nothing."""

    subscription: SubscriptionName


@operation("subscriptions", "read")
class Subscriptions(Operation):
    """List the subscriptions, oldest first."""

    offset: Offset = 0
    count: Count = 25


@operation("messages", "read")
class Messages(Operation):
    """Give the messages that are kept, after a number, oldest first."""

    after: Sequence = 0
    count: Count = 25


@operation("number", "memo", "", "trimmed put passed_over caught_up throttled")
class Trim(Operation):
    """Drop the oldest messages that are kept, up to `count`; replies how many.

    Subscriptions that are behind get them before. What is past keeping goes by itself, with the next messages.
    """

    count: Count = 1000
    request: RequestId = ""


# ---- looking


@operation("reasons", "read", "JOB_NOT_FOUND")
class Why(Operation):
    """Say why a job does not run: its state, its throttles, those before it, its queue's pauses, and workers.

    Nothing is said of a job that the next pop of its queue gives.
    """

    jid: Jid


@operation("job", "read")
class Get(Operation):
    """Show a job, or nothing."""

    jid: Jid


@operation("jobs", "read")
class Multiget(Operation):
    """Show several jobs in the order asked for; those that do not exist are left out."""

    jids: Jids


@operation("found", "read", "TOO_WIDE")
class Search(Operation):
    """Find jobs by queue, state, klass, tag, worker and group, any of them; list by list, each in its order.

    The jobs of a worker, of a group, of a tag, of a queue, complete or failed ones stand in lists, so one of these has
    to be given. Up to 1000 jobs are looked at, all of them before anything is left out. The reply has a cursor, to go
    on from there, or none at the end. What stays where it is in the meantime is found exactly once.
    """

    queue: QueueName | None = None
    state: State | None = None
    klass: Klass | None = None
    tag: Tag | None = None
    worker: WorkerName | None = None
    group: Group | None = None
    cursor: Cursor = ""
    count: Count = 25


@operation("page", "read")
class Waiting(Operation):
    """List the waiting jobs of a queue: those in order, then those whose time has come since the last pop."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Scheduled(Operation):
    """List the scheduled jobs of a queue, soonest first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Depending(Operation):
    """List the jobs of a queue that wait for others, longest waiting first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Throttled(Operation):
    """List the jobs of a queue that are ready and wait for a throttle to open, longest ready first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Running(Operation):
    """List the jobs of a queue under a valid lease, soonest to expire first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Stalled(Operation):
    """List the jobs of a queue whose lease lapsed or was taken, longest first."""

    queue: QueueName
    offset: Offset = 0
    count: Count = 25


@operation("page", "read")
class Completed(Operation):
    """List the complete jobs, latest first."""

    offset: Offset = 0
    count: Count = 25


@operation("queues", "read")
class Queues(Operation):
    """List the queues in the order in which they were first seen, with the number of jobs in each state."""

    offset: Offset = 0
    count: Count = 25


@operation("queue", "read")
class Queue(Operation):
    """Show one queue's counts; zeros for one never seen."""

    queue: QueueName


@operation("number", "read")
class Length(Operation):
    """Count the jobs of a queue in any state."""

    queue: QueueName


@operation("workers", "read")
class Workers(Operation):
    """List the workers, latest seen first; those silent for max-worker-age without a job are left out."""

    offset: Offset = 0
    count: Count = 25


@operation("worker", "read")
class Worker(Operation):
    """List the jobs that a worker holds."""

    worker: WorkerName


@operation("stats", "read")
class Stats(Operation):
    """Show the statistics of a queue on the UTC day of `at` (default: today)."""

    queue: QueueName
    at: Instant | None = None


@operation("metrics", "read")
class Metrics(Operation):
    """Show what became of a queue's jobs, minute by minute up to that of `at` (default: this one), oldest first.

    Every minute is shown for which metrics-history keeps them, also those in which nothing happened.
    """

    queue: QueueName
    at: Instant | None = None
    count: Count = 60


@operation("events", "read")
class Events(Operation):
    """Give the events after a sequence number, oldest first; only the last max-events are kept."""

    after: Sequence = 0
    count: Count = 100


@operation("number", "read")
class Newest(Operation):
    """Give the sequence of the newest event, 0 before the first: who follows from there sees all that comes."""


@operation("recorded", "read")
class Journal(Operation):
    """Give the entries of the journal after a number, oldest first; only the last max-journal are kept.

    While the option `journal` is 1, each operation that may change something is recorded in the step that executes it,
    also when it is refused or sent again: what was called, with its moment, and what came of it.
    """

    after: Sequence = 0
    count: Count = 100


# ---- queues, workers, configuration


@operation("number", "memo", "LIMIT_REACHED", "paused unpaused")
class Pause(Operation):
    """Stop handing out jobs of queues, at once; replies how many were not paused before.

    A queue is paused as long as any reason is there. Each has a pause of its own, which a second one for the same
    reason replaces; with `for_ms` it ends by itself after that time, else with `unpause`. A queue has at most 10.
    """

    queues: QueueNames
    reason: Reason = "by hand"
    for_ms: Milliseconds = 0
    request: RequestId = ""


@operation("number", "memo", "", "unpaused")
class Unpause(Operation):
    """End the pauses of queues, or with `reason` only those for it; replies how many hand out jobs again by that."""

    queues: QueueNames
    reason: Reason | None = None
    request: RequestId = ""


@operation("number", "memo", "QUEUE_NOT_EMPTY", "forgotten")
class Forget(Operation):
    """Take empty queues off the list, with their pauses; replies how many were on it, or paused."""

    queues: QueueNames
    request: RequestId = ""


@operation("number", "memo", "", "deregistered")
class Deregister(Operation):
    """Take workers off the list; leases that they hold stay valid. Replies how many were on it."""

    workers: WorkerNames
    request: RequestId = ""


@operation("settings", "read")
class Config(Operation):
    """List the options, their values, and which of them are set."""


@operation("number", "read", "UNKNOWN_OPTION")
class ConfigGet(Operation):
    """Show the value of an option."""

    option: Option


@operation("number", "memo", "UNKNOWN_OPTION BAD_VALUE", "configured")
class ConfigSet(Operation):
    """Set an option; replies its value."""

    option: Option
    value: Value
    request: RequestId = ""


@operation("number", "memo", "UNKNOWN_OPTION", "configured")
class ConfigUnset(Operation):
    """Set an option back to its default; replies that."""

    option: Option
    request: RequestId = ""


# ---- what all runs of a klass share


@operation("entries", "read")
class MetadataGet(Operation):
    """Show what was noted for a klass, by key."""

    klass: Klass


@operation("number", "memo", "LIMIT_REACHED", "noted")
class MetadataSet(Operation):
    """Note a text for a klass, which all its jobs share; replies 1 if the key is new, or 0. At most 1000 keys."""

    klass: Klass
    key: MetadataKey
    value: MetadataValue
    request: RequestId = ""


@operation("number", "memo", "LIMIT_REACHED NOT_WHOLE", "noted")
class MetadataIncrement(Operation):
    """Add to a whole number that is noted for a klass, 0 where nothing is; replies the sum."""

    klass: Klass
    key: MetadataKey
    by: Amount = 1
    request: RequestId = ""


@operation("number", "memo", "", "unnoted")
class MetadataUnset(Operation):
    """Forget what is noted for a klass under a key; replies 1, or 0 if nothing was."""

    klass: Klass
    key: MetadataKey
    request: RequestId = ""
