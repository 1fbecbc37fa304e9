"""Histories of a dialect as JSON lines: its calls, and between them steps of the engine, as `histories.json_lines`.

{"call": ["put", "worker", "q", "a", "k", "{}", "0"], "document": ""}
"""

from __future__ import annotations

import json
from typing import Any

from qmodel.conformance.dialects.subjects import Call, Calls
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.base import Step


def dumps(history: Calls) -> str:
    """Write a history as JSON lines."""
    return "".join(json.dumps(_dump(one)) + "\n" for one in history)


def _dump(one: Call | Step) -> dict[str, Any]:
    return {"call": one.arguments, "document": one.document} if isinstance(one, Call) else json_lines.dump(one)


def loads(text: str) -> list[Call | Step]:
    """Read a history from JSON lines; a ValueError names the line that is wrong."""
    return list(json_lines.read(text.splitlines(), _load))


def _load(found: dict[str, Any]) -> Call | Step:
    if "call" in found:
        return Call(tuple(found["call"]), found.get("document", ""))
    return json_lines.load(found)
