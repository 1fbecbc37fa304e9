"""How long an idle worker sleeps, and how it passes on a wake-up that comes after it has stopped."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

import qmodel
from qmodel import runtime
from qmodel.contract.operations import Operation
from qmodel.worker.connection import Connection
from qmodel.worker.next_job import NextJob
from qmodel.worker.wake_ups import WakeUps


def test_the_servers_time_goes_on_between_two_notes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server writes once a second when it saw a worker, so a read in between gives a time up to a second old."""
    next_job = NextJob(["q"])
    told = [(0.0, 5000), (0.4, 5000), (1.1, 6050), (1.9, 6050), (2.0, 6050), (3.0, 905_000), (4.0, 7000)]
    found = []
    for passed, seen_at in told:
        monkeypatch.setattr(runtime, "monotonic", lambda passed=passed: 100 + passed)
        found.append(round(next_job.now(seen_at)))
    assert found == [5000, 5400, 6100, 6900, 7000, 905_000, 7000]


def test_who_is_idle_looks_within_a_second_for_nothing_wakes_it_for_a_delay_that_is_put_later() -> None:
    client = qmodel.Client()
    wake_ups = WakeUps(cast(Connection, SimpleNamespace(client=client)), ["q"], "me", lambda: None)
    assert wake_ups._until_next() <= 1
    client.queues["q"].put("K", delay=60)
    assert client.queues["q"].pop(worker="me") is None
    assert wake_ups._until_next() <= 1


def test_what_is_passed_on_is_given_back_before_the_worker_ends() -> None:
    client = qmodel.Client()
    job = client.queues["q"].put("K")
    wake_ups = WakeUps(cast(Connection, SimpleNamespace(client=client)), ["q"], "me", lambda: None)
    taken, go_on = threading.Event(), threading.Event()
    give_back = client.execute_many

    def slowly(operations: Iterable[Operation]) -> list[Any]:
        taken.set()
        assert go_on.wait(30)
        return give_back(operations)

    client.execute_many = slowly  # type: ignore[method-assign]
    passing = threading.Thread(target=wake_ups._pass_on)
    ending = threading.Thread(target=wake_ups.finish)
    passing.start()
    assert taken.wait(30)
    ending.start()
    assert job.refresh().state == "running"
    assert ending.is_alive()
    go_on.set()
    ending.join(30)
    assert job.refresh().state == "waiting"
    wake_ups._pass_on()
    assert job.refresh().state == "waiting"
