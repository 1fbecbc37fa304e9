"""Log lines name the job to which they belong."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from qmodel import App
from qmodel.app import aperform
from qmodel.telemetry.logs import JobFilter, install
from tests.telemetry.conftest import Work

log = logging.getLogger("shop.mail")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Give a stream for log lines; restore the settings of logging afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_of_a_job_has_its_fields_and_one_of_nobody_has_none(app: App, work: Work, stream: io.StringIO) -> None:
    @app.job(name="Send")
    def send(to: str) -> None:
        log.info("sending to %s", to, extra={"size": 3})

    install(json=True, stream=stream)
    job = send.put("ada")
    work()
    log.warning("no job")
    sent, other = lines(stream)

    assert {name: sent[name] for name in ("level", "logger", "message", "size")} == {
        "level": "INFO",
        "logger": "shop.mail",
        "message": "sending to ada",
        "size": 3,
    }
    assert {name: sent[name] for name in ("jid", "klass", "queue", "attempt", "worker")} == {
        "jid": job.jid,
        "klass": "Send",
        "queue": "default",
        "attempt": 1,
        "worker": "w1",
    }
    assert sent["time"].endswith("+00:00")
    assert "jid" not in other


def test_a_line_of_a_job_has_the_variables_that_the_app_carries(app: App, work: Work, stream: io.StringIO) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")
    app.carry(tenant)

    @app.job
    def send() -> None:
        log.info("sending")

    install(json=True, stream=stream)
    tenant.set("eu-7")
    send.put()
    work()
    assert [line.get("tenant") for line in lines(stream) if line["message"] == "sending"] == ["eu-7"]


def test_a_line_for_people_begins_with_its_date(stream: io.StringIO) -> None:
    install(stream=stream)
    log.warning("late")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d WARNING late\n", stream.getvalue())


def test_an_exception_and_what_json_does_not_know_stay_on_one_line(stream: io.StringIO) -> None:
    install(json=True, stream=stream)
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        log.exception("broken\nline", extra={"what": object(), "when": {1, 2}})
    (line,) = lines(stream)

    assert line["message"] == "broken\nline"
    assert line["exception"].endswith("ValueError: first\nsecond")
    assert line["what"].startswith("<object object")


def test_a_field_that_json_cannot_have_loses_no_line(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest's would put half a character into its report

    class Mute:
        def __str__(self) -> str:
            raise ValueError("no")

        __repr__ = __str__

    ring: list[object] = []
    ring.append(ring)
    install(json=True, stream=stream)
    for what in (ring, {(1, 2): 3}, Mute(), float("nan"), {"deep": Mute()}):
        log.info("half \ud83d", extra={"what": what, "n": 1})
    found = lines(stream)
    assert [line["what"][:15] for line in found] == [
        "[[...]]",
        "{(1, 2): 3}",
        "<Mute without a",
        "nan",
        "<dict without a",
    ]
    assert {(line["message"], line["n"]) for line in found} == {("half \ud83d", 1)}
    assert "half \\ud83d" in stream.getvalue() and "NaN" not in stream.getvalue()


async def test_jobs_that_run_side_by_side_keep_their_lines_apart(app: App, stream: io.StringIO) -> None:
    @app.job
    async def wait(name: str) -> None:
        for _ in range(3):
            log.info(name)
            await asyncio.sleep(0)

    install(json=True, stream=stream)
    put = {name: wait.put(name).jid for name in ("a", "b")}
    await asyncio.gather(*(aperform(app, job) for job in app.client.queues["default"].pop(2)))

    assert {(line["message"], line["jid"]) for line in lines(stream)} == set(put.items())


def test_for_people_the_job_stands_in_brackets(app: App, work: Work, stream: io.StringIO) -> None:
    @app.job(name="Send")
    def send() -> None:
        log.info("sending")
        logging.getLogger("qmodel.worker").info("Send names its job itself")

    install(stream=stream)
    job = send.put()
    work()
    first, second = stream.getvalue().splitlines()

    assert first.endswith(f"INFO    sending  [Send {job.jid}]")
    assert second.endswith("names its job itself")


def test_installing_again_replaces_its_own_handler_and_leaves_those_of_others(stream: io.StringIO) -> None:
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    install(stream=stream)
    handler = install(json=True, stream=stream, level="WARNING")
    log.info("not told")
    log.warning("once")

    assert [line["message"] for line in lines(stream)] == ["once"]
    assert other in logging.getLogger().handlers and handler in logging.getLogger().handlers


def test_the_filter_serves_handlers_of_others(app: App, work: Work, stream: io.StringIO) -> None:
    @app.job(name="Send")
    def send() -> None:
        log.warning("inside")

    handler = logging.StreamHandler(stream)
    handler.addFilter(JobFilter())
    handler.setFormatter(logging.Formatter("%(klass)s %(attempt)s %(message)s"))
    log.addHandler(handler)
    try:
        send.put()
        work()
        log.warning("outside")
    finally:
        log.removeHandler(handler)
    assert stream.getvalue() == "Send 1 inside\nNone None outside\n"


def test_a_stream_that_was_closed_is_no_trouble_to_who_writes(capfd: pytest.CaptureFixture[str]) -> None:
    before = logging.root.level
    stream = io.StringIO()
    handler = install(stream=stream)
    try:
        stream.close()
        logging.getLogger("shop").warning("still here")
    finally:
        logging.root.removeHandler(handler)
        logging.root.setLevel(before)
    assert "still here" in capfd.readouterr().err
