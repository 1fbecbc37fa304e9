"""Read a grid from a TOML file: what is simulated, and at which points.

    jobs = 5000                       # measured in each run, after 1000 that are not (warmup)
    runs = 10                         # of each point: intervals come from their differences
    load = 1.0                        # times as many jobs

    [streams.emails]
    queue = "emails"
    arrivals = { law = "exponential", mean_ms = 500 }
    service = { law = "lognormal", mean_ms = 900, cv = 1.5 }

    [pools.main]
    workers = 3

    [grid]
    "pools.main.workers" = [2, 3, 4]
    load = [0.5, 1.0, 1.2]

A key of the grid is the path of any value in the file. The points are all combinations. Every point is read and checked
before the first is simulated. An error names the path, the value, and the values that are accepted.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import QmodelError
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.planning.distributions import KINDS, SEEN, Law
from qmodel.planning.observations import Observed, loads
from qmodel.planning.simulate import Pool, Setup, Stream

MOST_POINTS = 10_000
MOST_JOBS = 10_000_000
MOST_WORKERS = 100_000
ORDERS = ("ordered", "round-robin")
LIMITS = ("concurrency", "rate", "rate_ms", "capacity", "refill", "refill_ms")


class GridError(QmodelError):
    """Raised for an invalid grid, with the path of the value, the value, and what is accepted."""


class Point(NamedTuple):
    """A point: the values that the grid gives it, and its simulation setup."""

    values: tuple[tuple[str, Any], ...]
    setup: Setup

    @property
    def offered(self) -> float:
        """The offered load per worker: from 1 on, waits grow without bound."""
        work = sum(one.service.mean / (1 - one.fails) / one.arrivals.mean for one in self.setup.streams)
        return self.setup.load * work / sum(pool.workers for pool in self.setup.pools)


class Grid(NamedTuple):
    """All points, and the number of runs of each. `axes` are the paths in the grid, with their values."""

    points: tuple[Point, ...]
    runs: int
    axes: tuple[tuple[str, tuple[Any, ...]], ...]


def read(path: Path | str) -> Grid:
    """Read a file. Raises GridError, or FileNotFoundError."""
    path = Path(path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GridError(f"{path} is not TOML: {error}.") from None
    return grid(found, path.parent)


def grid(found: Mapping[str, Any], folder: Path = Path()) -> Grid:
    """Make the grid of a parsed file. Files of observations are relative to `folder`."""
    given = copy.deepcopy(dict(found))
    axes = given.pop("grid", {})
    runs = _Part("", given).whole("runs", 10, 2, 1000)
    given.pop("runs", None)
    seen = _observed(given.pop("observed", None), folder)
    if not isinstance(axes, dict) or not all(isinstance(values, list) and values for values in axes.values()):
        raise GridError('[grid] has paths, each with a list of values: "pools.main.workers" = [2, 3, 4].')
    for name in {"runs", "observed"} & axes.keys():
        raise GridError(f"[grid] has {name!r}, which is the same at all points: give it outside of [grid].")
    points = []
    many = 1
    for values in axes.values():
        many *= len(values)
    if many > MOST_POINTS:
        raise GridError(f"The grid has {many:,} points, and {MOST_POINTS:,} at most are simulated: remove values.")
    for values in product(*axes.values()):
        chosen = tuple(zip(axes, values, strict=True))
        points.append(Point(chosen, _setup(_placed(given, chosen), seen)))
    return Grid(tuple(points), runs, tuple((axis, tuple(values)) for axis, values in axes.items()))


def _observed(name: Any, folder: Path) -> dict[tuple[str, str], Observed]:
    if name is None:
        return {}
    if not isinstance(name, str):
        raise GridError(f"observed must be the name of a file, not {name!r}.")
    try:
        return loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise GridError(f"observed is {name!r}, and there is no file {folder / name}.") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise GridError(f"{folder / name} has no observations: {error}. `qmodel plan new` writes them.") from None


def _placed(given: dict[str, Any], chosen: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Put the values of a point at their paths in the file."""
    placed = copy.deepcopy(given)
    for path, value in chosen:
        place, leaf = _spot(placed, path)
        if "." in leaf and leaf not in place:
            table = path.removesuffix(leaf) + leaf.partition(".")[0]
            raise GridError(f"[grid] has {path!r}, and there is no table [{table}].")
        place[leaf] = value
    return placed


