"""The filters that templates may apply to a value."""

from __future__ import annotations

from typing import Any

from qmodel.present import formats
from qmodel.web.charts import spark
from qmodel.web.flash import said

FILTERS: dict[str, Any] = {
    "number": formats.number,
    "duration": formats.duration,
    "moment": formats.moment,
    "iso": formats.iso,
    "day": formats.day,
    "pretty": formats.pretty,
    "short": formats.short,
    "gist": formats.gist,
    "preview": formats.preview,
    "limits": formats.limits,
    "recurs": formats.recurs,
    "in_english": formats.in_english,
    "spark": spark,
    "from_cookie": said,
}
"""Each filter by the name that templates give it."""
