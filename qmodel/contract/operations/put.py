"""Putting jobs."""

from __future__ import annotations

from typing import Annotated

from qmodel.contract.arguments import (
    AnyDependencies,
    AnyTags,
    Cost,
    Data,
    Interval,
    Jid,
    Klass,
    LineKey,
    Milliseconds,
    Operations,
    PriorityLevel,
    QueueName,
    RequestId,
    Retries,
    Switch,
    ThrottleIds,
    UniqueKey,
    UniqueMode,
)
from qmodel.contract.operations.spec import CASCADE, DEPENDENCY, ENDS, Operation, operation


@operation("jid", "job", DEPENDENCY + " OVER_CAPACITY", "lock_lost deduplicated" + CASCADE + ENDS)
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
    DEPENDENCY + " DUPLICATE_JID DUPLICATE_KEY OVER_CAPACITY",
    "lock_lost deduplicated" + CASCADE + ENDS,
)
class PutMany(Operation):
    """Put up to 1000 jobs in one step; they may depend on each other in any order."""

    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


@operation(
    "number",
    "memo",
    DEPENDENCY + " DUPLICATE_JID OVER_CAPACITY",
    "deduplicated" + CASCADE,
)
class PutNew(Operation):
    """Put those of up to 1000 jobs whose ids are free, in one step; replies how many.

    Jobs that are there are passed over, whatever has become of them. So what is loaded in bulk may be sent as often as
    its sender likes, for as long as its jobs are kept.
    """

    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""
