"""What all parts of a run share: the baton, the network, chance, the settings, and the oracles."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, BinaryIO, Final

from qmodel import runtime
from qmodel.simulator import strands
from qmodel.simulator.baton import EPOCH, Baton, Killed
from qmodel.simulator.loop import Loop
from qmodel.simulator.net import Net
from qmodel.simulator.oracles import Oracles
from qmodel.simulator.settings import Settings
from qmodel.simulator.sockets import Selector, connection_class, socketpair

MOST_ASKED: Final = 3000
SOON: Final = 0.01
"""How often a thread may read the clock in so many virtual seconds."""


class Scene:
    """The parts that a run shares. `names` are those of all client processes."""

    def __init__(self, seed: str, settings: Settings, dump: BinaryIO | None) -> None:
        self.seed = seed
        self.settings = settings
        self.chance = Random(f"{seed} world")
        self.names: list[str] = []
        self.failing = True
        self.baton = Baton(Random(f"{seed} schedule"), settings.pauses)
        self.net = Net(self.baton, Random(f"{seed} network"), settings.weather, dump)
        self.oracles = Oracles(lambda: self.baton.now, lambda: self.net.faulted_at)

    def machine(self) -> dict[str, Any]:
        """Give what stands in place of the names of `runtime`. Threads that are no strands have the machine itself."""
        return {name: self._for_strands(made, getattr(runtime, name)) for name, made in self._simulated().items()}

    def _for_strands(self, simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*args: Any, **named: Any) -> Any:
            act = simulated if self.baton.runs_here() else real
            return act(*args, **named)

        return chosen

    def _simulated(self) -> dict[str, Callable[..., Any]]:
        baton, ids = self.baton, Random(f"{self.seed} ids")
        redis_class = connection_class(baton, self.net)
        return {
            "monotonic": self._monotonic,
            "time_ns": lambda: int((EPOCH + baton.now + baton.current.process.skew) * 1e9),
            "sleep": self.sleep,
            "random": ids.random,
            "uniform": ids.uniform,
            "sample": ids.sample,
            "urandom": ids.randbytes,
            "token_hex": lambda size: ids.randbytes(size).hex(),
            "randbelow": ids.randrange,
            "getpid": lambda: 1,
            "Thread": lambda **given: strands.Thread(baton, **given),
            "Event": lambda: strands.Event(baton),
            "Lock": lambda: strands.Lock(baton),
            "SimpleQueue": lambda: strands.SimpleQueue(baton),
            "current_thread": lambda: baton.current.thread,
            "get_ident": lambda: baton.current.number,
            "raise_in": baton.raise_in,
            "new_event_loop": self.new_loop,
            "selector": lambda: Selector(baton),
            "socketpair": lambda: socketpair(baton),
            "connection_class": lambda cls: redis_class if cls.__name__ == "Connection" and _blocks(cls) else cls,
        }

    def _monotonic(self) -> float:
        """Read the clock. A thread that reads it without end, and does not wait, uses all of a processor."""
        me, now = self.baton.current, self.baton.now
        if now - me.asked_since > SOON:
            me.asked, me.asked_since = 0, now
        me.asked += 1
        if me.asked > MOST_ASKED:
            self.oracles.found(
                "no thread spins", f"{me.process.name}/{me.name} read the clock {me.asked} times at once"
            )
            self.sleep(SOON)
        self.baton.pause()
        return self.baton.now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        until = self.baton.now + max(seconds, 0.0)
        while self.baton.now < until:
            self.baton.block(until)

    def new_loop(self) -> Loop:
        """Make an event loop."""
        return Loop(self.baton, self.net)

    def run_loop(self, main: Coroutine[Any, Any, None]) -> None:
        """Run an event loop in this strand. A killed process leaves no coroutine that would clean up later."""
        loop = self.new_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(main)
        except Killed:
            with contextlib.suppress(BaseException):
                main.close()
            raise

    def draw_skew(self) -> float:
        """Draw the error of a process's clock."""
        return self.chance.uniform(-1, 1) * self.settings.skew


def _blocks(cls: Any) -> bool:
    return not cls.__module__.startswith("redis.asyncio")
