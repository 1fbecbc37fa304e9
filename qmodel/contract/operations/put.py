"""Putting jobs."""

from __future__ import annotations

from typing import Annotated

from qmodel.contract.arguments import (
    AnyDependencies,
    AnyTags,
    ConcurrencyKey,
    Cost,
    Count,
    Data,
    FairKey,
    FairWeight,
    Instant,
    Interval,
    Jid,
    Klass,
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
from qmodel.contract.operations.spec import CASCADE, DEPENDENCY, ENDS, FAST, Operation, operation


@operation("jid", "job", DEPENDENCY + " OVER_CAPACITY", "lock_lost deduplicated" + CASCADE + ENDS + FAST)
class Put(Operation):
    """Put a job into a queue: create a new job, or move an existing one there.

    If a worker holds the job, the worker loses its lease. An argument that is left out keeps its value on an existing
    job; on a new job the defaults are priority 0, 5 retries, no tags and no dependencies. The job starts anew:
    `remaining` is reset, and result and progress are cleared; the history and the last failure stay. A dependency that
    is complete counts as met.

    The job is ready `delay_ms` from now, or at the moment `at` of the server's clock; a moment that is past means now.
    Not both are given.

    Each put states anew how the job is to run. With `lifo` the job comes before the others of its priority, newest
    first. A lease lasts `lease_ms` instead of the queue's heartbeat. No lease lasts longer than `timeout_ms` from its
    claim, however often it is renewed. With `max_lapses`, a lease that ends by itself takes no retry: so many of a
    job's leases may, and with the next one the job fails into `failed-lapses-<queue>`. The first retry, or lapse, is
    followed by a wait of at least `retry_delay_ms`, and each further one by one twice as long, up to
    `retry_delay_max_ms` (default: a day). A job that no worker has started within `ttl_ms` of the put fails into
    `expired-<queue>` when its queue is next popped. When the job finally fails, a dead letter is put into `dead_queue`.
    Jobs with the same `ordered` key run one at a time, in the order in which they become ready, in whatever queue they
    are; each holds the key from then until it ends.

    In a fair queue (the option `fair`), the fair keys of the ready jobs of a priority take turns: a key with many jobs
    does not delay the jobs of the others. A job has the key `fair_key`, or else its first throttle. With a
    `fair_weight` of 3 (default 1, at most 100), a key gets three turns where others get one. There, `lifo` has no
    effect.

    A complete job is kept for at most `keep_complete_ms`, a failed one for at most `keep_failed_ms`; with 0 it is
    deleted in the step that ends it. With `keep_newest`, only so many complete jobs of its type are kept, among those
    that say so; the number of the last one to complete counts. The limits that the configuration sets for all jobs
    apply as well.

    The job passes up to 8 `throttles` each time it is claimed. A claim takes `cost` tokens (default 1) from the buckets
    of these throttles and of its queue's throttle.

    A dependency may be an edge, `<jid> <policy> <name>`. The policy says what the dependency's failure does to this
    job: block (the job keeps waiting), fail (the job fails too, into `failed-dependencies-<queue>`), ignore (the
    dependency counts as met) or cancel (the job is canceled). With the optional name, the dependency's result is kept
    with this job until this job is complete.

    A dependency may also be a request, `<id> request` or `<id> request <policy>`: the job waits until the request has
    ended with each of its sub-requests done. If it ends otherwise (canceled, or with a sub-request that failed or was
    canceled), the policy says what happens: fail, ignore and cancel as above; with block the job waits until the
    dependency is removed, because a request that has ended never changes.

    With a deduplication key (`unique`), nothing is put while another job holds the key; the reply then names that job.
    A job holds its key until it has ended, or for `unique_ms`; in the mode `window` it holds the key for `unique_ms`
    from its put, even if it ends earlier. The mode of the new put says what else happens. `debounce`: while the holder
    has not started, it takes over the new data and its delay restarts, but ends at most `unique_max_ms` after the
    holder's put. `again`: while the holder has not started, it takes over the new data; if it has started, this job is
    put, and waits until the holder has ended.
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
    keep_newest: Count | None = None
    throttles: ThrottleIds | None = None
    cost: Cost | None = None
    ordered: ConcurrencyKey | None = None
    max_lapses: Retries | None = None
    retry_delay_ms: Interval | None = None
    retry_delay_max_ms: Interval | None = None
    fair_key: FairKey | None = None
    fair_weight: FairWeight | None = None
    unique: UniqueKey | None = None
    unique_mode: UniqueMode | None = None
    unique_ms: Interval | None = None
    unique_max_ms: Interval | None = None
    at: Instant | None = None
    request: RequestId = ""


@operation(
    "jids",
    "job",
    DEPENDENCY + " DUPLICATE_JID DUPLICATE_KEY OVER_CAPACITY OVER_BUDGET",
    "lock_lost deduplicated" + CASCADE + ENDS + FAST,
)
class PutMany(Operation):
    """Put up to 1000 jobs in one step; they may depend on each other in any order."""

    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""


@operation(
    "number",
    "memo",
    DEPENDENCY + " DUPLICATE_JID OVER_CAPACITY OVER_BUDGET",
    "deduplicated" + CASCADE,
)
class PutNew(Operation):
    """Put up to 1000 jobs in one step, but only those whose ids are free; replies how many were put.

    Jobs that exist are skipped, whatever their state. So a bulk load may be sent again at any time, as long as its jobs
    are kept.
    """

    jobs: Annotated[tuple[Put, ...], Operations("Put")]
    request: RequestId = ""
