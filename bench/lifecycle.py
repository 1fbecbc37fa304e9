"""Measure the life of a job (put, pop, complete) on a server: qmodel's functions, and the cost floor below them.

There is one queue, and a payload of 100 bytes of JSON. Calls are as the Python client makes them: job ids of 32
hexadecimal digits, request ids of 22 characters, the server's clock. Nothing is turned off: every figure includes
statistics, history, leases, workers, events and retention.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from bench.raw import Connection, pack
from qmodel.backends.bundle import CALLS, function_name, library
from qmodel.contract.operations import Complete, CompleteAndPop, CompleteMany, Operation, Pop, Put, PutMany
from qmodel.contract.refusals import Refusal
from qmodel.wire import codec

QUEUE, KLASS, WORKER = "emails", "SendEmail", "worker-1"
DATA = json.dumps({"to": "somebody@example.com", "subject": "Welcome aboard", "text": "x" * 29})
assert len(DATA) == 100
SPAN = 100
"""Calls in a round trip, or jobs in a call."""

Held = tuple[str, int]


def jid() -> str:
    """A job id as the client makes them."""
    return uuid.uuid4().hex


def request() -> str:
    """A request id of the client's length."""
    return uuid.uuid4().hex[:22]


def puts(count: int) -> list[Put]:
    """Make jobs for batches; only the batch has a request id."""
    return [Put(QUEUE, jid(), KLASS, DATA) for _ in range(count)]


class Stages(NamedTuple):
    """Microseconds of server CPU for each job, by stage."""

    put: float
    pop: float
    complete: float

    @property
    def total(self) -> float:
        return sum(self)


class Way(Protocol):
    """A way to take SPAN jobs through their life: three calls, with the clock read between them."""

    def put(self) -> object: ...
    def pop(self) -> object: ...
    def complete(self, held: Any) -> object: ...


class Caller:
    """Calls qmodel's functions."""

    def __init__(self, url: str, prefix: str = "ql:") -> None:
        self.connection = Connection(url)
        self.prefix = prefix

    def load(self) -> Self:
        """Load the library of this tree."""
        self.connection.call("FUNCTION", "LOAD", "REPLACE", library())
        return self

    def command(self, op: Operation) -> bytes:
        """Encode a call."""
        return pack("FCALL", function_name(op.spec.name), "1", self.prefix, *codec.encode(op))

    def execute(self, ops: Sequence[Operation]) -> list[Any]:
        """Execute operations in one round trip; give the raw replies. None may be refused."""
        return granted(ops, self.connection.exchange(map(self.command, ops)))

    def calls(self, ops: Sequence[Operation]) -> list[Any]:
        """Execute operations together, each a step of its own; a call leaves those that are too many to the next."""
        replies: list[Any] = []
        while left := ops[len(replies) :]:
            words = (w for op in left for args in (codec.encode(op),) for w in (op.spec.name, str(len(args)), *args))
            replies += self.connection.call("FCALL", CALLS, "1", self.prefix, *words)
        return granted(ops, replies)


def granted(ops: Sequence[Operation], replies: list[Any]) -> list[Any]:
    """Give what the calls reply. None may be refused."""
    found = [codec.listed(op, reply) for op, reply in zip(ops, replies, strict=True)]
    for op, reply in zip(ops, found, strict=True):
        if reply[0] != b"OK":
            raise AssertionError(codec.decode(op, reply))
    return [reply[1] for reply in found]


def held(raw: Any) -> Held:
    """Read the id and the token of the popped job."""
    job = codec.job(raw)
    assert not isinstance(job, Refusal)
    return job.jid, job.token


