"""Trace a job from its put to its attempts with OpenTelemetry.

A put gets a span of the kind producer. The span's context is stored with the job, in the headers of its data. Each
attempt gets a span of the kind consumer, as a child of the put's span. So a web request, the job that it put, and the
jobs that this job put are one trace, however much time is between them. With `link=True` each attempt begins a new
trace with a link to the put, which is better for jobs that wait for days.

The names follow OpenTelemetry's conventions for messaging, which are not final; only this module uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from qmodel.telemetry.outcomes import ending
from qmodel.version import __version__

if TYPE_CHECKING:
    from qmodel.app import App, Context
    from qmodel.app.jobtype import JobType
    from qmodel.app.outcome import Outcome

SYSTEM = "messaging.system"
QUEUE = "messaging.destination.name"
OPERATION, OPERATION_TYPE = "messaging.operation.name", "messaging.operation.type"
JID = "messaging.message.id"
WORKER = "messaging.client.id"
ERROR = "error.type"
KLASS, ATTEMPT, OUTCOME = "qmodel.klass", "qmodel.attempt", "qmodel.outcome"


def instrument(app: App, tracer_provider: TracerProvider | None = None, *, link: bool = False) -> None:
    """Trace the puts and attempts of an app, with the given provider or the global one; a second call does nothing.

    Without an SDK nothing is recorded; this costs about ten microseconds for each job.
    """
    if app not in _TRACED:
        _TRACED[app] = Tracing(app, tracer_provider, link)


class Tracing:
    """The spans of an app."""

    def __init__(self, app: App, provider: TracerProvider | None, link: bool) -> None:
        self._tracer = trace.get_tracer("qmodel", __version__, provider)
        self._link = link
        self._spans: WeakKeyDictionary[Context, Span] = WeakKeyDictionary()
        app.on("put")(self._put)
        app.middleware(self._around)
        app.on("after")(self._after)
        app.on("lost_lock")(self._lost)

    def _put(self, kind: JobType[Any, Any, Any, Any], headers: MutableMapping[str, str]) -> None:
        attributes = _attributes("create", kind.klass)
        with self._tracer.start_as_current_span(f"create {kind.klass}", kind=SpanKind.PRODUCER, attributes=attributes):
            propagate.inject(headers)

    def _begin(self, context: Context) -> Span:
        put = propagate.extract(context.headers)
        links = [trace.Link(trace.get_current_span(put).get_span_context())] if self._link else []
        attributes = _attributes("process", context.klass)
        attributes |= {QUEUE: context.queue, JID: context.jid, WORKER: context.worker, ATTEMPT: context.attempt}
        return self._tracer.start_span(
            f"process {context.queue}",
            None if self._link else put,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=[one for one in links if one.context.is_valid],
        )

    def _around(self, context: Context) -> Iterator[None]:
        span = self._spans[context] = self._begin(context)
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield

    def _after(self, context: Context, outcome: Outcome) -> None:
        span = self._spans.pop(context, None) or self._begin(context)  # no span yet if the arguments could not be read
        span.set_attribute(OUTCOME, ending(context, outcome))
        group = getattr(outcome, "group", None)
        if group is not None:
            span.set_attribute(ERROR, group)
            span.set_status(Status(StatusCode.ERROR, outcome.message.strip().rpartition("\n")[2]))  # type: ignore[attr-defined]
            if (error := getattr(outcome, "error", None)) is not None:
                text = outcome.message  # type: ignore[attr-defined]  # without the values of redacted arguments
                scrubbed = {"exception.message": context.scrub(str(error)), "exception.stacktrace": text}
                span.record_exception(error, scrubbed)
        span.end()

    def _lost(self, context: Context, outcome: Outcome | None) -> None:
        span = self._spans.get(context)
        if span is not None:
            span.add_event("lock lost")


_TRACED: WeakKeyDictionary[App, Tracing] = WeakKeyDictionary()


def _attributes(operation: str, klass: str) -> dict[str, str | int]:
    return {SYSTEM: "qmodel", OPERATION: operation, OPERATION_TYPE: operation, KLASS: klass}
