"""Names with blanks at their ends, forms that are sent as they came, long messages, and pages behind the last one."""

from __future__ import annotations

import html
import re
from urllib.parse import unquote

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

from qmodel.contract import operations as ops
from qmodel.present.text import pretty
from qmodel.web import flash
from tests.web.conftest import Shop, send

BLANKS = (" emails", "emails ", " ", "\u3000emails", "\u00a0")


def names(shop: Shop) -> dict[str, int]:
    """The waiting jobs of each queue."""
    return {queue.name: queue.waiting for queue in shop.client.execute(ops.Queues(0, 100))}


@pytest.mark.parametrize("name", BLANKS)
def test_what_is_done_to_a_queue_is_not_done_to_one_without_the_blanks(
    shop: Shop, pages: TestClient, name: str
) -> None:
    shop.client.execute(ops.Put(name, "blank", "K", "{}"))
    before = names(shop)
    page = pages.get("/queue", params={"name": name})
    assert page.status_code == 200
    assert f'name="queue" value="{name}"' in page.text
    assert "blank" in pages.get("/jobs", params={"queue": name, "state": "waiting"}).text
    assert send(pages, "drain", queue=name, confirmed="1").status_code == 303
    assert names(shop) == {**before, name: 0}
    assert send(pages, "obliterate", queue=name, confirmed="1").status_code == 303
    assert names(shop) == {other: count for other, count in before.items() if other != name}


def test_a_bulk_action_takes_the_jobs_of_the_queue_with_the_blank(shop: Shop, pages: TestClient) -> None:
    shop.client.execute(ops.Put(" emails", "blank", "K", "{}"))
    before = names(shop)
    preview = pages.get("/bulk", params={"action": "cancel", "queue": " emails"})
    assert "Cancel 1 job?" in preview.text
    sent = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', preview.text))
    assert pages.post("/bulk", data=sent).status_code == 200
    assert names(shop) == {**before, " emails": 0}


def test_a_pause_is_removed_by_its_whole_reason(shop: Shop, pages: TestClient) -> None:
    for reason in ("night", " night"):
        shop.client.execute(ops.Pause(("bills",), reason))
    send(pages, "unpause", queue="bills", reason=" night")
    assert [pause.reason for pause in shop.client.execute(ops.Queue("bills")).pauses] == ["night"]


def form_of(page: str, action: str) -> dict[str, str]:
    """The fields of the form of an action, as the page fills them in."""
    [form] = [one for one in re.findall(r"<form.*?</form>", page, re.S) if f'name="action" value="{action}"' in one]
    found = dict(re.findall(r'<input[^>]*? name="(\w+)"[^>]*? value="([^"]*)"', form))
    texts = re.findall(r'<textarea[^>]*? name="(\w+)"[^>]*>(.*?)</textarea>', form, re.S)
    return {name: html.unescape(value) for name, value in (found | dict(texts)).items()}


@pytest.mark.parametrize("ms", [61_500, 90_061_001, 3_723_000, 7, 604_800_000])
def test_a_schedule_that_is_saved_unchanged_keeps_its_interval(shop: Shop, pages: TestClient, ms: int) -> None:
    shop.client.execute(ops.Recur(" reports", "every", "K", "{}", ms))
    before = shop.client.execute(ops.RecurGet("every"))
    fields = form_of(pages.get("/schedule", params={"jid": "every"}).text, "recur-update")
    assert pages.post("/do", data=fields).status_code == 303
    assert shop.client.execute(ops.RecurGet("every"))._replace(next_at=before.next_at) == before


def test_limits_that_are_set_unchanged_keep_their_spans(shop: Shop, pages: TestClient) -> None:
    shop.client.execute(ops.ThrottleSet("odd", 3, 5, 90_061_001, 9, 1, 61_500))
    before = shop.client.execute(ops.ThrottleGet("odd"))
    fields = form_of(pages.get("/throttle", params={"name": "odd"}).text, "throttle-set")
    assert pages.post("/do", data=fields).status_code == 303
    after = shop.client.execute(ops.ThrottleGet("odd"))
    assert (after.rate_ms, after.refill_ms) == (before.rate_ms, before.refill_ms) == (90_061_001, 61_500)


def test_a_job_that_is_gone_is_not_moved(pages: TestClient) -> None:
    answer = send(pages, "move", jid="nobody", queue="bills", confirmed="1")
    assert answer.status_code == 404
    assert "JOB_NOT_FOUND" in answer.text


@pytest.mark.parametrize(
    "data", ['{"a":1e400}', '{"a":1,"a":2}', "[0.10000000000000000555]", "[1e-400]", "[1e-99999999999999999999]"]
)
def test_data_that_python_reads_as_another_value_are_shown_as_they_are(
    shop: Shop, pages: TestClient, data: str
) -> None:
    assert pretty(data) == data
    shop.client.execute(ops.Put("odd", "odd", "K", data))
    shown = re.search(r'<textarea name="data"[^>]*>(.*?)</textarea>', pages.get("/job?jid=odd").text, re.S)
    assert shown is not None
    assert send(pages, "update", jid="odd", data=html.unescape(shown[1])).status_code == 303
    assert shop.client.jobs["odd"].text == data


