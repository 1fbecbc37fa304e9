"""The jobs of a storm's workers. Each attempt, and each completion that the server acknowledged, is a line of a file.

The file is named by `STORM_NOTES`; a worker that is killed leaves it whole up to its last line.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Any

from qmodel import App, Retry
from qmodel.app import Context
from qmodel.contract.operations import Complete, CompleteAndPop, CompleteMany, Operation
from qmodel.errors import RefusedError
from qmodel.worker import connection, worker

app = App()


def note(*words: object) -> None:
    """Append a line in one write."""
    line = " ".join(map(str, (*words, os.getpid(), time.time())))
    with open(os.environ["STORM_NOTES"], "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def begin(context: Context, fails: bool) -> None:
    """Note the start of an attempt. The first one fails if the job's data say so."""
    note("started", context.jid, context.raw.token)
    if fails and context.attempt == 1:
        raise Retry("the first attempt fails", delay=0.02)


@app.job(name="work", queue="plain", retries=10_000)
def work(context: Context, ms: int = 1, fails: bool = False) -> None:
    """Take some time."""
    begin(context, fails)
    time.sleep(ms / 1000)


@app.job(name="awork", queue="async", retries=10_000)
async def awork(context: Context, ms: int = 1, fails: bool = False) -> None:
    """Take some time in an event loop."""
    begin(context, fails)
    await asyncio.sleep(ms / 1000)


@app.on("worker_start")
def started(*_: Any) -> None:
    """Note that the worker takes jobs."""
    note("ready", "-", 0)


def completions(op: Operation) -> list[Complete | CompleteAndPop]:
    """List the completions in an operation."""
    if isinstance(op, CompleteMany):
        return list(op.jobs)
    return [op] if isinstance(op, (Complete, CompleteAndPop)) else []


class Noted(connection.Connection):
    """The worker's connection, which notes what the server acknowledged."""

    def execute_many(self, operations: Sequence[Operation]) -> list[Any]:
        found = super().execute_many(operations)
        for op, reply in zip(operations, found, strict=True):
            if not connection.is_error(reply) and not isinstance(reply, RefusedError):
                for one in completions(op):
                    note("acknowledged", one.jid, one.token)
        return found


worker.Connection = Noted  # type: ignore[attr-defined]
