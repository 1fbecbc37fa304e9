"""Throttles, as an application sees them."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import qmodel
from qmodel import Client
from qmodel.errors import BadArgument, OverCapacity


def test_a_throttle_holds_for_all_jobs_that_name_it_wherever_they_are(client: Client) -> None:
    mails = client.throttles["mails"]
    mails.set(concurrency=1)
    for name in ("q", "r"):
        client.queues[name].put("Send", throttles=["mails"], jid=name)

    first = client.queues["q"].pop()
    assert first is not None and first.throttles == ("mails",) and first.cost == 1
    assert client.queues["r"].pop() is None
    shown = mails.show()
    assert (shown.concurrency, shown.running, shown.parked, shown.holders) == (1, 1, 1, ("q",))
    assert client.jobs["r"].state == "throttled"
    assert [(one.code, one.sentence) for one in client.jobs["r"].why()] == [
        ("full", "Throttle mails is full: 1 of 1, q.")
    ]
    first.complete()
    second = client.queues["r"].pop()
    assert second is not None and second.jid == "r"


def test_limits_are_set_all_at_once_and_taken_away(client: Client) -> None:
    api = client.throttles["api"]
    api.set(2, rate=10, per=1.5, capacity=5, refill=2, every=60)
    assert api.show()[1:7] == (2, 10, 1500, 5, 2, 60_000)
    api.set(rate=3, per=1)
    assert [one.name for one in client.throttles.all()] == ["api"]
    assert api.show()[1:7] == (0, 3, 1000, 0, 0, 0)

    for wrong in ({}, {"rate": 1}, {"per": 1}, {"capacity": 1, "refill": 1}, {"every": 1}):
        with pytest.raises(BadArgument):
            api.set(**wrong)
    assert api.unset()
    assert not api.unset()
    assert client.throttles.all() == []


def test_a_cost_that_a_bucket_never_holds_is_refused(client: Client) -> None:
    client.throttles["api"].set(capacity=5, refill=1, every=1)
    with pytest.raises(OverCapacity) as refused:
        client.queues["q"].put("K", throttles="api", cost=6)
    assert (refused.value.cost, refused.value.capacity) == ("6", "5")


def test_a_queue_has_a_throttle_of_its_own(client: Client) -> None:
    queue = client.queues["q"]
    queue.throttle.set(concurrency=1)
    for _ in range(2):
        queue.put("K")
    assert len(queue.pop(5)) == 1
    assert (queue.counts.waiting, queue.counts.throttled) == (1, 0)


@pytest.mark.parametrize("limits", [{"concurrency": 1}, {"rate": 1, "per": 0.3}, {"concurrency": 1, "own": True}])
def test_who_waits_for_work_gets_it_when_a_throttle_opens(client_url: str, limits: dict[str, Any]) -> None:
    backend = "memory://opening" if client_url == "memory://" else client_url
    client = qmodel.Client(backend)
    queue = client.queues[f"q{len(limits)}{'own' in limits}"]
    throttle = queue.throttle if limits.get("own") else client.throttles[queue.name]
    throttle.set(**{name: value for name, value in limits.items() if name != "own"})
    for _ in range(2):
        queue.put("K", throttles=[queue.name])
    first = queue.pop()
    assert first is not None
    found: list[Any] = []

    def idle() -> None:
        found.append(qmodel.Client(backend).queues[queue.name].pop(timeout=60))

    thread = threading.Thread(target=idle)
    thread.start()
    first.complete()
    thread.join(60)
    assert found and found[0] is not None and found[0].jid != first.jid


def test_a_family_limits_each_throttle_that_matches(client: Client) -> None:
    family = client.throttles.family("tenant-*")
    family.set(concurrency=1, rate=2, per=60)
    client.throttles["tenant-big"].set(concurrency=3)
    queue = client.queues["q"]
    for tenant in ("tenant-1", "tenant-2", "tenant-big"):
        for number in range(2):
            queue.put("Send", throttles=[tenant], jid=f"{tenant}/{number}")

    assert [job.jid for job in queue.pop(9)] == ["tenant-1/0", "tenant-2/0", "tenant-big/0", "tenant-big/1"]
    shown = client.throttles["tenant-1"].show()
    assert (shown.concurrency, shown.rate, shown.claims, shown.running, shown.family) == (1, 2, 1, 1, "tenant-*")
    assert client.throttles["tenant-big"].show().family == ""
    assert [one.name for one in client.throttles.all()] == ["tenant-*", "tenant-big"]
    assert [one.sentence for one in client.jobs["tenant-1/1"].why()] == [
        "Throttle tenant-1 is full: 1 of 1, tenant-1/0."
    ]
    assert family.unset()
    assert [job.jid for job in queue.pop(9)] == ["tenant-1/1", "tenant-2/1"]
    assert client.throttles["tenant-1"].show()[1:7] == (0, 0, 0, 0, 0, 0)


def test_a_family_without_a_star_is_noticed(client: Client) -> None:
    for name in ("tenant", "queue/*"):
        with pytest.raises(ValueError, match="not a family"):
            client.throttles.family(name)


def test_the_keys_under_a_family_that_are_in_use_are_listed_with_what_each_holds(client: Client) -> None:
    family = client.throttles.family("tenant-*")
    family.set(concurrency=1)
    client.throttles["tenant-own"].set(concurrency=5)
    for number in range(120):
        client.queues["q"].put("K", jid=f"{number}-a", throttles=[f"tenant-{number:03}"])
        client.queues["q"].put("K", jid=f"{number}-b", throttles=[f"tenant-{number:03}"])
    client.queues["q"].put("K", jid="own", throttles=["tenant-own"])
    client.queues["q"].put("K", jid="free", throttles=["nobody-set-it"])
    popped = client.queues["q"].pop(300)
    found = list(family.keys())
    assert [one.name for one in found] == [f"tenant-{number:03}" for number in range(120)]
    assert {(one.running, one.parked, one.family, len(one.holders)) for one in found} == {(1, 1, "tenant-*", 1)}
    assert [one.name for one in client.throttles.used("*-*")][-1] == "tenant-own"
    assert next(client.throttles.used("n*")).holders == ("free",)
    client.complete_many(popped)
    assert [one.name for one in client.throttles.used()] == [f"tenant-{number:03}" for number in range(120)]
    for job in client.queues["q"].pop(300):
        job.complete()
    assert list(client.throttles.used()) == list(family.keys()) == []


def test_a_throttle_is_in_use_until_its_window_is_empty(client: Client) -> None:
    client.throttles.family("api-*").set(rate=5, per=0.05)
    client.queues["q"].put("K", throttles=["api-1"])
    job = client.queues["q"].pop()
    assert job is not None
    job.complete()
    assert [(one.name, one.claims, one.running) for one in client.throttles.used()] in ([("api-1", 1, 0)], [])
    time.sleep(0.06)
    assert list(client.throttles.used()) == []
