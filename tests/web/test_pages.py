"""What the pages show, to whom, and at what cost."""

from __future__ import annotations

import hashlib
import html
import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from qmodel import App, Client
from qmodel.client import profiles
from qmodel.client.profiles import Profile
from qmodel.contract import operations as ops
from qmodel.web import create
from qmodel.web.site import NAVIGATION
from tests.web.conftest import BASE, NOW, Shop

PAGES = {
    "/": ["emails", "KeyError", "w1.example-1-1", "1 completed", "lost"],
    "/queues": ["emails", "paused: partner is down", "reports"],
    "/queue?name=emails": ["SendEmail", "paused", "Jobs per minute"],
    "/jobs": ["Import", "bad-3"],
    "/jobs?state=waiting": ["mail-0", "fetch"],
    "/jobs?state=scheduled&queue=emails": ["later"],
    "/jobs?state=throttled": ["bill-2"],
    "/jobs?state=running": ["bill-1"],
    "/jobs?state=stalled": ["lost"],
    "/jobs?state=depends": ["render"],
    "/jobs?state=complete": ["good"],
    "/jobs?state=failed": ["bad-1", "bad-2", "bad-3"],
    "/jobs?group=TimeoutError": ["bad-3", '{"file": "a.csv"}'],
    "/jobs?tag=vip": ["mail-2"],
    "/jobs?queue=emails&klass=SendEmail&state=waiting": ["mail-1"],
    "/jobs?worker=w1.example-1-1": ["bill-1"],
    "/jobs?queue=imports&text=a.csv&state=failed": ["bad-1"],
    "/jobs?klass=Render": ["render"],
    "/job?jid=bill-1": ["half way", "stripe", "w1.example-1-1", "lease expires"],
    "/job?jid=bill-2": ["Why it is not running", "Throttle stripe is full"],
    "/job?jid=bad-1": ["KeyError: ", "Traceback", "Retry"],
    "/job?jid=good": ["rows", "ran 9 s", "Delete"],
    "/job?jid=render": ["<h2>Flow</h2>", "Timeline", "Waiting for 1 job<", "Fetch"],
    "/flow?jid=render": ["<svg", "2 jobs", "Render"],
    "/flow?jid=mail-0": ["no dependencies and no dependents"],
    "/failures": ["KeyError", "TimeoutError", '{"file": "a.csv"}'],
    "/workers": ["dead.example-1-1", "half way", "w2.example-1-1"],
    "/worker?name=w1.example-1-1": ["bill-1"],
    "/schedules": ["daily", "0 9 * * 1-5"],
    "/schedule?jid=daily": ["Report", "0 9 * * 1-5 (UTC)"],
    "/tags": ["vip", "3", "No tracked jobs."],
    "/unique?key=free": ["No job holds this key."],
    "/unique?key=sync": ["Held by", "synced", "the job ends"],
    "/throttles": ["stripe", "1 at once", "5 per 1 s"],
    "/throttle?name=stripe": ["bill-1", "bucket of 9"],
    "/requests": ["album", "images"],
    "/request?id=album": ["Close", "Limit", "Sub-requests", "not ended"],
    "/request?id=done": ["done", "Forget", "Forget with jobs"],
    "/subscriptions": ["books", "orders.*"],
    "/subscription?name=books": ["2 messages behind", "Book", "Catch up"],
    "/messages": ["orders.paid", '{"order": 0}'],
    "/klass?name=SendEmail": ["owner", "team mail"],
    "/klass?name=Charge": ["No metadata."],
}
"""Every page, and some of what it says."""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_there_is(pages: TestClient, page: str) -> None:
    answer = pages.get(page)
    assert answer.status_code == 200
    assert [said for said in PAGES[page] if said not in html.unescape(answer.text)] == []


