"""An idle worker is woken by whatever makes a job available at once, not only by a put."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

import qmodel

PATIENCE = 5.0
"""Far below the ten seconds after which a sleeping worker looks by itself."""


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
    woken: list[float] = []

    def idle() -> None:
        waiting = qmodel.Client(backend)
        job = waiting.queues["q"].pop(timeout=20)
        assert job is not None and job.jid == "held"
        woken.append(time.monotonic())

    thread = threading.Thread(target=idle)
    thread.start()
    time.sleep(0.3)
    began = time.monotonic()
    act(client)
    thread.join(15)
    assert woken and woken[0] - began < PATIENCE


def test_who_waits_for_several_queues_is_woken_by_each(client_url: str) -> None:
    backend = "memory://several" if client_url == "memory://" else client_url
    client = qmodel.Client(backend)
    taken: list[str] = []

    def idle() -> None:
        waiting = qmodel.Client(backend)
        for _ in range(3):
            job = waiting.pop(["q", "r", "s"], timeout=20)
            assert job is not None
            taken.append(job.jid)

    thread = threading.Thread(target=idle)
    thread.start()
    began = time.monotonic()
    for name in ("r", "q", "s"):
        time.sleep(0.2)
        client.queues[name].put("K", jid=f"in-{name}")
    thread.join(15)
    assert taken == ["in-r", "in-q", "in-s"] and time.monotonic() - began < PATIENCE
