"""Request ids: they make it safe to send an operation twice."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any

from qmodel import runtime
from qmodel.contract.operations import CATALOGUE, Operation, Spec


def fresh_request() -> str:
    """Make a new request id: 128 random bits in 22 characters."""
    return binascii.b2a_base64(runtime.urandom(16))[:22].decode()


def _copier(spec: Spec) -> Callable[[Any, str], Operation]:
    """Make a function that copies operations of one class with a request id. `dataclasses.replace` takes 5 times as
    long.
    """
    fields = ", ".join("request" if a.name == "request" else f"op.{a.name}" for a in spec.arguments)
    made: Callable[[Any, str], Operation] = eval(f"lambda op, request: cls({fields})", {"cls": spec.cls})
    return made


_WITH_REQUEST = {
    spec.cls: _copier(spec) for spec in CATALOGUE.values() if any(a.name == "request" for a in spec.arguments)
}


def with_request(op: Operation) -> Operation:
    """Give an operation a fresh request id if it takes one and has none, so that it may be sent twice."""
    copy = _WITH_REQUEST.get(type(op))
    return copy(op, fresh_request()) if copy is not None and not op.request else op  # type: ignore[attr-defined]
