"""Law 8 for searches: no operation visits a job twice, in model and library, and a sweep reaches every entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from qmodel.backends.embedded.backend import EmbeddedBackend
from qmodel.backends.embedded.keyspace import Keyspace
from qmodel.backends.memory import MemoryBackend
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model.state import dependencies

BACKENDS = {"model": MemoryBackend, "lua": EmbeddedBackend}
Execute = Callable[..., Any]


@pytest.fixture(params=BACKENDS)
def execute(request: pytest.FixtureRequest) -> Execute:
    """Executes operations at a moment, in its own namespace."""
    return BACKENDS[request.param]().execute


# ---- dependencies


@pytest.fixture
def looked_at(execute: Execute, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record each job whose dependencies are read, each time."""
    found: list[str] = []
    waits_for, bind = dependencies._waits_for, Keyspace.bind

    def in_model(store: Any, plan: Any, jid: str) -> list[str]:
        if jid not in plan.edges:
            found.append(jid)
        return waits_for(store, plan, jid)

    def in_lua(keyspace: Keyspace, name: str, read_only: bool) -> Any:
        command = bind(keyspace, name, read_only)

        def counted(*args: Any) -> Any:
            given = all(isinstance(arg, bytes) for arg in args)  # with a number it is called again
            if name == "ZRANGE" and given and args[0].endswith(b"-dependencies"):
                found.append(args[0].decode()[len("ql:j:") : -len("-dependencies")])
            return command(*args)

        return counted

    monkeypatch.setattr(dependencies, "_waits_for", in_model)
    monkeypatch.setattr(Keyspace, "bind", in_lua)
    yield found


def chain(letter: str, count: int, *last: str) -> tuple[ops.Put, ...]:
    """Make jobs that each depend on the next; the last one depends on others."""
    after = [(f"{letter}{number + 1}",) for number in range(count - 1)] + [last]
    return tuple(ops.Put("q", f"{letter}{n}", "k", "", depends=others) for n, others in enumerate(after))


def test_one_search_serves_all_jobs_of_an_operation(execute: Execute, looked_at: list[str]) -> None:
    execute(ops.PutMany(chain("old", 400)), 0)
    looked_at.clear()
    jids = execute(ops.PutMany(chain("new", 500, "old0")), 0)

    assert len(jids) == 500
    assert len(looked_at) == len(set(looked_at)) <= 400


def test_a_cycle_is_reported_from_its_first_job_in_the_call(execute: Execute) -> None:
    execute(ops.PutMany(chain("old", 3)), 0)
    leading_in = ops.Put("q", "x", "k", "", depends=("old1",))
    waiting_for_it = ops.Put("q", "y", "k", "", depends=("x",))
    closing = ops.Put("q", "old2", "k", "", depends=("old0",))

    refused = execute(ops.PutMany((waiting_for_it, leading_in, closing)), 0)

    assert refused == Refusal("DEPENDENCY_CYCLE", ("old2 > old0 > old1 > old2",))


def test_an_operation_looks_at_four_thousand_jobs_and_a_single_put_at_one_thousand(execute: Execute) -> None:
    for letter in "abcd":
        execute(ops.PutMany(chain(letter, 900)), 0)
    execute(ops.PutMany(chain("e", 900)), 0)
    over = [ops.Put("q", f"over-{letter}", "k", "", depends=(f"{letter}0",)) for letter in "abcde"]
    waiting = [ops.Put("q", f"waiting-{letter}", "k", "", depends=(f"over-{letter}",)) for letter in "abcde"]
    one = ops.Put("q", "one", "k", "", depends=("a0", "b0"))
    two = ops.Put("q", "two", "k", "", depends=("one",))

    assert len(execute(ops.PutMany((*over[:4], *waiting[:4])), 0)) == 8
    assert execute(ops.PutMany((*over, *waiting)), 0) == Refusal("DEPENDENCY_LIMIT", ("over-e",))
    assert execute(ops.PutMany((one, two)), 0) == Refusal("DEPENDENCY_LIMIT", ("one",))


# ---- silent workers


def workers_on_the_list(execute: Execute, now: int) -> set[str]:
    """List all workers, with those that are silent longest."""
    execute(ops.ConfigSet("max-worker-age", 10**9), now)
    return {worker.name for worker in execute(ops.Workers(0, 1000), now)}


def test_the_sweep_passes_silent_workers_that_hold_leases(execute: Execute) -> None:
    execute(ops.PutMany(tuple(ops.Put("q", f"j{number}", "k", "") for number in range(25))), 0)
    for number in range(25):
        execute(ops.Pop("q", f"holder{number:02}"), number)
    for number in range(15):
        execute(ops.Pop("none", f"idle{number:02}"), 100 + number)
    execute(ops.ConfigSet("max-worker-age", 1000), 200)

    for round_ in range(5):
        execute(ops.Pop("none", "awake"), 10_000 + 1000 * round_)
    listed = workers_on_the_list(execute, 15_000)

    assert listed == {"awake", *(f"holder{number:02}" for number in range(25))}


def test_one_sweep_deletes_at_most_ten_workers(execute: Execute) -> None:
    for number in range(25):
        execute(ops.Pop("none", f"idle{number:02}"), 0)
    execute(ops.ConfigSet("max-worker-age", 1000), 0)

    execute(ops.Pop("none", "awake"), 10_000)

    assert len(workers_on_the_list(execute, 10_000)) == 1 + 15


# ---- jobs that are not kept


@pytest.mark.parametrize("option", ["jobs-history", "jobs-history-count"])
def test_a_completion_may_be_sent_again_though_the_job_was_not_kept(execute: Execute, option: str) -> None:
    execute(ops.ConfigSet(option, 0), 0)
    execute(ops.PutMany(tuple(ops.Put("q", jid, "k", "") for jid in "abcd")), 0)
    a, b, c = execute(ops.Pop("q", "w", 3), 0)
    one = ops.Complete("a", a.token)
    chained = ops.CompleteAndPop("b", b.token, "q", "w", request="r")
    many = ops.CompleteMany((ops.Complete("c", c.token),))

    first = [execute(op, 1) for op in (one, chained, many)]
    again = [execute(op, 2) for op in (one, chained, many)]

    assert first == again
    assert first[0] == "complete" and [job.jid for job in first[1].jobs] == ["d"]
    assert execute(ops.Get("a"), 2) is None
    assert execute(ops.Complete("a", a.token + 1), 2) == Refusal("JOB_NOT_FOUND", ("a",))
    assert execute(ops.Fail("a", a.token, "g", ""), 2) == Refusal("JOB_NOT_FOUND", ("a",))
