"""The pages in a real browser: each is looked at, each kind of action is done, as wide as a desk and as a phone."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from qmodel import Client
from qmodel.contract import operations as ops
from qmodel.web.site import NAVIGATION
from tests.servers import Server
from tests.web.clicks import CLICKS, Click, prepare
from tests.web.conftest import LONG, PLAIN, WAIT_MS, Open, fill

if TYPE_CHECKING:
    from playwright.sync_api import Page

playwright = pytest.importorskip("playwright.sync_api", reason="no playwright to drive a browser with")
expect = playwright.expect
expect.set_options(timeout=WAIT_MS)

PAGES = [
    *(where for where, _ in NAVIGATION),
    "/queue?name=emails",
    "/jobs?state=failed",
    "/jobs?queue=emails&klass=SendEmail",
    "/job?jid=bad-1",
    "/job?jid=bill-2",
    "/flow?jid=render",
    "/worker?name=w1.example-1-1",
    "/schedule?jid=daily",
    "/throttle?name=stripe",
    "/unique?key=sync",
    "/request?id=album",
    "/subscription?name=books",
    "/messages",
    "/klass?name=SendEmail",
    "/jobs?group=KeyError",
    "/stats?queue=imports",
    "/bulk?action=retry&group=KeyError",
    "/job?jid=nobody",
    "/job?jid=" + "j" * 128,
    "/job?jid=odd",
    "/schedule?jid=" + "s" * 100,
    "/subscription?name=" + "b" * 112,
    "/klass?name=" + "K" * 128,
    "/jobs?group=" + "g" * 128,
    "/worker?name=" + "w" * 128,
    "/queue?name=" + quote(LONG),
    "/throttle?name=" + quote(PLAIN),
    f"/stats?queue={quote(LONG)}",
    f"/bulk?action=cancel&queue={quote(LONG)}",
]

TOO_WIDE = "document.documentElement.scrollWidth - innerWidth"
"""By how many pixels."""

NAMELESS = """() => [...document.querySelectorAll('a, button, input:not([type=hidden]), summary, svg[role=img]')]
  .filter((one) => !one.hidden && !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length))
  .map((one) => one.outerHTML)"""
"""What has no name for who cannot see it."""

PALE = """() => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const painted = (color) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = color; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data]; };
  const known = new Map();
  const rgba = (color) => known.get(color) || known.set(color, painted(color)).get(color);
  const behind = (one) => { for (; one; one = one.parentElement) {
    const found = rgba(getComputedStyle(one).backgroundColor); if (found[3] === 255) return found; }
    return [255, 255, 255]; };
  const light = (color) => { const [r, g, b] = color.slice(0, 3).map((part) => { part /= 255;
    return part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4; });
    return .2126 * r + .7152 * g + .0722 * b; };
  const found = [];
  for (const one of document.querySelectorAll('body *')) {
    const says = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || one.disabled || !one.offsetParent) continue;
    if (one.closest('svg, [hidden], .unseen, .skip, .uplot, option')) continue;
    const [a, b] = [light(rgba(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${one.className} ${one.textContent.trim().slice(0, 40)}`);
  }
  return found;
}"""
"""Text whose contrast to what is behind it is below 4.5:1."""


@pytest.mark.parametrize("phone", [False, pytest.param(True, marks=pytest.mark.long)], ids=["desk", "phone"])
def test_every_page_can_be_read(opened: Open, phone: bool) -> None:
    page = opened("/", phone=phone, errors=True)
    said: list[str] = []
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    for path in PAGES:
        said.clear()
        answer = page.goto(path)
        assert answer is not None
        assert page.locator("h1").count() == 1, path
        assert page.evaluate(TOO_WIDE) <= 0, f"{path} is too wide"
        assert page.evaluate(NAMELESS) == [], path
        for scheme in ("light", "dark") if phone else ("light",):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert page.evaluate(PALE) == [], f"{path} {scheme}"
        expected = 1 if answer.status == 404 else 0  # the browser itself tells of that
        assert len(said) == expected, (path, said)


def test_a_page_that_is_looked_at_is_up_to_date(opened: Open, client: Client) -> None:
    page = opened("/queue?name=live", clock=True)
    tile = page.locator(".tiles .waiting b")
    expect(tile).to_have_text("0")
    client.queues["live"].put("K", jid="live-1")
    page.clock.fast_forward(3000)
    expect(tile).to_have_text("1")
    expect(page.locator("canvas")).to_have_count(1)


def test_a_page_stays_as_it_is_while_it_should(opened: Open, client: Client) -> None:
    page = opened("/queue?name=still", clock=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_text("Pause…").click()
    page.get_by_label("Reason").fill("half a sent")
    page.clock.fast_forward(10_000)
    expect(page.get_by_label("Reason")).to_have_value("half a sent")
    page.get_by_role("button", name="Live").click()
    asked.clear()  # it may have been live for a while, before the menu was opened
    page.clock.fast_forward(10_000)
    assert asked == []
    page.get_by_role("button", name="Live").click()
    page.wait_for_event("request")


def test_a_chart_is_drawn(opened: Open) -> None:
    page = opened("/")
    drawn = """() => { const one = document.querySelector('.chart canvas');
      return one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some((part) => part) }"""
    page.wait_for_selector(".chart canvas")
    assert page.evaluate(drawn)
    expect(page.locator(".u-legend")).to_contain_text("completed")


def test_who_loses_the_server_is_told(opened: Open) -> None:
    page = opened("/queues", clock=True, errors=True)
    page.route("**/queues", lambda route: route.abort())
    page.clock.fast_forward(4000)
    expect(page.locator("#live")).to_have_text("Disconnected")
    page.unroute("**/queues")
    page.clock.fast_forward(4000)
    expect(page.locator("#live")).to_have_text("Live")


def test_a_queue_is_paused_and_goes_on(opened: Open, client: Client) -> None:
    page = opened("/queue?name=bills")
    page.get_by_text("Pause…").click()
    page.get_by_label("Reason").fill("night shift")
    page.get_by_label("For").fill("2h")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Queue bills is paused.")
    expect(page.locator("h1")).to_contain_text("paused: night shift")
    [pause] = client.queues["bills"].counts.pauses
    assert pause.reason == "night shift"
    page.get_by_role("button", name="Unpause", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("Queue bills is unpaused.")
    assert not client.queues["bills"].counts.paused


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_failed_job_is_tried_again(opened: Open, client: Client, scripts: bool) -> None:
    jid = f"again-{scripts}"
    client.queues[jid].put("K", jid=jid)
    job = client.queues[jid].pop()
    assert job is not None
    job.fail("Oh", "no")
    page = opened(f"/job?jid={jid}", java_script_enabled=scripts)
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("status")).to_have_text("1 job retried.")
    expect(page.locator("h1 .state")).to_have_text("waiting")
    assert client.jobs[jid].state == "waiting"


def test_what_needs_a_script_is_not_there_without_one(opened: Open) -> None:
    page = opened("/job?jid=mail-0", java_script_enabled=False)
    expect(page.locator("#live, button.copy")).to_have_count(3)
    for number in range(3):
        expect(page.locator("#live, button.copy").nth(number)).to_be_hidden()


def test_selected_jobs_are_canceled_after_a_question(opened: Open, client: Client) -> None:
    for number in range(5):
        client.queues["picked"].put("K", jid=f"pick-{number}")
    page = opened("/jobs?queue=picked&state=waiting")
    cancel = page.get_by_role("button", name="Cancel…")
    expect(cancel).to_be_disabled()
    page.get_by_label("Select pick-1").check()
    page.get_by_label("Select pick-3").click(modifiers=["Shift"])
    expect(page.get_by_text("With 3 selected:")).to_be_visible()
    cancel.click()
    expect(page.locator(".confirm")).to_contain_text("Cancel 3 jobs?")
    page.get_by_role("link", name="Back", exact=True).click()
    assert client.queues["picked"].length() == 5
    page.get_by_label("Select all on this page").check()
    page.get_by_label("Select pick-0").uncheck()
    cancel.click()
    page.locator(".confirm button.danger").click()
    expect(page.get_by_role("status")).to_have_text("4 jobs canceled.")
    assert [job.jid for job in client.peek("picked", 9)] == ["pick-0"]


def test_what_is_ticked_is_paused_or_told_to_be_quiet(opened: Open, client: Client) -> None:
    page = opened("/queues", phone=True)
    status = page.get_by_role("status")
    for button, said in (("Pause", "2 queues are paused."), ("Unpause", "2 queues are unpaused.")):
        for name in ("sync", "images"):
            page.get_by_label(f"Select {name}", exact=True).check()
        page.get_by_role("button", name=button, exact=True).click()
        expect(status).to_have_text(said)
        assert client.queues["sync"].counts.paused == (button == "Pause")
    page.goto("/workers")
    page.get_by_label("Select w1.example-1-1").check()
    page.get_by_label("Select w2.example-1-1").check()
    page.get_by_role("button", name="Quiet").click()
    expect(status).to_have_text("2 workers are told to take no more jobs.")
    expect(page.get_by_text("told: quiet")).to_have_count(2)


def test_old_jobs_are_counted_and_deleted(opened: Open, client: Client) -> None:
    client.queues["swept"].put("K", jid="swept")
    job = client.queues["swept"].pop()
    assert job is not None
    job.fail("Oh", "no")
    page = opened("/jobs?queue=swept&state=failed")
    page.get_by_role("link", name="Delete older…").click()
    expect(page.locator("h1")).to_have_text("Delete 0 jobs?")
    page.get_by_label("Older than").fill("0")
    page.get_by_role("button", name="Count again").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("h1")).to_have_text("1 job deleted")
    assert client.jobs.get("swept") is None


def test_all_jobs_of_a_group_are_tried_again_part_by_part(opened: Open, client: Client) -> None:
    for _ in range(3):
        client.queues["many"].put_many([("K", number) for number in range(900)])
        popped = client.queues["many"].pop(900)
        client.execute_many([ops.Fail(job.jid, job.token, "Flood", "m") for job in popped])
    page = opened("/failures")
    page.get_by_role("row", name="Flood").get_by_role("link", name="Retry…").click()
    expect(page.locator("h1")).to_have_text("Retry 2,700 jobs?")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("h1")).to_have_text("2,700 jobs retried")
    assert client.queues["many"].length() == 2700
    page.get_by_role("link", name="Matching jobs").click()
    expect(page.get_by_text("No matching jobs.")).to_be_visible()


def test_a_schedule_runs_now_and_a_throttle_is_set(opened: Open, client: Client) -> None:
    page = opened("/schedule?jid=daily", phone=True)
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("status")).to_have_text("Run daily-1 is enqueued.")
    page.goto("/throttle?name=api")
    page.get_by_label("Concurrency").fill("7")
    page.get_by_role("button", name="Set all limits").click()
    expect(page.get_by_role("status")).to_have_text("The limits of throttle api are set.")
    assert client.throttles["api"].show().concurrency == 7


def test_it_can_be_used_from_the_keyboard(opened: Open) -> None:
    page = opened("/")
    page.keyboard.press("/")
    page.keyboard.type("mail-1")
    page.keyboard.press("Enter")
    expect(page.locator("#jid")).to_have_text("mail-1")
    page.get_by_text("More…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Priority")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Priority")).to_be_hidden()


def test_a_hostile_job_does_nothing(opened: Open, client: Client) -> None:
    evil = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    client.queues["evil"].put("K" + evil[:90], evil, jid="evil", tags=[evil[:100]])
    page = opened("/")
    for path in ("/job?jid=evil", "/jobs?queue=evil", "/jobs", "/events"):
        page.goto(path)
        assert page.title() != "owned"
        assert page.locator("main img").count() == 0


@pytest.mark.long  # half a minute of the processor; tests/web/test_actions.py does each action without a browser
def test_every_action_is_clicked(opened: Open, client: Client, server: Server) -> None:
    with Client(f"{server.url}?prefix=clicked:") as clicked:
        fill(clicked, time.time_ns() // 1_000_000)
        prepare(clicked)
    desk, phone = opened("/clicked/"), opened("/clicked/", phone=True)
    pages = list(dict.fromkeys(wanted.page for wanted in CLICKS.values()))
    for action, wanted in CLICKS.items():
        on = phone if pages.index(wanted.page) % 2 else desk
        assert (action, told(on, action, wanted)) == (action, wanted.said)


def told(page: Page, action: str, wanted: Click) -> str:
    """What a page tells after an action was done by clicking; ids and numbers that nobody knows are stars."""
    if not page.url.endswith("/clicked" + wanted.page):
        page.goto("/clicked" + wanted.page)
    if action == "replay":
        page.locator("td.lead a").first.click()
    if wanted.menu:
        page.locator("summary", has_text=wanted.menu).click()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (
            f"{action}: the menu is too wide"
        )
    form = page.locator(f"form:has([name=action][value={action}])").first
    for name, value in wanted.fields.items():
        form.locator(f"[name={name}]").fill(value)
    form.locator(f"button[value={action}], button:not([value])").first.click()
    page.wait_for_load_state()
    sure = page.locator(".confirm button.danger")
    if sure.count():
        if wanted.ticks:
            page.locator(f"[name={wanted.ticks}]").check()
        sure.click()
    said = page.locator("#said, [role=status] h1").last
    said.wait_for()
    expect(page.get_by_role("button", name="Continue", exact=True)).to_have_count(0)
    text = said.inner_text()
    return wanted.said if re.fullmatch(re.escape(wanted.said).replace(r"\*", r"[\w,-]+"), text) else text
