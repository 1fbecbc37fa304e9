"""Give back the jobs of a dead worker at once, so that they do not wait until the leases and the grace period end.

Only a parent that has the exit status of a process knows that it is dead. A worker that lost its connection still works
on its jobs, and keeps its leases.

Each job gets one failed attempt of the group `Killed`, as a job whose own process is killed with `--runner fork`. The
operation `timeout` would be simpler, but counts no attempt: a job that kills its process would be performed for ever.
And it takes no token, whereas `retry` is refused if another worker has taken the job meanwhile. The tokens of the dead
worker are read from its jobs.

There is one try. If it fails, the leases end by themselves.
"""

from __future__ import annotations

import logging

from qmodel.client import profiles, remote
from qmodel.client.sync import Client
from qmodel.contract import replies
from qmodel.contract.operations import Deregister, Retry, Worker
from qmodel.errors import ConnectError
from qmodel.present.numbers import counted
from qmodel.worker.connection import Connection
from qmodel.worker.errors import Killed

log = logging.getLogger("qmodel.worker")


def give_back(connection: Connection, worker: str, how: str) -> None:
    """Give back the jobs of a dead worker, and take it off the list; `how` tells how it died."""
    try:
        jobs = _held(connection.client, worker)
        message = f"The process of its worker {how}."
        back = [Retry(job.jid, job.token, 0, Killed.__name__, message) for job in jobs]
        gone = [Deregister((worker,)), *remote.forgotten([worker]), *profiles.deleted([worker])]
        said = connection.client.execute_many([*back, *gone])
    except ConnectError as error:
        log.warning("The jobs of the worker %s wait until their leases end: %s", worker, error.sentence)
        return
    if count := sum(isinstance(one, int) for one in said[: len(back)]):
        log.warning("Gave back %s of the dead worker %s.", counted(count, "job"), worker)


def _held(client: Client, worker: str) -> list[replies.Job]:
    """Read the jobs that a worker holds."""
    held = client.execute(Worker(worker))
    return [job for job in client.multiget(held.jobs + held.stalled) if job.worker == worker]
