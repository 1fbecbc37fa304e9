"""Look at the shards of a deployment for what wakes nobody: a delay, a lease, a limit or a pause that ends by itself.

A look asks an armed shard when its next job becomes ready; the worker opens the shard at that moment. Looks are made
once a second, and are few:

- Of all workers, one looks after each shard, by its name and theirs, so that the looks do not grow with the number of
  workers. Each worker also looks at every shard once in `ROUND` seconds, because others may serve other queues, and
  after each of its own turns there.
- A look begins with one plain command for each shard, which tells whether a queue has anything that is ready or becomes
  ready. Most shards have nothing, and a call of the library costs the server many times as much.
- What a look has found where only leases and delays end stays true for half a lease, at most `ROUND` seconds: a lease
  that is taken later ends later, and the first job on a schedule wakes a worker.

Workers know each other from the list of workers in the first shard that they serve. A worker that sleeps takes no jobs
and would vanish from the list, so it asks that shard for jobs once in `BEAT` seconds.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from qmodel import runtime
from qmodel.contract.operations import Multiget, Workers
from qmodel.contract.replies import Job, QueueCounts
from qmodel.errors import ConnectError
from qmodel.model.deployment.plans import Call
from qmodel.worker.next_job import LONGEST_SLEEP, NextJob

PATIENCE: Final = 1.0
"""Seconds after which a node that does not answer is away."""

ROUND: Final = 15
"""Seconds in which each worker looks at each of its armed shards at least once."""

BEAT: Final = 10.0
"""Seconds between two pops by which a worker that sleeps stays on the list of workers; it reads the list as often."""

_GONE: Final = 25_000
"""Milliseconds after which a worker that was not seen looks after no shard any more."""


class ShardLooks:
    """Knows at which moments shards have to be opened."""

    def __init__(self, backend: Any, queues: Sequence[str], shards: Sequence[int], worker: str) -> None:
        self._backend, self._queues, self._worker = backend, tuple(queues), worker
        self.meeting = min(shards)
        """The shard in which workers see each other."""
        self._soon: deque[int] = deque()
        self._next: dict[int, NextJob] = {}
        self._due: dict[int, float] = {}
        self._known: dict[int, float] = {}
        self._workers: tuple[str, ...] = ()
        self._workers_at = self._looked_at = -BEAT
        self._turn = runtime.sample(list(range(ROUND)), 1)[0]

    def forget(self, shard: int, soon: bool) -> None:
        """Note that a shard was armed: what was known of it may be wrong. `soon` looks at it within a second."""
        self._known.pop(shard, None)
        if soon:
            self._soon.append(shard)

    def woken(self, shard: int) -> None:
        """Note a wake-up of a shard."""
        if shard in self._next:
            self._next[shard].woken()

    def until_next(self) -> float:
        """The moment of the next look, or of the first shard that is due."""
        return min(self._looked_at + LONGEST_SLEEP, *self._due.values(), float("inf"))

    def due(self, now: float) -> list[int]:
        """Take the shards that a job becomes ready in now."""
        found = [shard for shard, at in self._due.items() if at <= now]
        for shard in found:
            del self._due[shard]
        return found

    def listed(self, now: float, armed: set[int]) -> set[int]:
        """List the armed shards that are to be looked at now."""
        if now - self._looked_at < LONGEST_SLEEP:
            return set()
        self._looked_at = now
        self._turn += 1
        mine = {shard for shard in armed if self.is_mine(shard) or not (shard + self._turn) % ROUND}
        soon = {self._soon.popleft() for _ in range(len(self._soon))}
        return {shard for shard in (mine | soon) & armed if self._known.get(shard, now) <= now}

    def look_at(self, shards: set[int]) -> None:
        """Find out when a job becomes ready in some armed shards."""
        if not shards:
            return
        order = sorted(self._backend.may_become_ready(shards, self._queues, PATIENCE))
        asked = {shard: self._next.setdefault(shard, NextJob(self._queues)) for shard in order}
        found = self.read([(shard, op) for shard in order for op in asked[shard].asked])
        running = [(shard, jids) for shard in order if (jids := asked[shard].running(found.get(shard, ())))]
        jobs = self.read([(shard, Multiget(jids)) for shard, jids in running])
        for shard in order:
            if shard in found:
                self._note(shard, found[shard], [job for some in jobs.get(shard, ()) for job in some])

    def _note(self, shard: int, found: Sequence[Any], jobs: Sequence[Job]) -> None:
        now = runtime.monotonic()
        known = _seconds_known(found, jobs)
        seconds = self._next[shard].seconds(found, jobs, known)
        if seconds < known:
            self._due[shard] = now + seconds
        if known > LONGEST_SLEEP:
            self._known[shard] = now + known

    def read(self, asked: Sequence[tuple[int, Any]]) -> dict[int, list[Any]]:
        """Read in several shards; those that do not answer are left out."""
        found: dict[int, list[Any]] = {}
        replies = self._backend.try_calls([Call(shard, op) for shard, op in asked], PATIENCE) if asked else []
        for (shard, _), reply in zip(asked, replies, strict=True):
            found.setdefault(shard, []).append(reply)
        return {shard: some for shard, some in found.items() if not any(isinstance(one, ConnectError) for one in some)}

    # ---- workers

    def meet(self, now: float) -> bool:
        """Read who else looks; say whether it was time, and so also to be seen."""
        if now - self._workers_at < BEAT:
            return False
        self._workers_at = now
        for listed in self.read([(self.meeting, Workers(0, 1000))]).values():
            seen = max((one.seen_at for one in listed[0]), default=0)
            self._workers = tuple(one.name for one in listed[0] if one.seen_at >= seen - _GONE)
        return True

    def is_mine(self, shard: int) -> bool:
        """Whether this worker looks after a shard."""
        ours = _weight(self._worker, shard)
        return all(_weight(name, shard) <= ours for name in self._workers)


def _seconds_known(found: Sequence[Any], jobs: Sequence[Job]) -> float:
    """How long what a look has found stays true, but for what wakes a worker."""
    counts = [one for one in found if isinstance(one, QueueCounts)]
    if any(one.waiting or one.throttled or one.stalled or one.paused for one in counts):
        return LONGEST_SLEEP
    return max(min([ROUND, *((job.expires_at - job.popped_at) / 2000 for job in jobs)]), LONGEST_SLEEP)


def _weight(worker: str, shard: int) -> tuple[int, str]:
    return zlib.crc32(f"{worker} {shard}".encode()), worker
