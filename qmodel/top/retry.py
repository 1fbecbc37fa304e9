"""Trying one failed job again, as it was put.

The engine retries failed jobs by filter, and keeps all that they were put with, which a new put would not. So a job
that is to be retried alone gets a tag of its own for as long as that takes: three operations, in one round trip.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from qmodel.contract import operations as ops
from qmodel.errors import RefusedError


def asking(jid: str) -> tuple[ops.Operation, ...]:
    """The operations that put a failed job back into its queue."""
    tag = f"retry-{secrets.token_hex(8)}"
    return ops.TagAdd(jid, (tag,)), ops.RetryMany(tag=tag), ops.TagRemove(jid, (tag,))


def done(replies: Sequence[Any]) -> bool:
    """Whether it was, by their replies; no if it had not failed. Raises the refusal: there is no such job."""
    for reply in replies:
        if isinstance(reply, RefusedError):
            raise reply
    return bool(replies[1].done)
