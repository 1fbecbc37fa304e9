"""What a worker is told, checked when it is told, and the runner that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol

from qmodel.contract.arguments import MOST, Name
from qmodel.worker.attempts import Abort, Attempt
from qmodel.worker.fetch import ORDERS, Order

if TYPE_CHECKING:
    from qmodel.app import App

LEAST: Final = 16 << 20
"""Bytes of memory: who gives less has forgotten the unit."""

Runners = Literal["thread", "async", "fork"]
RUNNERS: Final = ("thread", "async", "fork")


class Runner(Protocol):
    """Performs attempts; each of them is told of when it has ended."""

    def start(self) -> None: ...

    def run(self, attempts: list[Attempt]) -> None: ...

    def waiting(self) -> int: ...

    def take_back(self) -> list[Attempt]: ...

    def abort(self, attempt: Attempt, abort: Abort) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """What `Worker` describes."""

    queues: tuple[str, ...]
    order: Order
    weights: Mapping[str, float]
    concurrency: int
    runner: Runners
    processes: int
    prefetch: int | None
    grace: float
    memory: int | None
    health: tuple[str, int] | None

    def __post_init__(self) -> None:
        for right, sentence in self._checks():
            if not right:
                raise ValueError(sentence)

    def _checks(self) -> list[tuple[bool, str]]:
        bad = [name for name in self.queues if not Name().accepts(name)]
        strange = sorted(self.weights.keys() - set(self.queues))
        return [
            (bool(self.queues), "A worker needs at least one queue."),
            (not bad, f"This is no name of a queue: {bad[:1]}."),
            (len(self.queues) <= MOST, f"A worker takes jobs of at most {MOST} queues."),
            (self.order in ORDERS, f"The order is one of {', '.join(ORDERS)}, and not {self.order!r}."),
            (not strange, f"A weight is given for {', '.join(strange)}, which is not among the queues."),
            (all(weight > 0 for weight in self.weights.values()), "Weights are above 0."),
            (not self.weights or self.order == "weighted", "Weights are of use with order='weighted' only."),
            (0 < self.concurrency <= MOST, f"concurrency is from 1 to {MOST}, and not {self.concurrency}."),
            (self.runner in RUNNERS, f"The runner is one of {', '.join(RUNNERS)}, and not {self.runner!r}."),
            (0 < self.processes <= MOST, f"processes is from 1 to {MOST}, and not {self.processes}."),
            (self.prefetch is None or 0 <= self.prefetch <= MOST, f"prefetch is from 0 to {MOST}."),
            (self.grace >= 0, "grace is a number of seconds, at least 0."),
            (self._ports_are, "The health ports, one for each process, are from 0 to 65535."),
            (self.memory is None or self.runner == "fork", "A limit of memory needs runner='fork'."),
            (
                self.memory is None or self.memory >= LEAST,
                f"memory is {LEAST >> 20} MB at least, such as 512M, and not {self.memory} bytes.",
            ),
        ]

    @property
    def _ports_are(self) -> bool:
        return self.health is None or 0 <= self.health[1] <= 65536 - self.processes

    def alone(self, place: int) -> Settings:
        """Those of one of several processes, with a port of its own."""
        port = None if self.health is None else (self.health[0], self.health[1] + place)
        return replace(self, processes=1, health=port)

    def runner_for(self, app: App, tell: Callable[[Attempt | Callable[[], None]], None]) -> Runner:
        """The runner that was asked for."""
        if self.runner == "thread":
            from qmodel.worker.threads import ThreadRunner

            return ThreadRunner(app, self.concurrency, tell)
        if self.runner == "async":
            from qmodel.worker.loop import AsyncRunner

            return AsyncRunner(app, self.concurrency, tell)
        from qmodel.worker.forks import ForkRunner

        return ForkRunner(app, self.concurrency, tell, self.memory)
