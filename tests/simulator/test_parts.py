"""The parts of the simulator: the baton and its primitives, the disk, the network."""

from __future__ import annotations

import queue
from pathlib import Path
from random import Random
from typing import Any

import pytest

from qmodel.simulator import strands
from qmodel.simulator.baton import Baton, Deadlock, Process
from qmodel.simulator.disk import SimulatedDisk
from qmodel.simulator.net import Link, Net, Weather
from qmodel.simulator.oracles import Oracles


@pytest.fixture
def baton() -> Any:
    made = Baton(Random(1), 0.2)
    yield made
    made.end()


def wait(baton: Baton, seconds: float) -> None:
    until = baton.now + seconds
    while baton.now < until:
        baton.block(until)


# ---- the baton


def test_time_moves_only_when_nobody_can_run(baton: Baton) -> None:
    told: list[tuple[str, float]] = []

    def sleeper(name: str, seconds: float) -> None:
        wait(baton, seconds)
        told.append((name, round(baton.now, 3)))

    baton.start("late", Process("p"), lambda: sleeper("late", 3.0))
    baton.start("early", Process("p"), lambda: sleeper("early", 1.0))
    wait(baton, 5.0)
    assert told == [("early", 1.0), ("late", 3.0)]


def test_a_killed_process_does_nothing_more_but_cleans_up_without_blocking(baton: Baton) -> None:
    process, told = Process("p"), []

    def work() -> None:
        try:
            wait(baton, 1.0)
            told.append("worked")
        finally:
            told.append("unwound")
            wait(baton, 1.0)
            told.append("waited")

    baton.start("worker", process, work)
    wait(baton, 0.5)
    baton.kill(process)
    wait(baton, 5.0)
    assert told == ["unwound"] and baton.errors == []


def test_an_exception_of_a_strand_is_noted(baton: Baton) -> None:
    baton.start("worker", Process("p"), lambda: 1 / 0)
    wait(baton, 0.1)
    assert baton.errors == ["p/worker: ZeroDivisionError: division by zero"]


def test_strands_that_wait_for_each_other_are_a_deadlock(baton: Baton) -> None:
    never = strands.Event(baton)
    baton.start("worker", Process("p"), never.wait)
    with pytest.raises(Deadlock):
        never.wait()
    wait(baton, 1.0)
    assert baton.errors == []


def test_locks_queues_and_events_wait_as_those_of_threading_do(baton: Baton) -> None:
    lock, items, event, told = strands.Lock(baton), strands.SimpleQueue(baton), strands.Event(baton), []

    def work() -> None:
        with lock:
            event.set()
            wait(baton, 1.0)
            items.put("item")

    thread = strands.Thread(baton, target=work, name="worker")
    thread.start()
    assert event.wait(1.0) and lock.locked() and not lock.acquire(timeout=0.1)
    with pytest.raises(queue.Empty):
        items.get(timeout=0.2)
    told.append(items.get(timeout=5.0))
    with lock:
        told.append("locked")
    thread.join()
    assert told == ["item", "locked"] and not thread.is_alive()


# ---- the disk


def written(baton: Baton, folder: Path, lies: bool) -> tuple[SimulatedDisk, Path]:
    """Write one synced and one unsynced text."""
    disk, path = SimulatedDisk(baton, Random(2), lies), folder / "file"
    file = disk.open(path)
    disk.sync_folder(folder)
    disk.write(file, b"synced", 0)
    disk.sync(file)
    disk.write(file, b"UNSYNCED", 3)
    return disk, path


def test_a_power_failure_keeps_what_was_synced_and_a_part_of_the_rest(baton: Baton, tmp_path: Path) -> None:
    found = set()
    for number in range(40):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk, path = written(baton, folder, lies=False)
        disk._chance.seed(number)
        disk.lose()
        disk.abandon()
        found.add(path.read_bytes())
    assert {b"synced", b"synUNSYNCED"} <= found
    torn = found - {b"synced", b"synUNSYNCED"}
    assert torn and all((b"synUNSYNCED" + b"synced").startswith(one[:3]) for one in torn)


def test_a_disk_that_lies_goes_back_to_when_it_was_settled(baton: Baton, tmp_path: Path) -> None:
    disk, path = written(baton, tmp_path, lies=True)
    disk.settle()
    since = baton.now
    file = disk.open(path)
    disk.write(file, b"lost", 0)
    disk.sync(file)
    assert path.read_bytes() == b"lostNSYNCED"[:3] + b"tNSYNCED"
    disk.lose(since)
    disk.abandon()
    assert path.read_bytes() == b"synUNSYNCED"


def test_a_full_disk_takes_nothing(baton: Baton, tmp_path: Path) -> None:
    disk, path = written(baton, tmp_path, lies=False)
    disk.full = True
    file = disk.open(path)
    with pytest.raises(OSError, match="No space left"):
        disk.write(file, b"more", 20)
    disk.abandon()


# ---- the network


class Side:
    """An end that notes what it takes."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.taken: list[Any] = []

    def receive(self, data: bytes) -> None:
        self.taken.append(data)

    def finish(self) -> None:
        self.taken.append("end")

    def fail(self, error: OSError) -> None:
        self.taken.append("reset")


def connected(baton: Baton, seed: int = 3, **weather: float) -> tuple[Net, Link, Side, Side]:
    net = Net(baton, Random(seed), Weather(**weather))
    there, here = Side(Process("server")), Side(Process("client"))
    links: list[Link] = []

    def make(link: Link) -> Side:
        links.append(link)
        return here

    net.listen(lambda link: there, there.process)
    net.connect(make, here.process)
    return net, links[0], here, there


def test_bytes_arrive_in_order_and_then_the_end(baton: Baton) -> None:
    _, link, _, there = connected(baton, slow=0.5)
    for number in range(20):
        link.send(0, b"%d" % number)
    link.close(0)
    wait(baton, 1.0)
    assert there.taken == [*(b"%d" % number for number in range(20)), "end"]


def test_packets_that_meet_a_partition_arrive_when_it_ends(baton: Baton) -> None:
    net, link, _, there = connected(baton)
    net.cut_off("client", 5.0)
    link.send(0, b"late")
    wait(baton, 4.9)
    assert there.taken == []
    wait(baton, 0.5)
    assert there.taken == [b"late"]


def test_a_lost_packet_resets_or_silences_its_connection(baton: Baton) -> None:
    found = set()
    for seed in range(20):
        _, link, here, there = connected(baton, seed, lose=1.0)
        link.send(0, b"lost")
        wait(baton, 1.0)
        assert b"lost" not in there.taken
        found.add(tuple(here.taken))
    assert found == {("reset",), ()}


def test_a_killed_server_refuses_and_resets(baton: Baton) -> None:
    net, link, here, there = connected(baton)
    baton.kill(there.process)
    with pytest.raises(ConnectionRefusedError):
        net.connect(lambda link: here, here.process)
    link.send(0, b"to nobody")
    wait(baton, 1.0)
    assert there.taken == []


# ---- the oracles


def test_each_oracle_of_clients_can_fail() -> None:
    oracles = Oracles(lambda: 100.0, lambda: 0.0)
    oracles.begins("a", 1, "w", 1)
    oracles.begins("a", 1, "w", 1)
    oracles.gave_up(OSError("no"), 99.9, 6.0)
    assert [one.oracle for one in oracles.findings] == [
        "limits", "performed once", "calls are answered", "tries until the deadline",
    ]  # fmt: skip
