"""How a `with job:` block records the exception that ends it."""

from __future__ import annotations

import traceback

from qmodel.errors import RefusedError

GROUP_BYTES, MESSAGE_BYTES = 80, 60_000


def failure_of(error: BaseException) -> tuple[str, str]:
    """Make the group and message of a failed job: the exception's class, and the end of its traceback."""
    message = "".join(traceback.format_exception(error)).encode(errors="backslashreplace")
    group = type(error).__name__.encode()[:GROUP_BYTES].decode(errors="ignore")
    return group, message[-MESSAGE_BYTES:].decode(errors="ignore")


def note_lost(error: BaseException, lost: RefusedError) -> None:
    """Add a note to an exception: it could not be recorded, because the lease was lost before."""
    error.add_note(f"qmodel: the failure was not recorded. {lost}")
