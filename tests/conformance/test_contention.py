"""Concurrent clients without a recorded order: their histories are linearizable; faults are found and drawn."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from qmodel.conformance.concurrency import replay, timeline
from qmodel.conformance.concurrency.calls import Call, Lost
from qmodel.conformance.concurrency.contention import ByBackend, Executor, Run, processes, record, threads
from qmodel.conformance.concurrency.linearizability import Verdict, check
from qmodel.conformance.concurrency.lossy import LossyLine
from qmodel.conformance.kit.contender import ByDriver
from qmodel.conformance.kit.namespace import namespaces
from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.wire import codec
from tests.conformance import wrong_clients as wrong
from tests.servers import Server

COUNT = int(os.environ.get("QMODEL_CONTENTION_OPERATIONS", "1200"))
DRIVER = Path(__file__).parents[2] / "examples" / "drivers" / "python_driver.py"


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """Give a server's URL with a new namespace and without resends."""
    with namespaces(server.url) as spaces:
        yield f"{server.url}?prefix={spaces.fresh()}"


def on(url: str) -> str:
    return url + "&deadline=0&requests=given"


def recorded(url: str, openers: list[Callable[[], Executor]], run: Run) -> list[Call]:
    watcher = ByBackend(on(url))
    try:
        return record(watcher, lambda begun: threads(openers, begun), run)
    finally:
        watcher.close()


def overlapping(calls: list[Call]) -> int:
    """Count the operations that were called during an operation of another client."""
    under_way: dict[str, int] = {}
    found = 0
    for call in sorted(calls, key=lambda call: call.called):
        found += any(end > call.called for client, end in under_way.items() if client != call.client)
        under_way[call.client] = call.returned or call.called
    return found


# ---- what is right


