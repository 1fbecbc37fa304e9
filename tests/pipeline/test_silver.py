"""The tables of jobs and attempts have what the events say, however often they are brought up to date."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("duckdb", reason="duckdb is not installed; it comes with the extra `duckdb`")

from qmodel.cli import cli
from qmodel.contract.events import Event
from qmodel.pipeline.archive.commit import writing
from qmodel.pipeline.archive.layout import Archive, Commit
from qmodel.pipeline.events.gaps import Gap
from qmodel.pipeline.silver.build import update
from qmodel.pipeline.statistics.local import DuckDB
from tests.pipeline.histories import histories
from tests.pipeline.kept import keep

ENDS = ("completed", "advanced", "failed", "retried", "released", "lock_lost", "canceled")
OVER = ("completed", "canceled", "retired")


@dataclass
class Life:
    """A job from its put on, as a plain program reads it from the events."""

    klass: str = ""
    tags: list[str] | None = None
    outcome: str = "open"
    over: bool = False
    attempts: list[list[Any]] = field(default_factory=list)


def lives(events: Iterable[Event]) -> dict[tuple[str, int], Life]:
    found: dict[tuple[str, int], Life] = {}
    newest: dict[str, tuple[str, int]] = {}
    for event in events:
        facts = event.named
        jid = str(facts.get("jid", ""))
        if event.event == "put":
            if jid not in newest or found[newest[jid]].over:
                newest[jid] = (jid, event.seq)
                found[newest[jid]] = Life()
            life = found[newest[jid]]
            life.klass, life.outcome = str(facts["klass"]), "open"
            life.tags = str(facts["tags"]).split("\x1f") if "tags" in facts else life.tags
        life = found.get(newest.get(jid, ("", 0)))
        if life is None or life.over or event.event not in (*ENDS, *OVER, "popped", "unfailed"):
            continue
        life.over = event.event in OVER
        if event.event == "popped":
            life.attempts.append([facts["worker"], facts["wait_ms"], None, None])
        elif event.event in ENDS and life.attempts and life.attempts[-1][2] is None:
            life.attempts[-1][2:] = [event.event, facts.get("group")]
        if event.event != "retired":
            life.outcome = event.event if event.event in ("completed", "failed", "canceled") else "open"
    return found


def rows(of: dict[tuple[str, int], Life]) -> tuple[list[Any], list[Any]]:
    jobs = [(*key, one.klass, one.tags, one.outcome, len(one.attempts)) for key, one in of.items()]
    attempts = [(*key, at, *one) for key, life in of.items() for at, one in enumerate(life.attempts, 1)]
    return sorted(jobs, key=repr), sorted(attempts, key=repr)


JOBS = "select jid, life, job_type, tags, outcome, attempts from jobs where namespace = "
ATTEMPTS = "select jid, life, attempt, worker, wait_ms, outcome, failure_group from attempts where namespace = "


def tables(engine: Any, namespace: str) -> tuple[list[Any], list[Any]]:
    name = engine.dialect.text(namespace)
    return (
        sorted(((*row[:3], list(row[3]) if row[3] else None, *row[4:]) for row in engine.rows(JOBS + name)), key=repr),
        sorted(engine.rows(ATTEMPTS + name), key=repr),
    )


@pytest.fixture
def engine() -> Iterator[DuckDB]:
    with DuckDB(memory="500MB") as engine:
        yield engine


def test_the_tables_are_what_a_plain_program_reads_from_the_events(engine: DuckDB, tmp_path: Path) -> None:
    for number, one in enumerate(histories()):
        keep(tmp_path / "archive", f"n{number}:", one.events)
    update(engine, Archive(str(tmp_path / "archive")), str(tmp_path / "silver"))
    seen: set[str] = set()
    for number, one in enumerate(histories()):
        found = tables(engine, f"n{number}:")
        assert found == rows(lives(one.events))
        seen |= {row[4] for row in found[0]} | {row[5] for row in found[1] if row[5]}
    assert seen == {*ENDS, "open"}


def test_brought_up_to_date_in_parts_they_are_the_same(engine: DuckDB, tmp_path: Path) -> None:
    chooser, root, out = random.Random("silver"), tmp_path / "archive", str(tmp_path / "silver")
    some, done = histories()[::5], [0] * len(histories()[::5])
    for size in (10, 30, 60, 10**6):
        for number, one in enumerate(some):
            if new := one.events[done[number] : done[number] + size // chooser.choice([1, 2, 11])]:
                keep(root, f"n{number}:", new)
                done[number] += len(new)
        update(engine, Archive(str(root)), out)
        for number, one in enumerate(some):
            assert tables(engine, f"n{number}:") == rows(lives(one.events[: done[number]]))
    assert update(engine, Archive(str(root)), out) == {}


def test_times_are_timestamps_that_add_up(engine: DuckDB, tmp_path: Path) -> None:
    keep(tmp_path / "archive", "a:", max(histories(), key=lambda one: len(one.events)).events)
    update(engine, Archive(str(tmp_path / "archive")), str(tmp_path / "silver"))
    wrong = """select count(*) from attempts where greatest(epoch_ms(started_at) - epoch_ms(ready_at), 0) <> wait_ms
        or outcome in ('completed', 'advanced') and greatest(epoch_ms(ended_at) - epoch_ms(started_at), 0) <> run_ms
    """  # a clock that goes back gives 0
    assert engine.rows(wrong) == [(0,)]
    assert engine.rows("select count(*) from attempts where ended_at is null and outcome is not null") == [(0,)]


def test_the_command_answers_sql_about_an_archive(tmp_path: Path) -> None:
    one = max(histories(), key=lambda one: len(one.events))
    keep(tmp_path / "archive", "a:", one.events)
    archive = str(tmp_path / "archive")
    text = "select outcome, count(*) as jobs from jobs group by outcome order by outcome"
    shown = CliRunner().invoke(cli, ["query", archive, text])
    assert (shown.exit_code, "outcome" in shown.output) == (0, True)
    answer = CliRunner().invoke(cli, ["query", archive, text, "--json"])
    counts: dict[str, int] = {}
    for life in lives(one.events).values():
        counts[life.outcome] = counts.get(life.outcome, 0) + 1
    assert {row["outcome"]: row["jobs"] for row in json.loads(answer.stdout)} == counts
    wrong = CliRunner().invoke(cli, ["query", archive, "select colour from jobs"])
    assert (wrong.exit_code, "colour" in wrong.output) == (1, True)
    lists = "select list(started_at) as moments, [1.5::decimal(3, 1), null] as few, 'nan'::double as no from attempts"
    (row,) = json.loads(CliRunner().invoke(cli, ["query", archive, lists, "--json"]).stdout, parse_constant=pytest.fail)
    assert all(isinstance(one, str) for one in row["moments"]) and (row["few"], row["no"]) == (["1.5", None], None)
    assert CliRunner().invoke(cli, ["query", archive, "/* nothing */", "--json"]).stdout == "[]\n"
    text = "select 1 as n, 2 as n, 3 as n_1, {'a': [1, null]} as s"
    assert json.loads(CliRunner().invoke(cli, ["query", archive, text, "--json"]).stdout) == [
        {"n": 1, "n_1": 2, "n_1_1": 3, "s": {"a": [1, None]}}
    ]
    text = "select 61234.5::double as minute, 0.12345::double as share, 1e300::double as much"
    assert CliRunner().invoke(cli, ["query", archive, text]).stdout.splitlines()[1].split() == [
        "61234",
        "0.1235",
        "1e+300",
    ]
    Path(archive, "namespace=a%3A").rename(tmp_path / "gone")
    Path(archive, "namespace=b%3A").mkdir()
    none = CliRunner().invoke(cli, ["query", archive, text, "--tables", str(tmp_path / "none")])
    assert (none.exit_code, "has no events yet" in none.stderr) == (1, True)


def test_lives_go_on_behind_events_that_are_all_lost(engine: DuckDB, tmp_path: Path) -> None:
    root, out, events = tmp_path / "archive", str(tmp_path / "silver"), histories()[0].events
    with writing(Archive(str(root)), "a:") as writer:
        writer.commit(writer.begin(), Commit(holes=(Gap(1, 10),)))
    assert update(engine, Archive(str(root)), out)["a:"][:2] == (0, 10)
    assert engine.rows("select count(*) from jobs") == engine.rows("select count(*) from events") == [(0,)]
    keep(root, "a:", events[10:])
    update(engine, Archive(str(root)), out)
    assert tables(engine, "a:") == rows(lives(events[10:]))


def test_the_moments_of_a_query_are_in_utc_wherever_it_runs() -> None:
    asks = "from qmodel.pipeline.statistics.local import DuckDB; "
    asks += "print(DuckDB().rows('select abs(epoch_ms(now() - epoch_ms(epoch_ms(now())))) < 1000'))"
    made = subprocess.run(
        [sys.executable, "-c", asks],
        check=True,
        env=os.environ | {"TZ": "America/New_York"},
        capture_output=True,
        text=True,
    )
    assert made.stdout == "[(True,)]\n"
