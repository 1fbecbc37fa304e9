"""The simulator: a seed decides everything, and what breaks is noticed."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
import types
from io import BytesIO
from pathlib import Path
from random import Random

import pytest

from qmodel import runtime
from qmodel.backends import bundle
from qmodel.model.state import config, stats
from qmodel.serve.host import Host
from qmodel.serve.journal import JournalError
from qmodel.serve.session import Session
from qmodel.simulator import server, strands, workload
from qmodel.simulator.clients import Clients
from qmodel.simulator.net import Weather
from qmodel.simulator.server import Server
from qmodel.simulator.settings import EXTRAS, Settings, drawn
from qmodel.simulator.world import LONGEST, World, run
from tests.simulator.planted import DEFECTS, FAULTS

ROOT = Path(__file__).parents[2]
SEEDS = 100

STORM = Settings(
    seconds=10.0, pauses=0.1, workers=2, consumers=1, producers=2, slow_jobs=0.3, crash_every=2.0, part_every=4.0,
    cut_every=5.0, evict_every=3.0, stop_every=5.0, kill_every=5.0,
)  # fmt: skip


@pytest.mark.parametrize("server", ["model", "lua", "cluster"])
def test_a_run_is_repeated_byte_for_byte(server: str) -> None:
    lua = server == "lua"
    storm = STORM._replace(lua=lua, inner_errors=0.1 * lua, seconds=3.0, crash_every=1.0)
    if server == "cluster":
        storm = storm._replace(nodes=2, move_every=1.0)
    first, again, other = BytesIO(), BytesIO(), BytesIO()
    one = run("a", storm, first)
    run("b", storm, other)
    two = run("a", storm, again)
    assert one == two and first.getvalue() == again.getvalue()
    assert one.packets > 100 and first.getvalue() != other.getvalue()


def test_a_run_leaves_nothing_in_memory() -> None:
    run("a", STORM._replace(seconds=1.0))
    assert not [one for one in gc.get_objects() if type(one) is World]


def test_a_storm_breaks_nothing() -> None:
    result = run("storm", STORM)
    assert result.findings == []
    assert (
        result.counts["puts acknowledged"] > 10 and sum(result.counts[f"crashes: {how}"] for how in STORM.crashes) > 1
    )


@pytest.mark.parametrize("lua", [False, True])
def test_jobs_with_all_that_is_drawn_break_nothing(lua: bool) -> None:
    result = run("extras", STORM._replace(extras=EXTRAS, burst=25, lua=lua, crashes=("kill",), rate=4.0))
    assert result.findings == []
    assert result.counts["requests"] > 0 and result.counts["puts acknowledged"] > 20


def test_each_extra_is_an_option_or_a_group() -> None:
    assert sorted([*workload._OPTIONS, *workload._GROUPS]) == sorted(EXTRAS)


def test_a_lying_disk_loses_puts_and_that_is_counted() -> None:
    result = run("lies-3", STORM._replace(lies=True, tail=2.0, crashes=("tail", "failover"), crash_every=1.0))
    assert result.findings == []
    assert result.counts["puts lost by the failure model"] > 0


def test_commands_that_fail_leave_nothing_half_done() -> None:
    storm = STORM._replace(lua=True, inner_errors=0.1, crashes=("kill",))
    results = [run(f"lua {n}", storm) for n in range(3)]
    assert [result.findings for result in results] == [[]] * 3
    assert sum(result.counts["commands that failed"] for result in results) > 3
    for result in results:
        assert result.counts["operations compared with the model"] > 0.8 * result.counts["operations"]


SPLIT = STORM._replace(lua=True, lies=True, tail=1.0, crashes=("split",), crash_every=3.0, seconds=20.0)


def test_a_promoted_replica_and_the_old_server_issue_no_token_twice() -> None:
    result = run("split", SPLIT)
    assert result.findings == []
    assert result.counts["crashes: split"] > 0
    assert result.counts["puts lost by the failure model"] > 0


CLUSTER = STORM._replace(nodes=2, move_every=2.0, rate=1.0)


@pytest.mark.parametrize("lies", [False, True])
def test_a_cluster_whose_slots_move_and_whose_masters_die_loses_nothing_else(lies: bool) -> None:
    crashes = ("failover", "split") if lies else ("kill",)
    result = run("cluster 1", CLUSTER._replace(lies=lies, tail=1.0, crashes=crashes, seconds=20.0))
    counts = result.counts
    assert result.findings == []
    assert counts["slots moved at once"] and counts["slots moved key by key"]
    assert sum(counts[f"failovers: {how}"] for how in crashes) > 1
    assert (counts["puts lost by the failure model"] > 0) == lies


STOPS_WHILE_AWAY = Settings(
    seconds=30.0, pauses=0.2, weather=Weather(0.0002, 0.05, 0.01), lease=2.0, producers=2, workers=2, concurrency=2,
    rate=1.0, failing_jobs=0.2, nodes=3, crash_every=1.5, crashes=("kill",), part_every=5.0, stop_every=10.0,
)  # fmt: skip


def test_a_worker_that_is_stopped_while_a_node_is_away_says_what_it_leaves() -> None:
    assert run("92", STOPS_WHILE_AWAY).findings == []


def test_two_servers_that_begin_no_epochs_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    library = bundle.library
    monkeypatch.setattr(bundle, "library", lambda: library() + "\nepochs.is_foreign = function() return false end\n")
    assert "token granted once" in {one.oracle for one in run("split", SPLIT).findings}


@pytest.mark.parametrize("how", ["reply", "state"])
def test_a_library_that_does_something_else_than_the_model_is_noticed(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "reply":
        monkeypatch.setattr(config, "heartbeat", lambda store, queue: 999)
    else:
        monkeypatch.setattr(stats, "retried", lambda store, now, queue: None)
    result = run("other", STORM._replace(lua=True, failing_jobs=0.3, crashes=("kill",)))
    assert {one.oracle for one in result.findings} == {"the library does what the model does"}


def test_clients_that_wait_for_each_other_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(clients: Clients, name: str) -> None:
        strands.Event(clients._scene.baton).wait()

    monkeypatch.setattr(Clients, "_produce", wait)
    result = run("waits", Settings(seconds=3.0, producers=2))
    assert [str(one.text) for one in result.findings] == ["producer-1 has not, although nothing fails"]


def test_a_server_that_never_starts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Host:
        raise JournalError("no journal", "Make one.")

    monkeypatch.setattr(server, "open_host", fails)
    found = {one.oracle for one in run("never", Settings(seconds=3.0)).findings}
    assert "the server starts" in found


def test_an_exception_of_a_callback_of_an_event_loop_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    receive, calls = Session.data_received, itertools.count()

    def fails(session: Session, data: bytes) -> None:
        if next(calls) == 100:
            raise ValueError("a bug of a session")
        receive(session, data)

    monkeypatch.setattr(Session, "data_received", fails)
    (found,) = run("callback", Settings(seconds=10.0)).findings
    assert (found.oracle, found.text) == ("no thread fails", "server/serve: ValueError: a bug of a session")


def test_a_run_ends_in_which_the_same_jobs_end_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_done(world: World) -> bool:
        world.oracles.ended += 1
        world.clients.producers.add("one that never stops")
        return False

    monkeypatch.setattr(World, "_is_done", is_done)
    result = run("again", Settings(seconds=1.0))
    assert [one.oracle for one in result.findings] == ["producers stop"] and result.seconds < 2 * LONGEST


def test_an_exception_of_the_run_itself_is_a_finding_of_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "check_at_the_end", lambda server: 1 / 0)
    (found,) = run("whole", Settings(seconds=1.0)).findings
    assert found.oracle == "the run is whole" and found.text.startswith("ZeroDivisionError: division by zero (test_")


def test_instant_jobs_take_no_time() -> None:
    world = types.SimpleNamespace(chance=Random("a"), settings=Settings())
    clients = Clients(world, None)  # type: ignore[arg-type]
    assert {clients._steps("instant") for _ in range(20)} == {0}
    assert {clients._steps("quick") for _ in range(20)} == {0, 1}


def test_the_machine_is_given_back() -> None:
    before = vars(runtime).copy()
    run("c", Settings(seconds=1.0))
    assert vars(runtime) == before


def test_other_threads_of_the_process_have_the_machine_and_change_nothing() -> None:
    stop, real = threading.Event(), time.time_ns() // 10**9
    told: list[int] = []

    def beside() -> None:
        while not stop.is_set():
            lock, event = runtime.Lock(), runtime.Event()
            with lock:
                event.wait(0.001)
            runtime.sleep(0.001)
            told.append(runtime.time_ns() // 10**9)

    alone = run("beside", STORM._replace(seconds=2.0))
    thread = threading.Thread(target=beside, daemon=True)
    thread.start()
    try:
        assert run("beside", STORM._replace(seconds=2.0)) == alone
    finally:
        stop.set()
        thread.join()
    assert len(told) > 3 and min(told) >= real


def test_seeds_draw_different_settings() -> None:
    found = [drawn(str(number)) for number in range(50)]
    assert len(set(found)) == 50
    assert any(not (one.crash_every or one.part_every or one.weather.lose) for one in found)
    assert {extra for one in found for extra in one.extras} == set(EXTRAS)
    assert drawn("7") == drawn("7")


@pytest.mark.tester
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", [*DEFECTS, *FAULTS])
def test_a_planted_fault_is_noticed(name: str) -> None:
    """Each runs in a process of its own: the order of sets of strings is part of a run."""
    seeds = 50 if name in DEFECTS else SEEDS
    command = [sys.executable, "-m", "tests.simulator.planted", name, str(seeds)]
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
