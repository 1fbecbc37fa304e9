"""What `qmodel doctor` finds in queues, recurring jobs and apps; the rest of it is in test_own.py."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel.doctor import environment
from tests.cli.conftest import Run
from tests.servers import Server

HOUR_AGO = str(time.time_ns() // 1_000_000 - 3_600_000)

APP = """
from qmodel import App

app = App("memory://doctor")
empty = App()

@app.job(name="Send", queue="mail")
def send(to): ...

@app.job(name="Report", cron="0 9 * * *")
def report(): ...
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module with an app in the working directory."""
    (tmp_path / "doctor_shop.py").write_text(APP)
    (tmp_path / "doctor_broken.py").write_text("import nowhere_to_be_found")
    monkeypatch.chdir(tmp_path)
    path = sys.path[:]
    yield
    sys.path[:] = path
    sys.modules.pop("doctor_shop", None)


def test_a_queue_that_nobody_asks_is_found(run: Run) -> None:
    run("put", "q", "A", "--now", HOUR_AGO)
    out = run("doctor").out

    assert "WARN  the next job of queue q has been ready for 1 h" in out
    assert "Start one: qmodel worker MODULE:APP --queues q" in out


def test_a_job_that_a_throttle_keeps_is_told_as_such(run: Run) -> None:
    run("put", "q", "A", "--now", HOUR_AGO)
    run("op", "pop", "elsewhere")
    assert "ready for 1 h" in run("doctor").out
    assert "Nobody serves queue q: workers are alive" in run("doctor").out


def test_a_run_that_is_due_and_not_made_yet_breaks_no_check(run: Run) -> None:
    run("put", "q", "A", "--now", HOUR_AGO)
    assert run("op", "recur", "q", "digest", "Digest", "{}", "1h", "--priority", "-1", "--now", HOUR_AGO).code == 0
    out = run("doctor").out

    assert "the next job of queue q has been ready for 1 h" in out
    assert "FAIL" not in out


def test_what_is_due_and_what_has_no_moments_is_found_and_the_latter_resolved(run: Run) -> None:
    import os

    from qmodel.client.sync import Client
    from qmodel.contract.operations import Recur

    run("op", "recur", "q", "tick", "Tick", "{}", "60", "--now", HOUR_AGO)
    client = Client(os.environ["QMODEL_URL"])
    client.execute(Recur("q", "cron", "K", "", 0, kind="cron", cron="* * * * * UTC"))
    out = run("doctor").out

    assert "runs of recurring jobs are due and not made yet in q (" in out
    assert "1 recurring jobs wait for the next times" in out
    assert "resolved: set the next times of 1 recurring jobs" in run("doctor", "--resolve").out
    assert "wait for the next times" not in run("doctor").out


def test_of_many_findings_of_a_kind_the_first_are_told(run: Run) -> None:
    for number in range(13):
        run("put", "q", "A", "--jid", f"j{number}")
        run("op", "pop", "q")
        run("op", "fail", f"j{number}", f"group-{number}", "m")
    out = run("doctor").out

    assert out.count(" in group ") == 10
    assert "WARN  and 3 more groups of failed jobs\n      See: qmodel failures" in out
    assert "OK    13 failed jobs kept" in out


def test_the_memory_of_a_server_is_told(run: Run, server: Server) -> None:
    with server.client() as connection:
        before = connection.config_get("maxmemory")["maxmemory"]
        assert "OK    the server uses" in run("doctor", "--url", server.url).out
        connection.config_set("maxmemory", int(connection.info("memory")["used_memory"] * 1.1))
        try:
            assert "WARN  the server uses" in run("doctor", "--url", server.url).out
        finally:
            connection.config_set("maxmemory", before)


# ---- apps


def test_an_app_is_compared_with_the_jobs_that_there_are(run: Run, shop: None) -> None:
    import qmodel

    with qmodel.connect("memory://doctor") as client:
        client.queues["mail"].put("Send", {"to": 1})
        client.queues["mail"].put("Sned", {"to": 1})
    out = run("doctor", "--app", "doctor_shop:app").out

    assert "OK    doctor_shop:app has 2 job types: Report, Send" in out
    assert "URL memory://doctor, from doctor_shop:app" in out
    assert "WARN  queue mail has jobs of the type 'Sned', which doctor_shop:app does not know" in out
    assert "Did you mean 'Send'?" in out
    assert "of doctor_shop:app is not declared on this server" in out


def test_an_app_without_job_types_or_that_cannot_be_loaded_is_said(run: Run, shop: None) -> None:
    assert "WARN  doctor_shop:empty has no job types" in run("doctor", "--app", "doctor_shop:empty").out
    missing = run("doctor", "--app", "doctor_ship:app")
    assert (missing.code, "FAIL  There is no module 'doctor_ship'" in missing.out) == (1, True)
    broken = run("doctor", "--app", "doctor_broken")
    assert (broken.code, "FAIL  doctor_broken cannot be imported: ModuleNotFoundError" in broken.out) == (1, True)


def test_url_says_where_the_jobs_of_an_app_are_looked_for(run: Run, shop: None) -> None:
    assert "URL memory://other, from --url" in run("doctor", "--app", "doctor_shop:app", "--url", "memory://other").out


# ---- the journal


def test_it_says_of_the_journal_that_it_is_off_or_what_there_is(run: Run) -> None:
    assert "OK    the journal is off" in run("doctor").out
    run("op", "config-set", "journal", "1")
    run("put", "q", "A", "--now", HOUR_AGO)
    assert re.search(r"OK    the journal is on: 2 entries, of \S+ \S+; max-journal is 100,000", run("doctor").out)
    run("op", "config-unset", "journal")
    assert "the journal is off: 3 entries" in run("doctor").out


def test_entries_that_are_kept_for_less_than_an_hour_are_told(run: Run) -> None:
    run("op", "config-set", "journal", "1")
    run("op", "config-set", "max-journal", "3")
    for number in range(5):
        run("put", "q", "A", "--jid", f"j{number}")
    out = run("doctor").out
    assert "WARN  entries of the journal are deleted after" in out
    assert "qmodel archive run ARCHIVE --journal" in out


def test_a_journal_for_which_there_is_no_room_is_told(run: Run, server: Server) -> None:
    url = f"{server.url}?prefix=doctor-journal:"
    with server.client() as raw:
        raw.flushdb()
        used = int(raw.info("memory")["used_memory"])
        run("op", "config-set", "journal", "1", "--url", url)
        for number in range(20):
            run("put", "q", "A", f'"{"x" * 2000}"', "--jid", f"j{number}", "--url", url)
        assert re.search(r"the journal is on: 21 entries, \d+(\.\d+)? KiB", run("doctor", "--url", url).out)
        raw.config_set("maxmemory", used + 50 * 2**20)
        try:
            out = run("doctor", "--url", url).out
        finally:
            raw.config_set("maxmemory", 0)
    assert re.search(r"WARN  100,000 entries of the journal would take about [\d.]+ [KMG]iB", out)
    fits = re.search(r"qmodel op config-set max-journal (\d+)", out)
    assert fits and 20 < int(fits[1]) < 100_000


def test_the_clock_of_a_server_is_compared_with_ours(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """No backend of a server had what the check asked for, so it said nothing."""
    assert "OK    the server's clock differs from ours by less than 5 s" in run("doctor", "--url", server.url).out
    monkeypatch.setattr(environment, "APART_MS", 0)
    assert "WARN  the server's clock differs from ours by " in run("doctor", "--url", server.url).out


def test_what_to_run_next_is_written_for_a_shell(run: Run) -> None:
    for name in ("a b", "-x", "it's"):
        run("put", "--", name, "A")
        run("pause", "--", name)
    out = run("doctor").out
    for word in ("'a b'", "-- -x", "'it'\"'\"'s'"):
        assert f"qmodel unpause {word}\n" in out
    for word in (["a b"], ["--", "-x"], ["it's"]):
        assert run("unpause", *word).code == 0
    assert "is paused" not in run("doctor").out