@pytest.mark.parametrize("page", [where for where, _ in NAVIGATION])
def test_where_there_is_nothing_a_page_says_so(page: str) -> None:
    answer = TestClient(create("memory://"), base_url=BASE).get(page)
    assert answer.status_code == 200
    assert 'aria-current="page"' in answer.text


@pytest.mark.parametrize(
    ("page", "status", "said"),
    [
        ("/job?jid=nobody", 404, "There is no job nobody."),
        ("/job", 400, "needs ?jid="),
        ("/job?jid=a%00b", 400, "bad jid"),
        ("/schedule?jid=none", 404, "no recurring job"),
        ("/subscription?name=none", 404, "no subscription"),
        ("/jobs?offset=x", 400, "whole number"),
        ("/jobs?queue=emails&klass=SendEmail&cursor=nonsense", 400, "cursor"),
        ("/jobs?state=lost", 400, "one of"),
        ("/nowhere", 404, "no such page"),
    ],
)
def test_what_cannot_be_shown_is_said(pages: TestClient, page: str, status: int, said: str) -> None:
    answer = pages.get(page)
    assert (answer.status_code, said in html.unescape(answer.text)) == (status, True)


HOSTILE = "\"'><script>alert(1)</script>{{7*7}}"


def test_what_others_write_stays_text(shop: Shop) -> None:
    jid = "<img/src=x/onerror=alert(1)>"
    shop.client.execute(
        ops.Put(HOSTILE, jid, HOSTILE, HOSTILE, tags=(HOSTILE, "javascript:alert(1)"), ordered=HOSTILE), now=NOW
    )
    shop.client.execute(ops.Put(HOSTILE, "after", HOSTILE, "", depends=(jid + " ignore " + jid,)), now=NOW)
    [job] = shop.client.execute(ops.Pop(HOSTILE, HOSTILE, 1), now=NOW)
    shop.client.execute(ops.Progress(jid, job.token, HOSTILE), now=NOW)
    shop.client.execute(ops.Pause((HOSTILE,), HOSTILE), now=NOW)
    shop.client.execute(ops.ThrottleSet(HOSTILE, 1), now=NOW)
    shop.client.execute(ops.Recur(HOSTILE, "s" + jid.replace(" ", ""), HOSTILE, HOSTILE, 1000), now=NOW)
    pages = shop.pages(writable=True)
    before = [pages.get("/"), *_of_hostile(pages, jid)]
    shop.client.execute(ops.Fail(jid, job.token, HOSTILE, HOSTILE), now=NOW)
    for answer in (*before, pages.get("/"), *_of_hostile(pages, jid)):
        assert "<script>alert" not in answer.text, answer.url
        assert "<img/src" not in answer.text, answer.url
        assert 'href="javascript:' not in answer.text


def _of_hostile(pages: TestClient, jid: str) -> list[object]:
    paths = [where for where, _ in NAVIGATION]
    with_name = [("/queue", "name"), ("/worker", "name"), ("/throttle", "name"), ("/stats", "queue"), ("/find", "q")]
    found = [pages.get(path) for path in paths]
    found += [pages.get(path, params={query: HOSTILE}) for path, query in with_name]
    found += [pages.get("/jobs", params={name: HOSTILE}) for name in ("queue", "klass", "tag", "group", "text")]
    found += [pages.get("/job", params={"jid": jid}), pages.get("/flow", params={"jid": jid})]
    return [*found, pages.get("/bulk", params={"action": "cancel", "queue": HOSTILE})]


def test_every_answer_carries_a_strict_policy(pages: TestClient) -> None:
    for page in ("/", "/nowhere", "/static/style.css", "/job?jid=nobody"):
        headers = pages.get(page).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_a_script_or_a_style_in_it(pages: TestClient, page: str) -> None:
    text = pages.get(page).text
    assert (
        re.findall(r"<script(?! defer src=)[^>]*>|<style|\sstyle=|\son\w+=|https?://(?!www.w3.org/2000/svg)", text)
        == []
    )


