"""The storm of `python -m bench storm`: a short one holds, and each of its oracles notices what it is there for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import Options, storm, storm_nodes
from bench.machine import candidates
from bench.storm.evidence import Acknowledged, Error, Evidence, Note, Plan, Window
from bench.storm.faults import WITHOUT_CONFIRM
from bench.storm.kinds import KINDS, chosen
from bench.storm.oracles import COUNTED, Verdict, judge, stalls
from bench.storm.rounds import WORLDS
from qmodel import connect
from qmodel.contract.events import Event
from qmodel.contract.routing import Layout
from tests.servers import NOTHING_FOUND

NOTHING = dict.fromkeys(COUNTED, 0)
KINDS_OF_A_SHORT_STORM = (
    "server-killed,server-stopped,functions-flushed,worker-killed,connections-cut,replies-lost,readonly,out-of-memory"
)


def counts(verdict: Verdict) -> dict[str, int]:
    """Count what was found, by its name."""
    return {name: len(found) for name, found in verdict.found.items()}


@pytest.fixture
def evidence() -> Evidence:
    """Give the evidence of a round in which three jobs of a throttle ended as they should, in a failover's window."""
    with connect("memory://") as client:
        client.throttles["t"].set(concurrency=2)
        queue = client.queues["q"]
        jobs = [queue.put("work", jid=f"j{number}", throttles=["t"]) for number in range(3)]
        notes = []
        for at in range(3):
            job = queue.pop(worker="w")
            assert job is not None
            notes += [Note(what, job.jid, str(job.raw.token), 1, at, False) for what in ("started", "acknowledged")]
            job.complete()
        return Evidence(
            plans={job.jid: Plan("q", "t", None) for job in jobs},
            limits={"t": 2},
            acknowledged=[Acknowledged(job.jid, at, False) for at, job in enumerate(jobs)],
            errors=[],
            notes=notes,
            windows=[Window("failover", 2, 3, frozenset(("OOM",)), WITHOUT_CONFIRM)],
            jobs=frozenset(job.jid for job in jobs),
            events=list(client.events()),
            broken=[],
            differences=[],
        )


def test_evidence_of_a_round_without_faults_holds(evidence: Evidence) -> None:
    verdict = judge(evidence)
    assert verdict.holds and verdict.acknowledged == 3 and not verdict.declared


def without(evidence: Evidence, jid: str) -> Evidence:
    """Let the server have lost a job, with its events."""
    events = [event for event in evidence.events if event.named.get("jid") != jid]
    return replace(evidence, jobs=evidence.jobs - {jid}, events=events)


def completed_again(evidence: Evidence) -> Evidence:
    """Let another worker complete the first job under a token of its own."""
    again = [Note(what, "j0", "99", 2, 1, False) for what in ("started", "acknowledged")]
    return replace(evidence, notes=[*evidence.notes, *again], events=[*evidence.events, completion(evidence, "99")])


def completion(evidence: Evidence, token: str) -> Event:
    """Make an event that completes the first job under a token."""
    found = next(event for event in evidence.events if event.event == "completed")
    facts = tuple(token if name == "token" else fact for name, fact in found.named.items())
    return found._replace(seq=found.seq + 50, facts=facts)


def claimed_at_once(evidence: Evidence) -> Evidence:
    """Let no lease end before all have begun."""
    late = ("completed",)
    events = sorted(evidence.events, key=lambda event: event.event in late)
    return replace(evidence, events=events)


def tokened_alike(evidence: Evidence) -> Evidence:
    """Let a worker begin another job with the token of the first."""
    token = evidence.notes[0].token
    return replace(evidence, notes=[*evidence.notes, Note("started", "j9", token, 2, 1, False)])


def begun_early(evidence: Evidence) -> Evidence:
    """Let a job wait for the one before, which ends later."""
    plans = {**evidence.plans, "j1": evidence.plans["j1"]._replace(after="j0")}
    late = [one._replace(at=9000) if one.event == "completed" else one for one in evidence.events]
    return replace(evidence, plans=plans, events=late)


