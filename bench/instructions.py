"""Count the machine instructions that a job's life costs the server, with valgrind's callgrind.

Instructions do not depend on the machine's load, so that two versions of the library can be compared where time cannot
be measured. They are those of the whole server process in user mode: parsing, Lua, commands and replies, without the
kernel. A figure is the mean over 1,000 jobs, after 500 others. The floor is that of `server`.
"""

from __future__ import annotations

import itertools
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import Options
from bench.lifecycle import (
    DATA,
    KLASS,
    QUEUE,
    SPAN,
    WORKER,
    Batches,
    Caller,
    Chained,
    Floor,
    FloorBatches,
    Held,
    Least,
    LeastBatches,
    Single,
    Stages,
    Together,
    Way,
    fill,
    granted,
    held,
    jid,
    request,
)
from bench.machine import candidates
from bench.raw import pack
from bench.report import Report, Table, Verdict
from qmodel.backends.bundle import function_name
from qmodel.contract.operations import (
    CompleteAndPop,
    ConfigSet,
    Operation,
    Pop,
    Put,
    RequestAdd,
    RequestOpen,
    ThrottleSet,
)
from qmodel.wire import codec
from tests.servers import Candidate, Server, running

WARM, COUNTED = 5, 10
DEPTH, CAP = 100_000, 1_000
SHARDS = 64
NOW, CALLS_A_MS, WAITING = 1_800_000_000_000, 20, 12
ONE_NAMESPACE, IN_TURN = "its moment given", f"its moment given, {SHARDS} namespaces in turn"
_NUMBERS = itertools.count()


class Counted(NamedTuple):
    """A server that runs under callgrind."""

    folder: Path
    pid: int

    def instructions(self) -> int:
        """The instructions since the last call."""
        ask = ["vgdb", f"--vgdb-prefix={self.folder}/vgdb", f"--pid={self.pid}", "dump"]
        subprocess.run(ask, check=True, capture_output=True)
        found = 0
        for path in self.folder.glob(f"callgrind.{self.pid}.*"):
            with path.open() as file:
                found += sum(int(line.split()[1]) for line in file if line.startswith("totals:"))
            path.unlink()
        return found


def under_callgrind(program: str, folder: Path) -> str:
    """Write a program that runs a server under callgrind; `Counted` counts in the same folder."""
    wrapper = folder / "server"
    wrapper.write_text(
        f"#!/bin/sh\nexec valgrind --tool=callgrind --callgrind-out-file={folder}/callgrind.%p"
        f' --vgdb-prefix={folder}/vgdb {program} "$@"\n'
    )
    wrapper.chmod(0o700)
    return str(wrapper)


