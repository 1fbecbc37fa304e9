"""Popping jobs."""

from __future__ import annotations

from qmodel.contract.arguments import Count, QueueName, QueueNames, RequestId, Switch, Tries, WorkerName
from qmodel.contract.operations.spec import TAKEN, Operation, operation


@operation("jobs", "grant", "", TAKEN)
class Pop(Operation):
    """Lease the next jobs of a queue to a worker: jobs with a lapsed lease first, then those in the queue's order.

    Due runs of recurring jobs are made first, as `fire` does.

    A job is parked if one of its throttles is closed. Parked jobs are admitted as far as their throttles have room, and
    join the end of their priority. If the queue's own throttle is closed, no job is given.

    With `wait`, an empty reply counts the caller as idle, and the next job that becomes ready leaves a wake-up for it.

    With `qless`, by the rules of qless. The holder of a lapsed lease is told first: it keeps the job for another
    grace-period, and loses it only to a pop after that. As many due runs are made, and as many due jobs become ready,
    as jobs are still wanted; these jobs are ready from now. Jobs that `timeout` has taken come after lapsed
    ones. A wait counts from the last put or claim.

    With `qless` and `tries`, by those of reqless, one half of a pop: with 0 tries only lapsed jobs, with more only the
    others. So many times at most it takes as many jobs as are still wanted from the head of the queue, and parks those
    that meet a closed throttle. It admits no parked job, and reserves no room for admitted ones.
    """

    queue: QueueName
    worker: WorkerName
    count: Count = 1
    wait: Switch = False
    request: RequestId = ""
    qless: Switch = False
    tries: Tries | None = None


@operation("jobs", "grant", "", TAKEN)
class PopAny(Operation):
    """Lease the next jobs of several queues to a worker, as `pop` does: all of the first queue, then the second.

    The caller gives the order. No queue is examined beyond `count` jobs, or after the step has emitted 1000 events.
    With `wait`, an empty reply counts the caller as idle in each queue.
    """

    queues: QueueNames
    worker: WorkerName
    count: Count = 1
    wait: Switch = False
    request: RequestId = ""


@operation("jobs", "read")
class Peek(Operation):
    """Show the jobs that a pop would give next, ignoring pauses; due runs of recurring jobs are shown as if made.

    Parked jobs are left out, and throttles are not checked.
    """

    queue: QueueName
    count: Count = 1
