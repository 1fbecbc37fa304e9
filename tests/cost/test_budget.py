"""Count the commands that one call makes at sizes where calls once blocked the server for seconds.

`python -m bench worst` searches for the worst call of every operation, and measures its time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.lifecycle import Caller
from bench.raw import Connection
from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost
from qmodel.conformance.histories.directed.load import directed
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation, Put
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state import budget
from qmodel.model.state.store import Store
from qmodel.wire import codec
from tests.servers import Server

MOST_COMMANDS = 4 * budget.UNITS + 100
"""A unit is at most four commands: a tag is three when its last job goes. The rest are those of the step itself."""

Counted = Callable[[Operation], tuple[int, object]]
"""Executes an operation; gives how many commands it made, and its reply."""


def embedded() -> Counted:
    """Count in this process."""
    host = LuaHost(lambda: 0.0)
    host.load(bundle.library())

    def call(op: Operation) -> tuple[int, object]:
        before = host.keyspace.calls.total()
        reply = codec.decode(op, host.fcall(bundle.function_name(op.spec.name), ("ql:",), codec.encode(op, now[0])))
        return host.keyspace.calls.total() - before, reply

    now = [0]
    call.now = now  # type: ignore[attr-defined]
    return call


def model() -> Counted:
    """Execute on the model, which makes no commands."""
    store = Store()
    return lambda op: (0, engine.step(store, 0, op))


def _executed(connection: Connection) -> int:
    lines = connection.call("INFO", "commandstats").decode().split("\r\n")
    return sum(int(line.partition("calls=")[2].partition(",")[0]) for line in lines if "calls=" in line)


def on_server(server: Server) -> Counted:
    """Count on a server."""
    caller = Caller(server.url).load()
    caller.connection.call("FLUSHDB", "SYNC")

    def call(op: Operation) -> tuple[int, object]:
        caller.connection.call("CONFIG", "RESETSTAT")
        parts = ["FCALL", bundle.function_name(op.spec.name), "1", "ql:", *codec.encode(op, now[0])]
        reply = codec.decode(op, caller.connection.call(*parts))
        return _executed(caller.connection), reply

    now = [0]
    call.now = now  # type: ignore[attr-defined]
    return call


def tagged(first: int, last: int) -> tuple[Put, ...]:
    """Jobs with a hundred tags of their own each."""
    return tuple(Put("q", f"j{i}", "k", "", tags=tuple(f"t{i}-{n}" for n in range(100))) for i in range(first, last))


def put_and_cancel(counted: Counted) -> None:
    """Put and cancel a thousand jobs with a hundred tags each."""
    commands, refused = counted(ops.PutMany(tagged(0, 1000)))
    assert isinstance(refused, Refusal)
    assert refused.code == "OVER_BUDGET"
    assert commands < 10
    part = int(refused.named["parts"])
    for first in range(0, 1000, part):
        commands, reply = counted(ops.PutMany(tagged(first, min(first + part, 1000))))
        assert not isinstance(reply, Refusal)
        assert commands <= MOST_COMMANDS
    jids = tuple(f"j{i}" for i in range(1000))
    commands, refused = counted(ops.Cancel(jids))
    assert isinstance(refused, Refusal)
    assert commands < 10
    part = int(refused.named["parts"])
    commands, reply = counted(ops.Cancel(jids[:part]))
    assert reply == jids[:part]
    assert commands <= MOST_COMMANDS
    commands, reply = counted(ops.Drain("q"))
    assert not isinstance(reply, Refusal)
    assert commands <= MOST_COMMANDS


def unset_and_pop(counted: Counted) -> None:
    """Pop after a throttle with a thousand parked jobs is unset."""
    counted(ops.ThrottleSet("x", concurrency=1))
    for first in range(0, 1100, 100):
        puts = (Put("q", f"j{i}", "k", "", throttles=("x",)) for i in range(first, first + 100))
        counted(ops.PutMany(tuple(puts)))
    for _ in range(12):
        counted(ops.Pop("q", "w", 100))
    counted(ops.ThrottleUnset("x"))
    got = 0
    for _ in range(20):
        commands, reply = counted(ops.Pop("q", "w", 1000))
        assert commands <= MOST_COMMANDS
        assert isinstance(reply, tuple)
        got += len(reply)
    assert got == 1099


def pop_a_backlog(counted: Counted) -> None:
    """Pop from the backlog of a schedule with a hundred tags."""
    counted(ops.Recur("q", "r", "k", "", 1, tags=tuple(f"t{n}" for n in range(100))))
    counted.now[0] = 100_000  # type: ignore[attr-defined]
    commands, reply = counted(ops.Pop("q", "w", 1000))
    assert isinstance(reply, tuple)
    assert 1 <= len(reply) <= budget.UNITS // 200
    assert commands <= MOST_COMMANDS


CASES = [put_and_cancel, unset_and_pop, pop_a_backlog]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_large_call_makes_no_more_commands_than_its_budget_allows(case: Callable[[Counted], None]) -> None:
    case(embedded())


@pytest.mark.server
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_it_makes_no_more_on_a_server(server: Server, case: Callable[[Counted], None]) -> None:
    case(on_server(server))


def cancel_an_ordered_key(counted: Counted) -> None:
    """Cancel a thousand jobs of one key: none of them gets the slot of the one that has it."""
    counted(ops.PutMany(tuple(Put("q", f"j{i}", "k", "", ordered="o") for i in range(1000))))
    before = counted(ops.Newest())[1]
    commands, reply = counted(ops.Cancel(tuple(f"j{i}" for i in range(1000))))
    assert reply == tuple(f"j{i}" for i in range(1000))
    assert counted(ops.Newest())[1].seq == before.seq + 1000  # type: ignore[attr-defined]
    assert commands <= 4000


def add_a_thousand_names(counted: Counted) -> None:
    """Let a job depend on a thousand others by named edges."""
    counted(ops.PutMany(tuple(Put("q", f"j{i}", "k", "") for i in range(1000))))
    counted(Put("d", "d", "k", "", depends=("j0",)))
    commands, reply = counted(ops.DependsOn("d", tuple(f"j{i} fail n{i}" for i in range(1000))))
    assert isinstance(reply, tuple) and len(reply) == 1000
    assert commands <= 5000


@pytest.mark.parametrize("case", [cancel_an_ordered_key, add_a_thousand_names], ids=lambda case: case.__name__)
def test_a_call_on_a_thousand_jobs_makes_few_commands_for_each(case: Callable[[Counted], None]) -> None:
    case(embedded())


# ---- long texts


def results(counted: Counted, length: int, dependents: int) -> object:
    """Complete a job with a result, which its dependents keep."""
    counted(Put("q", "root", "k", ""))
    for i in range(dependents):
        counted(Put("d", f"d{i}", "k", "", depends=("root ignore r",)))
    ((job, *_),) = [counted(ops.Pop("q", "w"))[1]]  # type: ignore[misc]
    return counted(ops.Complete(job.jid, job.token, "x" * length))[1]


def complete_dependencies(counted: Counted, length: int, count: int) -> object:
    """Put a job with dependencies that are complete, with results."""
    for i in range(count):
        counted(Put("q", f"j{i}", "k", ""))
        ((job, *_),) = [counted(ops.Pop("q", "w"))[1]]  # type: ignore[misc]
        counted(ops.Complete(job.jid, job.token, "x" * length))
    return counted(Put("d", "d", "k", "", depends=tuple(f"j{i}" for i in range(count))))[1]


@pytest.mark.parametrize("side", [model, embedded], ids=lambda side: side.__name__)
def test_texts_of_dependencies_are_bounded(side: Callable[[], Counted]) -> None:
    mib = 1 << 20
    assert results(side(), mib, 15) == "complete"
    assert results(side(), mib, 16) == Refusal("DEPENDENCY_LIMIT", ("root",))
    assert complete_dependencies(side(), mib, 3) == "d"
    assert complete_dependencies(side(), mib, 4) == Refusal("DEPENDENCY_LIMIT", ("d",))


# ---- every call of the histories that go beyond the budget


def test_no_call_of_the_directed_histories_makes_more_commands_than_its_budget_allows() -> None:
    for history in directed():
        if "a_thousand_tags" in history.name or "more_than_a_thousand" in history.name:
            count = embedded()
            for now, op in history.steps:
                count.now[0] = now  # type: ignore[attr-defined]
                commands, _ = count(op)
                assert commands <= MOST_COMMANDS, (history.name, op.spec.name)


MOST_EVENTS = budget.UNITS
"""Each event belongs to work that was counted."""


def test_no_step_of_the_model_tells_of_more_than_its_budget_allows() -> None:
    worst = 0
    for history in directed():
        store = Store()
        for now, op in history.steps:
            before = store.seq
            engine.step(store, now, op)
            worst = max(worst, store.seq - before)
    assert 1000 <= worst <= MOST_EVENTS