PLANTED: dict[str, tuple[Callable[[Evidence], Evidence], dict[str, int]]] = {
    "a lost job and its completion": (lambda one: without(one, "j0"), {"lost": 2}),
    "a job that is completed twice": (completed_again, {"ended twice": 1}),
    "a limit that is exceeded": (claimed_at_once, {"limits exceeded": 1}),
    "a token that is given twice": (tokened_alike, {"invariants broken": 1}),
    "a job that begins before the job that it waits for has ended": (begun_early, {"invariants broken": 1}),
    "a broken invariant": (lambda one: replace(one, broken=["x"]), {"invariants broken": 1}),
    "a difference in the audit": (lambda one: replace(one, differences=["x"]), {"differences in the audit": 1}),
    "a worker that crashed": (lambda one: replace(one, crashes=["x"]), {"errors": 1}),
    "an error that no fault allows": (
        lambda one: replace(one, errors=[Error(1, "p", "OOM", "too early"), Error(2.5, "p", "ERR", "another")]),
        {"errors": 2},
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_reported(evidence: Evidence, name: str) -> None:
    plant, found = PLANTED[name]
    assert counts(judge(plant(evidence))) == NOTHING | found


def test_an_error_that_a_fault_allows_is_none(evidence: Evidence) -> None:
    assert judge(replace(evidence, errors=[Error(2.5, "p", "OOM", "full")])).holds


def test_a_loss_is_declared_only_in_the_window_of_a_fault_that_loses_what_was_not_confirmed(evidence: Evidence) -> None:
    lost = without(evidence, "j2")
    assert judge(lost).holds and judge(lost).declared == {WITHOUT_CONFIRM: 2}

    confirmed: dict[str, Any] = {
        "acknowledged": [one._replace(confirmed=True) for one in lost.acknowledged],
        "notes": [one._replace(confirmed=True) for one in lost.notes],
    }
    assert counts(judge(replace(lost, **confirmed))) == NOTHING | {"lost": 2}


def test_a_completion_that_was_declared_lost_may_come_again(evidence: Evidence) -> None:
    lost = Note("acknowledged", "j0", "77", 2, 2.5, False)  # on the tail of the old primary
    verdict = judge(replace(evidence, notes=[*evidence.notes, lost]))
    assert verdict.holds and verdict.declared == {WITHOUT_CONFIRM: 1}


def test_the_last_line_says_what_was_found(evidence: Evidence) -> None:
    verdict = Verdict()
    verdict.add(judge(without(without(evidence, "j0"), "j2")), "round 1")
    line = storm.Storm(3, 7, Path(), verdict, Counter({"failover": 1}), Counter()).line()
    assert line == (
        "storm: 3 jobs, 1 faults (seed 7): acknowledged 3, lost 2, ended twice 0, limits exceeded 0, invariants "
        "broken 0, differences in the audit 0, errors 0; declared lost 2 (failover without confirm)"
    )


def of_a_deployment(evidence: Evidence) -> Evidence:
    """Let the first two jobs, of two shards, have the same token."""
    notes = [replace_token(note, "7") if note.jid in ("j0", "j1") else note for note in evidence.notes]
    return replace(evidence, notes=notes, layout=Layout(8))


def replace_token(note: Note, token: str) -> Note:
    return note._replace(token=token)


def test_two_shards_may_issue_the_same_token_and_one_shard_may_not(evidence: Evidence) -> None:
    layout = Layout(8)
    assert layout.home("j0") != layout.home("j1")
    assert not any("tokens" in one for one in judge(of_a_deployment(evidence)).found["invariants broken"])
    alone = replace(of_a_deployment(evidence), layout=Layout(1))
    assert any("tokens" in one for one in judge(alone).found["invariants broken"])


def test_a_put_that_waits_longer_than_the_servers_are_away_is_told(evidence: Evidence) -> None:
    slow = [one._replace(at=2.5, took=1.5) for one in evidence.acknowledged]
    window = Window("master-killed", 2, 3, away=0.5)
    found = stalls(replace(evidence, acknowledged=slow, windows=[window]))
    assert found == {"master-killed": (1.5, 1.0)}


def test_a_seed_draws_the_same_rounds_and_kinds() -> None:
    found = candidates("all") or pytest.skip(NOTHING_FOUND)
    drawn = [list(storm.rounds(40_000, 100, 5, chosen("all"), found)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert (sum(one.jobs for one in drawn[0]), sum(one.faults for one in drawn[0])) == (40_000, 100)
    assert {one.world for one in drawn[0]} == set(WORLDS)
    assert {one.program for one in drawn[0]} == {one.program for one in found if one.program}


def test_an_unknown_kind_is_refused_with_those_that_exist() -> None:
    with pytest.raises(SystemExit, match=f"'hail'; there are: {next(iter(KINDS))}"):
        storm.run(Options(kinds="hail"))


@pytest.mark.server
@pytest.mark.slow
def test_a_short_storm_loses_nothing() -> None:
    if not candidates("all"):
        pytest.skip(NOTHING_FOUND)
    report = storm.run(Options(quick=True, jobs=150, faults=8, kinds=KINDS_OF_A_SHORT_STORM, seed=20))
    assert report.last == (
        "storm: 150 jobs, 8 faults (seed 20): acknowledged 150, lost 0, ended twice 0, limits exceeded 0, invariants "
        "broken 0, differences in the audit 0, errors 0; declared lost 0"
    ), report.data


@pytest.mark.server
@pytest.mark.slow
def test_shards_that_move_and_masters_that_die_lose_nothing() -> None:
    found = candidates("all") or pytest.skip(NOTHING_FOUND)
    options = Options(quick=True, server="redis" if "redis" in found[0].name else "valkey", jobs=200, faults=4, seed=20)
    report = storm_nodes.run(replace(options, kinds="shard-moved,master-killed"))
    assert report.last.startswith(
        "storm: 200 jobs, 4 faults (seed 20): acknowledged 200, lost 0, ended twice 0, limits exceeded 0, invariants "
        "broken 0, differences in the audit 0, errors 0; declared lost"
    ), report.data
    assert all(verdict.met for verdict in report.verdicts), report.data
