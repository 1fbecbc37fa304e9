"""The load of a storm: producers in threads, which put jobs of every sort, and workers, which are processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.storm.evidence import Acknowledged, Error, Plan
from bench.storm.world import PATIENCE, World, until
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.routing import Layout, tag
from qmodel.errors import DependencyNotFound, QmodelError

ROOT = Path(__file__).parents[2]
RETRIES = 10_000
LEASE_MS, GRACE_MS = 1500, 200
THROTTLES = {f"t{number}": number + 1 for number in range(3)}
"""Throttles and their concurrency."""

NARROW, NARROW_LIMIT = "narrow", 3
QUEUES = ("plain", "async", NARROW)
SCHEDULES = ("{tick}", "{tock}")
ORDERED, UNIQUE = 4, 10
PAUSE = 0.05


def prepare(client: Client) -> None:
    """Set the options and limits of a namespace. The journal begins with the first operation."""
    settings = {
        "journal": 1, "max-journal": 10**7, "max-events": 10**7, "jobs-history-count": 10**9,
        "heartbeat": LEASE_MS, "grace-period": GRACE_MS,
    }  # fmt: skip
    for option, value in settings.items():
        client.execute(ops.ConfigSet(option, value))
    for name, limit in THROTTLES.items():
        client.throttles[name].set(concurrency=limit)
    client.queues[NARROW].throttle.set(concurrency=NARROW_LIMIT)
    for number, name in enumerate(SCHEDULES):
        client.queues["plain"].recur("work", {"ms": 1}, interval=0.7 + number, jid=name, retries=RETRIES)


class Producer:
    """Puts jobs with ids of its own until each is acknowledged, up to the quota that `allowed` gives."""

    def __init__(
        self, name: str, url: str, confirm: bool, jobs: int, chance: random.Random, layout: Layout | None = None
    ) -> None:
        self.name, self.url, self.confirm, self.jobs, self.layout = name, url, confirm, jobs, layout
        self.plans: dict[str, Plan] = {}
        self.acknowledged: list[Acknowledged] = []
        self.errors: list[Error] = []
        self.allowed = 0
        self.over = False
        self._chance = chance
        self._last = ""
        self._wake = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def allow(self, jobs: int) -> None:
        """Let it put so many jobs altogether."""
        with self._wake:
            self.allowed = min(jobs, self.jobs)
            self._wake.notify()

    def end(self) -> None:
        """Let it end after its current call."""
        self.over = True
        with self._wake:
            self._wake.notify()
        self.thread.join(PATIENCE)

    def _run(self) -> None:
        client = None
        while client is None and not self.over:
            try:
                client = Client(self.url)
            except QmodelError as error:
                self._failed(error)
        assert client is not None
        with client:
            for number in range(self.jobs):
                with self._wake:
                    while not self.over and number >= self.allowed:
                        self._wake.wait()
                if self.over:
                    return
                self._put(client, self._made(f"{self.name}-{number}"))

    def _put(self, client: Client, put: ops.Put) -> None:
        """Put a job until it is acknowledged: the same request, so that it is put once."""
        began = time.time()
        while not self.over:
            try:
                jid = str(client.execute(put))
            except DependencyNotFound as error:  # it was lost, or else the oracle will say that it should be there
                self._failed(error)
                put = ops.Put(**{name: getattr(put, name) for name in _FIELDS if name != "depends"})
                self.plans[put.jid] = self.plans[put.jid]._replace(after=None)
            except Exception as error:
                self._failed(error)
                time.sleep(PAUSE)
            else:
                self._last = jid
                self.acknowledged.append(Acknowledged(jid, time.time(), self.confirm, time.time() - began))
                return

    def _failed(self, error: Exception) -> None:
        code = str(getattr(error, "code", "")) or type(error).__name__
        self.errors.append(Error(time.time(), self.name, code, f"{type(error).__name__}: {error}"[:300]))

    def _made(self, name: str) -> ops.Put:
        """Draw a job."""
        chance = self._chance
        sort = chance.choice(("plain", "plain", "async", "async", "depends", "unique", "throttled", "ordered", "late"))
        queue = chance.choice(("plain", "async")) if sort != "throttled" else chance.choice(QUEUES)
        throttle = chance.choice(tuple(THROTTLES)) if sort == "throttled" else None
        ordered = f"o{chance.randrange(ORDERED)}" if sort == "ordered" else None
        unique = f"u{chance.randrange(UNIQUE)}" if sort == "unique" else None
        after = self._last if sort == "depends" and self._last else None
        jid = name
        if self.layout is not None:
            throttle = None if queue == NARROW else throttle  # its own throttle has another home
            jid = self._at_home(name, queue, throttle or ordered or unique, after)
        self.plans[jid] = Plan(queue, throttle, ordered, after)
        fails = "true" if chance.random() < 0.05 else "false"
        return ops.Put(
            queue, jid, "awork" if queue == "async" else "work",
            f'{{"ms": {chance.choice((0, 1, 5, 20))}, "fails": {fails}}}',
            priority=chance.choice((0, 0, 1)),
            delay_ms=chance.randrange(300) if sort == "late" else 0,
            retries=RETRIES,
            depends=(after,) if after else None,
            throttles=(throttle,) if throttle else None,
            ordered=ordered,
            unique=unique,
            request=name,
        )  # fmt: skip

    def _at_home(self, name: str, queue: str, key: str | None, after: str | None) -> str:
        """Give a job an id with the home of its other names. If dependencies are relayed, they need not be there."""
        assert self.layout is not None
        near = tag(after) if after and not self.layout.relay else None
        home = NARROW if queue == NARROW else key or near
        return f"{name}{{{home}}}" if home else name


_FIELDS = tuple(argument.name for argument in ops.Put.spec.arguments)


Sort = tuple[str, ...]

SORTS: tuple[Sort, ...] = (
    ("-q", f"plain,{NARROW}", "-c", "6"),
    ("-q", "async", "--runner", "async", "-c", "8"),
    ("-q", f"{NARROW},async,plain", "--order", "round-robin", "-c", "4"),
)
"""The sorts of workers: the options of their command lines."""


class Worker:
    """A process `qmodel worker`, which notes what it does in a file."""

    def __init__(self, sort: Sort, url: str, folder: Path, number: int, confirm: bool) -> None:
        self.sort, self.confirm = sort, confirm
        self.notes, self.log = folder / f"worker-{number}.notes", folder / f"worker-{number}.log"
        environment = {**os.environ, "QMODEL_URL": url, "STORM_NOTES": str(self.notes), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "qmodel", "worker", "bench.storm.jobs:app", "--quiet", "--grace", "5"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--name", f"worker-{number}", *sort],
                cwd=ROOT, env=environment, stdout=log, stderr=log, process_group=0,
            )  # fmt: skip
        self.ended_by: int | None = None

    def is_ready(self) -> bool:
        """Whether it takes jobs, or has ended."""
        return self.process.poll() is not None or (self.notes.exists() and "ready" in self.notes.read_text())

    def send(self, number: int) -> None:
        """Send its process a signal."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)

    def end(self, number: int) -> None:
        """End it by a signal; remember that it was meant to end, unless it had ended before."""
        if self.process.poll() is None:
            self.ended_by = number
            self.send(number)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Workers:
    """The workers of a round: one of each sort at a time."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self._folder = world, folder
        self.all: list[Worker] = []
        self.now = [self._begin(sort, world.confirms(place)) for place, sort in enumerate(SORTS)]

    def _begin(self, sort: Sort, confirm: bool) -> Worker:
        made = Worker(sort, self._world.url(confirm), self._folder, len(self.all) + 1, confirm)
        self.all.append(made)
        return made

    def ready(self) -> None:
        """Wait until each takes jobs. One that ended by itself is replaced; the oracles find it."""
        until(lambda: all(worker.is_ready() for worker in self.now), "the start of the workers")
        for place, worker in enumerate(self.now):
            if worker.process.poll() is not None:
                self.now[place] = self._begin(worker.sort, worker.confirm)

    def replace(self, place: int, number: int) -> None:
        """End one by a signal, and begin another of its sort."""
        worker = self.now[place]
        worker.end(number)
        self.now[place] = self._begin(worker.sort, worker.confirm)

    def end(self, number: int) -> None:
        """End all by a signal."""
        for worker in self.now:
            worker.end(number)


def drained(client: Client) -> Callable[[], bool]:
    """Make a condition: nothing is left in the queues."""

    def empty() -> bool:
        try:
            return all(client.queues[name].length() == 0 for name in QUEUES)
        except QmodelError:
            return False

    return empty
