"""Popping jobs."""

from __future__ import annotations

from qmodel.contract.arguments import Count, QueueName, QueueNames, RequestId, Switch, WorkerName
from qmodel.contract.operations.spec import TAKEN, Operation, operation


@operation("jobs", "grant", "", TAKEN)
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


@operation("jobs", "grant", "", TAKEN)
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
