"""The pages of a small shop, in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from qmodel import Client, Edge
from qmodel import operations as ops
from qmodel.web import create

NOW = 1_800_000_000_000
BASE = "http://localhost:8700"


class Shop:
    """A client whose jobs are at every place at which a job may be, and the pages that show them."""

    def __init__(self) -> None:
        self.client = Client("memory://")
        self.client.backend.namespace.clock = lambda: NOW  # type: ignore[attr-defined]
        self.sent: list[ops.Operation] = []
        fill(self.client)

    def pages(self, **given: Any) -> TestClient:
        """The pages, as a browser on this machine asks for them."""
        return TestClient(create(self.client, **given), base_url=BASE, follow_redirects=False)

    def count(self) -> None:
        """Note every operation that is sent from now on."""
        execute_many, execute = self.client.backend.execute_many, self.client.backend.execute

        def many(operations: Any, now: int | None = None) -> list[Any]:
            self.sent += operations
            return execute_many(operations, now)

        def one(op: ops.Operation, now: int | None = None) -> Any:
            self.sent.append(op)
            return execute(op, now)

        self.client.backend.execute_many = many  # type: ignore[method-assign]
        self.client.backend.execute = one  # type: ignore[method-assign]


def fill(client: Client, now: int = NOW) -> None:
    """Jobs in each state, a flow, a schedule, throttles, failures, a pause."""

    def at(before: int, op: ops.Operation) -> Any:
        return client.execute(op, now=now - before)

    for number in range(3):
        at(60_000, ops.Put("emails", f"mail-{number}", "SendEmail", '{"to": "ada"}', tags=("eu", "vip")))
    at(60_000, ops.Put("emails", "later", "SendEmail", "{}", delay_ms=3_600_000))
    at(60_000, ops.Put("bills", "bill-1", "Charge", "1", throttles=("stripe",)))
    at(60_000, ops.Put("bills", "bill-2", "Charge", "2", throttles=("stripe",)))
    at(60_000, ops.ThrottleSet("stripe", 1, 5, 1000, 9, 1, 1000))
    [running] = at(50_000, ops.Pop("bills", "w1.example-1-1", 1))
    at(49_000, ops.Progress(running.jid, running.token, "half way"))
    at(49_000, ops.Pop("bills", "w1.example-1-1", 1))
    at(60_000, ops.Put("sync", "synced", "Sync", "{}", unique="sync"))
    for jid, group in (("bad-1", "KeyError"), ("bad-2", "KeyError"), ("bad-3", "TimeoutError")):
        at(40_000, ops.Put("imports", jid, "Import", '{"file": "a.csv"}', lifo=True, lease_ms=5000))
        [job] = at(39_000, ops.Pop("imports", "w2.example-1-1", 1))
        at(38_000, ops.Fail(jid, job.token, group, "Traceback (most recent call last):\n  File 1\nKeyError: 'x'"))
    at(40_000, ops.Put("imports", "good", "Import", "{}"))
    [job] = at(39_000, ops.Pop("imports", "w2.example-1-1", 1))
    at(30_000, ops.Complete("good", job.token, '{"rows": 7}'))
    at(3_000_000, ops.Put("imports", "lost", "Import", "{}"))
    at(3_000_000, ops.Pop("imports", "dead.example-1-1", 1))
    client.queues["pages"].put_many(
        [
            client.queues["pages"].new("Fetch", jid="fetch"),
            client.queues["pages"].new("Render", jid="render", depends=[Edge("fetch", "fail", "page")]),
        ]
    )
    client.queues["reports"].recur("Report", {"kind": "daily"}, cron="0 9 * * 1-5", jid="daily")
    client.queues["emails"].pause("partner is down", duration=600)


@pytest.fixture
def shop() -> Shop:
    """A shop of its own for each test."""
    return Shop()


@pytest.fixture
def pages(shop: Shop) -> Iterator[TestClient]:
    """Its pages, on which things may be changed."""
    with shop.pages(writable=True) as client:
        yield client


def token(pages: TestClient) -> str:
    """What every form of the pages carries."""
    found = re.search(r'name="csrf" value="(\w+)"', pages.get("/queue", params={"name": "emails"}).text)
    assert found is not None
    return found[1]


def send(pages: TestClient, action: str, next: str = "/", **fields: Any) -> Any:
    """Send the form of an action."""
    return pages.post("/do", data={"csrf": token(pages), "action": action, "next": next, **fields})
