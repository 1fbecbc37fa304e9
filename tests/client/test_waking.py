"""An idle worker is woken by whatever makes a job available at once, not only by a put."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

import pytest

import qmodel

PATIENCE = 60.0
"""Seconds after which a test no longer waits."""


@pytest.fixture(autouse=True)
def nobody_looks_by_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who sleeps and is not woken sleeps until the test is over."""
    monkeypatch.setattr("qmodel.client.sync.LONGEST_SLEEP", 1000.0)


def _unpause(client: qmodel.Client) -> None:
    client.queues["q"].unpause()


def _time_out(client: qmodel.Client) -> None:
    client.jobs.timeout("held")


@pytest.mark.parametrize("act", [_unpause, _time_out], ids=["unpause", "timeout"])
def test_an_idle_worker_is_woken(client_url: str, act: Callable[[qmodel.Client], None]) -> None:
    backend = "memory://waking" if client_url == "memory://" else client_url  # a name: both clients see one queue
    client = qmodel.Client(backend)
    queue = client.queues["q"]
    queue.put("K", jid="held")
    if act is _unpause:
        queue.pause()
    else:
        assert queue.pop(worker="other") is not None
    woken = threading.Event()

    def idle() -> None:
        waiting = qmodel.Client(backend)
        job = waiting.queues["q"].pop(timeout=10 * PATIENCE)
        assert job is not None and job.jid == "held"
        woken.set()

    threading.Thread(target=idle, daemon=True).start()
    time.sleep(0.3)
    act(client)
    assert woken.wait(PATIENCE)


def test_who_waits_for_several_queues_is_woken_by_each(client_url: str) -> None:
    backend = "memory://several" if client_url == "memory://" else client_url
    client = qmodel.Client(backend)
    taken: SimpleQueue[str] = SimpleQueue()

    def idle() -> None:
        waiting = qmodel.Client(backend)
        for _ in range(3):
            job = waiting.pop(["q", "r", "s"], timeout=10 * PATIENCE)
            assert job is not None
            taken.put(job.jid)

    threading.Thread(target=idle, daemon=True).start()
    for name in ("r", "q", "s"):
        time.sleep(0.2)
        client.queues[name].put("K", jid=f"in-{name}")
        assert taken.get(timeout=PATIENCE) == f"in-{name}"
