"""Measure what an app costs in addition to the client: a put by job type beside `Queue.put`, an attempt without work,
and the start of a process that puts a job.

All run in one process, in turns in the same run, so only ratios count. The first four rows use a backend that answers
at once, so only our own Python is measured. The others use a server on the same machine, one call per round trip.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import Options
from bench.machine import candidates, pinned, spare_cpu
from bench.report import Report, Table, Verdict, median, ratio
from qmodel import App, Client
from qmodel.app import perform
from qmodel.contract import operations

ROOT = Path(__file__).parent.parent
PUT = ("put of Queue.put", "put of a job type")
OTHER = ("put of Queue.put", "put of a job type with other options")
SERVER = ("Queue.put, on a server", "job type, on a server")
START = ("import qmodel.client.sync", "from qmodel import App")

app = App("memory://")


@app.job(queue="emails", retries=5, tags=["mail"])
def send_email(to: str, *, subject: str = "") -> int:
    """Do nothing."""
    return 1


class Silent:
    """A backend that answers at once."""

    def execute(self, op: Any, now: int | None = None) -> Any:
        return op.jid

    def execute_many(self, ops: Sequence[Any], now: int | None = None) -> list[Any]:
        return [op.jid for op in ops]

    def wait(self, queues: Sequence[str], timeout: float) -> bool:
        return False

    def wait_events(self, after: int, timeout: float) -> bool:
        return False

    def close(self) -> None: ...


def run(options: Options) -> Report:
    """Measure putting and performing."""
    calls = 2_000 if options.quick else 20_000
    spent: dict[str, list[float]] = {}
    with ExitStack() as stack:
        silent = Client(Silent())
        measured = {name: (silent, call) for name, call in _calls(silent).items()}
        for candidate in candidates("valkey" if options.server == "all" else options.server)[:1]:
            server = stack.enter_context(pinned(candidate, spare_cpu()))
            client = stack.enter_context(Client(server.url))
            there = list(_calls(client).values())
            measured |= {SERVER[0]: (client, there[0]), SERVER[1]: (client, there[1])}
        for _ in range(options.runs + 1):  # the first run warms up
            for name, (client, call) in measured.items():
                with app.using(client):
                    spent.setdefault(name, []).append(_microseconds(call, calls))
            for name in START:
                spent.setdefault(name, []).append(_start(name))
    table = Table("Microseconds each", ["", "us"])
    for name, found in spent.items():
        table.add(name, median(found[1:]))
    ratios = {
        pair: ratio(spent[pair[1]][1:], spent[pair[0]][1:]) for pair in (PUT, OTHER, SERVER, START) if pair[0] in spent
    }
    beside = Table("Ratios in the same run", ["", "ratio"])
    for pair, found_ratio in ratios.items():
        beside.add(f"{pair[1]} / {pair[0]}", f"{found_ratio:.2f}")
    verdicts = [Verdict("a put of a job type beside one of Queue.put", ratios[PUT], 1.2)]
    return Report("app", "python -m bench app", " ".join(str(__doc__).split()), [table, beside], verdicts)


def _calls(client: Client) -> dict[str, Callable[[], Any]]:
    queue = client.queues["emails"]
    data = {"to": "ada@example.com", "subject": "Hello"}

    def by_type() -> Any:
        return send_email.put("ada@example.com", subject="Hello")

    def by_other_options() -> Any:
        return send_email.options(delay=60).put("ada@example.com", subject="Hello")

    def by_queue() -> Any:
        return queue.put("send_email", dict(data), retries=5, tags=["mail"])

    app.client.queues["mine"].put("send_email", data)
    (job,) = app.client.execute(operations.Pop("mine", "me"))
    return {
        PUT[0]: by_queue,
        PUT[1]: by_type,
        OTHER[1]: by_other_options,
        "an attempt, and its operation": lambda: perform(app, job).operation(job),
    }


def _microseconds(call: Callable[[], Any], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls * 1e6


def _start(program: str) -> float:
    """Measure a process from its start to its end, including the start of Python itself."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
    return (time.perf_counter() - began) * 1e6
