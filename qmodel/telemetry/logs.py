"""Log lines that say which job they belong to: for people, or as JSON, a line each.

A line that is written while a job is performed, by whatever library, gets the job's `jid`, `klass`, `queue`, `attempt`
and `worker`, and where a trace is being recorded its `trace_id` and `span_id`. Nothing has to be passed around: the job
at hand is found as `qmodel.app.current()` finds it. Other settings of logging stay as they are.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, TextIO

FIELDS: Final = ("jid", "klass", "queue", "attempt", "worker")
"""What a line says of its job."""

_STANDARD: Final = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {
    "message",
    "asctime",
    "taskName",
}


class JobFilter(logging.Filter):
    """Gives each record the fields of the job at hand, None outside of any; what a record has already stays.

    For handlers of your own: `handler.addFilter(JobFilter())`, and `%(jid)s` in the format.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; every record passes."""
        from qmodel.app.context import NoJob, current

        try:
            job = current()
        except NoJob:
            job = None
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, getattr(job, name, None))
        if (span := _span()) is not None and not hasattr(record, "trace_id"):
            record.trace_id, record.span_id = span
        return True


def _span() -> tuple[str, str] | None:
    """The ids of the trace and the span that are being recorded, if there are any."""
    trace = sys.modules.get("opentelemetry.trace")
    context = trace.get_current_span().get_span_context() if trace is not None else None
    return (f"{context.trace_id:032x}", f"{context.span_id:016x}") if context is not None and context.is_valid else None


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, the job's fields, and whatever `extra` gave."""

    def format(self, record: logging.LogRecord) -> str:
        """Write it."""
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
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """A record for people: the time, the level, what it says, and in brackets the job during which it was said."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Write what stands before a traceback; the lines of the worker name their job themselves."""
        jid = getattr(record, "jid", None)
        of = "" if jid is None or record.name.startswith("qmodel.") else f"  [{getattr(record, 'klass', '?')} {jid}]"
        return super().formatMessage(record) + of


class _Handler(logging.StreamHandler[TextIO]):
    """The handler that `install` adds; there is one at most."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it; where somebody has closed the stream, on the standard error of the process itself.

        Else the library of whoever writes a line would have to bear what a job did that closed `sys.stderr`.
        """
        if getattr(self.stream, "closed", False):
            self.stream = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        super().emit(record)


def install(json: bool = False, *, level: int | str = logging.INFO, stream: TextIO | None = None) -> logging.Handler:
    """Write all log lines from `level` on, with their jobs, to a stream (the standard error); give the handler.

    Called again it replaces its own handler. Handlers of others stay, so configure logging here or elsewhere, not both.
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
