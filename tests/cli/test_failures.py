"""`qmodel failures`: groups with counts and the newest message, the jobs of a group, and trying them again."""

from __future__ import annotations

import os
import re

from click.testing import CliRunner

from qmodel import connect
from qmodel.cli import cli
from qmodel.contract import operations as ops
from tests.cli.conftest import Run

TRACEBACK = 'Traceback (most recent call last):\n  File "mail.py", line 3, in send\nValueError: no such address'


def fail(run: Run, jid: str, group: str, message: str, *, queue: str = "mail", at: int = 1000) -> None:
    """Put a job, and fail it."""
    run("put", queue, "Send", "{}", "--jid", jid, "--now", str(at))
    run("op", "pop", queue, "--worker", "w1", "--now", str(at))
    run("op", "fail", jid, group, message, "--now", str(at))


def test_groups_are_shown_with_counts_and_the_newest_message(run: Run) -> None:
    fail(run, "a", "ValueError", TRACEBACK, at=1000)
    fail(run, "b", "ValueError", "newer", at=61_000)
    fail(run, "c", "Declined", "The card was declined.\nSee the log.", queue="cards", at=2000)

    lines = run("failures", "--now", "121000").out.splitlines()
    assert lines[0].split() == ["jobs", "group", "newest", "klass", "queue", "message"]
    assert lines[1].split() == ["2", "ValueError", "1m", "ago", "Send", "mail", "newer"]
    assert lines[2].split() == ["1", "Declined", "1m", "ago", "Send", "cards", "The", "card", "was", "declined."]
    assert "qmodel failures 'ValueError' --retry" in lines[-1]
    assert "More: qmodel failures --offset 1" in run("failures", "--count", "1").out
    assert "More:" not in run("failures", "--count", "1", "--offset", "1").out


def test_the_jobs_of_a_group_are_shown_latest_first_and_with_full_their_tracebacks(run: Run) -> None:
    fail(run, "a", "ValueError", TRACEBACK, at=1000)
    fail(run, "b", "ValueError", "newer", at=61_000)

    shown = run("failures", "ValueError", "--now", "121000").out
    assert [line.split()[0] for line in shown.splitlines()[1:3]] == ["b", "a"]
    assert "ValueError: no such address" in shown and "Traceback" not in shown
    assert "1 to 2 of 2." in shown
    assert TRACEBACK in run("failures", "ValueError", "--full").out


def test_failed_jobs_are_shown_with_their_arguments(run: Run) -> None:
    run("put", "mail", "Send", '{"to": "ada@example.com",\n "bell": "\\u0007"}', "--jid", "a")
    run("put", "mail", "Send", "--jid", "b")
    run("op", "pop", "mail", "--count", "2")
    run("op", "fail", "a", "E", TRACEBACK)
    run("op", "fail", "b", "E", "m")

    shown = run("failures", "E").out
    assert shown.splitlines()[0].split() == ["jid", "klass", "queue", "failed", "data", "message"]
    assert '{"to": "ada@example.com", "bell": "' in shown and "\x07" not in shown
    assert '{"to": "ada@example.com", "bell": "\\u0007"}\nTraceback' in run("failures", "E", "--full").out


def test_a_long_group_is_shown_in_pages(run: Run) -> None:
    for number in range(3):
        fail(run, f"j{number}", "E", "m", at=1000 + number)

    assert "More: qmodel failures 'E' --offset 2" in run("failures", "E", "--count", "2").out
    assert "3 to 3 of 3." in run("failures", "E", "--count", "2", "--offset", "2").out
    assert "Total: 3." in run("failures", "E", "--offset", "9").out


def test_machines_get_groups_and_jobs_as_objects(run: Run) -> None:
    fail(run, "a", "E", "m", at=1000)

    (group,) = run("failures", "--json").json
    assert (group["group"], group["jobs"], group["newest"]["jid"], group["newest"]["message"]) == ("E", 1, "a", "m")
    found = run("failures", "E", "--json").json
    assert (found["total"], found["jobs"][0]["failed_at"], found["jobs"][0]["worker"]) == (1, 1000, "w1")


