"""Parts of a campaign: the sum is the same in any process; planted faults are found; dead servers are replaced."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from qmodel.conformance.campaign import parts, reached
from qmodel.conformance.campaign.parts import Campaign, Total
from qmodel.conformance.campaign.processes import perform
from qmodel.conformance.campaign.reached import Reached
from qmodel.conformance.compare import runner
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects import named
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.named import Opening
from qmodel.contract import operations as ops
from qmodel.errors import ConnectError, QmodelError
from qmodel.processes import spread
from tests.conformance.faults import FAULTS, Wrong
from tests.conformance.planted import Mortal, Planted, end
from tests.processes import started
from tests.servers import ROOT, server_commands

pytestmark = pytest.mark.tester


def test_two_processes_find_what_one_finds() -> None:
    campaign = Campaign("parts", Planted(0), steps=30)
    one, two = (Total(perform(campaign, 40, processes, 5)) for processes in (1, 2))
    assert (one.histories, one.steps, one.reached) == (two.histories, two.steps, two.reached) == (40, 1200, one.reached)
    assert sorted(one.failures) == sorted(two.failures) != []
    assert one.by.total() == two.by.total() == 40


def test_a_planted_fault_is_found_and_shrunk_in_any_process() -> None:
    total = Total(perform(Campaign("faults", Planted(0)), 100, 1))
    found = next(total.kinds())
    assert found.shrunk and found.steps <= FAULTS[0].steps + 1, found.text
    assert runner.first_difference(json_lines.loads(found.vector), Wrong(FAULTS[0])) is not None
    assert "As a test:" in found.text


def test_a_part_shrinks_a_limited_number_of_failures() -> None:
    part = parts.perform(Campaign("faults", Planted(0), shrunk=2), 0, 100)
    assert len(part.failures) > 2
    assert [found.shrunk for found in part.failures[:3]] == [True, True, False]
    assert part.failures[2].steps <= part.failures[2].drawn


def test_a_server_that_dies_once_is_opened_anew_and_nothing_is_lost(tmp_path: Path) -> None:
    lives = tmp_path / "lives"
    lives.write_text("x")
    part = parts.perform(Campaign("mortal", Mortal("pop", str(lives))), 0, 3)
    assert (part.histories, part.failures, lives.read_text()) == (3, (), "")


def test_a_history_that_kills_the_server_twice_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    lives = tmp_path / "lives"
    lives.write_text("xx")
    part = parts.perform(Campaign("mortal", Mortal("pop", str(lives))), 0, 3)
    assert [(one.history, one.what, one.shrunk) for one in part.failures] == [("mortal.0", "crash", False)]
    assert "the server is gone" in part.failures[0].text


def test_the_ranges_contain_every_number_once() -> None:
    assert parts.ranges(7, 3) == [(0, 3), (3, 3), (6, 1)]
    assert parts.ranges(0) == []


# ---- what is reached


def test_reached_cells_use_the_situation_of_the_named_job() -> None:
    history = [
        Step(0, ops.Put("q", "a", "k", "")),
        Step(1, ops.Get("a")),
        Step(2, ops.Complete("a", 7)),
        Step(3, ops.Pop("q", "w")),
        Step(4, ops.Multiget(("a", "b"))),
    ]
    found: Counter[Reached] = Counter()
    reached.count_outcomes(history, found)
    assert found == Counter(
        [
            Reached("put", "missing", "changed"),
            Reached("get", "waiting", "nothing"),
            Reached("complete", "waiting", "LOCK_LOST"),
            Reached("pop", "any", "changed"),
            Reached("multiget", "running", "nothing"),
            Reached("multiget", "missing", "nothing"),
        ]
    )


def test_cells_that_are_never_reached_are_reported() -> None:
    every = [Reached(*pair, "changed") for pair in reached.pairs()]
    assert parts.missed(every) == []
    assert parts.missed(every[1:]) == [(every[0].operation, every[0].situation)]
    assert ("complete", "stalled") in reached.pairs() and ("complete", "any") not in reached.pairs()


# ---- processes


def test_an_item_begins_only_on_demand() -> None:
    begun: list[int] = []
    found = spread(begun.append, iter(range(5)), 1)
    next(found)
    assert begun == [0]


def test_the_end_of_a_process_is_reported_in_a_sentence() -> None:
    with pytest.raises(QmodelError, match="A process ended in the middle"):
        list(spread(end, range(3), 2))


# ---- servers of one's own

HOLD = """
import os, sys, time
from qmodel.conformance.subjects.named import Opening
subject = Opening(sys.argv[1])()
print(subject._client.info("server")["process_id"], flush=True)
time.sleep(60)
"""


@pytest.mark.server
@pytest.mark.parametrize("name", ["valkey", "redis"])
def test_a_private_server_ends_with_its_process_however_that_ends(name: str, tmp_path: Path) -> None:
    try:
        Opening(name).check()
    except ConnectError as absent:
        pytest.skip(str(absent))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with started([sys.executable, "-c", HOLD, name], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        assert len(list(tmp_path.iterdir())) == 1
        process.kill()
    until = time.monotonic() + 60
    while (Path(f"/proc/{server}").exists() or list(tmp_path.iterdir())) and time.monotonic() < until:
        time.sleep(0.02)
    assert not Path(f"/proc/{server}").exists() and list(tmp_path.iterdir()) == []


@pytest.mark.server
@pytest.mark.skipif(not server_commands(), reason="no server")
def test_a_part_runs_on_its_own_server_with_any_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp/" + "long" * 30)
    name = "valkey" if any("valkey" in one.name for one in server_commands()) else "redis"
    part = parts.perform(Campaign("own", Opening(name), steps=20), 0, 5)
    parts.close()
    assert (part.subject, part.histories, part.failures) == (name, 5, ())


def test_an_unknown_subject_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConnectError, match=r"no subject 'radis'. Say one of embedded, memory, valkey, redis, or"):
        Opening("radis").check()
    for fine in ("embedded", "memory", "redis://localhost"):
        Opening(fine).check()


@pytest.mark.parametrize("url", ["redis://localhost:1/0", "redis+cluster://localhost:1/0"])
def test_a_server_that_does_not_answer_is_told_after_a_few_seconds(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "connect_deadline=5" in Opening(url).url()
    monkeypatch.setattr(named, "CONNECT_SECONDS", 0)
    with pytest.raises(ConnectError, match="cannot be reached"):
        Opening(url)()