def test_replies_to_many_clients_are_linearizable(url: str) -> None:
    watcher = ByBackend(on(url))
    calls = record(watcher, lambda run: processes(on(url), 8, 8, run), Run(COUNT // 8, "right"))
    watcher.close()
    verdict = check(calls)
    assert verdict.answer == "linearizable", timeline.page(verdict)
    assert len({call.client for call in calls}) == 9
    assert overlapping(calls) > COUNT / 20


def test_histories_with_lost_replies_are_linearizable(url: str) -> None:
    with LossyLine(url, 0.02, "lost") as line:
        openers = [lambda: ByBackend(on(line.url), 20)] * 6
        calls = recorded(url, openers, Run(COUNT // 20, "lost"))  # what is lost is concurrent with all that follows
    lost = [call for call in calls if isinstance(call.outcome, Lost)]
    assert len(lost) > 3
    assert all(call.returned is None for call in lost)
    verdict = check(calls)
    assert verdict.answer == "linearizable", timeline.page(verdict)


class Recorded:
    """Executes operations by the library that records the order."""

    def __init__(self, url: str, orders: dict[int, tuple[int, Operation, Any]]) -> None:
        self._redis: Any = Redis.from_url(url, protocol=2)
        self._orders = orders

    def execute(self, op: Operation, now: int) -> Any:
        words = codec.encode(op, now)
        sent = ("FCALL", replay.FUNCTION, 1, replay.PREFIX, op.spec.name, *words)
        order, at, raw = self._redis.execute_command(*sent)
        outcome = codec.decode(op, raw)
        self._orders[order] = (int(at), op, outcome)
        return outcome

    def close(self) -> None:
        self._redis.close()


def test_the_search_finds_an_order_for_a_history_with_a_recorded_order(server: Server) -> None:
    with server.client() as client:
        client.flushdb()
        client.execute_command("FUNCTION", "LOAD", "REPLACE", replay.library())
    orders: dict[int, tuple[int, Operation, Any]] = {}
    watcher = Recorded(server.url, orders)
    calls = record(watcher, lambda run: threads([lambda: Recorded(server.url, orders)] * 6, run), Run(COUNT // 6))
    store = Store()
    for order in range(1, len(calls) + 1):
        now, op, outcome = orders[order]
        assert engine.step(store, now, op) == outcome
    assert check(calls).answer == "linearizable"


def test_concurrent_drivers_are_linearizable(server: Server) -> None:
    command = [sys.executable, str(DRIVER)]
    with namespaces(server.url) as spaces:
        prefix = spaces.fresh()
        openers = [lambda: ByDriver(command, spaces.url, prefix)] * 3
        calls = recorded(f"{server.url}?prefix={prefix}", openers, Run(COUNT // 12, "drivers"))  # type: ignore[arg-type]
    verdict = check(calls)
    assert verdict.answer == "linearizable", timeline.page(verdict)
    assert len(calls) > COUNT // 4


# ---- what is wrong


@pytest.fixture
def broken(server: Server) -> None:
    with server.client() as client:
        client.execute_command("FUNCTION", "LOAD", "REPLACE", wrong.library())


def opener(kind: type[Any], url: str, server: Server) -> Callable[[], Executor]:
    if issubclass(kind, wrong.ByFunction):
        return lambda: kind(server.url, url.partition("prefix=")[2])
    return lambda: kind(url if kind is wrong.SendsAgainBlindly else on(url))


FAULTS = (
    wrong.ChecksThenClaims, wrong.LosesUpdates, wrong.CompletesOneByOne, wrong.SendsAgainBlindly, wrong.ReadsOldCopies,
)  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_that_needs_concurrent_clients_is_found_and_drawn(
    kind: type[Any], url: str, server: Server, broken: None, tmp_path: Path
) -> None:
    lose = 0.03 if kind is wrong.SendsAgainBlindly else 0.0
    with LossyLine(url, lose, "wrong") as line:
        openers = [opener(kind, line.url if lose else url, server)] * 4
        history = recorded(url, openers, Run(COUNT // 4, "wrong", jobs=3))
    verdict = check(history)
    assert verdict.answer == "violation", verdict
    assert_drawn(verdict)


def test_the_same_run_without_a_fault_is_linearizable(url: str) -> None:
    verdict = check(recorded(url, [lambda: ByBackend(on(url))] * 4, Run(COUNT // 6, "wrong", jobs=3)))
    assert verdict.answer == "linearizable", timeline.page(verdict)


# ---- the picture


class Parsed(HTMLParser):
    """Parses a picture: the classes of its bars, and the text shown when hovering."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.bars: dict[int, tuple[list[str], str]] = {}
        self.links: list[str] = []
        self._open: int | None = None
        self._titled = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag == "g":
            self._open = int(found["data-operation"] or 0)
            self.bars[self._open] = ((found["class"] or "").split(), "")
        self._titled = tag == "title"

    def handle_endtag(self, tag: str) -> None:
        self._titled = False
        if tag == "g":
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None and self._titled:
            classes, said = self.bars[self._open]
            self.bars[self._open] = (classes, said + data)


def assert_drawn(verdict: Verdict) -> None:
    page = timeline.page(verdict)
    parsed = Parsed(page)
    assert parsed.links == []
    (stuck,) = (n for n, (classes, _) in parsed.bars.items() if "stuck" in classes)
    assert stuck == verdict.stuck
    said = parsed.bars[stuck][1]
    assert "reply: " in said and "the model's reply, if it came next: " in said
    for n, (classes, _) in parsed.bars.items():
        assert ("open" in classes) == (n not in verdict.order)
        assert ("lost" in classes) == (verdict.history[n].returned is None)
    assert re.search(r'<tspan class="place">\d+</tspan>', page)


def test_a_picture_without_a_violation_has_no_red() -> None:
    calls = [Call("a", 0, 2000, 5, ops.Put("q", "<b>", "k", ""), "<b>"), Call("b", 1000, 3000, 6, ops.Length("q"), 0)]
    page = timeline.page(check(calls))
    assert [classes for classes, _ in Parsed(page).bars.values()] == [["bar"], ["bar", "read"]]
    assert "<b>" not in page
