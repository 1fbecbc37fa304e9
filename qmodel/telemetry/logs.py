"""Log lines with the fields of their job: as text for people, or as JSON, one line each.

A line that any library writes while a job is performed gets the job's `jid`, `klass`, `queue`, `attempt` and `worker`,
the variables that the app carries (`App.carry`), and its `trace_id` and `span_id` while a trace is recorded. No
arguments have to be passed: the current job is the one of `qmodel.app.current()`. Other settings of logging are not
changed.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

FIELDS: Final = ("jid", "klass", "queue", "attempt", "worker")
"""The fields of a job in a log line."""

_STANDARD: Final = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}


class JobFilter(logging.Filter):
    """Adds the fields of the current job to each record, or None outside of jobs; existing fields are kept.

    For your own handlers: `handler.addFilter(JobFilter())`, and `%(jid)s` in the format.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields to the record; accept every record."""
        from qmodel.app.carried import of
        from qmodel.app.context import NoJob, current

        try:
            job = current()
        except NoJob:
            job = None
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, getattr(job, name, None))
        for name, value in of(job.headers).items() if job is not None else ():
            if not hasattr(record, name):
                setattr(record, name, value)
        if (span := _span()) is not None and not hasattr(record, "trace_id"):
            record.trace_id, record.span_id = span
        return True


def _span() -> tuple[str, str] | None:
    """Get the ids of the current trace and span, or None."""
    trace = sys.modules.get("opentelemetry.trace")
    context = trace.get_current_span().get_span_context() if trace is not None else None
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context is not None and context.is_valid else None


def scrubbed(text: str) -> str:
    """Replace the values of redacted arguments of the current job in a text."""
    from qmodel.app.context import NoJob, current

    try:
        return current().scrub(text)
    except NoJob:
        return text


def _text(line: dict[str, Any]) -> str:
    """Write a line as JSON that any encoding has. A field that JSON cannot have must not lose the line: it is told."""
    try:
        text = json.dumps(line, default=str, ensure_ascii=False, allow_nan=False)
    except Exception:
        fields = {name: value if isinstance(value, str | int) else _told(value) for name, value in line.items()}
        text = json.dumps(fields, ensure_ascii=False)
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _told(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"


class JsonFormatter(logging.Formatter):
    """Writes a record as a line of JSON: time, level, logger, message, the job's fields, and the fields of `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        line |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD and value is not None}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return scrubbed(_text(line))


class TextFormatter(logging.Formatter):
    """Writes a record for people: the time, the level, the message, and the current job in brackets."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Write a record, with its traceback."""
        return scrubbed(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Write the text before a traceback; the worker's own lines already name their job."""
        jid = getattr(record, "jid", None)
        of = "" if jid is None or record.name.startswith("qmodel.") else f"  [{getattr(record, 'klass', '?')} {jid}]"
        return super().formatMessage(record) + of


class _Handler(logging.StreamHandler[TextIO]):
    """The handler that `install` adds; there is one at most."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; if the stream was closed, write to the process's standard error.

        Otherwise a job that closes `sys.stderr` would break the logging of all other code.
        """
        if getattr(self.stream, "closed", False):
            self.stream = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        super().emit(record)


def install(json: bool = False, *, level: int | str = logging.INFO, stream: TextIO | None = None) -> logging.Handler:
    """Write all log lines of `level` and above, with their jobs, to a stream (the standard error); give the handler.

    A second call replaces the handler of the first. Other handlers stay, so configure logging either here or elsewhere.
    """
    root = logging.getLogger()
    for one in [one for one in root.handlers if isinstance(one, _Handler)]:
        root.removeHandler(one)
    handler = _Handler(stream)
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    handler.addFilter(JobFilter())
    root.addHandler(handler)
    root.setLevel(level)
    return handler