@contextmanager
def counted(candidate: Candidate) -> Iterator[tuple[Server, Counted]]:
    """Start a server under callgrind."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as name:
        program = under_callgrind(candidate.program, Path(name))
        with running(candidate._replace(program=program)) as server, server.client() as client:
            yield server, Counted(Path(name), int(client.info("server")["process_id"]))


def per_job(server: Counted, way: Way) -> Stages:
    """Count the instructions of each stage per job."""
    spent = [0, 0, 0]
    for i in range(WARM + COUNTED):
        server.instructions()
        way.put()
        put = server.instructions()
        popped = way.pop()
        pop = server.instructions()
        way.complete(popped)
        if i >= WARM:
            for stage, count in enumerate((put, pop, server.instructions())):
                spent[stage] += count
    return Stages(*(count / COUNTED / SPAN / 1000 for count in spent))


class Varied(Single):
    """Jobs whose id, queue, worker and job type, and further arguments, are drawn anew for each."""

    def __init__(self, url: str, prefix: str, *before: Operation, turns: int = 1, **more: Callable[[], Any]) -> None:
        super().__init__(Caller(url, prefix))
        if before:
            self.caller.execute(before)
        self.turns, self.more = turns, more

    def _name(self, name: str, i: int) -> str:
        return name if i % self.turns == 0 else f"{name}-{i % self.turns}"

    def _new(self, i: int, asked: str) -> Put:
        more = {name: value() for name, value in self.more.items()}
        one = more.pop("jid", jid)
        return Put(self._name(QUEUE, i), one if isinstance(one, str) else one(), self._name(KLASS, i), DATA,
                   request=asked, **more)  # fmt: skip

    def put(self) -> None:
        self._execute([self._new(i, request()) for i in range(SPAN)])

    def pop(self) -> list[Held]:
        asked = [Pop(self._name(QUEUE, i), self._name(WORKER, i), request=request()) for i in range(SPAN)]
        return [held(jobs[0]) for jobs in self._execute(asked)]


class Awaited(Varied):
    """Jobs for which a worker waits when they are put. Their put wakes it; their completion finds no other job."""

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__(url, prefix, Pop(QUEUE, WORKER, wait=True, request=request()))

    def put(self) -> None:
        for i in range(SPAN):
            self._execute([self._new(i, request())])
            [job] = self._execute([Pop(QUEUE, WORKER, wait=True, request=request())])
            self._execute([CompleteAndPop(*held(job[0]), QUEUE, WORKER, wait=True, request=request())])

    def pop(self) -> list[Held]:
        return []

    def complete(self, popped: list[Held]) -> None:
        """Each is complete."""


class Requested(Varied):
    """Jobs that are added to an open request one by one."""

    def put(self) -> None:
        self._execute([RequestAdd("r", (self._new(i, ""),), request()) for i in range(SPAN)])


class InTurn(Caller):
    """Calls of several namespaces, one after the other.

    The calls bring their moments: under callgrind so much time passes that each namespace would do in every call what
    it does once a second.
    """

    def __init__(self, url: str, count: int) -> None:
        super().__init__(url)
        self.count, self.called = count, 0

    def execute(self, ops: Sequence[Operation]) -> list[Any]:
        """Execute each operation in the next namespace; every round begins with the first one."""
        commands = []
        for i, op in enumerate(ops):
            self.called += 1
            prefix, now = f"{{shop-{self.count}:{i % self.count}}}:", NOW + self.called // CALLS_A_MS
            commands.append(pack("FCALL", function_name(op.spec.name), "1", prefix, *codec.encode(op, now)))
        return granted(ops, self.connection.exchange(commands))


def _key() -> str:
    return f"k{next(_NUMBERS)}"


def _capped(url: str, prefix: str, way: Callable[[Caller], Way]) -> Way:
    """A namespace that has as many complete jobs as it keeps."""
    caller = Caller(url, prefix)
    caller.execute([ConfigSet("jobs-history-count", CAP)])
    batches = Batches(caller)
    for _ in range(2 * CAP // SPAN):
        batches.put()
        batches.complete(batches.pop())
    return way(caller)


def _deep(url: str, prefix: str, way: Callable[[Caller], Way]) -> Way:
    caller = Caller(url, prefix)
    fill(caller, DEPTH)
    return way(caller)


def _in_turn(url: str, count: int) -> Way:
    """Namespaces with waiting and running jobs: creating a key and deleting it again would cost more than the call."""
    way = Single(InTurn(url, count))
    for _ in range(WAITING):
        way.put()
    for _ in range(WAITING // 3):
        way.pop()
    return way


def ways(url: str, quick: bool) -> dict[str, Callable[[], Way]]:
    """The ways to be measured, each made when its turn comes."""
    found: dict[str, Callable[[], Way]] = {
        "floor, one a call": lambda: Floor(url).load(),
        "floor, batches": lambda: FloorBatches(url),
        "the least that the promises cost, one a call": lambda: Least(url).load(),
        "the least that the promises cost, batches": lambda: LeastBatches(url),
        "one a call": lambda: Varied(url, "plain:"),
        "complete and pop in one call": lambda: Chained(Caller(url, "chained:")),
        "a hundred operations a call": lambda: Together(Caller(url, "calls:")),
        "batches": lambda: Batches(Caller(url, "batches:")),
        "at the cap": lambda: _capped(url, "cap:", Single),
        "at the cap, batches": lambda: _capped(url, "caps:", Batches),
    }
    if quick:
        return found
    return found | {
        "ids as UUIDs with hyphens": lambda: Varied(url, "uuid:", jid=lambda: str(uuid.uuid4())),
        "an option is set": lambda: Varied(url, "option:", ConfigSet("heartbeat", 30_000)),
        "a second queue, worker and type in turn": lambda: Varied(url, "turns:", turns=2),
        ONE_NAMESPACE: lambda: _in_turn(url, 1),
        IN_TURN: lambda: _in_turn(url, SHARDS),
        "a priority and retries": lambda: Varied(url, "retries:", priority=lambda: 3, retries=lambda: 3),
        "lease, dead queue, limit of lapses": lambda: Varied(
            url, "options:", lease_ms=lambda: 60_000, dead_queue=lambda: "dead", max_lapses=lambda: 3
        ),
        "a worker waits for each": lambda: Awaited(url, "awaited:"),
        "a tag": lambda: Varied(url, "tag:", tags=lambda: ("blue",)),
        "a throttle": lambda: Varied(url, "throttle:", ThrottleSet("t", 1000), throttles=lambda: ("t",)),
        "a throttle of a family, each job its own": lambda: Varied(
            url, "family:", ThrottleSet("t-*", 2), throttles=lambda: (f"t-{jid()}",)
        ),
        "a priority that improves with age": lambda: Varied(
            url, "aging:", ConfigSet("aging", 60_000), priority=lambda: 3
        ),
        "unique": lambda: Varied(url, "unique:", unique=_key),
        "of a request": lambda: Requested(url, "request:", RequestOpen("r", QUEUE, 1000)),
        f"{DEPTH:,} waiting": lambda: _deep(url, "deep:", Single),
        f"{DEPTH:,} waiting, batches": lambda: _deep(url, "deeps:", Batches),
    }


BOUNDS = {
    "at the cap": 1.1, "ids as UUIDs with hyphens": 1.1, "an option is set": 1.1,
    "a second queue, worker and type in turn": 1.1, "a priority and retries": 1.1,
    "lease, dead queue, limit of lapses": 1.3, "a tag": 1.3, "a throttle": 1.5,
    "a throttle of a family, each job its own": 1.5, "a priority that improves with age": 1.3,
    "unique": 1.5, "of a request": 1.5,
    f"{DEPTH:,} waiting": 1.05,
}  # fmt: skip
"""The most times the cost of a plain job."""


def run(options: Options) -> Report:
    """Count on each requested server."""
    if not shutil.which("valgrind"):
        raise SystemExit("bench instructions needs valgrind (apt install valgrind)")
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        with counted(candidate) as (server, counter):
            said = server.client().info("server")
            kind = "Valkey" if "valkey_version" in said else "Redis"
            version = f"{kind} {said.get('valkey_version', said['redis_version'])}"
            Caller(server.url).load()
            found: dict[str, Stages] = {}
            table = Table(
                f"Thousands of instructions of {version} a job",
                ["", "put", "pop", "complete", "all", "times the floor", "times a plain job"],
            )
            for name, made in ways(server.url, options.quick).items():
                found[name] = stages = per_job(counter, made())
                batch = ", batches" if "batches" in name else ""
                floor, plain = found[f"floor{batch or ', one a call'}"], found.get("batches" if batch else "one a call")
                beside = f"{stages.total / plain.total:.2f}" if plain else ""
                table.add(name, *stages, stages.total, f"{stages.total / floor.total:.2f}", beside)
            tables.append(table)
            versions.append(version)
            verdicts += [
                Verdict(f"{version}: {name} / a plain job", found[name].total / found["one a call"].total, most)
                for name, most in BOUNDS.items()
                if name in found
            ]
            if IN_TURN in found:
                times = found[IN_TURN].total / found[ONE_NAMESPACE].total
                verdicts.append(Verdict(f"{version}: {SHARDS} namespaces in turn / one namespace", times, 1.07))
    return Report("instructions", "python -m bench instructions", " ".join(str(__doc__).split()), tables, verdicts,
                  versions)  # fmt: skip
