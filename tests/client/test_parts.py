"""Reads that are too much for one step: the clients read them in parts."""

from __future__ import annotations

import pytest

from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.errors import OverBudget
from qmodel.model.state import budget

JOBS = 12


@pytest.fixture
def client_url() -> str:
    """The model in this process: its budget can be made small."""
    return "memory://"


def filled(client: Client) -> list[str]:
    """Put jobs that exceed the budget together, one of them alone, and one that waits for them all."""
    jids = [f"j{i}" for i in range(JOBS)]
    for jid in jids:
        client.execute(ops.Put("q", jid, "k", "", tags=tuple(f"t{n}" for n in range(30 if jid == "j5" else 5))))
    client.execute(ops.Put("d", "d", "k", "", depends=tuple(f"{jid} ignore n{jid}" for jid in jids)))
    return jids


def test_many_jobs_are_read_in_parts_in_their_order(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    jids = filled(client)
    monkeypatch.setattr(budget, "UNITS", 25)
    with pytest.raises(OverBudget):
        client.execute(ops.Multiget(tuple(jids)))
    assert [job.jid for job in client.jobs.get_many(["none", *reversed(jids)])] == jids[::-1]
    assert client.multiget([]) == []


def test_results_are_read_in_parts_in_their_order(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    jids = filled(client)
    for jid in jids:
        (job,) = client.execute(ops.Pop("q", "w", 1))
        client.execute(ops.Complete(job.jid, job.token, "x" * (5000 if jid != "j3" else 50_000)))
    monkeypatch.setattr(budget, "UNITS", 5)
    with pytest.raises(OverBudget):
        client.execute(ops.Results("d"))
    assert [one.jid for one in client.jobs["d"].results().all] == jids


def test_the_journal_is_read_to_its_end(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.execute(ops.ConfigSet("journal", 1))
    for i in range(JOBS):
        client.execute(ops.Put("q", f"j{i}", "k", "x" * 10_000 * i))
    monkeypatch.setattr(budget, "UNITS", 25)
    assert len(client.execute(ops.Journal(0, 1000))) < JOBS
    assert [entry.number for entry in client.journal()] == list(range(1, JOBS + 2))