# ---- who, and where


def test_without_a_password_only_this_machine_s_names_are_answered(shop: Shop) -> None:
    answer = TestClient(create(shop.client), base_url="http://evil.example").get("/")
    assert answer.status_code == 403
    assert "mail" not in answer.text


def test_a_password_is_asked_for(shop: Shop) -> None:
    pages = shop.pages(auth="ada:secret")
    assert pages.get("/").status_code == 401
    assert pages.get("/static/style.css").status_code == 401
    assert pages.get("/", auth=("ada", "secret")).status_code == 200


def test_pages_can_be_mounted_anywhere(shop: Shop) -> None:
    app = Starlette(routes=[Mount("/admin/jobs", create(shop.client, writable=True))])
    with TestClient(app, base_url=BASE) as pages:
        text = pages.get("/admin/jobs/queues").text
        links = re.findall(r'(?:href|src|action|hx-get)="([^"]+)"', text)
        assert [link for link in links if not link.startswith(("/admin/jobs/", "#"))] == []
        for link in links:
            assert link.startswith("#") or link.endswith("/do") or pages.get(html.unescape(link)).status_code == 200, (
                link
            )


def test_a_proxy_may_take_a_prefix_away(shop: Shop) -> None:
    text = shop.pages(prefix="/q/").get("/queues").text
    assert 'href="/q/queues" aria-current="page"' in text
    assert 'hx-get="/q/queues"' in text


def test_a_page_does_not_ask_for_itself_elsewhere(pages: TestClient) -> None:
    assert 'hx-get="/evil.example/"' in pages.get("http://localhost:8700//evil.example/").text


def test_the_secrets_of_a_url_are_not_shown(shop: Shop) -> None:
    from qmodel.web.source import hidden

    assert hidden("redis://me:secret@host/0?ssl_password=other") == "redis://me:***@host/0"


def test_a_server_that_is_gone_is_a_page_that_says_so() -> None:
    pages = TestClient(create("redis://localhost:1/0?deadline=0"), base_url=BASE)
    answer = pages.get("/queues")
    assert answer.status_code == 503
    assert "cannot be reached" in answer.text


