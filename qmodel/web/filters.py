"""The filters that templates may apply to a value."""

from __future__ import annotations

from typing import Any

from qmodel.contract import redaction
from qmodel.present import describe, durations, numbers, text
from qmodel.web.charts import line
from qmodel.web.flash import read

FILTERS: dict[str, Any] = {
    "number": numbers.number,
    "counted": numbers.counted,
    "duration": durations.format_duration,
    "exact_duration": durations.write_duration,
    "moment": durations.format_moment,
    "iso": durations.format_iso,
    "day": durations.format_day,
    "pretty": text.pretty,
    "short": text.short,
    "gist": text.gist,
    "why": text.why,
    "arguments": text.arguments,
    "is_redacted": redaction.is_shown,
    "preview": text.preview,
    "limits": describe.limits,
    "recurrence": describe.recurrence,
    "cron_in_english": describe.cron_in_english,
    "line": line,
    "from_cookie": read,
}
"""Each filter by the name that templates give it."""
