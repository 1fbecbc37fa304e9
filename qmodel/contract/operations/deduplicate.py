"""Deduplication."""

from __future__ import annotations

from qmodel.contract.arguments import RequestId, UniqueKey
from qmodel.contract.operations.spec import Operation, operation


@operation("unique", "read")
class UniqueGet(Operation):
    """Show which job holds a deduplication key, or nothing."""

    unique: UniqueKey


@operation("number", "memo", "", "unique_released unblocked throttled")
class UniqueRelease(Operation):
    """Release a deduplication key: the next put with it is accepted, and a job that waits for the holder continues.

    Replies 1, or 0 if no job held the key.
    """

    unique: UniqueKey
    request: RequestId = ""