def _spot(place: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """Find the table of a path, and the rest of the path. Names may have dots: the longest one that fits is taken."""
    fitting = [name for name, found in place.items() if isinstance(found, dict) and path.startswith(f"{name}.")]
    if not fitting:
        return place, path
    name = max(fitting, key=len)
    return _spot(place[name], path[len(name) + 1 :])


# ---- one point


class _Part:
    """A table of the file. Values are taken out of it; what is left at the end is unknown."""

    def __init__(self, path: str, found: Any) -> None:
        if not isinstance(found, dict):
            raise GridError(f"{path} is a table, and not {found!r}.")
        self.path, self.found = path, dict(found)

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def at(self, name: str) -> str:
        """Give the path of a value."""
        return f"{self.path}.{name}" if self.path else name

    def part(self, name: str) -> _Part:
        """Take a nested table."""
        return _Part(self.at(name), self.found.pop(name, {}))

    def parts(self, name: str) -> dict[str, _Part]:
        """Take the tables in a nested table, by name."""
        within = self.part(name)
        return {one: within.part(one) for one in list(within.found)}

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Take a whole number."""
        value = self.found.pop(name, default)
        if type(value) is not int or not low <= value <= high:
            raise GridError(f"{self.at(name)} must be a whole number from {low:,} to {high:,}, not {value!r}.")
        return value

    def number(self, name: str, default: float | None, low: float, high: float) -> float:
        """Take a number that is above `low` and at most `high`; the default may be equal to `low`."""
        value = self.found.pop(name, default)
        if type(value) not in (int, float) or not (low < value <= high or value == default):
            raise GridError(f"{self.at(name)} must be a number above {low:g}, up to {high:g}, not {value!r}.")
        return float(value)

    def text(self, name: str, default: str | None = None, known: Sequence[str] = ()) -> str:
        """Take a text."""
        value = self.found.pop(name, default)
        if not isinstance(value, str) or not value or (known and value not in known):
            could = f"one of {', '.join(known)}" if known else "a text"
            raise GridError(f"{self.at(name)} must be {could}, not {value!r}.")
        return value

    def texts(self, name: str, default: Sequence[str]) -> tuple[str, ...]:
        """Take a list of texts."""
        value = self.found.pop(name, list(default))
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise GridError(f"{self.at(name)} must be a list of texts, not {value!r}.")
        return tuple(value)

    def flag(self, name: str, default: bool) -> bool:
        """Take true or false."""
        value = self.found.pop(name, default)
        if type(value) is not bool:
            raise GridError(f"{self.at(name)} must be true or false, not {value!r}.")
        return value

    def end(self, known: str) -> None:
        """Refuse values of the file that nothing has read."""
        if self.found:
            raise GridError(f"There is no {self.at(min(self.found))!r}: there are {known}.")


def _setup(found: dict[str, Any], seen: Mapping[tuple[str, str], Observed]) -> Setup:
    top = _Part("", found)
    streams = tuple(_stream(name, part, seen) for name, part in top.parts("streams").items())
    if not streams:
        raise GridError("There is no stream of jobs: add [streams.NAME] with a queue, arrivals and service.")
    queues = tuple(dict.fromkeys(stream.queue for stream in streams))
    pools = tuple(_pool(name, part, queues) for name, part in top.parts("pools").items())
    if not pools:
        raise GridError("There are no workers: add [pools.NAME] with workers.")
    throttles = tuple((name, _limits(part)) for name, part in top.parts("throttles").items())
    options = top.part("options").found
    setup = Setup(
        streams, pools, throttles, tuple(options.items()),
        load=top.number("load", 1.0, 0.0, 1e6), jobs=top.whole("jobs", 5000, 100, MOST_JOBS),
        warmup=top.whole("warmup", 1000, 0, MOST_JOBS), seed=top.text("seed", "1"),
    )  # fmt: skip
    top.end("jobs, warmup, runs, seed, load, observed, streams, pools, throttles, options and grid")
    _check(setup, queues)
    return setup


def _stream(name: str, part: _Part, seen: Mapping[tuple[str, str], Observed]) -> Stream:
    queue, klass = part.text("queue"), part.text("klass", name)
    observed = seen.get((queue, klass))
    stream = Stream(
        name, queue, klass, _law(part.part("arrivals"), observed, "gaps"), _law(part.part("service"), observed, "runs"),
        priority=part.whole("priority", 0, -(2**31), 2**31 - 1), throttles=part.texts("throttles", ()),
        retries=part.whole("retries", 5, 0, 1000), fails=part.number("fails", 0.0, 0.0, 0.999),
        retry_ms=part.whole("retry_ms", 0, 0, 10**10), lease_ms=part.whole("lease_ms", 60_000, 3, 10**10),
        renews=part.flag("renews", True),
    )  # fmt: skip
    part.end("queue, klass, arrivals, service, priority, throttles, retries, fails, retry_ms, lease_ms and renews")
    return stream


def _law(part: _Part, observed: Observed | None, what: str) -> Law:
    kind = part.text("law", None, KINDS)
    if kind in SEEN:
        values: Sequence[int] = getattr(observed, what) if observed else ()
        if not sum(values):
            raise GridError(f"{part.path} is {kind}, and the file `observed` has no such jobs of that queue and klass.")
        times = part.number("times", 1.0, 0.0, 1e6)
        law = Law(kind, values=values if times == 1.0 else tuple(round(value * times) for value in values))
        if not law.mean:
            raise GridError(f"{part.at('times')} is {times:g}, and makes all observed durations 0 ms.")
        part.end("law and times")
        return law
    law = Law(kind, part.number("mean_ms", None, 0.0, 1e10), part.number("cv", 1.0, 0.0, 100.0))
    part.end("law, mean_ms and cv")
    return law


def _pool(name: str, part: _Part, queues: tuple[str, ...]) -> Pool:
    by_default = ORDERS[0] if "queues" in part else ORDERS[1]  # as for `qmodel worker`
    pool = Pool(
        name, part.whole("workers", 1, 1, MOST_WORKERS), part.texts("queues", queues),
        part.number("crashes", 0.0, 0.0, 0.999), part.whole("restart_ms", 1000, 0, 10**10),
        part.text("order", by_default, ORDERS),
    )  # fmt: skip
    part.end("workers, queues, order, crashes and restart_ms")
    if not pool.queues or set(pool.queues) - set(queues):
        raise GridError(f"{part.at('queues')} is {list(pool.queues)}, and jobs come into {list(queues)}.")
    return pool


def _limits(part: _Part) -> tuple[tuple[str, Any], ...]:
    limits: tuple[tuple[str, Any], ...] = tuple(
        (name, part.whole(name, 0, 1, 10**12)) for name in LIMITS if name in part
    )
    part.end(", ".join(LIMITS))
    return limits


def _check(setup: Setup, queues: tuple[str, ...]) -> None:
    """Refuse what the engine would refuse, and queues that no pool works on."""
    store = Store()
    served = {queue for pool in setup.pools for queue in pool.queues}
    if set(queues) - served:
        raise GridError(f"No pool serves the queue {min(set(queues) - served)!r}: add it to the queues of a pool.")
    tried: list[tuple[str, Operation]] = [(f"options.{k}", ops.ConfigSet(k, v)) for k, v in setup.options]
    tried += [(f"throttles.{name}", ops.ThrottleSet(name, **dict(limits))) for name, limits in setup.throttles]
    tried += [
        (f"streams.{one.name}", ops.Put(one.queue, "0", one.klass, "", throttles=one.throttles or None))
        for one in setup.streams
    ]
    tried += [(f"pools.{one.name}", ops.Pop(one.queues[0], f"{one.name}-0")) for one in setup.pools]
    for path, op in tried:
        refused = engine.step(store, 0, op)
        if isinstance(refused, Refusal):
            raise GridError(f"{path}: the engine refuses it with {refused.code} {' '.join(map(str, refused.facts))}.")
    known = {name for name, _ in setup.throttles}
    for stream in setup.streams:
        if set(stream.throttles) - known:
            unknown = min(set(stream.throttles) - known)
            raise GridError(f"streams.{stream.name}.throttles has {unknown!r}: add [throttles.{unknown}] with a limit.")
