"""Actions on all jobs that match a filter, however many: an operation for each 1000, from cursor to cursor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from qmodel.contract import operations as ops
from qmodel.present.numbers import counted


class Kind(NamedTuple):
    """A kind of bulk action: its label, its participle, what becomes of the jobs, and the filters that it knows."""

    label: str
    done: str
    effect: str
    filters: tuple[str, ...]


KINDS: Final[dict[str, Kind]] = {
    "retry": Kind(
        "Retry",
        "retried",
        "Each begins anew in its own queue, with all its retries.",
        ("queue", "klass", "tag", "group"),
    ),
    "cancel": Kind(
        "Cancel",
        "canceled",
        "Canceled jobs are deleted; a worker that runs one loses it. Complete jobs stay, and jobs on which others "
        "depend.",
        ("queue", "state", "klass", "tag", "worker", "group"),
    ),
    "clean": Kind(
        "Delete",
        "deleted",
        "Jobs on which others depend stay.",
        ("queue", "state", "klass", "tag", "group"),
    ),
}
"""Each kind by its name."""


def operation(
    kind: str, given: Mapping[str, str], cursor: str = "", *, older_ms: int = 0, preview: bool = False
) -> ops.Operation:
    """Make the operation of the next step; `older_ms` is for `clean`."""
    arguments: dict[str, Any] = {**given, "cursor": cursor, "preview": preview}
    if kind == "cancel":
        return ops.CancelMany(**arguments)
    if kind == "clean":
        return ops.Clean(**arguments, older_ms=older_ms)
    arguments.pop("state", None)
    return ops.RetryMany(**arguments)


def outcome(kind: str, done: int, passed: int = 0) -> str:
    """Say how many jobs an action changed, and how many it passed over.

    >>> outcome("retry", 1), outcome("cancel", 2500, 3)
    ('1 job retried.', '2,500 jobs canceled. 3 passed over: other jobs depend on them, or they have changed.')
    """
    sentence = f"{counted(done, 'job')} {KINDS[kind].done}."
    return (
        f"{sentence} {passed:,} passed over: other jobs depend on them, or they have changed." if passed else sentence
    )