class Single:
    """One job in each call, `span` calls in a round trip."""

    def __init__(self, caller: Caller, span: int = SPAN) -> None:
        self.caller, self.span = caller, span

    def _execute(self, ops: Sequence[Operation]) -> list[Any]:
        replies = []
        for first in range(0, len(ops), self.span):
            replies += self.caller.execute(ops[first : first + self.span])
        return replies

    def put(self) -> None:
        self._execute([Put(QUEUE, jid(), KLASS, DATA, request=request()) for _ in range(SPAN)])

    def pop(self) -> list[Held]:
        return [held(jobs[0]) for jobs in self._execute([Pop(QUEUE, WORKER, request=request()) for _ in range(SPAN)])]

    def complete(self, popped: list[Held]) -> None:
        self._execute([Complete(jid, token) for jid, token in popped])


class Together(Single):
    """A hundred operations in each call."""

    def _execute(self, ops: Sequence[Operation]) -> list[Any]:
        return self.caller.calls(ops)


class Batches:
    """A hundred jobs in each call."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def put(self) -> None:
        self.caller.execute([PutMany(tuple(puts(SPAN)), request())])

    def pop(self) -> list[Held]:
        (jobs,) = self.caller.execute([Pop(QUEUE, WORKER, SPAN, request=request())])
        return [held(job) for job in jobs]

    def complete(self, popped: list[Held]) -> None:
        self.caller.execute([CompleteMany(tuple(Complete(jid, token) for jid, token in popped))])


class FromTheLast:
    """Before a way whose `complete` notes the next jobs as `running`: its `pop` has work only the first time."""

    running: Sequence[Any] = ()

    def pop(self) -> Any:
        if not self.running:
            self.put()  # type: ignore[attr-defined]
            self.running = super().pop()  # type: ignore[misc]
        return self.running


class Chained(FromTheLast, Single):
    """Each completion pops the next job in the same call."""

    def complete(self, popped: list[Held]) -> None:
        replies = self._execute([CompleteAndPop(jid, token, QUEUE, WORKER, request=request()) for jid, token in popped])
        self.running = [held(jobs[0]) for _, jobs in replies]


class Floor:
    """The floor: one job in each call, `span` calls in a round trip."""

    library = "floor.lua"

    def __init__(self, url: str, span: int = SPAN) -> None:
        self.connection, self.span = Connection(url), span

    def load(self) -> Self:
        """Load the floor's functions."""
        self.connection.call("FUNCTION", "LOAD", "REPLACE", (Path(__file__).parent / self.library).read_text())
        return self

    def _call(self, calls: list[tuple[str, ...]]) -> list[Any]:
        replies = []
        for first in range(0, len(calls), self.span):
            replies += self.connection.exchange(
                pack("FCALL", name, "0", *arguments) for name, *arguments in calls[first : first + self.span]
            )
        return replies

    def put(self) -> None:
        self._call([("floor_put", jid(), KLASS, DATA, now_ms()) for _ in range(SPAN)])

    def pop(self) -> list[str]:
        return [got[0] for got in self._call([("floor_pop", WORKER, now_ms(60_000))] * SPAN)]

    def complete(self, popped: list[str]) -> None:
        self._call([("floor_complete", jid, now_ms()) for jid in popped])


class FloorBatches(Floor):
    """The floor: a hundred jobs in each call."""

    suffix = "_many"

    def put(self) -> None:
        now = now_ms()
        self._call([("floor_put" + self.suffix, *(part for _ in range(SPAN) for part in (jid(), KLASS, DATA, now)))])

    def pop(self) -> list[str]:
        (popped,) = self._call([("floor_pop" + self.suffix, WORKER, now_ms(60_000), str(SPAN))])
        return [got[0] for got in popped]

    def complete(self, popped: list[str]) -> None:
        self._call([("floor_complete" + self.suffix, now_ms(), *popped)])


class FloorPacked(FloorBatches):
    """The floor for a hundred jobs, with one command for all members of a sorted set."""

    suffix = "_many_packed"


