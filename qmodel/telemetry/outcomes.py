"""Name the end of an attempt, for metrics and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmodel.app import Context
    from qmodel.app.outcome import Outcome


def ending(context: Context, outcome: Outcome) -> str:
    """Give `completed`, `retried`, `failed`, `released` or `unknown`; a retry without remaining retries is `failed`."""
    from qmodel.app.outcome import Retried

    return "failed" if isinstance(outcome, Retried) and not context.raw.remaining else outcome.word
