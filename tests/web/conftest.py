"""The pages of a small shop, in memory."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from starlette.routing import Mount
from starlette.testclient import TestClient

from qmodel import Client, Edge
from qmodel.contract import operations as ops
from qmodel.web import create
from tests.servers import NOTHING_FOUND, Server, chosen_servers, running

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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
    for number in range(3):
        at(30_000, ops.Publish("orders.paid", f'{{"order": {number}}}'))
    at(20_000, ops.Subscribe("books", ("orders.*",), "bookings", "Book", after=0, count=1))
    at(20_000, ops.RequestOpen("album", "images", 2))
    at(20_000, ops.RequestAdd("album", (ops.Put("images", "image-1", "Scale", "1"),)))
    at(20_000, ops.RequestOpen("done", "images", 2))
    at(20_000, ops.RequestClose("done"))
    at(20_000, ops.MetadataSet("SendEmail", "owner", "team mail"))
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


LONG = ("q<b>'ü&" + "long-queue-name/" * 8)[:120]
PLAIN = "t" + "<b>'&" * 20
"""Names that are as long and as odd as they may be: of anything, and of what takes only visible ASCII."""


def fill_with_long_names(client: Client) -> None:
    """A job, a queue, a worker, a throttle and so on, with such names."""
    tags = ("t" * 128, "日本語", LONG)
    given = {"tags": tags, "throttles": (PLAIN,), "unique": "u" * 128}
    client.execute(ops.Put(LONG, "j" * 128, "K" * 128, f'"{"x" * 500}"', **given))
    client.execute(ops.Put(LONG, "odd", LONG, "<b>" * 100, tags=tags))
    [job] = client.execute(ops.Pop(LONG, "w" * 128))
    client.execute(ops.Progress(job.jid, job.token, "p" * 500))
    client.execute(ops.Fail(job.jid, job.token, "g" * 128, "Traceback\n" * 50 + "m" * 500))
    client.execute(ops.Pop(LONG, "w" * 128))
    client.execute(ops.Pause((LONG,), "r" * 100))
    client.execute(ops.ThrottleSet(PLAIN, 1, 5, 1000))
    client.execute(ops.Recur(LONG, "s" * 100, "R" * 128, "x" * 500, 60_000, tags=tags))
    client.execute(ops.Subscribe("b" * 112, ("p." * 60 + "x",), LONG, "K" * 128, after=0, count=1))
    client.execute(ops.MetadataSet("K" * 128, "k" * 128, "v" * 500))


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


# ---- a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 60_000
"""For what the pages do by themselves; every three seconds if nothing else is going on."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all; on a machine of one's own it may be missing."""
    if not os.environ.get("CI"):
        pytest.importorskip("playwright", reason="no playwright to drive a browser with: pip install playwright")
        if CHROMIUM is None:
            pytest.skip("no browser: install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server, also where other tests run on several: a browser sees no difference."""
    candidates = chosen_servers()
    if not candidates:
        pytest.skip(NOTHING_FOUND)
    with running(candidates[0]) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    """The jobs of a small shop, on a real server."""
    made = Client(f"{server.url}?prefix=web:")
    with server.client() as connection:
        connection.flushall()
    fill(made, time.time_ns() // 1_000_000)
    fill_with_long_names(made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def base(client: Client, server: Server) -> Iterator[str]:
    """The pages, by a server in a thread, and under /clicked others; each part of what is done to many is one step."""
    before = sys.modules["qmodel.web.bulk"].SPAN if "qmodel.web.bulk" in sys.modules else 1.0
    app = create(f"{server.url}?prefix=web:", writable=True)
    clicked = create(f"{server.url}?prefix=clicked:", writable=True)
    app.routes.insert(0, Mount("/clicked", clicked))
    bound = socket.create_server(("127.0.0.1", 0))
    serving = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [bound]})
    thread.start()
    sys.modules["qmodel.web.bulk"].SPAN = -1.0  # type: ignore[attr-defined]
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    sys.modules["qmodel.web.bulk"].SPAN = before  # type: ignore[attr-defined]
    serving.should_exit = True
    thread.join(30)
    clicked.state.site.source.close()


Open = Callable[..., "Page"]


@pytest.fixture
def opened(browser: Browser, base: str) -> Iterator[Open]:
    """Open a page in a browser of its own; at the end nothing may have gone wrong in it."""
    contexts, wrong = [], []

    def open_page(path: str, *, phone: bool = False, clock: bool = False, errors: bool = False, **given: Any) -> Page:
        size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 860}
        contexts.append(browser.new_context(viewport=size, base_url=base, **given))
        page: Page = contexts[-1].new_page()
        page.set_default_timeout(WAIT_MS)
        if not errors:
            page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: wrong.append(str(error)))
        if clock:
            page.clock.install()
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