def test_what_breaks_is_a_page_too(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("<oh>")

    monkeypatch.setattr(shop.client.backend, "execute_many", broken)
    with TestClient(create(shop.client), base_url=BASE, raise_server_exceptions=False) as pages:
        answer = pages.get("/")
    assert answer.status_code == 500
    assert "ZeroDivisionError: &lt;oh&gt;" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_only_a_client_or_a_url_will_do() -> None:
    with pytest.raises(TypeError, match=r"a qmodel\.Client, an App or a URL"):
        create(42)


# ---- at what cost


@pytest.mark.parametrize("page", [*PAGES, "/bulk?action=retry&group=KeyError", "/bulk?action=cancel&queue=emails"])
def test_no_page_takes_more_with_more_jobs(page: str) -> None:
    costs = []
    for many in (0, 1500):
        shop = Shop()
        for number in range(many):
            shop.client.execute(ops.Put("emails", f"more-{number}", "Other", "{}", tags=("vip",)), now=NOW)
        shop.count()
        assert shop.pages(writable=True).get(page).status_code == 200
        jobs = sum(len(op.jids) for op in shop.sent if isinstance(op, ops.Multiget))
        costs.append((len(shop.sent), jobs))
    assert costs[1][0] <= costs[0][0] + 10
    assert costs[1][1] <= 600


def test_a_list_is_shown_in_parts(shop: Shop) -> None:
    for number in range(120):
        shop.client.execute(ops.Put("many", f"j-{number:03}", "K", "{}"), now=NOW + number)
    pages, seen, page = shop.pages(), [], "/jobs?queue=many&state=waiting"
    while page:
        text = pages.get(page).text
        seen += re.findall(r'id="row-(j-\d+)"', text)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        page = html.unescape(following[1]) if following else ""
    assert seen == [f"j-{number:03}" for number in range(120)]


def test_a_worker_is_shown_with_its_profile(shop: Shop) -> None:
    profile = Profile("<host>", 4711, "1.2", "3.12.1", "fork", 8, 200 << 20, NOW, NOW, 5, ("q", "r", "s", "t"))
    shop.client.execute(profiles.written("w2.example-1-1", profile))
    listed, shown = (shop.pages().get(page).text for page in ("/workers", "/worker?name=w2.example-1-1"))
    for text in ("&lt;host&gt;:4711", "200 MiB", "1.2", "q, r, s and 2 more"):
        assert text in listed
    assert "Process 4711 on &lt;host&gt;: fork runner, 8 slots" in shown


def test_a_throttle_of_a_family_names_it_and_cannot_be_unset(shop: Shop) -> None:
    shop.client.throttles.family("tenant-*").set(concurrency=3)
    page = shop.pages(writable=True).get("/throttle?name=tenant-7").text
    assert 'href="/throttle?name=tenant-%2A"' in page or 'href="/throttle?name=tenant-*"' in page
    assert "3 at once" in page
    assert "throttle-unset" not in page
    assert "throttle-unset" in shop.pages(writable=True).get("/throttle?name=tenant-*").text


def test_the_throttles_in_use_are_shown_by_name_and_in_pages(shop: Shop) -> None:
    shop.client.throttles.family("tenant-*").set(concurrency=1)
    for number in range(60):
        shop.client.queues["t"].put("K", jid=f"t-{number}", throttles=[f"tenant-{number:02}"])
    shop.client.queues["t"].pop(60)
    seen: list[str] = []
    page = "/throttles?match=tenant-*"
    while page:
        text = shop.pages().get(page).text
        seen += re.findall(r'id="used-(tenant-\d+)"', text)
        following = re.search(r'rel="next" href="([^"]+cursor[^"]+)"', text)
        page = html.unescape(following[1]) if following else ""
    assert seen == [f"tenant-{number:02}" for number in range(60)]
    assert "No throttle of such a name is in use." in shop.pages().get("/throttles?match=nobody-*").text


def test_job_types_are_shown_with_their_figures(shop: Shop) -> None:
    for number in range(20):
        shop.client.queues["fast"].put("<Fast>", jid=f"fast-{number}")
    for job in shop.client.queues["fast"].pop(20):
        job.complete()
    text = shop.pages().get("/types?events=1000").text
    assert re.search(r"&lt;Fast&gt;.*?data-label=.Put.[^>]*>20<.*?data-label=.Completed.[^>]*>20<", text, re.DOTALL)
    assert "p50 · p95 · p99" in text
    empty = TestClient(create(Client("memory://")), base_url=BASE).get("/types").text
    assert "No jobs in the newest events." in empty


def test_a_worker_with_more_leases_than_can_be_listed_is_on_the_list(shop: Shop) -> None:
    for part in range(9):
        shop.client.execute(ops.PutMany(tuple(ops.Put("many", f"m{part}-{i}", "K", "") for i in range(1000))))
        shop.client.execute(ops.Pop("many", "greedy", 1000))
    listed, shown = (shop.pages().get(page) for page in ("/workers", "/worker?name=greedy"))
    assert listed.status_code == 200
    assert "greedy" in listed.text
    assert shown.status_code == 409
    assert "OVER_BUDGET" in shown.text


def test_a_search_goes_on_from_its_cursor(shop: Shop) -> None:
    for number in range(120):
        shop.client.execute(ops.Put("many", f"j-{number:03}", "K" if number % 2 else "L", "{}"), now=NOW)
    pages, seen, page = shop.pages(), [], "/jobs?queue=many&klass=K"
    while page:
        text = pages.get(page).text
        seen += re.findall(r'id="row-(j-\d+)"', text)
        following = re.search(r'rel="next" href="([^"]+)"', text)
        page = html.unescape(following[1]) if following else ""
    assert sorted(seen) == [f"j-{number:03}" for number in range(1, 120, 2)]


# ---- finding


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("mail-0", "/job?jid=mail-0"),
        ("emails", "/queue?name=emails"),
        ("daily", "/schedule?jid=daily"),
        ("KeyError", "/jobs?group=KeyError"),
        ("vip", "/jobs?tag=vip"),
        ("w1.example-1-1", "/worker?name=w1.example-1-1"),
        ("Render", "/jobs?klass=Render"),
        ("books", "/subscription?name=books"),
        ("SendEmail", "/klass?name=SendEmail"),
        ("", "/jobs"),
        ("bad id with spaces", "/jobs?klass=bad+id+with+spaces"),
    ],
)
def test_a_name_leads_to_what_has_it(pages: TestClient, name: str, where: str) -> None:
    assert pages.get("/find", params={"q": name}).headers["location"] == where


