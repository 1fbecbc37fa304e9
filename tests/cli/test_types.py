"""`qmodel types`: what each job type did."""

from __future__ import annotations

import json

from qmodel.cli.types import COLUMNS
from tests.cli.conftest import Run


def worked(run: Run) -> None:
    """Put two types of jobs; one job completes, one fails."""
    for at, (jid, klass) in enumerate([("a", "Send"), ("b", "Resize"), ("c", "Send")]):
        run("put", "q", klass, "{}", "--jid", jid, "--now", str(1000 * at))
    run("op", "pop", "q", "--count", "2", "--now", "10000")
    run("op", "complete", "a", "--now", "11500")
    run("op", "fail", "b", "NoSpace", "m", "--now", "13000")


def test_each_type_has_a_line_with_its_figures(run: Run) -> None:
    worked(run)
    head, first, second, *rest = run("types").out.splitlines()
    assert head.split() == " ".join(COLUMNS).replace(">", "").split()
    lines = {line.split()[0]: " ".join(line.split()) for line in (first, second)}
    assert lines["Send"].startswith("Send 2 1 1 ") and "10 s 10 s 10 s 1.5 s 1.5 s 1.5 s" in lines["Send"]
    assert lines["Resize"].startswith("Resize 1 1 0 ") and lines["Resize"].endswith("NoSpace (1)")
    assert rest == ["", "From 7 events of 13 s. wait, run: p50 p95 p99."]


def test_events_of_jobs_that_are_gone_are_counted_apart(run: Run) -> None:
    worked(run)
    run("cancel", "a", "--complete")
    assert "Left out: " in run("types", "--events", "4").out


def test_as_json_they_are_those_of_http(run: Run) -> None:
    assert run("types").out == "No jobs in the newest events.\n"
    worked(run)
    found = json.loads(run("types", "--json").out)
    assert [one["klass"] for one in found["types"]] == ["Send", "Resize"] and found["types"][1]["groups"] == {
        "NoSpace": 1
    }
