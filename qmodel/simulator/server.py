"""The server: `qmodel serve` with its journal on the simulated disk, and its crashes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qmodel.contract.operations import Operation, Spec
from qmodel.model.state.store import Store
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host, Options
from qmodel.serve.journal import Journal, JournalError
from qmodel.serve.namespaces import Space
from qmodel.serve.server import open_host, serving
from qmodel.simulator.baton import Process
from qmodel.simulator.disk import SimulatedDisk
from qmodel.simulator.net import PORT
from qmodel.simulator.scene import Scene
from qmodel.simulator.strands import Waiters

PREFIX = "ql:"
DEADLINE = 6.0


class Server:
    """Starts, crashes and starts again. `since` is the point of the failure model's last loss, if it lost anything."""

    def __init__(self, scene: Scene, folder: Path, disk: SimulatedDisk, snapshot_every: int) -> None:
        self.disk = disk
        self.crashes = 0
        self.since: float | None = None
        self.start_at = 0.0
        self.url = f"redis://simulated:{PORT}/0?deadline={DEADLINE:g}&socket_timeout=2"
        self.host: Host | None = None
        self._scene = scene
        self._options = Options(data=str(folder), snapshot_every=snapshot_every)
        self._process: Process | None = None
        self._ended = Waiters(scene.baton)

    @property
    def store(self) -> Store | None:
        """The state, while the server runs."""
        host, process = self.host, self._process
        if host is None or process is None or process.dead or not isinstance(host.executor, ModelExecutor):
            return None
        return host.executor.spaces.look(0, PREFIX).store

    @property
    def stores(self) -> list[Store]:
        """The states that can be seen now: the one, while the server runs."""
        return [store] if (store := self.store) is not None else []

    def store_of(self, jid: str) -> Store | None:
        """The state that has a job, while its server runs."""
        return self.store

    @property
    def is_up(self) -> bool:
        """Whether every client could be served."""
        return self.store is not None and self._scene.net.listens(PORT)

    @property
    def ports(self) -> list[int]:
        """The ports at which a client may be parted from a server while it reaches others: none."""
        return []

    def move(self) -> None:
        """Move a slot: there are none."""

    @property
    def runs(self) -> bool:
        """Whether there is a server process, perhaps one that still starts."""
        return self._process is not None and not self._process.dead

    def operate(self) -> None:
        """Start the server whenever it does not run, and its time to start has come: the operator's part."""
        while True:
            if self.runs:
                self._ended.wait(None)
            elif self._scene.baton.now < self.start_at:
                self._scene.sleep(self.start_at - self._scene.baton.now)
            else:
                self._process = process = Process("server", self._scene.draw_skew())
                process.at_death.append(self._ended.wake)
                self._scene.baton.start("serve", process, partial(self._serve, process))

    def _serve(self, process: Process) -> None:
        scene = self._scene
        try:
            self.host = host = self._open()
            if self.store is not None:
                scene.oracles.recovered(self.store, self.since)
                self.since = None
            scene.run_loop(self._until_it_stops(host))
        except JournalError as error:
            if not self.disk.refused:
                scene.oracles.found("the server starts", str(error))
        self.disk.refused = 0
        scene.net.faulted(1.0)
        self.start_at = scene.baton.now + 0.5
        self.disk.abandon()
        scene.baton.kill(process)

    def _open(self) -> Host:
        host = open_host(self._options, self.disk)
        assert isinstance(host.executor, ModelExecutor)
        host.executor.watch = self._watch
        return host

    def settle(self) -> None:
        """Put what a lying disk has on the disk."""
        self.disk.settle()

    async def _until_it_stops(self, host: Host) -> None:
        async with serving(host):
            await host.stopping.wait()

    def _watch(
        self, space: Space, spec: Spec, words: Sequence[str], op: Operation | None, now: int, outcome: Any
    ) -> None:
        if space.prefix == PREFIX:
            self._scene.oracles.executed(space.store, spec, words, op, outcome)

    def check_at_the_end(self) -> None:
        """Look for every acknowledged job, and compare the state with the journal."""
        store, again = self.store, self.replayed()
        if store is not None:
            self._scene.oracles.recovered(store, None)
            if again is not None:
                self._scene.oracles.replayed(store, again)

    def replayed(self) -> Store | None:
        """Give the state that a copy of the journal holds."""
        with tempfile.TemporaryDirectory(prefix="qmodel-simulator-") as folder:
            shutil.copytree(self._options.data, folder, dirs_exist_ok=True)
            journal, executor = Journal(folder), ModelExecutor()
            journal.recover(executor.spaces, executor.replay)
            journal.close()
            return executor.spaces.look(0, PREFIX).store

    # ---- faults

    def crash(self, how: str, down: float) -> None:
        """End the process at once, and start another one after some time.

        `kill`: the disk keeps what the kernel has. `power`: what was not synced may be lost. `tail`: a disk that lies
        goes back to when it was last settled; `failover`: a replica takes over, which lags by some time.
        """
        scene, disk = self._scene, self.disk
        self.crashes += 1
        self.start_at = scene.baton.now + down
        if self._process is not None:
            scene.baton.kill(self._process)
            scene.baton.give_way()
        disk.abandon()
        scene.oracles.counts[f"crashes: {how}"] += 1
        self._lose(how)

    def _lose(self, how: str) -> None:
        scene, disk = self._scene, self.disk
        if how == "power":
            disk.lose()
        elif how == "tail":
            self._go_back(disk.settled_at)
        elif how == "failover":
            self._go_back(max(disk.settled_at, scene.baton.now - scene.chance.random() * scene.settings.tail))

    def _go_back(self, since: float) -> None:
        self.since = since if self.since is None else min(self.since, since)
        self.disk.lose(since)
