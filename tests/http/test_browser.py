"""The API and a real browser: events go on after the server was away, and a page of another site gets nowhere."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator

import pytest

from qmodel.client.sync import Client
from tests.http.conftest import served
from tests.servers import Server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

try:
    from playwright.sync_api import Page, sync_playwright
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip("no playwright to drive a browser with: pip install playwright", allow_module_level=True)

if CHROMIUM is None and not os.environ.get("CI"):
    pytest.skip("no browser: install chromium", allow_module_level=True)

FOLLOW = """() => {
    window.seen = []
    const events = new EventSource('/v1/events?after=0')
    events.addEventListener('put', event => window.seen.push(parseInt(event.lastEventId)))
}"""
FORGE = """async ([api, mode, type]) => {
    const body = JSON.stringify({klass: 'Forged', jid: 'forged'})
    const sent = {method: 'POST', mode, headers: {'Content-Type': type}, body}
    await fetch(`${api}/v1/queues/q/jobs`, sent).catch(() => {})
    return await fetch(`${api}/v1/queues`).then(found => found.text(), () => 'nothing')
}"""


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a browser."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page()
        browser.close()


def test_a_browser_misses_no_event_while_the_server_is_away(page: Page, server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    url = f"{server.url}?prefix=browser:"
    with Client(url) as jobs:
        with served("--url", url, "--port", port) as api:
            page.goto(f"{api}/health")
            page.evaluate(FOLLOW)
            jobs.queues["q"].put("K")
            page.wait_for_function("window.seen.length === 1", timeout=20_000)
        jobs.queues["q"].put("K")
        with served("--url", url, "--port", port):
            jobs.queues["q"].put("K")
            page.wait_for_function("window.seen.length === 3", timeout=30_000)
        assert page.evaluate("window.seen") == [2, 3, 4]


def test_a_page_of_another_site_can_neither_change_nor_read_anything(page: Page) -> None:
    with served("--writable") as api, served() as elsewhere:
        page.goto(f"{elsewhere.replace('127.0.0.1', 'localhost')}/health")
        for mode, kind in (("no-cors", "text/plain"), ("cors", "text/plain"), ("cors", "application/json")):
            assert page.evaluate(FORGE, [api, mode, kind]) == "nothing"
        page.goto(f"{api}/health")
        assert page.evaluate("fetch('/v1/queues').then(found => found.json())") == {"queues": []}
        page.evaluate(FORGE, [api, "cors", "application/json"])  # the same from a page of its own
        assert page.evaluate("fetch('/v1/jobs/forged').then(found => found.status)") == 200
