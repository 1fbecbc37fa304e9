"""Wait for wake-ups of the shards of a deployment.

One thread waits for all armed shards: a BLPOP on a connection for each, and one selector. A wake-up is for one worker.
One that reaches a worker without a free slot is kept for `HELD` seconds, in which a job may end; then it is pushed back
for another worker. A worker that is quiet or stops pushes it back at once.

Another thread looks at shards for what wakes nobody (shard_looks.py). And it looks whether nodes that were away answer
again, so that the worker itself never waits for one. That goes on while a worker that stops finishes its jobs: a report
that a node did not answer is sent again when the node is back.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from qmodel import runtime
from qmodel.contract.operations import Newest
from qmodel.worker.next_job import LONGEST_SLEEP
from qmodel.worker.shard_looks import ShardLooks

log = logging.getLogger("qmodel.worker")

HELD: Final = 0.02
"""Seconds for which a worker without a free slot keeps a wake-up."""

REST: Final = 0.01
"""Seconds for which a shard rests that has given all it has (turns.py)."""

_JOIN: Final = 1.5
"""Maximum seconds to wait for the threads at the end."""

_AWAY: Final = 0.5
"""Seconds between two looks at a node that is away."""


class ShardWakeUps:
    """Calls `on_wake_up` with a shard that may have a job, once after each `arm`, and `on_return` with one that was
    away.
    """

    def __init__(
        self,
        backend: Any,
        queues: Sequence[str],
        shards: Sequence[int],
        worker: str,
        on_wake_up: Callable[[int], None],
        on_return: Callable[[int], None],
        on_rested: Callable[[int], None],
        is_busy: Callable[[], bool],
    ) -> None:
        self.closed = self.paused = self._over = False
        self._is_busy = is_busy
        self._backend, self._queues = backend, tuple(queues)
        self._looks = ShardLooks(backend, queues, shards, worker)
        self._on_wake_up, self._on_return, self._on_rested = on_wake_up, on_return, on_rested
        self._to_arm: deque[int] = deque()
        self._armed: set[int] = set()
        self._held: dict[int, tuple[float, Any]] = {}
        self._resting: deque[tuple[float, int]] = deque()
        self._reader, self._writer = runtime.socketpair()
        self._reader.setblocking(False)
        self._away: set[int] = set()
        self._at_once: deque[int] = deque()
        self._tried_at = -_AWAY
        self._poke = runtime.Event()
        self._threads = [
            runtime.Thread(target=run, name=name, daemon=True)
            for name, run in (("qmodel-wake-ups", self._run), ("qmodel-looks", self._run_looks))
        ]

    # ---- what the worker calls

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def arm(self, shard: int, look: bool) -> None:
        """Ask for a wake-up of a shard; `look` also finds out when a job becomes ready there."""
        self._armed.add(shard)
        self._to_arm.append(shard)
        self._looks.forget(shard, soon=not look)
        if look:
            self._at_once.append(shard)
            self._poke.set()
        self._stir()

    def use(self, shard: int) -> None:
        """Note that the worker asks a shard for jobs: it uses the wake-up that it got."""
        self._held.pop(shard, None)

    def let_rest(self, shard: int) -> None:
        """Open a shard that has given all it has in a moment: until then a job of it may end (see `Turns`)."""
        self._resting.append((runtime.monotonic() + REST, shard))
        self._stir()

    def watch(self, shard: int) -> None:
        """Find out when the node of a shard answers again."""
        self._away.add(shard)
        self._poke.set()

    def close(self) -> None:
        """Stop waiting, and push back wake-ups that come. Nodes that are away are still looked at."""
        self.closed = True
        self._poke.set()
        self._stir()

    def join(self, gives_back: bool) -> None:
        """Close, and wait until no wake-up can arrive if the worker then gives jobs back: it would wake itself."""
        self.close()
        if gives_back:
            self._wait_for_threads()

    def finish(self) -> None:
        """Wait until nothing is awaited any more."""
        self._wait_for_threads()

    def _wait_for_threads(self) -> None:
        self._over = True
        self._poke.set()
        for thread in self._threads:
            if thread is not runtime.current_thread() and thread.is_alive():
                thread.join(_JOIN)

    def _stir(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.send(b"x")

    # ---- wake-ups

    def _run(self) -> None:
        armed = self._backend.armed()
        armed.watch(self._reader)
        while not self.closed:
            try:
                for shard, reply in armed.ring(REST if self._held or self._resting else LONGEST_SLEEP):
                    self._rung(armed, shard, reply)
                for shard in armed.give_up():
                    self._wake(shard)
                self._arm(armed)
                self._pass_on(armed)
            except Exception:  # a worker without wake-ups would never work again
                if not self.closed:
                    log.exception("Waiting for wake-ups failed; the worker looks for jobs instead.")
                    runtime.sleep(_AWAY)
        for shard, (_, reply) in self._held.items():
            armed.give_back(shard, reply)
        armed.disarm()
        self._reader.close()
        self._writer.close()

    def _arm(self, armed: Any) -> None:
        while self._to_arm:
            shard = self._to_arm.popleft()
            if shard not in armed.pending and not armed.arm(shard, self._backend.wake_command(shard, self._queues)):
                self._wake(shard)  # the worker finds out that the node is away

    def _rung(self, armed: Any, shard: int, reply: Any) -> None:
        if isinstance(reply, list):
            self._looks.woken(shard)
            if self.paused or self.closed:
                armed.give_back(shard, reply)
            elif self._is_busy():
                self._held[shard] = runtime.monotonic() + HELD, reply
        self._wake(shard)

    def _pass_on(self, armed: Any) -> None:
        now = runtime.monotonic()
        while self._resting and self._resting[0][0] <= now:
            self._on_rested(self._resting.popleft()[1])
        for shard, (until, _) in list(self._held.items()):
            if now >= until and (kept := self._held.pop(shard, None)) is not None and self._is_busy():
                armed.give_back(shard, kept[1])

    def _wake(self, shard: int) -> None:
        self._armed.discard(shard)
        self._on_wake_up(shard)

    # ---- looks

    def _run_looks(self) -> None:
        while not self._over:
            self._poke.wait(self._until_next_look())
            self._poke.clear()
            if self._over:
                return
            try:
                self._look()
            except Exception:
                if not self._over:
                    log.exception("Looking at the shards failed; it will be repeated.")
                    runtime.sleep(_AWAY)

    def _until_next_look(self) -> float | None:
        """Compute the seconds until the next look; None if there is none before `watch` or the end."""
        moments = [self._tried_at + _AWAY] if self._away else []
        if not self.closed:
            moments.append(self._looks.until_next())
        return max(min(moments) - runtime.monotonic(), 0.001) if moments else None

    def _look(self) -> None:
        now = runtime.monotonic()
        for shard in self._looks.due(now):
            self._open(shard)
        if now - self._tried_at >= _AWAY:
            self._look_at_nodes()
            self._tried_at = runtime.monotonic()
        if self.paused or self.closed:
            return
        if self._looks.meeting not in self._away and self._looks.meet(now):
            self._open(self._looks.meeting)
        armed = self._armed.copy()
        at_once = {self._at_once.popleft() for _ in range(len(self._at_once))}
        self._looks.look_at(((at_once & armed) | self._looks.listed(now, armed)) - self._away)

    def _open(self, shard: int) -> None:
        if shard in self._armed:
            self._wake(shard)

    def _look_at_nodes(self) -> None:
        """Find out which nodes that were away answer again; one shard of each is asked."""
        for shard in list(self._away):
            if shard in self._away and self._looks.read([(shard, Newest())]):
                for back in self._backend.neighbours(shard):
                    if back in self._away:
                        self._away.discard(back)
                        self._on_return(back)
