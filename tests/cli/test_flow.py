"""`qmodel flow`, edges and results on the command line."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tests.cli.conftest import Run


def put(run: Run) -> None:
    """A job, one that waits for it, and one that waits for that."""
    run("put", "pages", "Fetch", "--jid", "a")
    run("put", "pages", "Parse", "--jid", "b", "--depends", "a fail page")
    run("put", "pages", "Tell", "--jid", "c", "--depends", "b ignore")


def test_a_flow_is_told_as_text(run: Run) -> None:
    put(run)
    done = run("flow", "c")
    assert done.code == 0
    assert [line.split() for line in done.out.splitlines()] == [
        ["waiting", "Fetch", "a"],
        ["depends", "Parse", "b", "after", "a", "(fail)"],
        ["depends", "Tell", "c", "after", "b", "(ignore)"],
    ]


def test_a_flow_is_drawn(run: Run, tmp_path: Path) -> None:
    put(run)
    file = tmp_path / "flow.svg"
    assert run("flow", "c", "--svg", str(file)).code == 0
    assert ElementTree.parse(file).getroot().tag.endswith("svg")
    assert run("flow", "c", "--mermaid").out.startswith("flowchart LR\n")


def test_a_flow_in_json_has_jobs_and_edges(run: Run) -> None:
    put(run)
    found = run("flow", "c", "--json").json
    assert [job["jid"] for job in found["jobs"]] == ["c", "b", "a"]
    assert {"from": "a", "to": "b", "jid": "a", "on_failure": "fail", "name": "page"} in found["edges"]


def test_what_was_not_looked_at_is_said(run: Run) -> None:
    put(run)
    done = run("flow", "c", "--most", "2")
    assert "The flow has more than 2 jobs" in done.err
    assert run("flow", "nobody").code == 1


def test_results_are_shown_by_name(run: Run) -> None:
    put(run)
    run("op", "pop", "pages", "--worker", "w")
    run("op", "complete", "a", "--result", '"text"')
    assert run("op", "results", "b").out.splitlines()[-1].split() == ["page", "a", "complete", '"text"']


def test_an_edge_that_is_none_is_refused_with_what_it_may_be(run: Run) -> None:
    done = run("put", "pages", "Parse", "--depends", "a explode")
    assert done.code == 2
    assert "block, fail, ignore, cancel" in done.err
