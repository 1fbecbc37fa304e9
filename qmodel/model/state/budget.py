"""The budget: how much work one operation may do.

Counts alone do not bound an operation: a thousand jobs with a hundred tags each are a hundred thousand tags. So work is
counted in units, of about ten microseconds of a server each. A job costs 2 units, and one more for each option, tag,
dependency, dependent, and 3 KiB of data; two for each throttle and for every four stages of its history; more for long
histories, and for the texts that its record holds. One operation may do 4000 units, so that it stays below 50
milliseconds.

- An operation whose work follows from its arguments, and that is done whole or not at all, is refused if it needs more
  (OVER_BUDGET). A single job is never refused.
- Other operations do what fits, at least one job, and leave the rest to the next call: their replies say where to
  continue, or the next pop continues.
- A pop spends at most half on upkeep (lapsed leases, expired jobs, due runs, due jobs), so that ready jobs never wait
  for it.

Only what is above the first job is refused or left. The number of units never depends on time or on chance, so both
sides stop at the same job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.contract.operations import Put
from qmodel.contract.refusals import refuse
from qmodel.contract.replies import WIDTH
from qmodel.model.state import config
from qmodel.model.state.records import Job, Message, Schedule, Subscription
from qmodel.model.state.store import Store

Item = TypeVar("Item")

UNITS = 4000
"""The most units of one operation."""

FAILURE = 2
"""The units of a failure, beside those of the job."""

SLOT = 3
"""The units for giving a slot to a parked job, beside those for moving it."""

THROTTLE = 6
"""The units for checking a throttle at which jobs are parked."""

QUEUE = 2
"""The units for letting a queue check a throttle again, because a lease has ended."""

ALONE = 4
"""The units for taking a job of a queue with a throttle of its own, which are taken one at a time."""

TURN = 3
"""The units for giving a job its turn in a fair queue."""

LEASES = 2
"""The entries of a worker that cost a unit when its leases are looked at: leases, and grants that are remembered."""

HOLDERS = 25
"""How many of the jobs that hold a throttle are shown."""

BLOCK = 3072
"""The bytes of text that cost a unit."""

SEARCHED = 1024
"""The bytes of data that cost a unit when a text is searched in them."""

INLINE = 1024
"""Data up to this size cost nothing: Lua keeps them within the record."""

SHORT = INLINE // 4
"""So many characters are never more than INLINE bytes."""

STAGES = 4 * WIDTH
"""Four stages in a history, as it is stored."""

FEW_TAGS = 16
"""The tags that cost a unit when a job is read, beside the unit of each when it is listed or shown."""

OF_PUT = (
    "lifo", "lease_ms", "dead_queue", "ttl_ms", "timeout_ms", "keep_complete_ms", "keep_failed_ms", "keep_newest",
    "throttles", "cost", "ordered", "max_lapses", "retry_delay_ms", "retry_delay_max_ms", "fair_key",
    "fair_weight", "unique",
)  # fmt: skip
"""The arguments of a put that become options."""


def begin(store: Store) -> None:
    """Start an operation with a full budget."""
    store.room = UNITS
    store.cut = False


def spend(store: Store, units: int) -> None:
    """Take units from the budget."""
    store.room -= units


def room(store: Store) -> int:
    """The units that are left."""
    return store.room


def fits(store: Store, units: int, kept: int) -> bool:
    """Whether units fit into the budget and leave `kept`. If not, the operation leaves work to the next one."""
    if store.room - units >= kept:
        return True
    store.cut = True
    return False


def take(store: Store, units: int, kept: int, some: object) -> bool:
    """Spend units if they fit into the budget and leave `kept`, which is asked only after `some` others."""
    if some and not fits(store, units, kept):
        return False
    spend(store, units)
    return True


def afford(store: Store, found: Sequence[Item], units_of: Callable[[Item], int], some: bool = False) -> int:
    """How many of some things the budget has room for, at least one unless there were `some` before; spend it."""
    for count, one in enumerate(found):
        if not take(store, units_of(one), 0, count or some):
            return count
    return len(found)


def is_cut(store: Store) -> bool:
    """Whether the operation leaves work to the next one."""
    return store.cut


def size(text: str) -> int:
    """The bytes of a text."""
    return len(text) if text.isascii() else len(text.encode())


def _apart(text: str) -> int:
    """The bytes of data that are not kept within the record."""
    if len(text) <= SHORT:
        return 0
    bytes_ = size(text)
    return bytes_ if bytes_ > INLINE else 0


def _of_history(job: Job) -> int:
    """The units for a history, which may have long lines if it is long."""
    return len(job.history) // STAGES * 2 + len(job.history) // (4 * STAGES) * 8


def of_texts(job: Job) -> int:
    """The units for the texts in a job's record: each is copied several times when it moves."""
    message = "" if job.failure is None else job.failure.message
    return 4 * ((size(job.result) + size(job.progress) + size(message)) // BLOCK)


def moving(job: Job) -> int:
    """The units for moving a job from one state to another."""
    units = 2
    if job.tags:
        units += len(job.tags) // FEW_TAGS
    if job.failure is not None or job.result or job.progress:
        units += of_texts(job)
    if len(job.history) >= STAGES:
        units += _of_history(job)
    if job.options:
        units += _of_options(job)
    return units


def _of_options(job: Job) -> int:
    """The units for the options of a job."""
    named = job.options.get("throttles")
    return len(job.options) + (2 * len(set(named.split(" "))) if named else 0)


def weight(job: Job) -> int:
    """The units for showing or deleting a job."""
    units = moving(job)
    if len(job.data) > SHORT:
        units += _apart(job.data) // BLOCK
    if job.tags or job.dependencies or job.dependents:
        units += len(job.tags) + len(job.dependencies) + len(job.dependents)
    return units


def searching(job: Job) -> int:
    """The units for searching a text in a job's data."""
    return size(job.data) // SEARCHED


def failing(job: Job) -> int:
    """The units for failing a job, beside those for ending it: also for its dead letter, if it has a dead queue."""
    return FAILURE + (weight(job) if "dead_queue" in job.options else 0)


def of_shown(view: replies.Job) -> int:
    """The units for showing a job again that a reply has shown."""
    bytes_ = _apart(view.data) + size(view.result) + size(view.progress)
    edges = len(view.dependencies) + len(view.dependents)
    return len(view.history) // 4 * 2 + len(view.tags) + edges + bytes_ // BLOCK


def of_entry(bytes_: int, units: int) -> int:
    """The units for reading the bytes of an entry of the journal, and the units of its jobs.

    Such bytes are read, taken apart and written: they cost twice what others cost.
    """
    return 2 * (bytes_ // BLOCK + units)


def of_result(bytes_: int) -> int:
    """The units for showing an outcome of this many bytes."""
    return 1 + bytes_ // BLOCK


def _of_turn(store: Store, queue: str) -> int:
    """The units for the turn of a new job of a queue."""
    return TURN if config.is_fair(store, queue) else 0


def of_put(store: Store, op: Put) -> int:
    """The units for the arguments of a put."""
    units = 2 + _apart(op.data) // BLOCK + _of_turn(store, op.queue)
    if not op.named:
        return units
    given = sum(getattr(op, name) is not None for name in OF_PUT)
    return units + given + len(op.tags or ()) + len(op.depends or ()) + 2 * len(op.throttles or ())


def of_run(store: Store, schedule: Schedule) -> int:
    """The units for making a run of a schedule."""
    return 4 + _of_turn(store, schedule.queue) + len(schedule.tags) + _apart(schedule.data) // BLOCK


def of_delivery(store: Store, subscription: Subscription, message: Message) -> int:
    """The units for making the job of a message."""
    return (
        4 + _of_turn(store, subscription.put.queue) + len(subscription.put.tags or ()) + _apart(message.data) // BLOCK
    )


def of_leases(entries: int) -> int:
    """The units for looking at the leases of a worker with so many entries."""
    return entries // LEASES


def of_throttle(running: int, queues: int) -> int:
    """The units for showing a throttle with so many running jobs, and jobs parked in so many queues."""
    return 3 + min(running, HOLDERS) // 8 + min(queues, MOST) // 4


def of_message(message: Message) -> int:
    """The units for showing a message."""
    return 1 + size(message.data) // BLOCK


def check(operation: str, items: int, units: int) -> None:
    """Refuse more units than one operation may do for more than one item."""
    if units > UNITS and items > 1:
        raise refuse("OVER_BUDGET", operation, units, UNITS, max(items * UNITS // units, 1))