def test_numbers_that_python_only_writes_in_another_way_are_indented() -> None:
    assert pretty("[1.50,1E2,1e-7,-0.0]") == "[\n  1.5,\n  100.0,\n  1e-07,\n  -0.0\n]"


def test_a_browser_changes_no_line_ends_in_data(shop: Shop, pages: TestClient) -> None:
    send(pages, "update", jid="mail-0", data="two\r\nlines")
    assert shop.client.jobs["mail-0"].text == "two\nlines"


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "d"], ids=["number", "days"])
def test_an_endless_duration_is_refused(pages: TestClient, text: str) -> None:
    assert send(pages, "delay", jid="mail-0", delay=text).status_code == 400
    assert pages.get("/bulk", params={"action": "clean", "state": "complete", "older": text}).status_code == 400


@pytest.mark.parametrize("day", ["999999999999999", "9" * 30, "1900-01-01", "0001-01-01", "9999-12-31", "soon"])
@pytest.mark.parametrize("queue", ["", "emails"])
def test_a_day_without_statistics_is_refused(pages: TestClient, day: str, queue: str) -> None:
    answer = pages.get("/stats", params={"day": day, "queue": queue})
    assert answer.status_code == 400
    assert "day must be a date" in answer.text


MESSAGES = ("日" * 1200, "x" * 601, "日" * 330, "a" * 600, "\U0001f600" * 300, "%;,= \"'/é" * 60)


@pytest.mark.parametrize("text", MESSAGES, ids=range(len(MESSAGES)))
def test_a_message_fits_into_a_cookie_as_browsers_keep_them(text: str) -> None:
    response = Response()
    flash.say(response, text, "", secure=False)
    value = response.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert len(value) <= flash.MOST_SENT
    shown = flash.read(value)
    assert shown == text or (shown.endswith("…") and text.startswith(shown[:-1]) and len(shown) > 240)
    assert len(shown) <= flash.MOST


LISTS = ("queues", "failures", "workers", "schedules", "stats", "requests", "subscriptions", "tags", "throttles")


@pytest.mark.parametrize("path", [*(f"/{name}" for name in LISTS), "/jobs?state=failed", "/worker?name=w2.example-1-1"])
def test_a_page_behind_the_end_of_a_list_leads_back_to_it(pages: TestClient, path: str) -> None:
    text = pages.get(f"{path}{'&' if '?' in path else '?'}offset=100").text
    assert "There is nothing on this page of the list any more." in text
    assert "Nothing has failed" not in text
    [back] = re.findall(r'rel="prev" href="([^"]+)"', text)
    assert "offset" not in back
    assert pages.get(html.unescape(back)).status_code == 200


def test_the_page_before_one_behind_the_end_is_the_last(shop: Shop) -> None:
    for number in range(120):
        shop.client.execute(ops.Put("many", f"j-{number:03}", "K", "{}"), now=number)
    text = shop.pages().get("/jobs?queue=many&state=waiting&offset=900").text
    assert re.findall(r'rel="prev" href="[^"]*offset=(\d+)', text) == ["100"]
    assert re.findall(r"(?s)<nav class=.pager.*?<span>(.*?)</span>", text) == ["of 120"]


def test_all_jobs_are_taken_from_a_worker_with_more_than_one_operation_takes(shop: Shop, pages: TestClient) -> None:
    for part in range(3):
        jobs = tuple(ops.Put("lots", f"lot-{part}-{number}", "K", "{}") for number in range(700))
        shop.client.execute(ops.PutMany(jobs))
    while shop.client.execute(ops.Pop("lots", "lots.w", 1000)):
        continue
    assert "2,100 jobs taken from the worker." in unquote(
        send(pages, "free", worker="lots.w", confirmed="1").headers["set-cookie"]
    )
    assert shop.client.execute(ops.Worker("lots.w")).jobs == ()


def test_what_is_done_in_part_is_not_said_to_be_done(
    shop: Shop, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmodel.web.bulk.SPAN", -1.0)
    shop.client.execute(ops.RequestOpen("large", "images", 2))
    for part in range(6):
        jobs = tuple(ops.Put("images", f"l-{part}-{number}", "Scale", "1") for number in range(1000))
        shop.client.execute(ops.RequestAdd("large", jobs))
    while shop.client.execute(ops.RequestCancel("large")):
        continue
    said: list[str] = []
    page = send(pages, "request-forget", id="large", confirmed="1", next="/requests")
    while page.status_code == 200 and "Continue" in page.text:
        said += re.findall("<h1>(.*?)</h1>", page.text)
        page = pages.post("/do", data=form_of(page.text, "request-forget"))
    assert said and all(
        re.fullmatch("Request large is being forgotten; [0-9,]+ sub-requests left.", one) for one in said
    )
    assert re.findall("<h1>(.*?)</h1>", page.text) == ["Request large is forgotten."]
