"""Actions on workers."""

from __future__ import annotations

from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.present.actions.kinds import Action, Once, Signal, said
from qmodel.present.fields import Fields
from qmodel.present.numbers import counted


def _held(fields: Fields, worker: replies.WorkerJobs) -> list[ops.Operation]:
    return [ops.Timeout(worker.jobs[begin : begin + MOST]) for begin in range(0, len(worker.jobs), MOST)]


def _freed(fields: Fields, found: list[Any]) -> str:
    return f"{counted(sum(map(len, found)), 'job')} taken from the worker."


ACTIONS: dict[str, Action] = {
    "quiet": Signal("Quiet", signal="quiet", told="told to take no more jobs"),
    "resume": Signal("Resume", signal="resume", told="told to take jobs again"),
    "stop": Signal(
        "Stop",
        "Stop {workers}? A worker ends when its jobs have ended, or when its grace period is over; what started it "
        "decides whether another one begins.",
        ("now", "at once, and release the jobs that run"),
        signal="stop",
        told="told to stop",
    ),
    "free": Once(
        "Take its jobs",
        "Take all jobs from worker {worker}? It loses them, and the next pops lease them again.",
        look=lambda f: ops.Worker(f.needed("worker")),
        choose=_held,
        tell=_freed,
    ),
    "deregister": Once(
        "Remove from the list",
        make=lambda f: [ops.Deregister((f.needed("worker"),))],
        tell=said("{worker} is removed from the list."),
    ),
}
"""Every action by its name."""
