"""The commands that are not operations: run, doctor, conformance; and the pictures of statistics."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qmodel import doctor
from qmodel.backends.memory import connect
from qmodel.cli import picture
from qmodel.client.sync import Client
from qmodel.conformance.campaign.reached import pairs
from qmodel.contract.replies import Sample, Stats
from qmodel.model.state.stats import BINS, bin_of
from tests.cli.conftest import Run

HISTORY = """
# a history
{"op": "put", "now": 0, "queue": "q", "jid": "a", "klass": "k", "data": ""}
{"op": "pop", "now": 5, "queue": "q", "worker": "w"}

{"op": "complete", "now": 7, "jid": "a", "token": 99}
{"op": "get", "now": 8, "jid": "b"}
"""


def test_a_history_is_executed_and_its_replies_printed(run: Run) -> None:
    done = run("run", "-", input=HISTORY)

    assert done.code == 0
    assert "put q a k\n  a\n" in done.out
    assert "a (k in q): running, token 2" in done.out
    assert "refused: LOCK_LOST Job a is not leased under token 99" in done.out
    assert done.err == "4 executed, 1 refused\n"


def test_a_history_in_json_gives_one_object_a_line(run: Run) -> None:
    done = run("run", "--json", input=HISTORY)
    put, pop, complete, get = map(json.loads, done.out.splitlines())

    assert put == {"op": "put", "now": 0, "reply": "a"}
    assert pop["reply"][0]["popped_at"] == 5
    assert complete["refused"] == "LOCK_LOST"
    assert complete["facts"]["worker"] == "w"
    assert get["reply"] is None


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("{", "line 2: "),
        ("[1]", "line 2: not an object"),
        ('{"op": "putt"}', "line 2: there is no operation 'putt'"),
        ('{"op": "length"}', "line 2: length needs the argument 'queue'"),
        ('{"op": "length", "queue": "q", "x": 1}', "line 2: length has no argument 'x'"),
    ],
)
def test_a_line_that_is_wrong_is_named(run: Run, line: str, hint: str) -> None:
    done = run("run", input='{"op": "queues"}\n' + line)

    assert done.code == 2
    assert hint in done.err


def test_a_history_without_times_uses_the_clock_or_what_is_said(run: Run) -> None:
    run("run", "--now", "77", input='{"op": "put", "queue": "q", "jid": "a", "klass": "k", "data": ""}')

    assert run("get", "a", "--json").json["put_at"] == 77


# ---- doctor


def test_a_healthy_namespace_gets_no_warning(run: Run) -> None:
    run("put", "q", "A")
    done = run("doctor")

    assert done.code == 0
    assert "OK    every invariant holds" in done.out
    assert done.out.count("WARN") == done.out.count("WARN  URL memory://") == 1  # jobs end with the process


def test_warnings_say_what_to_do_and_are_no_failure(run: Run) -> None:
    run("put", "q", "A", "--jid", "a")
    run("put", "p", "A")
    run("op", "pop", "q")
    run("op", "timeout", "a")
    run("pause", "p")
    run("put", "f", "A", "--jid", "f")
    run("op", "pop", "f")
    run("op", "fail", "f", "oops", "message")
    done = run("doctor")

    assert done.code == 0
    assert "queue q has 1 job whose workers were lost" in done.out
    assert "qmodel unpause p" in done.out
    assert "1 failed job in group oops" in done.out


def test_silent_workers_are_found_and_resolved(run: Run) -> None:
    import time

    run("op", "pop", "q", "--worker", "old", "--now", str(time.time_ns() // 1_000_000 - 7_200_000))

    assert "worker old has been silent for 2 h" in run("doctor").out
    assert "resolved: deregistered old" in run("doctor", "--resolve").out
    assert "silent" not in run("doctor").out


def test_a_backend_that_cannot_be_reached_fails_the_examination(run: Run) -> None:
    done = run("doctor", "--url", "nowhere://")
    assert done.code == 1
    assert "FAIL  No backend can open nowhere:// URLs." in done.out
    found = run("doctor", "--url", "nowhere://", "--json")
    assert (found.code, found.json[-1]["level"]) == (1, "FAIL")


def test_a_broken_invariant_fails_the_examination(run: Run) -> None:
    import os

    backend = connect(os.environ["QMODEL_URL"])
    Client(backend).queues["q"].put("A")
    backend.store.queues["q"].ready.clear()
    done = run("doctor")

    assert done.code == 1
    assert "FAIL" in done.out


def test_a_check_that_breaks_is_a_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(at: object) -> object:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(doctor, "CHECKS", (broken,))
    assert "FAIL  the check 'broken' failed with an error: ZeroDivisionError: oh" in run("doctor").out


# ---- conformance


def test_the_model_agrees_with_itself(run: Run) -> None:
    done = run("conformance", "run", "--examples", "3", "--seed", "s", "--subject", "memory://")

    assert done.code == 0
    assert "3 histories, 180 steps" in done.out
    assert "no difference" in done.out
    assert "--seed s" in done.out
    as_json = run("conformance", "run", "--examples", "2", "--steps", "5", "--subject", "memory://", "--json")
    assert as_json.json["agrees"] is True
    assert as_json.json["steps"] == 10


def test_a_campaign_in_processes_says_what_it_reached(run: Run, tmp_path: Path) -> None:
    drawn = tmp_path / "reached.svg"
    told = run("conformance", "run", "--examples", "3", "--seed", "s", "--processes", "1", "--picture", str(drawn))
    cells = ElementTree.fromstring(drawn.read_text(encoding="utf-8")).findall(".//{*}rect")
    assert 1 < sum(one.get("fill") == "#ffc9c9" for one in cells) < len(cells)
    assert told.code == 0, told.err
    assert f"of {len(pairs())} pairs of operation and situation reached" in told.out and "--processes 1" in told.out
    found = run("conformance", "run", "--examples", "3", "--seed", "s", "--processes", "1", "--json").json
    assert (found["histories"], found["agrees"], found["subject"]) == (3, True, "model")
    assert found["pairs_reached"] + len(found["missed"]) == found["pairs"]


def test_a_campaign_that_cannot_be_is_refused_in_a_sentence(run: Run) -> None:
    assert "leave out --processes, --picture" in run("conformance", "run", "--dialect", "qless", "--processes", "2").err
    assert "no subject 'radis'" in run("conformance", "run", "--subject", "radis").err


def test_a_difference_exits_with_1_and_is_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.conformance.subjects.base import ModelSubject
    from qmodel.contract.operations import Length

    class Wrong(ModelSubject):
        def step(self, now: int, op: object) -> object:  # type: ignore[override]
            return 7 if isinstance(op, Length) else super().step(now, op)  # type: ignore[arg-type]

    monkeypatch.setattr("qmodel.cli.conformance._opening", lambda url: Wrong)
    done = run("conformance", "run", "--examples", "50", "--seed", "s")
    assert done.code == 1
    assert "Length(" in done.out
    assert "): 1 difference\n" in done.out


# ---- pictures


def test_the_bins_of_a_picture_are_those_that_are_stored() -> None:
    starts = picture.bin_starts()

    assert len(starts) == BINS
    assert [bin_of(start * 1000) for start in starts] == list(range(BINS))
    assert set(picture.EDGES) <= set(starts)


def sample(*durations: int) -> Sample:
    bins = [0] * BINS
    for duration in durations:
        bins[bin_of(duration)] += 1
    return Sample(len(durations), sum(durations) / max(len(durations), 1), 0.0, tuple(bins))


def test_a_picture_collapses_the_bins_and_loses_none() -> None:
    found = picture.rows(sample(0, 500, 1500, 61_000, 10**10).histogram)

    assert found[0] == ("under 1 s", 2)
    assert found[-1] == ("over 30 d", 1)
    assert sum(count for _, count in found) == 5
    assert picture.rows(sample().histogram) == []


def test_a_picture_is_drawn_to_scale() -> None:
    stats = Stats("q", 0, sample(*[500] * 4, *[3000] * 2), Sample(1, 5.0, 0.0, ()), 3, 2, 1)
    drawn = picture.of(stats)

    bars = [line.count("█") + line.count("#") for line in drawn.splitlines() if "%" in line]
    assert bars == [40, 0, 20]
    assert "3 failures, 2 of them still failed, 1 retry" in drawn
    assert "no longer kept" in drawn


def test_short_durations_are_drawn_from_events() -> None:
    stats = Stats("q", 0, sample(3, 4, 700), sample(), 0, 0, 0)
    drawn = picture.of(stats, [3, 4])

    assert "2 to 5 ms" in drawn
    assert "the last 2 of them" in drawn
    assert picture.fine_rows([]) == []


# ---- wait


def test_results_are_printed_in_the_order_asked_for(run: Run) -> None:
    for jid, result in (("a", "[1]"), ("b", "")):
        run("put", "q", "K", "--jid", jid)
        run("op", "pop", "q", "--worker", "w")
        run("op", "complete", jid, "--result", result)

    assert run("wait", "b", "a") == (0, "null\n[1]\n", "")
    assert run("wait", "a", "--json").json == {"jid": "a", "result": [1]}


def test_a_job_without_a_result_is_told_and_is_a_failure(run: Run) -> None:
    run("put", "q", "K", "--jid", "a")
    run("op", "pop", "q", "--worker", "w")
    run("op", "fail", "a", "g", "no paper")
    run("put", "q", "K", "--jid", "b")
    done = run("wait", "a", "b", "--timeout", "0")

    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == "Job a failed (g): no paper"
    assert "Job b has not ended within 0 s" in done.err
    assert run("wait", "a", "--json").json["error"] == "JobFailed"


def test_ctrl_c_ends_a_command_quietly(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Client, "execute", interrupted)
    done = run("get", "a")
    assert (done.code, done.out, done.err) == (130, "", "")


def test_what_others_wrote_is_shown_and_not_obeyed(run: Run) -> None:
    assert run("op", "put", "odd\x9b31m", "K\x9b31m", "\x1b[2J", "--jid", "a").code == 0
    assert run("op", "pop", "odd\x9b31m", "--worker", "w\x9b31m").code == 0
    assert run("op", "log", "a", "\x1b[2J").code == 0
    for command in (("queues",), ("workers",), ("search", "--queue", "odd\x9b31m"), ("get", "a")):
        shown = run(*command).out
        assert "�31m" in shown, command
        assert not {"\x9b", "\x1b"} & set(shown), command
    assert run("get", "a", "--json").json["data"] == "\x1b[2J"
