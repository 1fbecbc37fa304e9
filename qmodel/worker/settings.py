"""The settings of a worker, validated when they are made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from qmodel.contract.arguments import MOST, Name
from qmodel.worker.fetch import ORDERS, Order

LEAST: Final = 16 << 20
"""The minimum memory limit, in bytes: a smaller number is a mistake in the unit."""

Runners = Literal["thread", "async", "fork"]
RUNNERS: Final = ("thread", "async", "fork")


def made_name(pid: int, number: int) -> str:
    """Make the name of a worker without a given one; `number` counts the workers of a process."""
    return f"{os.uname().nodename[:80]}-{pid}" + ("" if number == 1 else f"-{number}")


def check_name(name: str | None, processes: int) -> None:
    """Refuse a given name that no worker can have. Raises ValueError."""
    if name and not Name().accepts(f"{name}-{processes}" if processes > 1 else name):
        raise ValueError(f"A worker cannot have the name {name!r}. It must be {Name().expected}.")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that `Worker` describes."""

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
    burst: bool = False

    def __post_init__(self) -> None:
        for right, sentence in self._checks():
            if not right:
                raise ValueError(sentence)

    def _checks(self) -> list[tuple[bool, str]]:
        bad = [name for name in self.queues if not Name().accepts(name)]
        unknown = sorted(self.weights.keys() - set(self.queues))
        return [
            (bool(self.queues), "A worker needs at least one queue."),
            (not bad, f"Not a valid queue name: {bad[:1]}."),
            (len(self.queues) <= MOST, f"A worker takes jobs of at most {MOST} queues."),
            (self.order in ORDERS, f"order must be one of {', '.join(ORDERS)}, not {self.order!r}."),
            (not unknown, f"A weight is given for {', '.join(unknown)}, which is not one of the queues."),
            (all(weight > 0 for weight in self.weights.values()), "Weights must be above 0."),
            (not self.weights or self.order == "weighted", "Weights need order='weighted'."),
            (0 < self.concurrency <= MOST, f"concurrency must be from 1 to {MOST}, not {self.concurrency}."),
            (self.runner in RUNNERS, f"runner must be one of {', '.join(RUNNERS)}, not {self.runner!r}."),
            (0 < self.processes <= MOST, f"processes must be from 1 to {MOST}, not {self.processes}."),
            (self.prefetch is None or 0 <= self.prefetch <= MOST, f"prefetch must be from 0 to {MOST}."),
            (self.grace >= 0, "grace must be a number of seconds, at least 0."),
            (self._ports_are_valid, "The health ports, one for each process, must be from 0 to 65535."),
            (self.memory is None or self.runner == "fork", "A memory limit needs runner='fork'."),
            (
                self.memory is None or self.memory >= LEAST,
                f"memory must be at least {LEAST >> 20} MB, such as 512M, not {self.memory} bytes.",
            ),
        ]

    @property
    def _ports_are_valid(self) -> bool:
        return self.health is None or 0 <= self.health[1] <= 65536 - self.processes

    def for_process(self, index: int) -> Settings:
        """Derive the settings of one of several processes, with its own port."""
        port = None if self.health is None else (self.health[0], self.health[1] + index)
        return replace(self, processes=1, health=port)
