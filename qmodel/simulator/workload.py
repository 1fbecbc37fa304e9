"""What producers ask for: the jobs, their options, and the groups of jobs that a seed draws.

Half of the seeds put plain jobs. The others use a few `EXTRAS` (settings.py) besides: options of single jobs, several
jobs in one step, requests and recurring jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from qmodel.client.aio import AsyncClient
from qmodel.contract import operations as ops
from qmodel.contract.arguments import Edge
from qmodel.contract.operations import Operation
from qmodel.simulator.settings import Settings

QUEUES: Final = ("first", "second")
KLASS: Final = "work"

CONCURRENCY: Final = {"pool": 2, "customer/1": 1, "customer/2": 1}
"""How many jobs may run at once that name a throttle; the last two are of a family."""

PART: Final = 0.3
"""How many of the jobs have an option of an extra, and how many of the puts are of a group of jobs."""


class Workload:
    """Draws what the producers put."""

    def __init__(self, chance: Random, settings: Settings) -> None:
        self._chance = chance
        self._settings = settings

    def options_of_the_namespace(self) -> list[Operation]:
        """List what is set once, before anything fails."""
        settings = self._settings
        found: list[Operation] = [
            ops.ConfigSet("heartbeat", int(settings.lease * 1000)),
            ops.ConfigSet("grace-period", 0),
        ]
        if settings.limit:
            found += [ops.ThrottleSet(f"queue/{queue}", settings.limit) for queue in QUEUES]
        if "fair" in settings.extras:
            found.append(ops.ConfigSet(f"fair-{QUEUES[0]}", 1))
        if "throttles" in settings.extras:
            found += [
                ops.ThrottleSet("pool", concurrency=CONCURRENCY["pool"]),
                ops.ThrottleSet("customer/*", concurrency=1),
                ops.ThrottleSet("spent", capacity=4, refill=2, refill_ms=1000),
            ]
        return found

    # ---- single jobs

    def job(self) -> tuple[str, str, dict[str, Any]]:
        """Draw a job: its queue, how it behaves, and its options."""
        chance = self._chance
        how = self.how()
        options: dict[str, Any] = {"retries": 30}
        if chance.random() < 0.1:
            options["delay"] = chance.random() * 2
        if chance.random() < 0.2:
            options["priority"] = chance.randrange(3)
        queue = chance.choice(QUEUES)
        for name in self._settings.extras:
            if name in _OPTIONS and chance.random() < PART:
                options |= _OPTIONS[name](chance)
        return queue, how, options

    def how(self) -> str:
        """Draw how a job behaves."""
        settings = self._settings
        weights = settings.slow_jobs, settings.failing_jobs, 1 - settings.slow_jobs - settings.failing_jobs
        (how,) = self._chance.choices(("slow", "fails", "quick"), weights)
        return how

    # ---- groups of jobs

    async def group(self, client: AsyncClient, name: str) -> bool:
        """Put a group of jobs, perhaps; say whether."""
        chance, settings = self._chance, self._settings
        if settings.burst and chance.random() < 0.1:
            await self._burst(client)
            return True
        for extra in settings.extras:
            if extra in _GROUPS and chance.random() < PART:
                await _GROUPS[extra](self, client, name)
                return True
        return False

    async def _burst(self, client: AsyncClient) -> None:
        """Put many jobs at once. Most take no time, so workers pop some before they begin them."""
        queue = client.queues[self._chance.choice(QUEUES)]
        kinds = self._chance.choices(("instant", self.how()), (0.9, 0.1), k=self._settings.burst)
        await client.put_many([queue.new(KLASS, {"how": how}, retries=30) for how in kinds])

    async def _flow(self, client: AsyncClient, name: str) -> None:
        """Put a job, and one that depends on it, which goes on or fails if the first one fails."""
        first, second = (client.queues[queue] for queue in self._chance.choices(QUEUES, k=2))
        child = first.new(KLASS, {"how": self.how()}, retries=30)
        edge = Edge(child.jid, self._chance.choice(("fail", "ignore")))
        await client.put_many([second.new(KLASS, {"how": self.how()}, retries=30, depends=edge), child])

    async def _request(self, client: AsyncClient, name: str) -> None:
        """Make a request; some must end by themselves, at a deadline or because their producer does not close them."""
        chance = self._chance
        ends: dict[str, Any] = {"lease": 4.0, "fail_fast": chance.random() < 0.3}
        if chance.random() < 0.5:
            ends["deadline"] = chance.uniform(0.5, 10.0)
        one = client.request(f"request-{name}", chance.choice(QUEUES), limit=chance.randrange(1, 3), **ends)
        await one.__aenter__()
        for _ in range(chance.randrange(1, 5)):
            await one.add(KLASS, {"how": self.how()}, retries=30)
        if chance.random() < 0.7:
            await one.close()

    async def _recurring(self, client: AsyncClient, name: str) -> None:
        """Let a job recur for a few seconds."""
        chance = self._chance
        await client.queues[chance.choice(QUEUES)].recur(
            KLASS,
            {"how": "quick"},
            jid=f"recurring-{name}",
            interval=chance.uniform(0.5, 3.0),
            limit=chance.randrange(1, 5),
            overlap=chance.choice(("allow", "skip")),
            missed=chance.choice(("all", "one")),
            retries=30,
        )


def _kept(chance: Random) -> dict[str, Any]:
    return chance.choice(({"keep_newest": 3}, {"keep_complete": 0}, {"keep_complete": 5.0}))


def _unique(chance: Random) -> dict[str, Any]:
    mode = chance.choice(("pending", "window", "debounce", "again"))
    longest = {"window": {"unique_for": 2.0}, "debounce": {"unique_max": 5.0}}.get(mode, {})
    return {"unique": f"key-{chance.randrange(4)}", "unique_mode": mode, **longest}


_OPTIONS: Final[dict[str, Callable[[Random], dict[str, Any]]]] = {
    "fair": lambda chance: {"fair_key": chance.choice("abc"), "fair_weight": chance.choice((1, 3))},
    "kept": _kept,
    "ordered": lambda chance: {"ordered": chance.choice(("left", "right"))},
    "retries": lambda chance: {"retry_delay": 0.3, "retry_delay_max": 2.0, "max_lapses": chance.choice((None, 2))},
    "throttles": lambda chance: {"throttles": chance.choice(("pool", "customer/1", "customer/2", "spent")), "cost": 2},
    "ttl": lambda chance: {"ttl": chance.uniform(0.5, 10.0)},
    "unique": _unique,
}

_GROUPS: Final[dict[str, Callable[[Workload, AsyncClient, str], Any]]] = {
    "flows": Workload._flow,
    "recurring": Workload._recurring,
    "requests": Workload._request,
}
