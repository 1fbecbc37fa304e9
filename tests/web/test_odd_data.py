"""Data that Python cannot decode or write are shown as text, and end in typed errors."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from qmodel import Client, DataError
from qmodel.present.text import pretty
from qmodel.web import create
from tests.servers import Server
from tests.web.conftest import BASE, Shop

DEEP = "[" * 100_000 + "]" * 100_000
FAIRLY = "[" * 600 + "]" * 600
HALF = '"\\ud800"'
ODD = {"deep": DEEP, "fairly deep": FAIRLY, "half": HALF, "half in a list": f"[{HALF}]"}


@pytest.mark.parametrize("name", ODD)
def test_the_page_of_a_job_shows_the_text(shop: Shop, pages: TestClient, name: str) -> None:
    shop.client.queues["odd"].put("K", text=ODD[name], jid="odd", tags=["odd"])
    for path in ("/job?jid=odd", "/job?jid=odd&whole=1", "/queue?name=odd", "/jobs?queue=odd"):
        assert pages.get(path).status_code == 200, path
    assert ODD[name].replace('"', "&#34;") in pages.get("/job?jid=odd&whole=1").text.replace("\n", "").replace(" ", "")


@pytest.mark.parametrize("name", ODD)
def test_the_page_of_a_schedule_shows_the_text(shop: Shop, pages: TestClient, name: str) -> None:
    shop.client.queues["odd"].recur("K", interval=60, text=ODD[name], jid="odd")
    assert pages.get("/schedule?jid=odd").status_code == 200


def test_pretty_is_always_text_that_can_be_sent() -> None:
    assert pretty('{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    for text in ODD.values():
        assert pretty(text).replace("\n", "").replace(" ", "") == text
        pretty(text).encode()


def test_reading_data_that_are_nested_too_deeply_is_a_typed_error() -> None:
    with Client("memory://") as client:
        job = client.queues["q"].put("K", text=DEEP)
        with pytest.raises(DataError, match="nested too deeply"):
            _ = job.data
        assert job.text == DEEP
        deep: Any = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(DataError, match="nested too deeply"):
            client.queues["q"].put("K", deep)
        half = client.queues["q"].put("K", text=HALF)
        assert half.data == "\ud800" == client.jobs[client.queues["q"].put("K", half.data).jid].data


def test_a_reason_links_the_job_that_it_names_however_short_its_id(shop: Shop, pages: TestClient) -> None:
    put, pop = shop.client.queues["odd"].put, shop.client.queues["odd"].pop
    put("K", jid="o", ordered="line")
    pop()
    put("K", jid="behind", ordered="line")
    assert 'slot: job <a class="mono" href="/job?jid=o" title="o">o</a> holds one.' in pages.get("/job?jid=behind").text
    put("K", jid="a")
    put("K", jid="after", depends=["a"])
    failing = pop()
    assert failing is not None and failing.jid == "a"
    failing.fail("g", "m")
    page = pages.get("/job?jid=after").text
    assert '<li>Job <a class="mono" href="/job?jid=a" title="a">a</a>, which it waits for, has failed' in page
    assert '1 (<a class="mono" href="/job?jid=a" title="a">a</a>).' in page


def test_data_that_cannot_be_decoded_are_shown_as_they_are_stored(shop: Shop) -> None:
    def away(klass: str, text: str) -> str:
        raise ConnectionError("the store is away")

    page = shop.pages(decode=away).get("/job?jid=mail-0")
    assert page.status_code == 200
    assert "&#34;ada&#34;" in page.text


def test_pages_can_be_started_again(server: Server) -> None:
    app = create(server.url)
    for _ in range(2):
        with TestClient(app, base_url=BASE) as pages:
            assert pages.get("/queues").status_code == 200


def test_who_is_denied_does_not_see_where_the_jobs_are() -> None:
    with TestClient(create("redis://there.example:1/0?deadline=0", auth="ada:secret"), base_url=BASE) as pages:
        answer = pages.get("/")
        assert answer.status_code == 401
        assert "there.example" not in answer.text
        assert "there.example" in pages.get("/", auth=("ada", "secret")).text
