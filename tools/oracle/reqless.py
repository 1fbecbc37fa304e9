"""Histories of reqless: those of qless in other words, with throttles, and what is mended in the original.

A history is drawn and mended in qless's words, and each call is translated before a side executes it.
"""

from __future__ import annotations

from collections.abc import Callable

from qmodel.conformance.dialects.reqless import translated
from qmodel.dialects.qless.commands import EARLY
from tools.oracle.compare import Heard
from tools.oracle.histories import DRAWS, SETTINGS, WEIGHTS, Drawer
from tools.oracle.rows import Mended, job_key
from tools.oracle.sides import Side, Words

THROTTLES = ("t", "s")
MAXIMA = ("1", "1", "2", "0")


class Translated:
    """A side that is told calls in the words of qless, and executes them in those of reqless."""

    def __init__(self, side: Side, shared: bool = False) -> None:
        self._side = side
        self._shared = shared  # whether it executes the commands of qless, too

    def begin(self) -> None:
        """Start with an empty namespace."""
        self._side.begin()

    def call(self, words: Words) -> Heard:
        """Execute one call."""
        said = translated(words)
        return self._side.call((EARLY + said[0], *said[1:]) if self._shared else said)

    def close(self) -> None:
        """Release everything."""
        self._side.close()


# ---- drawing


def _named(draw: Drawer) -> list[str]:
    if not draw.one_in(2):
        return []
    return ["throttles", '["t"]' if draw.one_in(2) else '["s"]' if draw.one_in(2) else '["s","t"]']


def _tid(draw: Drawer) -> str:
    return str(draw.of((*THROTTLES, "ql:q:q", "ql:q:r")))


def _with(name: str) -> Callable[[Drawer], list[str]]:
    return lambda draw: [*DRAWS[name](draw), *_named(draw)]


def _jobs(draw: Drawer) -> list[str]:
    return ["throttled", str(draw.of(("q", "r"))), *draw.page()] if draw.one_in(3) else draw.jobs()


def _setting(draw: Drawer) -> list[str]:
    if draw.one_in(4):
        return [str(draw.of(("max-pop-retry", "q-max-pop-retry"))), str(draw.of(("1", "2", "5")))]
    name, values = draw.of([one for one in SETTINGS if not one[0].endswith("max-concurrency")])
    return [name, str(draw.of(values))]


DRAWS_OF_REQLESS: dict[str, Callable[[Drawer], list[str]]] = DRAWS | {
    "put": _with("put"),
    "requeue": _with("requeue"),
    "recur": _with("recur"),
    "recur.update": _with("recur.update"),
    "jobs": _jobs,
    "config.set": _setting,
    "throttle.set": lambda d: [_tid(d), d.of(MAXIMA)],
    "throttle.get": lambda d: [_tid(d)],
    "throttle.delete": lambda d: [_tid(d)],
    "throttle.locks": lambda d: [_tid(d)],
    "throttle.pending": lambda d: [_tid(d)],
    "throttle.release": lambda d: [_tid(d), d.jid()],
    "queue.throttle.set": lambda d: [d.of(("q", "r")), d.of(MAXIMA)],
    "queue.throttle.get": lambda d: [d.of(("q", "r"))],
}

WEIGHTS_OF_REQLESS = WEIGHTS | {
    "throttle.set": 5, "throttle.get": 1, "throttle.delete": 1, "throttle.locks": 4, "throttle.pending": 4,
    "throttle.release": 1, "queue.throttle.set": 3, "queue.throttle.get": 1,
}  # fmt: skip


def drawer(seed: str) -> Drawer:
    """Draw a history of reqless."""
    return Drawer(seed, WEIGHTS_OF_REQLESS, DRAWS_OF_REQLESS)


# ---- mending


class MendedReqless(Mended):
    """The original without the defects that are rows of the page."""

    def call(self, words: Words) -> Heard:
        """Execute one call, and mend what it has done."""
        if words[0] in ("put", "requeue") and self._puts(words):
            self._leave(words[1], words[4])
        waits = words[0] == "throttle.release" and self._waits(words[2], words[3])
        heard = super().call(words)
        if words[0] == "heartbeat" and heard.error is None:
            self._keys.zadd("ql:workers", {words[3]: float(words[1])})
        if waits:
            self._go_on(words[1], words[3])
        return heard

    def _puts(self, words: Words) -> bool:
        return words[0] == "put" or bool(self._keys.exists(job_key(words[4])))

    def _leave(self, now: str, jid: str) -> None:
        """A job that is put leaves the throttles that it holds, or waits for."""
        for key in self._keys.scan_iter("ql:th:*-locks", 1000):
            tid = key.removeprefix("ql:th:").removesuffix("-locks")
            if self._keys.zscore(key, jid) is not None:
                self._side.call(("throttle.release", now, tid, jid))
        for key in self._keys.scan_iter("ql:th:*-pending", 1000):
            tid = key.removeprefix("ql:th:").removesuffix("-pending")
            if self._keys.zscore(key, jid) is not None:
                self._side.call(("throttle.release", now, tid, jid))

    def _waits(self, tid: str, jid: str) -> bool:
        return self._keys.zscore(f"ql:th:{tid}-pending", jid) is not None

    def _go_on(self, now: str, jid: str) -> None:
        """A job that is released while it waits is lost: it goes on instead."""
        queue, priority = self._keys.hmget(job_key(jid), "queue", "priority")
        self._keys.zrem(f"ql:q:{queue}-throttled", jid)
        self._keys.zadd(f"ql:q:{queue}-work", {jid: float(priority) - float(now) / 1e10})
