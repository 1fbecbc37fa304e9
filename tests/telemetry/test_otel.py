"""A trace follows a job from its put to its attempts."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Sequence

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from qmodel import App, Context
from qmodel.app import aperform
from qmodel.telemetry.logs import JobFilter, JsonFormatter
from qmodel.telemetry.otel import instrument
from tests.telemetry.conftest import Work


class Recorder:
    """Make a provider, and give the ended spans."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def trace_of(span: ReadableSpan) -> int:
    return span.get_span_context().trace_id


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    return child.parent is not None and child.parent.span_id == parent.get_span_context().span_id


def test_one_trace_from_a_request_through_a_job_to_the_job_that_this_one_puts(
    app: App, work: Work, recorder: Recorder
) -> None:
    instrument(app, recorder.provider)

    @app.job(name="Resize")
    def resize(size: int) -> None: ...

    @app.job(name="Upload")
    def upload(name: str) -> None:
        resize.put(3)

    with recorder.provider.get_tracer("web").start_as_current_span("POST /upload"):
        job = upload.put("a.png")
    work()
    request, put = recorder.named("POST /upload"), recorder.named("create Upload")
    first, second = (span for span in recorder.spans if span.name == "process default")

    assert len({trace_of(span) for span in recorder.spans}) == 1
    assert is_child(put, request) and is_child(first, put)
    assert is_child(recorder.named("create Resize"), first) and is_child(second, recorder.named("create Resize"))
    assert (put.kind, first.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert dict(first.attributes or {}) == {
        "messaging.system": "qmodel",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "default",
        "messaging.message.id": job.jid,
        "messaging.client.id": "w1",
        "qmodel.klass": "Upload",
        "qmodel.attempt": 1,
        "qmodel.outcome": "completed",
    }


def test_an_app_is_traced_once(app: App, work: Work, recorder: Recorder) -> None:
    instrument(app, recorder.provider)
    instrument(app, recorder.provider)

    @app.job(name="Send")
    def send() -> None: ...

    send.put()
    work()
    assert [span.name for span in recorder.spans] == ["create Send", "process default"]


def test_each_attempt_is_a_span_and_says_why_it_failed(app: App, work: Work, recorder: Recorder) -> None:
    instrument(app, recorder.provider)

    @app.job(name="Send", backoff=0, retries=1)
    def send(context: Context) -> None:
        if context.attempt == 1:
            raise ValueError("no such address")

    send.put()
    work()
    put = recorder.named("create Send")
    first, second = (span for span in recorder.spans if span.name == "process default")

    assert is_child(first, put) and is_child(second, put)
    assert (first.attributes or {})["error.type"] == "ValueError"
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "ValueError: no such address")
    assert [event.name for event in first.events] == ["exception"]
    assert (second.status.status_code, (second.attributes or {})["qmodel.attempt"]) == (StatusCode.UNSET, 2)


def test_arguments_that_cannot_be_read_have_a_span_too(app: App, work: Work, recorder: Recorder) -> None:
    instrument(app, recorder.provider)

    @app.job(name="Send")
    def send(to: str) -> None: ...

    app.client.queues["default"].put("Send", {"nobody": 1})
    work()
    span = recorder.named("process default")
    assert (span.attributes or {})["qmodel.outcome"] == "failed"
    assert span.parent is None


def test_with_link_each_attempt_begins_a_trace_that_points_to_the_put(app: App, work: Work, recorder: Recorder) -> None:
    instrument(app, recorder.provider, link=True)

    @app.job(name="Send")
    def send() -> None: ...

    send.put()
    work()
    put, attempt = recorder.named("create Send"), recorder.named("process default")
    assert attempt.parent is None and trace_of(attempt) != trace_of(put)
    assert [link.context.span_id for link in attempt.links] == [put.get_span_context().span_id]


async def test_what_an_asynchronous_job_does_is_within_its_span(app: App, recorder: Recorder) -> None:
    instrument(app, recorder.provider)
    seen = []

    @app.job
    async def wait() -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    @app.job
    def plain() -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    for kind in (wait, plain):
        kind.put()
        (job,) = app.client.queues["default"].pop(1)
        await aperform(app, job)
    spans = [span.get_span_context().span_id for span in recorder.spans if span.name == "process default"]
    assert seen == spans


def test_lines_of_the_log_say_their_trace(app: App, work: Work, recorder: Recorder) -> None:
    instrument(app, recorder.provider)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(JobFilter())
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("shop.traced")
    log.addHandler(handler)

    @app.job
    def send() -> None:
        log.warning("inside")

    send.put()
    work()
    line, span = json.loads(stream.getvalue()), recorder.named("process default")
    assert line["trace_id"] == f"{trace_of(span):032x}"
    assert line["span_id"] == f"{span.get_span_context().span_id:016x}"


def test_who_does_not_trace_reads_jobs_of_who_does(app: App, work: Work, recorder: Recorder) -> None:
    instrument(app, recorder.provider)
    got = []

    @app.job(name="Send")
    def send(to: str) -> None: ...

    send.put("ada")
    plain = App(app.url)

    @plain.job(name="Send")
    def take(to: str) -> None:
        got.append(to)

    from qmodel.app import perform

    job = plain.client.queues["default"].pop()
    assert job is not None and "traceparent" in job.text
    assert perform(plain, job).word == "completed"
    assert got == ["ada"]


def test_without_an_sdk_nothing_is_recorded_and_everything_works(app: App, work: Work) -> None:
    instrument(app)

    @app.job(name="Send")
    def send(to: str) -> str:
        return to

    job = send.put("ada")
    assert job.data == {"to": "ada"}
    assert [outcome.word for outcome in work()] == ["completed"]
