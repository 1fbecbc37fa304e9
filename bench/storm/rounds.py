"""A round of a storm: a fresh world, a load, faults, and the evidence at the end.

A storm has many rounds, so that the servers stay small: a server that has to load a million keys after each of a
hundred crashes would spend the storm with that.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TextIO

import redis

from bench.storm import kinds
from bench.storm.evidence import Evidence, Note, Window, read_notes
from bench.storm.faults import Fault
from bench.storm.line import Network
from bench.storm.load import (
    NARROW,
    NARROW_LIMIT,
    QUEUES,
    SCHEDULES,
    THROTTLES,
    Producer,
    Workers,
    drained,
    prepare,
)
from bench.storm.sharded import Sharded, Unconfirmed
from bench.storm.world import Cluster, Pair, Stuck, World, until
from qmodel.backends.redis.take_snapshot import taken
from qmodel.client.sync import Client
from qmodel.contract.events import Event
from qmodel.errors import QmodelError
from qmodel.model import invariants
from qmodel.model.snapshot import Snapshot
from qmodel.pipeline.audit.replay import Audit, differences, without_collection
from qmodel.pipeline.journal.pages import entries

WORLDS: dict[str, type[Pair | Cluster | Sharded]] = {one.kind: one for one in (Pair, Cluster, Sharded, Unconfirmed)}
PRODUCERS = 3
SHOWN = 20
"""The most findings of a sort that a round tells."""


@dataclass(frozen=True)
class Round:
    """A round: its number, its world, its server, its jobs and its faults."""

    number: int
    world: str
    program: str
    jobs: int
    faults: int
    seed: str


class Space(NamedTuple):
    """What a namespace says at the end."""

    events: list[Event]
    broken: list[str]
    differences: list[str]


class Log:
    """The log of the faults: a line of JSON each, written before and after."""

    def __init__(self, file: TextIO, round: Round) -> None:
        self._file, self._round = file, round

    def write(self, number: int, what: str, fault: Fault, at: float) -> None:
        """Write a line."""
        row = {
            "round": self._round.number, "fault": number, "what": what, "kind": fault.name, "at": round(at, 3),
            "seconds": fault.seconds, **fault.details,
        }  # fmt: skip
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()


def played(round: Round, wanted: list[type[Fault]], folder: Path, log: TextIO) -> Evidence:
    """Play a round; give its evidence."""
    chance = random.Random(round.seed)
    with Network() as network:
        world = WORLDS[round.world](round.program, folder, network)
        try:
            return Play(round, world, folder, chance).run(wanted, Log(log, round))
        finally:
            world.close()


class Play:
    """A round while it is played."""

    def __init__(self, round: Round, world: World, folder: Path, chance: random.Random) -> None:
        self.round, self.world, self.folder, self.chance = round, world, folder, chance
        self.windows: list[Window] = []
        self.crashes: list[str] = []
        with Client(world.direct) as client:
            prepare(client)
        self.workers = Workers(world, folder)
        self.producers = [self._producer(number) for number in range(PRODUCERS)]

    def _producer(self, number: int) -> Producer:
        jobs = self.round.jobs // PRODUCERS + (number < self.round.jobs % PRODUCERS)
        confirm, name = self.world.confirms(number), f"r{self.round.number}p{number}"
        chance = random.Random(self.chance.random())
        return Producer(name, self.world.url(confirm), confirm, jobs, chance, self.world.layout)

    def run(self, wanted: list[type[Fault]], log: Log) -> Evidence:
        """Put and perform jobs while faults strike; then let all end."""
        try:
            self.workers.ready()
            for producer in self.producers:
                producer.thread.start()
            drawn = kinds.deck(wanted, type(self.world), self.round.faults, self.chance)
            for number, kind in enumerate(drawn, 1):
                self._strike(number, kind, log)
            self._rest()
        except (Stuck, QmodelError, redis.RedisError) as error:
            self.crashes.append(f"{type(error).__name__}: {error}")
        finally:
            for producer in self.producers:
                producer.end()
            self.workers.end(signal.SIGTERM)
        return self._evidence()

    def _strike(self, number: int, kind: type[Fault], log: Log) -> None:
        """Let the load go on to a random point of this fault's part of the jobs, then strike."""
        fault = kind(self.world, self.workers, self.chance)
        part = self.round.jobs / self.round.faults
        self._allow(int(part * number))
        self._reach(int(part * (number - 1 + self.chance.uniform(0.1, 0.6))), f"jobs before {fault.name}")
        log.write(number, "strikes", fault, time.time())
        try:
            fault.run()
        finally:
            fault.ends = fault.ends or time.time()
            self.windows.append(fault.window())
            log.write(number, "healed", fault, fault.ends)

    def _allow(self, jobs: int) -> None:
        for producer in self.producers:
            producer.allow(-(-jobs // PRODUCERS))

    def _reach(self, jobs: int, what: str) -> None:
        until(lambda: sum(len(one.acknowledged) for one in self.producers) >= jobs, what)

    def _rest(self) -> None:
        """Put the remaining jobs, and wait until all have ended."""
        self._allow(self.round.jobs)
        self._reach(self.round.jobs, "the acknowledgement of all jobs")
        with Client(self.world.direct) as client:
            for name in SCHEDULES:
                with contextlib.suppress(QmodelError):
                    client.recurring.unrecur(name)
            until(drained(client), "the end of all jobs")

    # ---- what is known at the end

    def _evidence(self) -> Evidence:
        found = [self._space(number, url) for number, url in enumerate(self.world.spaces)]
        acknowledged = [one for producer in self.producers for one in producer.acknowledged]
        return Evidence(
            plans={jid: plan for one in self.producers for jid, plan in one.plans.items()},
            limits={**THROTTLES, f"queue/{NARROW}": NARROW_LIMIT},
            acknowledged=acknowledged,
            errors=[error for producer in self.producers for error in producer.errors],
            notes=list(self._notes()),
            windows=self.windows,
            jobs=frozenset(self._there([one.jid for one in acknowledged])),
            events=[event for one in found for event in one.events],
            broken=[sentence for one in found for sentence in one.broken],
            differences=[sentence for one in found for sentence in one.differences],
            crashes=[*self.crashes, *self._left(), *self._crashes()],
            layout=self.world.layout,
        )

    def _space(self, number: int, url: str) -> Space:
        """Take the snapshot of a namespace; read its events; audit its journal."""
        try:
            snapshot = taken(url)
            broken = [f"{one.name}: {one.detail}"[:500] for one in invariants.check(snapshot)]
            broken += [f"a job in shard {number} is not at home: {jid}" for jid in self._astray(number, snapshot)]
            with Client(f"{url}&connect_deadline=5") as client:
                return Space(list(_events(client)), broken, list(_audited(client, snapshot)))
        except (QmodelError, redis.RedisError) as error:
            return Space([], [str(error)[:500]], [])

    def _astray(self, number: int, snapshot: Snapshot) -> list[str]:
        """List the jobs of a shard that belong to another one."""
        layout = self.world.layout
        return [jid for jid in snapshot.jobs if layout is not None and layout.home(jid) != number]

    def _left(self) -> list[str]:
        """Tell what is left in the queues."""
        try:
            with Client(f"{self.world.direct}&connect_deadline=5") as client:
                return [f"{one} is left in {name}" for name in QUEUES for one in _left(client, name)][:SHOWN]
        except QmodelError as error:
            return [str(error)[:500]]

    def _there(self, jids: Sequence[str]) -> Iterator[str]:
        """Ask the server which jobs it has."""
        with contextlib.suppress(QmodelError), Client(f"{self.world.direct}&connect_deadline=5") as client:
            yield from (job.jid for job in client.jobs.get_many(jids))

    def _notes(self) -> Iterator[Note]:
        for worker in self.workers.all:
            yield from read_notes(worker.notes, worker.confirm)

    def _crashes(self) -> Iterator[str]:
        """Tell of workers that ended by themselves, and of tracebacks in their logs."""
        for worker in self.workers.all:
            text = worker.log.read_text(errors="replace")
            if worker.ended_by is None:
                yield f"{worker.log.stem} ended by itself: {text[-300:]!r}"
            elif (place := text.find("Traceback")) >= 0:
                yield f"{worker.log.stem} logged: {text[max(place - 200, 0) : place + 1000]!r}"


def _events(client: Client) -> Iterator[Event]:
    """Read the whole stream."""
    after = 0
    while found := list(client.events(after)):
        yield from found
        after = found[-1].seq


def _left(client: Client, name: str) -> Sequence[str]:
    """Tell what is left in a queue, by state."""
    counts = client.queues[name].counts
    states = ("scheduled", "depends", "waiting", "throttled", "running", "stalled")
    return [f"{getattr(counts, state)} {state}" for state in states if getattr(counts, state, 0)]


def _audited(client: Client, snapshot: Snapshot) -> Iterator[str]:
    """Execute the journal again on the model, and compare the state after it."""
    audit = Audit()
    with without_collection():
        try:
            for difference in audit.follow(entries(client)):
                yield str(difference)[-1500:]
        except QmodelError as error:
            yield str(error)[:1500]
            return
        yield from (path[:500] for path in differences(audit.state(), snapshot)[:SHOWN])
