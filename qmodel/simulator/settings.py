"""The settings of a run, drawn by its seed.

Drawn settings find more than long runs: each seed has few kinds of faults, some none, at rates that differ by orders of
magnitude (swarm testing: Groce et al., ISSTA 2012).
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

from qmodel.simulator.net import Weather

EXTRAS: Final = (
    "fair", "flows", "kept", "ordered", "recurring", "requests", "retries", "throttles", "ttl", "unique",
)  # fmt: skip
"""What jobs may have besides a queue, a priority and a delay. `workload.py` says how each is drawn."""


class Settings(NamedTuple):
    """What happens in a run. Times are virtual seconds; a fault that comes `every` 0 seconds never comes."""

    seconds: float = 60.0
    pauses: float = 0.0
    weather: Weather = Weather()
    lease: float = 1.0
    producers: int = 1
    consumers: int = 1
    workers: int = 1
    concurrency: int = 1
    runner: str = "thread"
    rate: float = 3.0
    limit: int = 0
    slow_jobs: float = 0.1
    failing_jobs: float = 0.1
    lies: bool = False
    tail: float = 0.5
    skew: float = 0.0
    snapshot_every: int = 100_000
    lua: bool = False
    inner_errors: float = 0.0
    crash_every: float = 0.0
    crashes: tuple[str, ...] = ("kill", "power")
    part_every: float = 0.0
    cut_every: float = 0.0
    fill_every: float = 0.0
    nodes: int = 0
    move_every: float = 0.0
    evict_every: float = 0.0
    stop_every: float = 0.0
    kill_every: float = 0.0
    burst: int = 0
    extras: tuple[str, ...] = ()


def drawn(seed: str, seconds: float = 60.0) -> Settings:
    """Draw the settings of a seed. In a fifth of them nothing fails: those are the strictest on leases and delays."""
    chance = Random(f"{seed} settings")
    is_calm = chance.random() < 0.2
    base = _workload(chance, seconds)
    base = _with_extras(Random(f"{seed} extras"), base)
    if not is_calm:
        base = _failing(chance, base)
    if chance.random() < 0.15:
        return _with_lua(chance, base)
    return _with_nodes(chance, base) if chance.random() < 0.1 else base


def _workload(chance: Random, seconds: float) -> Settings:
    pick = chance.choice
    base = Settings(
        seconds=seconds,
        pauses=pick((0.0, 0.02, 0.2)),
        weather=Weather(pick((0.0002, 0.001)), pick((0.0, 0.05)), pick((0.01, 0.2))),
        lease=pick((0.8, 2.0)),
        producers=pick((1, 2)),
        consumers=pick((0, 1, 2)),
        workers=pick((1, 2, 2, 3)),
        concurrency=pick((1, 1, 2, 4)),
        runner=pick(("thread", "thread", "async")),
        rate=pick((0.3, 1.0, 4.0)),
        limit=pick((0, 0, 2)),
        slow_jobs=pick((0.0, 0.1, 0.3)),
        failing_jobs=pick((0.0, 0.2)),
        lies=chance.random() < 0.5,
        tail=pick((0.05, 0.3, 1.0, 3.0)),
        skew=pick((0.0, 0.0, 0.3)),
        snapshot_every=pick((50, 100_000)),
    )
    return base._replace(rate=min(base.rate, _most(base)))


def _with_extras(chance: Random, base: Settings) -> Settings:
    """Draw what jobs have besides, nothing in half of the seeds; and how many come at once now and then."""
    share = chance.choice((0.0, 0.0, 0.15, 0.4))
    extras = tuple(name for name in EXTRAS if chance.random() < share)
    return base._replace(extras=extras, burst=chance.choice((0, 0, 0, 25)))


def _failing(chance: Random, base: Settings) -> Settings:
    pick = chance.choice
    return base._replace(
        weather=base.weather._replace(lose=pick((0.0, 0.002, 0.02))),
        crash_every=pick((0.0, 1.5, 5.0, 15.0)),
        crashes=("tail", "failover") if base.lies else ("kill", "power"),
        part_every=pick((0.0, 0.0, 5.0, 20.0)),
        cut_every=pick((0.0, 0.0, 3.0)),
        fill_every=pick((0.0, 0.0, 20.0)),
        evict_every=pick((0.0, 0.0, 4.0)),
        stop_every=pick((0.0, 0.0, 10.0)),
        kill_every=pick((0.0, 0.0, 15.0)),
    )


def _with_lua(chance: Random, base: Settings) -> Settings:
    """Put the Lua library behind the server; its state is copied as a whole, so not too often."""
    return base._replace(
        lua=True,
        inner_errors=chance.choice((0.0, 0.02, 0.1)) if base.crash_every or base.cut_every else 0.0,
        tail=max(base.tail, 1.0),
        rate=min(base.rate, 1.0),
        crashes=("tail", "split") if base.lies else ("kill",),
        fill_every=0.0,
    )


def _with_nodes(chance: Random, base: Settings) -> Settings:
    """Put the jobs on a cluster: `nodes` pairs of a master and a replica, and slots that move. There is no journal."""
    return base._replace(
        seconds=0.6 * base.seconds,  # so that such a seed takes no longer than others
        nodes=chance.choice((2, 3)),
        move_every=chance.choice((1.0, 2.0, 8.0)),
        rate=min(base.rate, 1.0),
        limit=0,
        extras=(),
        tail=max(base.tail, 0.3),
        crashes=("failover", "split") if base.lies else ("kill",),
        fill_every=0.0,
    )


def _most(settings: Settings) -> float:
    """Give the most jobs that each producer may put in a second: 0.7 of what the workers can perform."""
    seconds = 0.1 + settings.slow_jobs * 4.5 * settings.lease
    slots = settings.workers * settings.concurrency
    slots = min(slots, 2 * settings.limit) if settings.limit else slots
    return 0.7 * slots / seconds / settings.producers
