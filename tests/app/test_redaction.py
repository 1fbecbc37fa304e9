"""The value of a redacted argument is seen by the job, and leaves by no exit: pages, top, command line, HTTP, logs and
traces.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import logging
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient
from textual.widgets import Static

import qmodel
from qmodel import App, Context
from qmodel.app import BadArguments, Completed, DeclarationError, Json, perform
from qmodel.cli import cli
from qmodel.client.aio import AsyncClient
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.redaction import LEASED, REDACTED, is_shown, opened, redacted, replied, sealed, shown
from qmodel.telemetry.logs import JobFilter, JsonFormatter, TextFormatter
from qmodel.telemetry.otel import instrument
from qmodel.top.app import Top
from qmodel.web import create as pages

CARD = "4111-2222-3333-4444"
_NUMBERS = itertools.count(1)


class Shop:
    """Jobs with a redacted argument at many places, put by an app, and read by others that do not know its types."""

    def __init__(self) -> None:
        self.url = f"memory://redaction-{next(_NUMBERS)}"
        self.app = App(self.url)
        self.seen: list[Any] = []

        @self.app.job(redact=["card"], retries=0)
        def charge(to: str, card: str, fails: bool = False) -> str:
            self.seen.append(card)
            logging.getLogger("shop").warning("charging %s", card)
            if fails:
                raise ValueError(f"{card} of {to} was declined")
            return "charged"

        @self.app.job(redact="card", serializer=Json(compress=0), every=60, arguments={"card": CARD})
        def packed(card: str) -> None:
            self.seen.append(card)

        self.charge, self.packed = charge, packed

    def fill(self) -> None:
        self.charge.put("ada", CARD)
        self.charge.options(delay=3600, jid="later", tags=["vip"]).put("ada", card=CARD)
        self.charge.options(queue="work", jid="done").put("ada", CARD)
        self.perform("work")
        self.charge.options(queue="work", jid="failed").put("ada", CARD, fails=True)
        self.perform("work")
        self.charge.options(queue="held", jid="held").put("ada", CARD)
        self.client.queues["held"].pop(worker="w1")
        self.packed.options(jid="packed").put(CARD)
        self.client.jobs["later"].track()
        for schedule in self.app.schedules.values():
            self.client.execute(schedule)

    @property
    def client(self) -> Client:
        return self.app.client

    def perform(self, queue: str = "default") -> list[Any]:
        outcomes = []
        while job := self.client.queues[queue].pop(worker="w1"):
            outcomes.append(perform(self.app, job))
            self.client.execute(outcomes[-1].operation(job))
        return outcomes


@pytest.fixture
def shop() -> Iterator[Shop]:
    shop = Shop()
    shop.fill()
    yield shop
    shop.app.close()


def check(text: str) -> None:
    """See that a text has neither the card nor compressed data."""
    text = unescape(text).replace("\\u002d", "-")
    assert CARD not in text and "$zlib" not in text, text[max(text.find(CARD) - 200, 0) :][:400]


# ---- the job itself sees all


def test_the_job_and_the_python_client_see_the_value(shop: Shop) -> None:
    assert set(shop.seen) == {CARD}
    shop.seen.clear()
    shop.perform()
    assert shop.seen == [CARD] * 3  # charge, packed, and the first run of the schedule
    assert shop.client.jobs["done"].data["card"] == CARD


# ---- each exit


def test_no_page_shows_the_value(shop: Shop) -> None:
    browser = TestClient(pages(shop.url), base_url="http://localhost", follow_redirects=True)
    jids = ("later", "done", "failed", "held", "packed")
    left = ["/", *(f"/job?jid={jid}&whole=1" for jid in jids), "/jobs?text=ada"]
    seen: set[str] = set()
    while left:
        path = left.pop(0)
        if path in seen or "day=" in path or len(seen) > 150:
            continue
        seen.add(path)
        answer = browser.get(path)
        check(answer.text)
        left += [unescape(one) for one in re.findall(r'href="(/[^"]*)"', answer.text) if "static" not in one]
    assert any(path.startswith("/schedule?") for path in seen) and len(seen) > 30
    assert REDACTED in browser.get("/job?jid=done").text and "cannot be edited" in browser.get("/job?jid=done").text


def test_no_screen_of_top_shows_the_value(shop: Shop) -> None:
    async def screens() -> list[str]:
        app = Top(AsyncClient(shop.url), shop.url, interval=3600)
        found = []
        async with app.run_test(size=(200, 50)) as pilot:
            for keys in ("1", "enter", "enter", "escape", "escape", "2", "enter", "escape", "3", "enter", "enter"):
                await pilot.press(keys)
                for _ in range(2):
                    drawn = app.drawn
                    app._at_once.set()
                    while app.drawn == drawn:
                        await asyncio.sleep(0.005)
                await pilot.pause()
                table = app.table
                rows = [[cell.plain for cell in table.get_row_at(number)] for number in range(table.row_count)]
                found.append(f"{rows} {app.screen_stack[0].query_one('#lines', Static).render()}")
        return found

    found = asyncio.run(screens())
    for one in found:
        check(one)
    assert any("charge" in one and REDACTED in one for one in found)


READS = [op for op in CATALOGUE.values() if op.reads]
GIVEN = {"jid": "later", "jids": ["later", "done", "failed", "held", "packed"], "queue": "default", "klass": "charge"}
GIVEN |= {
    "group": "ValueError",
    "tag": "vip",
    "worker": "w1",
    "id": "r",
    "name": "t",
    "subscription": "s",
    "unique": "u",
}
GIVEN |= {"after": 0, "tags": ["vip"], "option": "heartbeat", "throttle": "t", "cursor": "", "key": "k"}


def test_http_shows_the_value_to_none_but_the_holder_of_a_lease(shop: Shop) -> None:
    from qmodel.http import create

    with TestClient(create(shop.url, writable=True), base_url="http://localhost") as api:
        for spec in READS:
            given = {a.name: GIVEN.get(a.name) for a in spec.arguments if a.required or a.name == "klass"}
            check(api.post(f"/v1/operations/{spec.name}", json=given).text)
        many = [{"op": "get", "jid": "later"}, {"op": "peek", "queue": "default"}]
        check(api.post("/v1/operations", json=many).text)
        for jid in GIVEN["jids"]:
            check(api.get(f"/v1/jobs/{jid}").text)
        for schedule in shop.app.schedules:
            check(api.get(f"/v1/schedules/{schedule}").text)
        check(api.get("/v1/jobs?klass=charge").text)
        check(api.get("/v1/jobs/failed/result?timeout=0").text)
        assert api.get("/v1/jobs/later").json()["data"]["card"] == REDACTED
        popped = api.post("/v1/queues/default/pop", json={"worker": "w2"}).json()["jobs"][0]
        assert popped["data"]["card"] == CARD


def test_no_command_shows_the_value(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QMODEL_URL", shop.url)
    (schedule,) = shop.app.schedules
    calls = [["get", jid] for jid in GIVEN["jids"]] + [["search", "--queue", "default"]]
    calls += [["failures"], ["failures", "ValueError"], ["failures", "ValueError", "--full"]]
    looks = (["peek", "default"], ["recur-get", schedule], ["tracked"], ["waiting", "default"], ["completed"])
    calls += [["op", *look] for look in looks]
    for call in calls:
        for option in ([], ["--json"]):
            done = CliRunner().invoke(cli, [*option, *call])
            assert done.exit_code == 0, done.output
            check(done.output)
    history = json.dumps({"op": "get", "now": None, "jid": "done"})
    check(CliRunner().invoke(cli, ["run"], input=history).output)


def test_every_reply_of_every_reading_operation_is_redacted(shop: Shop) -> None:
    for spec in READS:
        given = {a.name: GIVEN.get(a.name) for a in spec.arguments if a.required}
        given = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
        op = spec.cls(**given)
        (reply,) = shop.client.execute_many([op])
        check(repr(replied(op, reply)))
    assert {s.name for s in CATALOGUE.values() if s.reply in ("jobs", "completed_and_popped") and not s.reads} == LEASED


def test_the_journal_and_messages_are_redacted() -> None:
    with qmodel.connect("memory://") as client:
        client.config.set("journal", 1)
        data = json.dumps({"card": CARD, "$headers": {"redact": "card"}})
        client.execute(ops.Put("q", "a", "k", data))
        client.execute(ops.Publish("s", data))
        client.queues["q"].pop(worker="w")
        recorded = client.execute(ops.Journal(0, 10))
        assert CARD in repr(recorded)
        check(repr(shown(recorded)))
        check(repr(shown(client.execute(ops.Messages(0)))))


def test_the_tables_of_the_pipeline_are_redacted(shop: Shop) -> None:
    from qmodel.pipeline.tables.live import Narrow, Part, read

    rows = [
        str(batch.to_pylist())
        for batch in read(shop.client, "jobs", Narrow(queue="default"), Part(("default",), ("waiting",)))
    ]
    assert rows and REDACTED in "".join(rows)
    check("".join(rows))


def test_a_search_does_not_tell_what_is_left_out(shop: Shop) -> None:
    op = ops.Search("default", text=CARD[:6])
    reply = shop.client.execute(op)
    assert [job.jid for job in reply.jobs if job.klass == "charge"] != []
    assert replied(op, reply).jobs == ()
    op = ops.Search("default", text="ada")
    assert [job.klass for job in replied(op, shop.client.execute(op)).jobs] == ["charge", "charge"]


# ---- messages, logs and traces


def test_failure_messages_do_not_have_the_value(shop: Shop) -> None:
    job = shop.client.jobs["failed"]
    assert job.failure is not None and job.failure.message.rstrip().endswith(f"{REDACTED} of ada was declined")
    check(repr(job.raw.failure))
    check(repr(job.raw.history))


@pytest.mark.parametrize("formatter", [JsonFormatter, TextFormatter])
def test_log_lines_of_the_job_do_not_have_the_value(formatter: type[logging.Formatter]) -> None:
    shop, stream = Shop(), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter())
    handler.addFilter(JobFilter())
    logger = logging.getLogger("shop")
    logger.addHandler(handler)
    try:
        shop.charge.put("ada", CARD)
        shop.perform()
    finally:
        logger.removeHandler(handler)
    assert f"charging {REDACTED}" in stream.getvalue()
    check(stream.getvalue())


def test_spans_do_not_have_the_value() -> None:
    shop, exporter, provider = Shop(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(shop.app, provider)
    shop.charge.put("ada", CARD, fails=True)
    shop.perform()
    told = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert "declined" in told
    check(told)


def test_progress_and_notes_of_the_job_do_not_have_the_value() -> None:
    app = App("memory://redaction-notes")

    @app.job(redact=["pin"])
    def unlock(context: Context, pin: int) -> None:
        context.log(f"with {pin}")
        context.progress(f"{pin} of", 3)

    job = unlock.put(90210)
    held = app.client.queues["default"].pop(worker="w")
    assert held is not None and isinstance(perform(app, held), Completed)
    found = app.client.jobs[job.jid]
    assert found.raw.progress == f"{REDACTED} of/3"
    assert found.history[-1].facts == {"message": f"with {REDACTED}"}


def test_refused_arguments_are_not_quoted() -> None:
    app = App("memory://redaction-refused")

    @app.job(redact=["card", "day"])
    def charge(card: int, day: __import__("datetime").date | None = None) -> None: ...

    with pytest.raises(BadArguments, match=r"charge takes card: int, not \[redacted\]") as wrong:
        charge.put(CARD)  # type: ignore[arg-type]
    check(str(wrong.value))
    with pytest.raises(BadArguments) as wrong:
        charge.put(1, day=CARD)  # type: ignore[arg-type]
    check(f"{wrong.value} {wrong.value.__cause__}")
    data = json.dumps({"card": CARD})
    app.client.queues["default"].put("charge", text=data)
    held = app.client.queues["default"].pop(worker="w")
    assert held is not None
    check(repr(perform(app, held)))


# ---- what may be stored


def test_redacted_data_are_refused_as_new_data(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from qmodel.http import create

    text = redacted(shop.client.jobs["later"].text)
    with TestClient(create(shop.url, writable=True), base_url="http://localhost") as api:
        answer = api.post("/v1/operations/update", json={"jid": "later", "data": text})
        assert answer.status_code == 400 and answer.json()["code"] == "BAD_ARGUMENT"
    monkeypatch.setenv("QMODEL_URL", shop.url)
    assert "redacted" in CliRunner().invoke(cli, ["op", "update", "later", text]).output
    browser = TestClient(pages(shop.url, writable=True), base_url="http://localhost", follow_redirects=True)
    form = browser.get("/job?jid=failed").text
    token = re.search(r'name="(csrf|token|secret)" value="([^"]+)"', form)
    sent = {"action": "update", "jid": "later", "data": text} | ({token[1]: token[2]} if token else {})
    browser.post("/do", data=sent, headers={"Origin": "http://localhost"})
    assert shop.client.jobs["later"].data["card"] == CARD


def test_moving_a_job_on_a_page_keeps_its_data(shop: Shop) -> None:
    from qmodel.present.actions import ACTIONS
    from qmodel.present.fields import Fields

    action = ACTIONS["move"]
    fields = Fields([("jid", "later"), ("queue", "other")])
    for op in action.choose(fields, shop.client.execute(action.look(fields))):  # type: ignore[union-attr]
        shop.client.execute(op)
    assert shop.client.jobs["later"].queue == "other" and shop.client.jobs["later"].data["card"] == CARD


# ---- declarations


def test_redact_names_arguments_of_the_function() -> None:
    app = App("memory://redaction-declared")
    with pytest.raises(DeclarationError, match="cannot redact 'cart'"):

        @app.job(redact=["cart"])
        def charge(card: str) -> None: ...

    with pytest.raises(DeclarationError, match="card is redacted"):

        @app.job(redact=["card"], tags=["card-{card}"])
        def pay(card: str) -> None: ...


def test_arguments_by_any_name_can_be_redacted() -> None:
    app = App("memory://redaction-others")

    @app.job(redact=["card"])
    def note(**fields: str) -> None: ...

    job = note.put(card=CARD, to="ada")
    text = app.client.jobs[job.jid].text
    assert json.loads(redacted(text)) == {"card": REDACTED, "to": "ada", "$headers": {"redact": "card"}}


def test_the_runs_of_a_schedule_with_more_options_are_redacted() -> None:
    app = App("memory://redaction-runs")
    seen = []

    @app.job(redact=["card"], every=60, arguments={"card": CARD}, unique=True, delay=1)
    def charge(card: str) -> None:
        seen.append(card)

    (schedule,) = app.schedules.values()
    check(redacted(schedule.data))
    assert schedule.klass == "schedule:charge"
    app.client.execute(schedule)
    app.client.recurring[schedule.jid].run_now()
    held = app.client.queues["default"].pop(worker="w")
    assert held is not None
    check(redacted(held.text))
    assert isinstance(perform(app, held), Completed)
    (put,) = app.client.queues["default"].scheduled()
    check(redacted(app.client.jobs[put.jid].text))


# ---- the formatter


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", ""),
        ("plain text", "plain text"),
        ('{"card":"1"}', '{"card":"1"}'),
        ('{"a":1,"b":{"c":2},"$headers":{"redact":"b"}}', '{"a":1,"b":"[redacted]","$headers":{"redact":"b"}}'),
        (
            '{"a":1,"b":2,"$headers":{"redact":"a b"}}',
            '{"a":"[redacted]","b":"[redacted]","$headers":{"redact":"a b"}}',
        ),
        ('{"a":1,"\\u0024headers":{"\\u0072edact":"a"}}', '{"a":"[redacted]","$headers":{"redact":"a"}}'),
        ('{"a":0,"a":1,"$headers":{"redact":"a"}}', '{"a":"[redacted]","$headers":{"redact":"a"}}'),
        ('{"a":"1","$headers":{"redact":"a"', '"[redacted]"'),
        ('{"$headers":{"redact":"a"},"a":' + "[" * 100_000 + "]" * 100_000 + "}", '"[redacted]"'),
        ('{"a":1,"$headers":{"redact":5}}', '{"a":1,"$headers":{"redact":5}}'),
        ('{"a":1,"$headers":["redact"]}', '{"a":1,"$headers":["redact"]}'),
        ('[1,"$headers","redact"]', '[1,"$headers","redact"]'),
        ('{"$sealed":"x"}', '{"$sealed":"[redacted]"}'),
        ('{"$sealed":{"x":1},"b":2}', '{"$sealed":"[redacted]","b":2}'),
    ],
)
def test_only_the_named_values_are_replaced(data: str, expected: str) -> None:
    assert redacted(data) == expected
    assert redacted(expected) == expected
    assert is_shown(expected) == (REDACTED in expected and expected != '"[redacted]"')


def test_sealing_wraps_what_hides_its_names() -> None:
    text = '{"a":1,"$headers":{"redact":"a"}}'
    assert sealed(text, ["a"]) == text and opened(text) == text
    for hidden in ("gAAAA==", '{"$zlib":"eJw="}', "[1]", ""):
        assert opened(sealed(hidden, ["a"])) == hidden
        assert redacted(sealed(hidden, ["a"])) == '{"$sealed":"[redacted]"}'
