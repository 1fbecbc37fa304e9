"""Drive the conformance kit with the Python binding's own coding of calls and replies, over redis-py.

    qmodel conformance driver --url redis://localhost:6379/0 -- python examples/drivers/python_driver.py

It answers each line with one line: see docs/driver.md. A driver for another binding looks the same; only `execute` is
different.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import redis

import qmodel
from qmodel.backends.bundle import function_name
from qmodel.backends.redis.common import unencodable
from qmodel.conformance.kit.protocol import FEATURES, PROTOCOL
from qmodel.contract.arguments import Operations
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import Refusal
from qmodel.wire import codec


class Driver:
    """The state between two lines: a connection, and the present namespace."""

    def __init__(self) -> None:
        self.server: Any = None
        self.url = self.prefix = ""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Do what a line asks."""
        match asked["cmd"]:
            case "hello":
                about = {"binding": "qmodel-python", "version": qmodel.__version__, "batch": True}
                return {"protocol": PROTOCOL, **about, "features": FEATURES}
            case "reset":
                if asked["url"] != self.url:
                    self.url, self.server = asked["url"], redis.Redis.from_url(asked["url"])
                self.prefix = asked["prefix"]
            case "op":
                return self.outcome(asked)
            case "batch":
                return {"results": [self.outcome(one) for one in asked["ops"]]}
        return {"ok": True}

    def outcome(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Execute one operation, and say how it ended."""
        try:
            arguments = {name: given for name, given in asked.items() if name not in ("seq", "cmd", "op", "now")}
            found = self.execute(asked["op"], asked["now"], arguments)
        except Exception:
            return {"crash": traceback.format_exc()}
        return {"refusal": [found.code, *found.facts]} if isinstance(found, Refusal) else {"reply": plain(found)}

    def execute(self, name: str, now: int | None, arguments: dict[str, Any]) -> Any:
        """Execute one operation with the binding."""
        op = operation(name, arguments)
        try:
            words = codec.encode(op, now)
        except codec.Unencodable:
            return unencodable(op, now)
        return codec.decode(op, self.call(name, words))

    def call(self, name: str, words: list[str]) -> Any:
        """Call the library on the server."""
        return self.server.execute_command("FCALL", function_name(name), 1, self.prefix, *words)


def operation(name: str, arguments: dict[str, Any]) -> Operation:
    """Make an operation from its arguments: lists become tuples, and objects in them operations."""
    spec = CATALOGUE[name]
    inner = {a.name: a.kind.of.lower() for a in spec.arguments if isinstance(a.kind, Operations)}
    return spec.cls(**{key: value(inner.get(key, ""), given) for key, given in arguments.items()})


def value(inner: str, given: Any) -> Any:
    """Convert an argument of an operation."""
    if not isinstance(given, list):
        return given
    return tuple(operation(inner, one) if inner else one for one in given)


def plain(found: Any) -> Any:
    """Convert a reply for JSON: records are objects, lists are arrays."""
    if hasattr(found, "_asdict"):
        return {name: plain(part) for name, part in found._asdict().items()}
    return [plain(part) for part in found] if isinstance(found, tuple) else found


if __name__ == "__main__":
    driver = Driver()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps({"seq": asked["seq"], **driver.answer(asked)}), flush=True)
