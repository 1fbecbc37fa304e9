"""Runs of many concurrent clients, recorded as calls with their times and replies.

Every operation carries its own moment, on one logical clock that all clients share. A tick is 0.1 ms, divided among the
clients, so that no two operations have the same moment. So a history can be checked without the server's clock, and the
reply of `events` shows which operation emitted which event (`calls.Makers`).

When a reply is lost, the client does not know whether the operation was executed. In most cases it sends the operation
again. A resend is recorded as a call of its own and checked by the model's rules for resends; each call with a lost
reply may have happened or not.

At the end a watcher reads all events, jobs and queues, so effects that no reply has shown are checked too.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple, Protocol

from qmodel.conformance.concurrency.calls import LOST, Call, Lost, Skipped
from qmodel.conformance.histories.blind import BlindClient
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.errors import ConnectError

TICK_NS = 100_000
JOBS = 5
AGAIN = 0.8
"""The share of operations with a lost reply that are sent again."""

SETTINGS = (("max-events", 10**6), ("heartbeat", 4000), ("grace-period", 500))
"""The options of a run: all events are kept, and leases are so short that some expire."""

PAGE = 1000


class Executor(Protocol):
    """Executes the operations of a client."""

    def execute(self, op: Operation, now: int) -> Any:
        """Execute one operation; give its reply, a Refusal, a Lost, or a Skipped."""

    def close(self) -> None:
        """Release its resources."""


Opener = Callable[[], Executor]


class ByBackend:
    """Executes operations on a backend without retries of its own; opening the backend is tried `tries` times."""

    def __init__(self, url: str, tries: int = 1) -> None:
        from qmodel.backends import open_backend

        for left in reversed(range(tries)):
            try:
                self._backend = open_backend(url)
                break
            except ConnectError:
                if not left:
                    raise

    @property
    def layout(self) -> Any:
        """The layout, if the backend is a deployment."""
        return getattr(self._backend, "layout", None)

    def execute(self, op: Operation, now: int) -> Any:
        """Execute one operation."""
        try:
            return self._backend.execute(op, now)
        except ConnectError as error:
            if getattr(error, "code", ""):
                raise
            return LOST

    def close(self) -> None:
        """Disconnect."""
        self._backend.close()


class Run(NamedTuple):
    """The size of a run: operations of each client, the seed, and the number of jobs."""

    operations: int
    seed: str = "0"
    jobs: int = JOBS
    began: int = 0


class Client:
    """One of `among` clients: executes operations, and records the replies."""

    def __init__(self, executor: Executor, number: int, among: int, run: Run) -> None:
        self.calls: list[Call] = []
        self.asked = 0
        self._executor = executor
        self._number, self._among = number, among
        self._run = run
        self._blind = BlindClient(f"w{number}", run.jobs, run.seed)
        self._random = random.Random(f"{run.seed} {number}")
        self._now = 0

    def work(self) -> None:
        """Execute all operations, one after the other."""
        op = self._blind.draw()
        while self.asked < self._run.operations:
            lost = self.ask(op, self._tick())
            while lost and self._random.random() < AGAIN:
                lost = self.ask(op, self._now)
            op = self._blind.draw()

    def ask(self, op: Operation, now: int) -> bool:
        """Execute and record one operation; tell whether its reply was lost."""
        called = time.monotonic_ns()
        outcome = self._executor.execute(op, now)
        self.asked += 1
        if isinstance(outcome, Skipped):
            return False
        lost = isinstance(outcome, Lost)
        returned = None if lost else time.monotonic_ns()
        self.calls.append(Call(self._blind.name, called, returned, now, op, outcome))
        self._blind.learn(op, outcome)
        return lost

    def _tick(self) -> int:
        """Give a time that no other operation has."""
        at = (time.monotonic_ns() - self._run.began) // TICK_NS * self._among + self._number
        self._now = max(at, self._now + self._among)
        return self._now


def threads(openers: Sequence[Opener], run: Run, first: int = 0, among: int = 0) -> list[Call]:
    """Run clients concurrently, one thread each; they are numbered from `first`, and `among` is their total number."""
    clients = [Client(opener(), n, among or len(openers), run) for n, opener in enumerate(openers, first)]
    failed: list[BaseException] = []
    running = [threading.Thread(target=_guarded, args=(client.work, failed)) for client in clients]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]
    return [call for client in clients for call in client.calls]


def _guarded(work: Callable[[], None], failed: list[BaseException]) -> None:
    try:
        work()
    except BaseException as error:
        failed.append(error)


def _process(url: str, run: Run, first: int, count: int, among: int) -> list[Call]:
    return threads([lambda: ByBackend(url, 20)] * count, run, first, among)


def processes(url: str, clients: int, among: int, run: Run) -> list[Call]:
    """Run clients of a backend concurrently, in two processes, with one thread for each client."""
    sizes = [clients - clients // 2, clients // 2] if clients > 1 else [clients]
    with ProcessPoolExecutor(len(sizes)) as pool:
        parts = [pool.submit(_process, url, run, sum(sizes[:n]), size, among) for n, size in enumerate(sizes)]
        return [call for part in parts for call in part.result()]


# ---- before and after


def prepare(executor: Executor) -> list[Call]:
    """Set the options of a run in an empty namespace."""
    return [_recorded(executor, ops.ConfigSet(option, value), n) for n, (option, value) in enumerate(SETTINGS)]


def watch(executor: Executor, jobs: int, now: int) -> list[Call]:
    """Read everything at the end: all events, all jobs, the queues."""
    calls, after = [], 0
    while True:
        calls.append(_recorded(executor, ops.Events(after, PAGE), now))
        events = calls[-1].outcome
        if not isinstance(events, tuple) or not events:
            break
        after = events[-1].seq
    calls.append(_recorded(executor, ops.Multiget(tuple(f"j{n}" for n in range(jobs))), now))
    calls += [
        _recorded(executor, op, now) for op in (ops.Queues(), ops.Peek("q", 10), ops.Peek("r", 10), ops.Completed())
    ]
    return calls


def _recorded(executor: Executor, op: Operation, now: int) -> Call:
    called = time.monotonic_ns()
    outcome = executor.execute(op, now)
    returned = None if isinstance(outcome, Lost | Skipped) else time.monotonic_ns()
    return Call("watcher", called, returned, now, op, outcome)


def record(watcher: Executor, work: Callable[[Run], list[Call]], run: Run) -> list[Call]:
    """Record a whole history: setting the options, the clients' work, and the final reads; in the order of calls."""
    before = prepare(watcher)
    began = time.monotonic_ns() - TICK_NS * len(SETTINGS)
    calls = work(run._replace(began=began))
    last = max((call.now for call in calls), default=0)
    return sorted([*before, *calls, *watch(watcher, run.jobs, last + 1)], key=lambda call: call.called)
