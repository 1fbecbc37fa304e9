"""The world of one run: the server, its clients, and what fails, from a seed."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import BinaryIO, Final, NamedTuple

from qmodel import runtime
from qmodel.client.sync import Client
from qmodel.simulator import oracles, strands
from qmodel.simulator.baton import Process
from qmodel.simulator.clients import Clients
from qmodel.simulator.cluster import Cluster
from qmodel.simulator.disk import SimulatedDisk
from qmodel.simulator.lua_server import LuaServer
from qmodel.simulator.net import EVERYBODY
from qmodel.simulator.oracles import PATIENCE, Finding
from qmodel.simulator.scene import Scene
from qmodel.simulator.server import DEADLINE, PREFIX, Server
from qmodel.simulator.settings import Settings, drawn

SETTLING: Final = 40.0
"""Virtual seconds in which some job must end, once the faults have stopped, until all have."""

LONGEST: Final = 5 * SETTLING
"""Virtual seconds in which all jobs must end, so that a run ends in which the same jobs come again and again."""

ENDING: Final = 20.0
"""Virtual seconds that a worker has to stop."""


class Result(NamedTuple):
    """What a run gave. The digest is that of all packets and their times."""

    seed: str
    seconds: float
    digest: str
    switches: int
    packets: int
    counts: Counter[str]
    findings: list[Finding]


class World(Scene):
    """One run."""

    def __init__(self, seed: str, settings: Settings, folder: Path, dump: BinaryIO | None) -> None:
        super().__init__(seed, settings, dump)
        disk = SimulatedDisk(self.baton, Random(f"{seed} disk"), settings.lies)
        kind = Cluster if settings.nodes else LuaServer if settings.lua else Server
        self.server = kind(self, folder, disk, settings.snapshot_every)
        self.clients = Clients(self, self.server)
        self._weather = Process("weather")

    # ---- the run

    def run(self) -> None:
        """Run it: set up, let things fail, stop the faults, and let everybody finish."""
        self._set_up()
        self.server.settle()
        self.clients.start()
        for every, act in self._faults():
            if every:
                self.baton.start("weather", self._weather, partial(self._repeat, every, act))
        self.baton.start("settling", self._weather, self._settle)
        self._watch_until(self.settings.seconds, lambda: False)
        self._calm_down()
        self._settle_down()
        self._finish()

    def _set_up(self) -> None:
        """Set the options of the namespace, before anything fails."""
        self.failing, weather = False, self.net.weather
        self.net.weather = weather._replace(lose=0.0)
        done = strands.Event(self.baton)

        def set_up() -> None:
            with Client(self.server.url) as client:
                for op in self.clients.workload.options_of_the_namespace():
                    client.execute(op)
            done.set()

        self.baton.start("operator", self._weather, self.server.operate)
        while not self.server.is_up and self.baton.now < SETTLING:
            self.sleep(0.1)
        self.baton.start("set-up", Process("set-up"), set_up)
        if not done.wait(SETTLING):
            self.oracles.found("the run is whole", "the options of the namespace could not be set")
        self.failing, self.net.weather = True, weather

    def _watch_until(self, moment: float, is_over: Callable[[], bool]) -> None:
        while self.baton.now < moment and not is_over():
            self.sleep(1.0)
            stores = self.server.stores
            if stores:
                self.oracles.each_second(stores, self.clients.idle(), self.settings.limit > 0)

    def _calm_down(self) -> None:
        """Stop the faults, and let the server run."""
        self.failing = False
        self.clients.producing = False
        self.net.partitions.clear()
        self.net.weather = self.net.weather._replace(lose=0.0)
        self.net.faulted()
        self.server.disk.full = False

    def _settle_down(self) -> None:
        """Wait until all jobs have ended; for a time, it is enough that some end in each while."""
        before, until = -1, self.baton.now + LONGEST
        while self.oracles.ended != before and self.baton.now < until:
            before = self.oracles.ended
            self._watch_until(self.baton.now + SETTLING, self._is_done)
            if self._is_done():
                return
        if self.server.is_up:
            self.oracles.stands_still(self.server.stores, sorted(self.clients.producers))
        else:
            self.oracles.found("the server runs", "it does not, although nothing fails")

    def _is_done(self) -> bool:
        over = self.server.is_up and not self.clients.producers
        return over and not any(oracles.unended(store) for store in self.server.stores)

    def _finish(self) -> None:
        """Watch the idle workers for a while, let everybody stop, and look at what they leave."""
        self._watch_until(self.baton.now + 3 * PATIENCE, lambda: False)
        self.clients.consuming = False
        self.clients.stop_workers()
        until = self.baton.now + ENDING
        while self.clients.workers and self.baton.now < until:
            self.sleep(0.5)
        for name in self.clients.workers:
            self.oracles.found("workers stop", f"{name} was told to stop, and did not in {ENDING:g} s")
        self.sleep(2 * DEADLINE)
        left = [link.ends[0].process.name for link in self.net.links.values() if not link.closed[0]]
        if left:
            self.oracles.found("nothing is left over", f"connections of {', '.join(left)}")
        self.oracles.requests_end(self.server.stores)
        self.server.check_at_the_end()

    # ---- faults

    def _faults(self) -> list[tuple[float, Callable[[], None]]]:
        settings = self.settings
        return [
            (settings.crash_every, self._crash),
            (settings.part_every, self._part),
            (settings.cut_every, self.net.cut_all),
            (settings.fill_every, self._fill),
            (settings.move_every, self.server.move),
            (settings.evict_every, self.clients.evict),
            (settings.stop_every, lambda: self.clients.replace_worker(False)),
            (settings.kill_every, self._kill),
        ]

    def _repeat(self, every: float, act: Callable[[], None]) -> None:
        while True:
            self.sleep(self.chance.expovariate(1 / every))
            if not self.failing:
                return
            act()

    def _crash(self) -> None:
        """Crash the server, and start it again after some time; a replica takes over sooner."""
        how = self.chance.choice(self.settings.crashes)
        down = self.chance.uniform(0.05, 2.0)
        self.net.faulted(down + 1.0)
        self.server.crash(how, down)

    def _part(self) -> None:
        """Part a client from all servers; in a cluster, perhaps only from one node, or that node from all clients."""
        name = self.chance.choice(self.names)
        lasts = self.chance.choice((0.3, 2.0, 6.0)) * self.chance.uniform(0.5, 1.5)
        ports = self.server.ports
        if ports and self.chance.random() < 0.6:
            self.net.cut_off(self.chance.choice((name, EVERYBODY)), lasts, self.chance.choice(ports))
        else:
            self.net.cut_off(name, lasts)

    def _fill(self) -> None:
        """Fill the disk for some time."""
        disk = self.server.disk
        disk.full = True
        lasts = self.chance.uniform(0.1, 2.0)
        self.net.faulted(lasts)
        self.sleep(lasts)
        disk.full = False
        self.net.faulted()

    def _kill(self) -> None:
        self.net.faulted()
        self.clients.replace_worker(True)

    def _settle(self) -> None:
        """Put what a lying disk has on the disk, from time to time."""
        while self.settings.lies:
            self.sleep(self.settings.tail * self.chance.uniform(0.5, 1.5))
            self.server.settle()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let nothing outside the simulation decide anything: garbage is collected afterwards, and nobody logs."""
    gc.disable()
    gc.freeze()  # what was there before is not looked at when the garbage of this seed is collected
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
        with _unheard():
            gc.collect()
        gc.unfreeze()
        gc.enable()


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Let the coroutines of killed processes clean up, and fail at that: their loops are closed."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        sys.unraisablehook = hook


def run(seed: str, settings: Settings | None = None, dump: BinaryIO | None = None) -> Result:
    """Run a seed; with the settings that it draws, unless others are given. `dump` gets all packets."""
    with tempfile.TemporaryDirectory(prefix="qmodel-simulator-") as folder, _undisturbed():
        return _run(seed, settings or drawn(seed), Path(folder), dump)


def _run(seed: str, settings: Settings, folder: Path, dump: BinaryIO | None) -> Result:
    """Run a seed; nothing of its world is left when this has returned, so all of it is collected."""
    world = World(seed, settings, folder, dump)
    with runtime.replaced(world.machine()):
        try:
            world.run()
        except Exception as error:  # so that the seed is known, and the others are run
            where = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            world.oracles.found("the run is whole", said)
        finally:
            world.baton.end()
    for text in world.baton.errors:
        world.oracles.found("no thread fails", text)
    found, net = world.oracles, world.net
    return Result(seed, world.baton.now, net.digest, world.baton.switches, net.packets, found.counts, found.findings)


__all__ = ["PREFIX", "Result", "World", "run"]