# ---- assets

VENDOR = Path(__file__).parents[2] / "qmodel" / "web" / "static" / "vendor"


def test_assets_of_others_are_as_they_were_released_and_have_their_licences() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.*\| `(\w+)` \|$", (VENDOR / "README.md").read_text(encoding="utf-8"), re.M)
    assert sorted(name for name, _ in rows) == ["htmx.min.js", "uPlot.iife.min.js", "uPlot.min.css"]
    for name, begins in rows:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest().startswith(begins)
        assert (VENDOR / f"{name.split('.')[0]}.LICENSE").exists()


def test_a_client_is_not_closed_by_the_pages(shop: Shop) -> None:
    with shop.pages() as pages:
        pages.get("/")
    assert isinstance(shop.client, Client)
    assert shop.client.queues["emails"].length() == 4


def test_a_run_that_is_not_made_yet_leads_to_what_recurs(shop: Shop) -> None:
    shop.client.execute(ops.Recur("soon", "digest", "Digest", "{}", 60_000), now=NOW - 1000)
    text = shop.pages().get("/queue?name=soon").text
    assert 'href="/schedule?jid=digest">Digest</a>' in text


# ---- what the pages are made of


def test_the_api_is_part_of_the_pages_and_has_the_same_guard(shop: Shop) -> None:
    with shop.pages() as pages:
        assert "emails" in pages.get("/api/v1/queues").text
        assert pages.post("/api/v1/queues/emails/jobs", json={"klass": "K"}).status_code == 403
    with shop.pages(auth="ada:secret") as pages:
        assert pages.get("/api/v1/queues").status_code == 401


def test_the_jobs_of_an_app_are_shown() -> None:
    app = App("memory://")
    app.client.queues["emails"].put("K")
    with TestClient(create(app), base_url=BASE) as pages:
        assert "emails" in pages.get("/queues").text
        assert pages.get("/api/v1/queues").json()["queues"][0]["name"] == "emails"


def test_counts_are_true_with_more_than_a_thousand_queues_and_groups(shop: Shop) -> None:
    for number in range(1100):
        shop.client.execute(ops.Put(f"q{number:04}", f"j{number}", "K", ""), now=NOW)
        [job] = shop.client.execute(ops.Pop(f"q{number:04}", "w"), now=NOW)
        shop.client.execute(ops.Fail(job.jid, job.token, f"g{number:04}", ""), now=NOW)
        shop.client.execute(ops.Put(f"q{number:04}", f"k{number}", "K", ""), now=NOW)
    pages = shop.pages()
    assert "<b>1,103</b><span>failed</span>" in pages.get("/").text
    assert "of 1,103" in pages.get("/jobs?state=failed").text
    waiting = pages.get("/jobs", params={"state": "waiting", "offset": 1090}).text
    assert "k1099" in pages.get("/jobs", params={"state": "waiting", "offset": 1100}).text + waiting
