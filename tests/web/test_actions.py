"""What people do on the pages, and what keeps others from it."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from qmodel import connect
from qmodel.client import remote
from qmodel.contract import operations as ops
from qmodel.present.actions import ACTIONS
from qmodel.present.actions.jobs import again
from qmodel.present.bulk import KINDS
from qmodel.web.site import NAVIGATION
from tests.web.clicks import CLICKS
from tests.web.conftest import NOW, Shop, send, token


def state(shop: Shop, jid: str) -> str:
    """The state of a job, or gone."""
    job = shop.client.jobs.get(jid)
    return "gone" if job is None else job.state


def told(pages: TestClient, answer: Any) -> str:
    """What the next page tells of an action."""
    assert answer.status_code == 303, answer.text
    found = re.search(r'class="said"[^>]*>([^<]*)', pages.get(answer.headers["location"]).text)
    return html.unescape(found[1]) if found else ""


DONE = {
    "pause": ({"queue": "bills", "reason": "night", "for": "1h30m"}, "Queue bills is paused."),
    "unpause": ({"queue": "emails"}, "Queue emails is unpaused."),
    "fire": ({"queue": "reports"}, "0 due runs enqueued."),
    "forget": ({"queue": "reports"}, None),
    "drain": ({"queue": "emails"}, "4 jobs canceled, 0 left."),
    "obliterate": ({"queue": "pages"}, "2 jobs deleted, 0 left."),
    "put": ({"queue": "emails", "klass": "K", "data": "{}", "delay": "5m", "tags": "a, b"}, "Job "),
    "update": ({"jid": "mail-0", "data": '{"to": "bob"}'}, "The data is replaced."),
    "unique-release": ({"unique": "sync"}, "The key sync is released."),
    "promote-jobs": ({"jid": "later"}, "1 job ready now."),
    "revoke-jobs": ({"jid": "bill-1"}, "1 job revoked. 1 worker will hear of it."),
    "cancel-jobs": ({"jid": ["mail-0", "mail-1"]}, "2 jobs canceled."),
    "delete-jobs": ({"jid": ["good", "mail-0"]}, "2 jobs deleted."),
    "timeout": ({"jid": "bill-1"}, "The lease of job bill-1 is taken"),
    "track": ({"jid": "mail-0"}, "Job mail-0 is tracked."),
    "untrack": ({"jid": "mail-0"}, "Job mail-0 is no longer tracked."),
    "priority": ({"jid": "mail-0", "priority": "-7"}, "The priority is -7."),
    "delay": ({"jid": "mail-0", "delay": "10m"}, "Job mail-0 is ready in 10m."),
    "tag": ({"jid": "mail-0", "tag": "new {x}"}, "Tag new {x} is added."),
    "untag": ({"jid": "mail-0", "tag": "eu"}, "Tag eu is removed."),
    "log": ({"jid": "mail-0", "message": "looked at"}, "The note is added to the timeline."),
    "replay": ({"jid": "mail-0"}, None),
    "deregister": ({"worker": "w2.example-1-1"}, "w2.example-1-1 is removed from the list."),
    "recur-now": ({"jid": "daily"}, "Run daily-1 is enqueued."),
    "recur-pause": ({"jid": "daily"}, "daily is paused."),
    "recur-unpause": ({"jid": "daily"}, "daily is unpaused."),
    "unrecur": ({"jid": "daily"}, "Schedule daily is deleted."),
    "recur-update": ({"jid": "daily", "queue": "other", "priority": "3"}, "The schedule is changed"),
    "recur-tag": ({"jid": "daily", "tag": "eu"}, "Future runs have the tag eu."),
    "recur-untag": ({"jid": "daily", "tag": "eu"}, "Future runs do not have the tag eu."),
    "depends-off": ({"jid": "render"}, "It waits for no other job now."),
    "publish": ({"subject": "orders.lost", "data": "1"}, "Message "),
    "trim": ({}, "3 messages deleted."),
    "catch-up": ({"subscription": "books"}, "The subscription has caught up; 0 messages left."),
    "unsubscribe": ({"subscription": "books"}, "Subscription books is ended."),
    "metadata-set": ({"klass": "SendEmail", "key": "phone", "value": "123"}, "phone is saved."),
    "metadata-unset": ({"klass": "SendEmail", "key": "owner"}, "owner is deleted."),
    "quiet": ({"worker": ["w1.example-1-1", "w2.example-1-1"]}, "2 workers are told to take no more jobs."),
    "resume": ({"worker": "w1.example-1-1"}, "w1.example-1-1 is told to take jobs again."),
    "stop": ({"worker": "w1.example-1-1", "now": "1"}, "w1.example-1-1 is told to stop."),
    "free": ({"worker": "w1.example-1-1"}, "1 job taken from the worker."),
    "move-group": ({"group": "KeyError", "queue": "other"}, "2 jobs moved to queue other."),
    "request-forget": ({"id": "done"}, "Request done is forgotten."),
    "request-delete": ({"id": "done"}, "Request done is forgotten; 0 jobs deleted."),
    "throttle-set": ({"throttle": "stripe", "concurrency": "4"}, "The limits of throttle stripe are set."),
    "throttle-unset": ({"throttle": "stripe"}, "The limits of throttle stripe are removed."),
    "config-set": ({"option": "heartbeat", "unit": "ms", "value": "2m"}, "Option heartbeat is 2m."),
    "config-unset": ({"option": "heartbeat"}, "Option heartbeat has its default value."),
    "request-close": ({"id": "album"}, "Request album is closed: it ends with its last sub-request."),
    "request-tune": ({"id": "album", "priority": "2", "limit": "3"}, "Request album has priority 2"),
    "request-cancel": ({"id": "album"}, "Request album is canceled"),
    "retry-jobs": ({"jid": ["bad-1", "mail-0"]}, "1 job retried. 1 passed over: not failed, or gone."),
    "move": ({"jid": "bad-1", "queue": "other"}, "Job bad-1 is in queue other."),
}
"""Every action with its fields, and what is told afterwards; None where it is refused."""


def test_no_action_is_forgotten() -> None:
    assert DONE.keys() == CLICKS.keys() == ACTIONS.keys()


@pytest.mark.parametrize("action", DONE)
def test_an_action_is_done_and_told(shop: Shop, pages: TestClient, action: str) -> None:
    fields, said = DONE[action]
    answer = send(pages, action, next="/queue?name=emails", **fields)
    if "Sure?" in answer.text:
        answer = send(pages, action, next="/queue?name=emails", confirmed="1", **fields)
    if said is None:
        assert answer.status_code == 409
        assert "Refused" in answer.text
    else:
        assert told(pages, answer).startswith(said)


ASKING = [
    *(
        "drain",
        "obliterate",
        "move-group",
        "request-cancel",
        "request-forget",
        "trim",
        "free",
        "depends-off",
        "unsubscribe",
    ),
    *("stop", "cancel-jobs", "delete-jobs", "timeout", "unrecur", "throttle-unset", "move", "unique-release"),
]


@pytest.mark.parametrize("action", ASKING)
def test_what_takes_something_away_asks_first(shop: Shop, pages: TestClient, action: str) -> None:
    fields, _ = DONE[action]
    before = shop.client.newest()
    answer = send(pages, action, **fields)
    assert answer.status_code == 200
    assert "Sure?" in answer.text
    assert shop.client.newest() == before


@pytest.mark.parametrize("action", [action for action in DONE if action != "trim"])
def test_an_empty_form_is_said_to_be_one(pages: TestClient, action: str) -> None:
    answer = send(pages, action, confirmed="1")
    assert answer.status_code == 400, action


def test_a_job_is_put_as_the_form_says(shop: Shop, pages: TestClient) -> None:
    fields = {"queue": "new", "klass": "K", "data": '{"a": [1]}', "priority": "-2", "delay": "1h", "tags": "x y"}
    jid = told(pages, send(pages, "put", **fields)).split()[1]
    job = shop.client.jobs[jid]
    assert (job.state, job.data, job.priority, job.tags) == ("scheduled", {"a": [1]}, -2, ("x", "y"))


def test_a_failed_job_is_tried_again_as_it_was_put(shop: Shop, pages: TestClient) -> None:
    send(pages, "retry-jobs", jid="bad-1")
    job = shop.client.jobs["bad-1"]
    assert (job.state, job.remaining, job.lifo, job.raw.lease_ms) == ("waiting", 5, True, 5000)


def test_a_failed_job_whose_key_another_took_is_retried_without_the_key(shop: Shop, pages: TestClient) -> None:
    execute = shop.client.execute
    execute(ops.Put("q", "first", "K", "", unique="key"), now=NOW)
    [job] = execute(ops.Pop("q", "w", 1), now=NOW)
    execute(ops.Fail("first", job.token, "g", "m"), now=NOW)
    execute(ops.Put("q", "second", "K", "", unique="key"), now=NOW)
    assert told(pages, send(pages, "retry-jobs", jid="first")) == "1 job retried."
    assert state(shop, "first") == "waiting"
    held = execute(ops.UniqueGet("key"), now=NOW)
    assert held is not None and held.jid == "second"


def test_a_failed_job_moves_to_another_queue_as_it_was_put(shop: Shop, pages: TestClient) -> None:
    send(pages, "move", jid="bad-1", queue="other", confirmed="1")
    job = shop.client.jobs["bad-1"]
    assert (job.state, job.queue, job.remaining, job.lifo) == ("waiting", "other", 5, True)


def test_several_may_be_refused_and_the_rest_is_done(shop: Shop, pages: TestClient) -> None:
    said = told(pages, send(pages, "promote-jobs", jid=["later", "bad-1", "nobody"]))
    assert said.startswith("1 job ready now. 2 refused:")
    assert state(shop, "later") == "waiting"


def test_a_job_with_dependents_is_canceled_with_them(shop: Shop, pages: TestClient) -> None:
    assert send(pages, "cancel-jobs", jid="fetch", confirmed="1").status_code == 409
    assert "2 jobs canceled" in told(pages, send(pages, "cancel-jobs", jid="fetch", confirmed="1", cascade="1"))
    assert state(shop, "render") == "gone"


@pytest.mark.parametrize(
    "next", ["//evil.example/", "https://evil.example", "/\\evil.example", "javascript:x", "/\n/x"]
)
def test_no_form_leads_elsewhere(pages: TestClient, next: str) -> None:
    assert send(pages, "track", jid="mail-0", next=next).headers["location"] == "/"


def test_from_the_page_of_what_is_gone_it_goes_to_the_list(pages: TestClient) -> None:
    answer = send(pages, "cancel-jobs", jid="mail-0", confirmed="1", next="/job?jid=mail-0")
    assert answer.headers["location"] == "/jobs"


# ---- who may not


def test_who_may_only_look_sees_no_form_and_can_send_none(shop: Shop) -> None:
    pages = shop.pages()
    for page in [*(where for where, _ in NAVIGATION), "/job?jid=bad-1", "/queue?name=emails", "/jobs?group=KeyError"]:
        assert 'method="post"' not in pages.get(page).text
    before = shop.client.newest()
    for where in ("/do", "/bulk"):
        assert pages.post(where, data={"action": "drain", "queue": "emails", "confirmed": "1"}).status_code == 403
    assert pages.get("/bulk?action=retry&group=KeyError").status_code == 403
    assert shop.client.newest() == before


@pytest.mark.parametrize("csrf", ["", "0" * 64])
def test_a_form_without_the_token_of_a_page_does_nothing(shop: Shop, pages: TestClient, csrf: str) -> None:
    before = shop.client.newest()
    fields = {"csrf": csrf, "confirmed": "1", "queue": "emails"}
    assert pages.post("/do", data={"action": "drain", **fields}).status_code == 403
    assert pages.post("/bulk", data={"action": "cancel", **fields}).status_code == 403
    assert shop.client.newest() == before


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}])
def test_a_form_of_another_site_does_nothing(shop: Shop, pages: TestClient, headers: dict[str, str]) -> None:
    before = shop.client.newest()
    data = {"csrf": token(pages), "action": "drain", "queue": "emails", "confirmed": "1"}
    assert pages.post("/do", data=data, headers=headers).status_code == 403
    assert shop.client.newest() == before


def test_a_link_changes_nothing(shop: Shop, pages: TestClient) -> None:
    before = shop.client.newest()
    assert pages.get("/do", params={"action": "drain", "queue": "emails", "confirmed": "1"}).status_code == 405
    assert shop.client.newest() == before


def test_a_form_has_a_bounded_size(pages: TestClient) -> None:
    assert send(pages, "log", jid="mail-0", message="x" * 300_000).status_code == 400
    assert pages.post("/do", content=b"\xff\xfe=1").status_code == 400


def test_an_application_may_say_who_may_do_what(shop: Shop) -> None:
    def may(request: Request, action: str) -> bool:
        return request.headers.get("x-user") == "ada" and action in ("", "pause", "retry-all")

    with shop.pages(writable=True, may=may) as pages:
        assert 'method="post"' not in pages.get("/queue?name=emails").text
        pages.headers["x-user"] = "ada"
        assert send(pages, "pause", queue="bills").status_code == 303
        assert send(pages, "unpause", queue="bills").status_code == 403
        assert ">Unpause<" not in pages.get("/queue?name=bills").text
        assert pages.get("/bulk?action=retry&group=KeyError").status_code == 200
        assert pages.get("/bulk?action=cancel&group=KeyError").status_code == 403
        assert "Cancel…" not in pages.get("/failures").text
        put = {"klass": "K"}
        assert pages.post("/api/v1/queues/emails/jobs", json=put).status_code == 403


@pytest.mark.parametrize("page", sorted({click.page for click in CLICKS.values()}))
def test_a_page_shows_no_form_of_what_is_not_allowed(shop: Shop, page: str) -> None:
    def may(request: Request, action: str) -> bool:
        return action in ("", "pause")

    text = shop.pages(writable=True, may=may).get(page).text
    assert set(re.findall(r'name="action" value="([\w-]+)"', text)) <= {"pause"}
    assert "/bulk?" not in text


def test_several_processes_take_each_other_s_forms(shop: Shop) -> None:
    one, other = (shop.pages(writable=True, secret="the same") for _ in range(2))
    fields = {"csrf": token(one), "action": "track", "jid": "mail-0", "next": "/"}
    assert other.post("/do", data=fields).status_code == 303
    assert shop.pages(writable=True).post("/do", data=fields).status_code == 403


def test_who_did_what_is_logged(pages: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "qmodel.web"):
        send(pages, "pause", queue="bills")
    assert "pause by testclient: Queue bills is paused." in caplog.text


# ---- many jobs


def test_what_takes_several_parts_goes_on_by_itself(
    shop: Shop, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2500):
        shop.client.execute(ops.Put("many", f"j-{number}", "K", "{}"), now=NOW)
    monkeypatch.setattr("qmodel.web.bulk.SPAN", -1)
    page, parts = send(pages, "drain", queue="many", confirmed="1", next="/queue?name=many").text, 1
    while 'action="/do"' in page:
        assert 'hx-trigger="load"' in page
        page, parts = pages.post("/do", data=fields_of(page)).text, parts + 1
    assert "2,500 jobs canceled, 0 left." in page
    assert 'href="/queue?name=many"' in page
    assert parts == 4
    assert shop.client.queues["many"].length() == 0


def test_a_queue_in_which_jobs_run_is_deleted_only_by_force(shop: Shop, pages: TestClient) -> None:
    form = {"queue": "bills", "confirmed": "1", "next": "/queue?name=bills"}
    assert "QUEUE_BUSY" in send(pages, "obliterate", **form).text
    answer = send(pages, "obliterate", force="1", **form)
    assert (answer.headers["location"], state(shop, "bill-1")) == ("/queues", "gone")


def test_several_queues_are_paused_and_go_on_at_once(shop: Shop, pages: TestClient) -> None:
    assert told(pages, send(pages, "pause", queue=["bills", "sync"])) == "2 queues are paused."
    send(pages, "pause", queue="bills", reason="night")
    send(pages, "unpause", queue="bills", reason="night")
    assert [pause.reason for pause in shop.client.queues["bills"].counts.pauses] == ["by hand"]
    assert told(pages, send(pages, "unpause", queue=["bills", "sync"])) == "2 queues are unpaused."
    assert not shop.client.queues["bills"].counts.paused


def test_what_workers_were_told_is_shown_until_they_have_forgotten(shop: Shop, pages: TestClient) -> None:
    assert "told: quiet" not in pages.get("/workers").text
    send(pages, "quiet", worker="w2.example-1-1")
    for page in ("/workers", "/worker?name=w2.example-1-1"):
        assert "told: quiet" in pages.get(page).text
    shop.client.execute(remote.answered("w2.example-1-1", "quiet"))
    page = pages.get("/worker?name=w2.example-1-1").text
    assert ">quiet</span>" in page
    assert ">Resume<" in page
    answer = send(pages, "stop", worker="nobody", confirmed="1")
    assert (answer.status_code, "There is no worker" in answer.text) == (400, True)


def test_one_dependency_may_be_let_go(shop: Shop, pages: TestClient) -> None:
    shop.client.execute(ops.Put("pages", "both", "K", "", depends=("fetch", "mail-0")), now=NOW)
    page = pages.get("/job?jid=both").text
    assert "Remove the dependency on fetch" in page
    send(pages, "depends-off", jid="both", dependency="fetch", confirmed="1")
    assert shop.client.jobs["both"].raw.dependencies == ("mail-0",)


def test_all_jobs_of_a_group_are_counted_and_tried_again(shop: Shop, pages: TestClient) -> None:
    page = pages.get("/bulk?action=retry&group=KeyError").text
    assert "Retry 2 jobs?" in page
    assert state(shop, "bad-1") == "failed"
    done = pages.post("/bulk", data=fields_of(page))
    assert "2 jobs retried" in done.text
    assert [state(shop, jid) for jid in ("bad-1", "bad-2", "bad-3")] == ["waiting", "waiting", "failed"]


def fields_of(page: str) -> dict[str, str]:
    """The fields of the form that a page has."""
    pairs = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in pairs}


def test_what_is_more_than_a_step_goes_on_by_itself(
    shop: Shop, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2500):
        shop.client.execute(ops.Put("many", f"j-{number}", "K", "{}"), now=NOW)
    monkeypatch.setattr("qmodel.web.bulk.SPAN", -1)
    page, parts = pages.get("/bulk?action=cancel&queue=many").text, 0
    assert "Cancel 2,500 jobs?" in page
    while 'action="/bulk"' in page:
        page, parts = pages.post("/bulk", data=fields_of(page)).text, parts + 1
        assert ('hx-trigger="load"' in page) == (parts < 3)
    assert "2,500 jobs canceled" in page
    assert shop.client.queues["many"].length() == 0


def test_a_preview_takes_no_longer_than_somebody_waits(
    shop: Shop, pages: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2500):
        shop.client.execute(ops.Put("many", f"j-{number}", "K", "{}"), now=NOW)
    monkeypatch.setattr("qmodel.web.bulk.LOOK", -1)
    assert "Cancel 1,000 or more jobs?" in pages.get("/bulk?action=cancel&queue=many").text


def test_complete_jobs_are_deleted_by_their_age(shop: Shop, pages: TestClient) -> None:
    assert "Delete 0 jobs?" in pages.get("/bulk?action=clean&state=complete").text
    page = pages.get("/bulk?action=clean&state=complete&older=10s").text
    assert "Delete 1 job?" in page
    pages.post("/bulk", data=fields_of(page))
    assert state(shop, "good") == "gone"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", ["worker", "text", "state"])
def test_a_filter_that_an_operation_does_not_know_is_refused(pages: TestClient, kind: str, field: str) -> None:
    """Else it would be done to more jobs than were meant."""
    known = (kind, field) in [("cancel", "worker"), ("cancel", "state")]
    value = "running" if field == "state" else "x"
    answer = pages.get("/bulk", params={"action": kind, "queue": "emails", field: value})
    assert (answer.status_code == 200) == known


def test_what_is_too_wide_is_refused(pages: TestClient) -> None:
    assert pages.get("/bulk?action=cancel&klass=SendEmail").status_code == 409


def test_a_job_is_put_again_with_all_of_its_options() -> None:
    given: dict[str, Any] = {
        "lifo": True, "lease_ms": 1000, "timeout_ms": 2000, "ttl_ms": 3000, "dead_queue": "dead", "keep_complete_ms": 0,
        "keep_failed_ms": 5, "keep_newest": 6, "throttles": ("t", "u"), "cost": 2, "max_lapses": 0,
        "retry_delay_ms": 7, "retry_delay_max_ms": 8, "fair_key": "k", "fair_weight": 9,
    }  # fmt: skip
    with connect("memory://") as client:
        client.execute(ops.Put("q", "a", "K", "{}", priority=3, **given))
        job = client.execute(ops.Get("a"))
    assert job is not None
    assert again(job, "r") == ops.Put("r", "a", "K", "{}", **given)
