"""Every acknowledged job is performed, and no outcome is recorded twice, whatever fails.

The tests use real processes: workers, and a server that keeps everything that it acknowledges. While a producer puts
jobs, faults are injected after random numbers of jobs; then the faults end, and all jobs must be accounted for.
`QMODEL_CHAOS_SECONDS` makes each test inject faults for at least so long.
"""

from __future__ import annotations

import collections
import contextlib
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmodel.client.sync import Client
from qmodel.conformance.concurrency.lossy import LossyLine
from tests.backends.helpers import Private, Starter
from tests.worker.support import PATIENCE, Process, free_port, lines, until

SECONDS = float(os.environ.get("QMODEL_CHAOS_SECONDS", "0"))
KEEPING = ("--appendonly", "yes", "--appendfsync", "always")
QUICK = "socket_timeout=0.5"


@pytest.fixture
def kept(private: Starter) -> Iterator[Private]:
    """Start a server that loses nothing that it acknowledged."""
    with private(*KEEPING) as server:
        hurry(Client(server.url))
        yield server


def hurry(client: Client) -> None:
    """Let the leases of dead workers end soon."""
    client.config["heartbeat"] = 0.6
    client.config["grace-period"] = 0.1
    client.config["max-events"] = 1_000_000


class Flood:
    """Puts jobs that write their ids to a file, and remembers which were acknowledged."""

    def __init__(self, client: Client, notes: Path, name: str = "j") -> None:
        self.client = client
        self.notes = notes
        self.name = name
        self.acknowledged: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        queue = self.client.queues["default"]
        for number in range(100_000):
            if self._over.wait(0.002):
                return
            jid = f"{self.name}{number}"
            queue.put("note", {"path": str(self.notes), "text": jid}, jid=jid)
            self.acknowledged.append(jid)

    def __enter__(self) -> Flood:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)

    def goes_on(self, count: int) -> None:
        """Wait until so many more jobs have been acknowledged."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) >= before + count, f"{count} more jobs")

    def balances(self) -> None:
        """Wait until all jobs are done, then compare the acknowledged jobs with the performed and recorded ones."""
        counts = self.client.queues["default"]
        until(lambda: counts.length() == 0, "the end of all jobs")
        performed = collections.Counter(line.split()[0] for line in lines(self.notes))
        assert self.acknowledged and set(self.acknowledged) <= set(performed)
        ended = collections.Counter(e.named["jid"] for e in self.client.events() if e.event == "completed")
        assert set(ended.values()) == {1} and set(self.acknowledged) <= set(ended)
        for job in self.client.jobs.get_many(random.sample(self.acknowledged, min(50, len(self.acknowledged)))):
            assert job.state == "complete"
            assert [stage.what for stage in job.history].count("completed") == 1


def repeatedly(act: Callable[[], None], jobs: Flood, times: int) -> None:
    """Inject a fault so many times, and for at least `SECONDS`, each time after a random number of jobs."""
    over = time.monotonic() + SECONDS
    while times > 0 or time.monotonic() < over:
        jobs.goes_on(random.randint(20, 150))
        act()
        times -= 1


class Line(LossyLine):
    """A line to a server that counts the connections that were tried."""

    tries = 0

    def _connected(self) -> socket.socket:
        self.tries += 1
        return super()._connected()

    def is_tried(self, times: int) -> None:
        """Wait until a client has tried to connect so many more times."""
        before = self.tries
        until(lambda: self.tries >= before + times, f"{times} more tries to connect")


@pytest.mark.parametrize("options", [("-c", "4"), ("--runner", "fork", "-c", "2")], ids=["threads", "forks"])
def test_workers_that_are_killed(options: tuple[str, ...], kept: Private, notes: Path) -> None:
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Process(kept.url, *options)) for _ in range(2)]
        for worker in workers:
            worker.says("queues default")

        def kill() -> None:
            workers.pop(0).send(signal.SIGKILL)
            workers.append(stack.enter_context(Process(kept.url, *options)))

        with Flood(Client(kept.url), notes) as jobs:
            repeatedly(kill, jobs, 2)
        jobs.balances()


def test_a_server_that_is_killed_and_comes_back(kept: Private, notes: Path) -> None:
    with Line(kept.url) as line, Process(line.url, "-c", "4") as worker, Process(kept.url, "-c", "4"):
        worker.says("queues default")

        def kill() -> None:
            kept.kill()
            line.is_tried(1)
            kept.start()

        with Flood(Client(kept.url), notes) as jobs:
            repeatedly(kill, jobs, 2)
        jobs.balances()
        assert "Traceback" not in worker.output


def test_a_server_that_is_away_for_long_is_waited_for(kept: Private, notes: Path) -> None:
    with Line(kept.url) as line, Process(f"{line.url}&deadline=0.2", "-c", "2") as worker:
        worker.says("queues default")
        with Flood(Client(kept.url), notes) as jobs:
            jobs.goes_on(50)
            kept.kill()
            worker.says("keeps trying")
            line.is_tried(5)
            kept.start()
            worker.says("is back after")
        jobs.balances()
        assert worker.output.count("keeps trying") == worker.output.count("is back after") == 1


def test_a_server_that_hangs(kept: Private, notes: Path) -> None:
    assert kept.process is not None
    with Line(kept.url) as line, Process(f"{line.url}&{QUICK}", "-c", "4") as worker:
        worker.says("queues default")
        with Flood(Client(f"{kept.url}?{QUICK}"), notes) as jobs:
            jobs.goes_on(50)
            kept.process.send_signal(signal.SIGSTOP)
            line.is_tried(2)
            kept.process.send_signal(signal.SIGCONT)
            jobs.goes_on(50)
        jobs.balances()


def test_a_server_that_is_full_is_drained(private: Starter, notes: Path) -> None:
    with private() as server, server.client() as raw, Process(server.url, "-c", "4") as worker:
        worker.says("queues default")
        client = Client(server.url)
        slow = [client.queues["default"].put("rest", {"seconds": 60, "path": str(notes)}) for _ in range(3)]
        until(lambda: len(lines(notes)) == 3)
        client.queues["default"].put("add", {"x": 1}, delay=0.5)  # so that the worker asks while the server is full
        raw.config_set("maxmemory", 1)
        Path(f"{notes}.enough").touch()
        until(lambda: all(client.jobs[job.jid].state == "complete" for job in slow))
        worker.says("takes nothing new")
        raw.config_set("maxmemory", 0)
        assert client.queues["default"].put("add", {"x": 1}).wait(timeout=PATIENCE) == 1
        assert worker.output.count("takes nothing new") == 1


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_replies_that_are_lost(rate: float, kept: Private, notes: Path) -> None:
    with LossyLine(kept.url, seed="chaos") as line, Process(line.url, "-c", "4") as worker:
        worker.says("queues default")
        jobs = Flood(Client(line.url), notes)
        line.lose = rate
        with jobs:
            over = time.monotonic() + SECONDS
            while line.lost < 3 or time.monotonic() < over:
                jobs.goes_on(1)
        line.lose = 0
        jobs.balances()
        assert line.lost and "Traceback" not in worker.output


class Switch(LossyLine):
    """A line that can be switched to another server; open connections are closed."""

    _lines: list[socket.socket]

    def _connected(self) -> socket.socket:
        made = super()._connected()
        self.__dict__.setdefault("_lines", []).append(made)
        return made

    def to(self, url: str) -> None:
        self._options.connection["path"] = url.removeprefix("unix://")
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


def test_a_replica_that_takes_over(kept: Private, private: Starter, notes: Path) -> None:
    port = free_port()
    at_once = ("--repl-diskless-sync-delay", "0")
    with private("--port", str(port), *at_once, *KEEPING) as first, private(*KEEPING) as second:
        hurry(Client(first.url))
        with first.client() as old, second.client() as new:
            new.execute_command("REPLICAOF", "127.0.0.1", str(port))
            until(lambda: new.info("replication")["master_link_status"] == "up", "the replica")
            with Switch(first.url) as line, Process(line.url, "-c", "4") as worker:
                worker.says("queues default")
                with Flood(Client(line.url), notes) as jobs:
                    jobs.goes_on(100)
                until(lambda: caught_up(old, new), "the replica")
                first.kill()
                new.execute_command("REPLICAOF", "NO", "ONE")
                line.to(second.url)
                with Flood(Client(line.url), notes, "k") as more:
                    more.goes_on(50)
                more.acknowledged += jobs.acknowledged
                more.balances()


def caught_up(old: object, new: object) -> bool:
    """Whether a replica has received everything from its primary."""
    first = old.info("replication")["master_repl_offset"]  # type: ignore[attr-defined]
    return int(new.info("replication")["slave_repl_offset"]) >= int(first)  # type: ignore[attr-defined]


SHIFTED = """
import time
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + {shift}
time.time_ns = lambda: _time_ns() + {shift} * 1_000_000_000
import qmodel.client.defaults
qmodel.client.defaults.LONGEST_SLEEP = 1000.0  # so that none happens to look
"""


def test_clocks_that_are_an_hour_apart(kept: Private, notes: Path, tmp_path: Path) -> None:
    """Leases are short, so that a renewal comes soon; the grace is long, so that none lapses on a busy machine."""
    client = Client(kept.url)
    client.config["grace-period"] = PATIENCE
    with contextlib.ExitStack() as stack:
        for shift in (-3600, 3600):
            folder = tmp_path / str(shift)
            folder.mkdir()
            (folder / "sitecustomize.py").write_text(SHIFTED.format(shift=shift))
            worker = stack.enter_context(Process(kept.url, "-c", "2", path=str(folder)))
            worker.says("queues default")
        queue = client.queues["default"]
        jobs = [queue.put("busy", {"seconds": 60, "path": str(notes)}) for _ in range(2)]
        until(lambda: len(lines(notes)) == 2)
        first = [job.refresh().expires_at_ms for job in jobs]
        until(lambda: all(job.refresh().expires_at_ms >= at + 600 for job, at in zip(jobs, first, strict=True)))
        Path(f"{notes}.enough").touch()
        jobs += [queue.put("add", {"x": 1}, delay=0.5) for _ in range(2)]
        client.wait(jobs, PATIENCE)
        for job in jobs:
            assert [stage.what for stage in job.refresh().history] == ["put", "popped", "completed"]
