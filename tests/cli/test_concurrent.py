"""`qmodel conformance concurrent`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.clusters import cluster
from tests.servers import NOTHING_FOUND, Server, chosen_servers

DRIVER = Path(__file__).parents[2] / "examples" / "drivers" / "python_driver.py"
FEW = ("--operations", "120", "--clients", "3", "--seed", "cli")


def test_clients_of_one_namespace_are_linearizable_and_drawn(run: Run, tmp_path: Path) -> None:
    done = run("conformance", "concurrent", "--url", "memory://", *FEW, "--picture", str(tmp_path / "p.html"))

    assert done.code == 0
    assert done.out.startswith("Linearizable: 1")
    assert (
        "Again: qmodel conformance concurrent --url memory:// --clients 3 --operations 120 --jobs 5 --seed cli"
        in done.out
    )
    assert "</svg>" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_it_answers_in_json(run: Run) -> None:
    done = run("conformance", "concurrent", "--url", "memory://", *FEW, "--json")

    found = json.loads(done.out)
    assert (found["answer"], found["seed"]) == ("linearizable", "cli")


def test_what_could_not_be_decided_has_a_code_of_its_own(run: Run) -> None:
    done = run("conformance", "concurrent", "--url", "memory://", *FEW, "--seconds", "0")

    assert done.code == 4
    assert done.out.startswith("Undecided: ")


def test_replies_are_lost_on_a_server_only(run: Run) -> None:
    done = run("conformance", "concurrent", "--url", "memory://", "--lose", "0.1")

    assert done.code == 2
    assert "--lose needs a server of its own" in done.err


def test_a_deployment_is_refused(run: Run) -> None:
    done = run("conformance", "concurrent", "--url", "memory://?shards=4", *FEW)

    assert done.code == 2
    assert "This works in one namespace: give the URL of a shard" in done.err


@pytest.mark.server
def test_conformance_works_in_namespaces_of_its_own_on_a_cluster_too(run: Run) -> None:
    program = next((one.program for one in chosen_servers() if one.program), None)
    if program is None:
        pytest.skip(NOTHING_FOUND)
    with cluster(program) as nodes:
        url = nodes.url("{own}:")
        done = run("conformance", "concurrent", "--url", url, *FEW)

        assert done.code == 0, done.out
        assert run("--url", url, "queues").out == "No queues.\n"
        assert [list(node.client.scan_iter("{own}:kit-*")) for node in nodes.masters()] == [[], [], []]
        for tag in "abc":  # whichever node has it
            subject = nodes.url(f"{{{tag}}}:")
            assert run("conformance", "run", "--subject", subject, "--examples", "1", "--steps", "20").code == 0
        assert run("conformance", "concurrent", "--url", nodes.deployment("shop", "shards=4"), *FEW).code == 69


def test_somebody_must_work(run: Run) -> None:
    done = run("conformance", "concurrent", "--url", "memory://", "--clients", "0")

    assert done.code == 2
    assert "Give --clients or --driver." in done.err


def test_clients_and_a_driver_meet_on_a_server_that_loses_replies(run: Run, server: Server) -> None:
    command = shlex.join((sys.executable, str(DRIVER)))
    done = run("conformance", "concurrent", "--url", server.url, *FEW, "--lose", "0.02", "--driver", command)

    assert done.code == 0, done.out
    assert " of 5 clients, " in done.out
    with server.client() as client:
        assert not list(client.scan_iter("ql:kit-*"))
