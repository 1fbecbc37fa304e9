"""The baton: one thread runs at a time, chance decides which, and time moves only when none can run.

Each simulated thread (a *strand*) is a real thread that waits for its own gate. To block means to pass the baton on: to
a strand that is ready, chosen by chance, or, if none is, to the next moment at which something happens. The primitives
of threading in `strands.py` are built on `block` and `wake` alone.

A strand can lose the baton only where it blocks, or where it `pause`s. The primitives pause with a probability that is
drawn for each run, because some orders of events need a switch in the middle of a few lines, and others need none.

A *process* is a group of strands that dies as one: `Killed` is raised in each of them where it blocks next, as often as
it blocks again.
"""

from __future__ import annotations

import _thread
import heapq
from collections.abc import Callable
from random import Random
from typing import Any, Final

EPOCH: Final = 1_700_000_000.0
"""The time at which every run begins, in seconds since 1970."""

TICK: Final = 1e-6
"""Seconds that pass with each switch, so that no loop can run for ever within one moment."""


class Killed(BaseException):
    """This strand's process was killed, or the run is over."""


class Deadlock(BaseException):
    """All strands wait, and nothing will ever happen. It is raised in the main strand."""


class Process:
    """A group of strands that dies as one. `skew` is the error of its clock in seconds."""

    def __init__(self, name: str, skew: float = 0.0) -> None:
        self.name = name
        self.skew = skew
        self.dead = False
        self.at_death: list[Callable[[], None]] = []


class Strand:
    """A simulated thread."""

    __slots__ = (
        "asked", "asked_since", "gate", "name", "number", "over", "process", "raises", "ready", "thread", "turn",
        "woken",
    )  # fmt: skip

    def __init__(self, number: int, name: str, process: Process) -> None:
        self.number = number
        self.name = name
        self.process = process
        self.gate = _thread.allocate_lock()
        self.gate.acquire()
        self.thread: Any = None
        self.ready = self.woken = self.over = False
        self.turn = 0
        self.asked = 0
        self.asked_since = 0.0
        self.raises: type[BaseException] | None = None


class Baton:
    """Passes the baton between strands. The strand that makes it is the main one, and belongs to no failing process."""

    def __init__(self, chance: Random, pauses: float) -> None:
        self.now = 0.0
        self.switches = 0
        self.errors: list[str] = []
        self.ending = False
        self._chance = chance
        self._pauses = pauses
        self._ready: list[Strand] = []
        self._ahead: list[tuple[float, int, Strand | None, int, Callable[[], None] | None]] = []
        self._numbers = 0
        self.strands: dict[int, Strand] = {}
        self.current = self.main = Strand(0, "main", Process("main"))
        self.strands[0] = self.main
        self._idents = {_thread.get_ident()}
        self._nobody = Strand(-1, "nobody", Process("nobody"))

    # ---- strands

    def start(self, name: str, process: Process, run: Callable[[], object]) -> Strand:
        """Start a strand."""
        self._numbers += 1
        strand = Strand(self._numbers, name, process)
        self.strands[strand.number] = strand

        def body() -> None:
            self._idents.add(_thread.get_ident())
            strand.gate.acquire()
            try:
                if not process.dead:
                    run()
            except Killed:
                pass
            except BaseException as error:  # as the interpreter does: the thread ends, and the process continues
                if not process.dead:
                    self.errors.append(f"{process.name}/{name}: {type(error).__name__}: {error}")
            strand.over = True
            del self.strands[strand.number]
            self._idents.discard(_thread.get_ident())
            self._next().gate.release()

        _thread.start_new_thread(body, ())
        self.wake(strand)
        return strand

    def runs_here(self) -> bool:
        """Whether this thread is one of the strands. A process may have threads that nobody simulates."""
        return _thread.get_ident() in self._idents

    def kill(self, process: Process) -> None:
        """Kill a process: its strands end where they block next."""
        if process.dead:
            return
        process.dead = True
        for act in process.at_death:
            act()
        for strand in list(self.strands.values()):
            if strand.process is process:
                self.wake(strand)

    def end(self) -> None:
        """Kill everything, and wait until every other strand has ended. Only the main strand may call it."""
        self.ending = True
        for strand in list(self.strands.values()):
            self.kill(strand.process) if strand is not self.main else None
        while len(self.strands) > 1:
            self.block(self.now + 1.0)

    # ---- the baton

    def block(self, until: float | None = None) -> bool:
        """Wait until woken (True), or until a moment (False)."""
        me = self.current
        self._check(me)
        me.turn += 1
        me.woken = False
        if until is not None:
            heapq.heappush(self._ahead, (until, self._number(), me, me.turn, None))
        self._pass_on(me)
        return me.woken

    def pause(self) -> None:
        """Let chance decide whether another strand runs first."""
        if self._pauses and self._chance.random() < self._pauses:
            self.give_way()

    def give_way(self) -> None:
        """Let every strand that is ready have a chance to run first."""
        me = self.current
        self._check(me)
        me.turn += 1
        me.ready = True
        self._ready.append(me)
        self._pass_on(me)

    def wake(self, strand: Strand) -> None:
        """Make a strand ready."""
        if not (strand.ready or strand.over or strand is self.current):
            strand.ready = strand.woken = True
            strand.turn += 1
            self._ready.append(strand)

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Do something at a moment, in whichever strand has the baton; it must not block."""
        heapq.heappush(self._ahead, (max(moment, self.now), self._number(), None, 0, act))

    def raise_in(self, number: int, error: type[BaseException]) -> None:
        """Raise an exception in a strand when it has the baton again."""
        strand = self.strands.get(number)
        if strand is not None:
            strand.raises = error

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _pass_on(self, me: Strand) -> None:
        following = self._next()
        if following is not me:
            following.gate.release()
            me.gate.acquire()
        self._check(me)

    def check(self) -> None:
        """Raise what this strand is due, as `Killed`."""
        self._check(self.current)

    def _check(self, me: Strand) -> None:
        if me.process.dead and me is not self.main:
            raise Killed
        if me.raises is not None:
            error, me.raises = me.raises, None
            raise error

    def _next(self) -> Strand:
        """Take the strand that runs next; move the clock if none is ready."""
        self.current = self._nobody  # the strand that passes the baton on can be woken by what happens here
        self.switches += 1
        self.now += TICK
        ahead, ready = self._ahead, self._ready
        while not ready or (ahead and ahead[0][0] <= self.now):
            if not ahead:
                self.main.raises = Deadlock
                ready.append(self.main)
                break
            moment, _, strand, turn, act = heapq.heappop(ahead)
            if moment > self.now:
                self.now = moment
            if act is not None:
                act()
            elif strand is not None and strand.turn == turn and not strand.ready:
                strand.ready = True
                ready.append(strand)
        place = int(self._chance.random() * len(ready)) if len(ready) > 1 else 0
        following = ready[place]
        ready[place] = ready[-1]
        ready.pop()
        following.ready = False
        self.current = following
        return following