def test_a_group_is_retried_each_job_in_its_own_queue(run: Run) -> None:
    fail(run, "a", "E", "m", queue="p")
    fail(run, "b", "E", "m", queue="q")
    fail(run, "c", "F", "m", queue="q")

    assert run("failures", "E", "--retry").out == "2 jobs retried.\n"
    assert [run("get", jid, "--json").json["state"] for jid in "abc"] == ["waiting", "waiting", "failed"]
    assert run("failures", "--retry", "--yes", "--queue", "q", "--json").json == {"retried": 1}


def test_all_groups_are_retried_only_after_a_yes(run: Run) -> None:
    assert run("failures", "--retry").out == "Nothing has failed.\n"
    fail(run, "a", "E", "m")

    refused = run("failures", "--retry", input="n\n")
    assert (refused.code, "Retry 1 failed job of all groups?" in refused.err) == (1, True)
    assert run("get", "a", "--json").json["state"] == "failed"
    assert run("failures", "--retry", input="y\n").out.endswith("1 job retried.\n")


def test_one_job_is_retried_as_it_was_put(run: Run) -> None:
    for jid in "ab":
        run("put", "q", "Send", "{}", "--jid", jid, "--throttles", "smtp", "--tags", "t")
        run("op", "pop", "q", "--worker", "w1")
        run("op", "fail", jid, "E", "m")

    assert run("failures", "--retry", "--jid", "a").out == "1 job retried.\n"
    job = run("get", "a", "--json").json
    assert (job["state"], job["tags"], dict(job["options"])["throttles"]) == ("waiting", ["t"], "smtp")
    assert run("get", "b", "--json").json["state"] == "failed"

    again = run("failures", "--retry", "--jid", "a", "--json")
    assert (again.json, again.code) == ({"retried": 0}, 1)
    for jid in ("a", "nobody"):
        done = run("failures", "--retry", "--jid", jid)
        assert (done.out, done.code) == ("0 jobs retried. 1 passed over: not failed, or gone.\n", 1)
    assert run("retry", "a", "b").out == "1 job retried. 1 passed over: not failed, or gone.\n"
    fail(run, "c", "E", "m")
    assert run("failures", "E", "--retry", "--jid", "c").code == 2


def test_an_unknown_group_is_refused_with_what_was_perhaps_meant(run: Run) -> None:
    fail(run, "a", "ValueError", "m")

    done = run("failures", "ValueErorr")
    assert (done.code, done.err) == (1, "Nothing has failed in group 'ValueErorr'. Did you mean ValueError?\n")
    done = run("--json", "failures", "ValueErorr")
    assert (done.code, done.json) == (1, {"group": "ValueErorr", "total": 0, "jobs": []})


def test_filters_without_retry_are_refused(run: Run) -> None:
    done = CliRunner().invoke(cli, ["failures", "--queue", "q"])
    assert done.exit_code == 2
    assert "go with --retry" in done.output


def test_nothing_failed_is_said(run: Run) -> None:
    assert run("failures").out == "Nothing has failed.\n"
    assert run("failures", "--offset", "5").out == "There are no more groups.\n"


def test_the_groups_are_listed_to_the_last_at_any_count(run: Run) -> None:
    with connect(os.environ["QMODEL_URL"]) as client:
        client.queues["q"].put_many([("K", number) for number in range(1000)])
        client.queues["q"].put_many([("K", number) for number in range(100)])
        for _ in range(2):
            jobs = client.execute(ops.Pop("q", "w", 1000))
            client.execute_many(ops.Fail(job.jid, job.token, job.jid, "m") for job in jobs)
    seen: list[str] = []
    offset = "0"
    while offset:
        seen += [one["group"] for one in run("--json", "failures", "--count", "70", "--offset", offset).json]
        found = re.search(
            r"More: qmodel failures --offset (\d+)", run("failures", "--count", "70", "--offset", offset).out
        )
        offset = found[1] if found else ""
    assert len(seen) == len(set(seen)) == 1100
