"""Deduplication."""

from __future__ import annotations

from qmodel.contract.arguments import RequestId, UniqueKey
from qmodel.contract.operations.spec import Operation, operation


@operation("unique", "read")
class UniqueGet(Operation):
    """Show which job holds a key, or nothing."""

    unique: UniqueKey


@operation("number", "memo", "", "unique_released unblocked throttled")
class UniqueRelease(Operation):
    """Let nobody hold a key: the next put with it is accepted. A job that was kept for after the holder goes on.

    Replies 1, or 0 if nobody held it.
    """

    unique: UniqueKey
    request: RequestId = ""