class Same(Floor):
    """The commands that qmodel makes for one job per call, without checks and decisions (same.lua)."""

    library = "same.lua"

    def __init__(self, url: str, span: int = SPAN) -> None:
        super().__init__(url, span)
        self.jids: list[str] = []
        self.seq = 0

    def _next_seq(self) -> str:
        self.seq += 1
        return f"{self.seq:014}"

    def put(self) -> None:
        self.jids = [jid() for _ in range(SPAN)]
        self._call([("same_put", one, self._next_seq()) for one in self.jids])

    def pop(self) -> list[Any]:
        held = [(request(), self._next_seq()) for _ in range(SPAN)]
        self._call([("same_pop", *one) for one in held])
        return held

    def complete(self, popped: list[Any]) -> None:
        calls = zip(self.jids, popped, strict=True)
        self._call([("same_complete", one, seq, granted) for one, (granted, seq) in calls])


class SameBatches(Same):
    """The commands that qmodel makes for a hundred jobs per call, without checks and decisions."""

    def put(self) -> None:
        self.jids = [jid() for _ in range(SPAN)]
        self._call([("same_put_many", *self.jids, self._next_seq())])

    def pop(self) -> list[Any]:
        held = [self._next_seq(), request()]
        self._call([("same_pop_many", *reversed(held), str(SPAN))])
        return held

    def complete(self, popped: list[Any]) -> None:
        self._call([("same_complete_many", *self.jids, *popped)])


class Least(Floor):
    """The least that our promises cost, one job in each call: functions that know plain jobs alone (least.lua)."""

    library = "least.lua"
    begun = False

    def _begin(self) -> None:
        if not self.begun:
            self._call([("least_begin",)])
            self.begun = True

    def put(self) -> None:
        self._begin()
        self._call([("least_put", request(), QUEUE, jid(), KLASS, DATA) for _ in range(SPAN)])

    def pop(self) -> list[tuple[str, str]]:
        return [
            _least_held(reply) for reply in self._call([("least_pop", request(), QUEUE, WORKER) for _ in range(SPAN)])
        ]

    def complete(self, popped: list[tuple[str, str]]) -> None:
        self._call([("least_complete", *held) for held in popped])


class LeastBatches(Least):
    """The same for a hundred jobs in each call."""

    def put(self) -> None:
        self._begin()
        self._call(
            [("least_put_many", request(), QUEUE, *(part for _ in range(SPAN) for part in (jid(), KLASS, DATA)))]
        )

    def pop(self) -> list[tuple[str, str]]:
        (reply,) = self._call([("least_pop_many", request(), QUEUE, WORKER, str(SPAN))])
        return [_least_held(one) for one in re.findall(rb"[^\n]+\trunning\t\d+\n[^\n]+", reply)]

    def complete(self, popped: list[tuple[str, str]]) -> None:
        self._call([("least_complete_many", *(part for held in popped for part in held))])


def _least_held(reply: bytes) -> tuple[str, str]:
    """Read the id and the token of a popped job."""
    head, record = reply.split(b"\n")[:2]
    return head.split(b"\t")[0].decode(), record.split(b"\t")[9].decode()


def now_ms(later: int = 0) -> str:
    return str(time.time_ns() // 1_000_000 + later)


def rounds(way: Way, count: int, clock: Callable[[], float]) -> Stages:
    """Take `count` times SPAN jobs through their life; give the cost of each stage per job."""
    spent = [0.0, 0.0, 0.0]
    for _ in range(count):
        t0 = clock()
        way.put()
        t1 = clock()
        popped = way.pop()
        t2 = clock()
        way.complete(popped)
        t3 = clock()
        for stage, us in enumerate((t1 - t0, t2 - t1, t3 - t2)):
            spent[stage] += us
    return Stages(*(us / count / SPAN for us in spent))


def fill(caller: Caller, count: int) -> None:
    """Put `count` waiting jobs."""
    for first in range(0, count, SPAN):
        caller.execute([PutMany(tuple(puts(min(SPAN, count - first))), request())])
