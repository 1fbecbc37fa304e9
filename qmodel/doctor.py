"""What `qmodel doctor` and the pages examine: a list of checks, each of which says OK, WARN or FAIL, and what to do.

A check is a function that yields findings; it is in `CHECKS`, and is asked in that order. One that raises is itself a
finding. What a backend noticed by itself when it connected stands in its `warnings`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import qmodel
from qmodel.backends import BUILT_IN, without_password
from qmodel.client import Client
from qmodel.errors import ConnectError
from qmodel.moments import format_duration

OK, WARN, FAIL = "OK", "WARN", "FAIL"


class Asked(Protocol):
    """What is to be examined: which backend, who said so, and whether its keys are to be looked at."""

    @property
    def url(self) -> str: ...

    @property
    def url_from(self) -> str: ...

    @property
    def look_at_keys(self) -> bool: ...

    @property
    def client(self) -> Client: ...


class Finding(NamedTuple):
    """What a check found: how bad it is, what it is, what to do, and what does so if it can be done here."""

    level: str
    what: str
    fix: str = ""
    resolve: Callable[[], str] | None = None


Check = Callable[[Asked], Iterator[Finding]]


def python(at: Asked) -> Iterator[Finding]:
    """What we run on; an older Python than 3.11 would not have come this far."""
    yield Finding(OK, f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")


def packages(at: Asked) -> Iterator[Finding]:
    """What qmodel needs is installed, and what may be."""
    where = Path(qmodel.__file__).parent
    yield Finding(OK, f"qmodel {qmodel.__version__} in {where}")
    for name in ("click", "rich", "sortedcontainers"):
        yield _package(name, None)
    for name, extra in (("redis", "redis"), ("lupa", "conformance"), ("cronsim", "cron"), ("pyspark", "spark")):
        yield _package(name, extra)


def _package(name: str, extra: str | None) -> Finding:
    try:
        return Finding(OK, f"{name} {version(name)}")
    except PackageNotFoundError:
        if extra is None:
            return Finding(FAIL, f"{name} is not installed", f"pip install {name}")
        return Finding(OK, f"{name} is not installed; if wanted: pip install '.[{extra}]' in a checkout")


def url(at: Asked) -> Iterator[Finding]:
    """Which backend is asked for, and by what."""
    found = f"URL {without_password(at.url)}, from {at.url_from}"
    if at.url == "memory://":
        fix = "For jobs that outlive this process: export QMODEL_URL=redis://localhost:6379/0"
        yield Finding(WARN, f"{found}: a store of this process alone", fix)
    else:
        yield Finding(OK, found)


def reachable(at: Asked) -> Iterator[Finding]:
    """The backend answers."""
    began = time.perf_counter()
    length = at.client.queues["qmodel-doctor"].length()
    took = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    at.client.queues["qmodel-doctor"].length()
    again = (time.perf_counter() - began) * 1000
    yield Finding(
        OK if length == 0 else WARN,
        f"{type(at.client.backend).__name__} answers: first in {format_duration(took)}, "
        f"then in {format_duration(again)}",
    )


def clock(at: Asked) -> Iterator[Finding]:
    """The server's clock and ours agree; only how long idle workers sleep depends on ours."""
    now = getattr(at.client.backend, "now", None)
    if now is not None:
        apart = abs(now() - time.time_ns() // 1_000_000)
        level = OK if apart < 5000 else WARN
        fix = "" if level == OK else "Synchronise the clocks (ntp); jobs are timed by the server's."
        yield Finding(level, f"the server's clock differs from ours by {apart:.0f} ms", fix)


def server(at: Asked) -> Iterator[Finding]:
    """What the backend found when it connected: version, persistence, memory policy, rights."""
    warnings = getattr(at.client.backend, "warnings", None)
    if warnings is not None:
        for one in warnings:
            yield Finding(WARN, one.sentence, one.next_step)
        if not warnings:
            yield Finding(OK, "the server is set up as it should be")


def queues(at: Asked) -> Iterator[Finding]:
    """No queue is stuck."""
    listed = at.client.queues.counts(0, 1000)
    yield Finding(OK, f"{len(listed)} queues")
    for one in listed:
        ready = one.waiting + one.stalled
        if one.paused and ready:
            what = f"queue {one.name} is paused with {ready} jobs ready"
            yield Finding(WARN, what, f"If that was not meant: qmodel unpause {one.name}")
        elif one.stalled:
            what = f"queue {one.name} has {one.stalled} jobs whose workers were lost"
            fix = f"Start a worker: the next pop takes them. See: qmodel stalled {one.name}"
            yield Finding(WARN, what, fix)


def failures(at: Asked) -> Iterator[Finding]:
    """No job waits for a person."""
    for group, count in at.client.failed.groups(0, 1000).items():
        what = f"{count} jobs have failed in group {group}"
        yield Finding(WARN, what, f"See: qmodel failed '{group}'; again: qmodel unfail QUEUE '{group}'")


def workers(at: Asked) -> Iterator[Finding]:
    """No worker is silent."""
    now = time.time_ns() // 1_000_000
    for one in at.client.workers.counts(0, 1000):
        silent = now - one.seen_at
        if silent > 3_600_000 and not one.jobs and not one.stalled:
            name = one.name

            def deregister(name: str = name) -> str:
                at.client.workers.deregister(name)
                return f"took {name} off the list"

            what = f"worker {name} has been silent for {format_duration(silent)}"
            yield Finding(WARN, what, f"qmodel deregister '{name}'", deregister)


def invariants(at: Asked) -> Iterator[Finding]:
    """What holds after every step holds now, in every key."""
    read = _STATES.get(type(at.client.backend).__module__)
    if read is None:
        return
    if at.url.partition("://")[0] in SERVERS and not at.look_at_keys:
        yield Finding(OK, "the keys were not looked at; `qmodel doctor --keys` does, and holds up the server meanwhile")
        return
    from qmodel.conformance.rawkeys import Corrupt
    from qmodel.invariants import check

    fix = "This is a bug in qmodel, or somebody else wrote to its keys. Please report it with the job's history."
    try:
        broken = check(read(at.client.backend))
    except Corrupt as error:
        yield Finding(FAIL, f"the keys contradict themselves: {error}", fix)
        return
    for one in broken:
        yield Finding(FAIL, str(one), fix)
    if not broken:
        yield Finding(OK, "every invariant holds")


SERVERS = {scheme for scheme, (module, _) in BUILT_IN.items() if module == "qmodel.backends.redis"}


def _state_of_memory(backend: Any) -> Any:
    from qmodel.conformance import snapshot

    return snapshot.of(backend.store)


def _state_of_embedded(backend: Any) -> Any:
    from qmodel.conformance import rawkeys

    return rawkeys.decode(backend.namespace.keyspace.dump())


def _state_of_server(backend: Any) -> Any:
    """All keys under the prefix at one moment, by one script."""
    import redis

    from qmodel.backends.redis_dump import dump_command, dump_of
    from qmodel.conformance import rawkeys

    settings = dict(backend.options.connection)
    kind = settings.pop("connection_class", redis.Connection)
    with redis.Redis.from_pool(redis.ConnectionPool(connection_class=kind, **settings)) as server:
        raw: Any = server.execute_command(*dump_command(backend.options.prefix))
    return rawkeys.decode(dump_of(raw), backend.options.prefix)


_STATES: dict[str, Callable[[Any], Any]] = {
    "qmodel.backends.memory": _state_of_memory,
    "qmodel.backends.embedded": _state_of_embedded,
    "qmodel.backends.redis": _state_of_server,
}
"""How the whole state is read from a backend, by its module."""


BEFORE: tuple[Check, ...] = (python, packages, url)
CHECKS: tuple[Check, ...] = (reachable, clock, server, queues, failures, workers, invariants)
"""Those that need the backend; they are passed over when it cannot be reached."""


def examine(at: Asked, checks: tuple[Check, ...] | None = None) -> Iterator[Finding]:
    """Go through all checks, or of those that need the backend only through some."""
    for check in BEFORE:
        yield from check(at)
    for check in CHECKS if checks is None else checks:
        try:
            yield from check(at)
        except ConnectError as error:
            yield Finding(FAIL, error.sentence, error.next_step)
            return
        except Exception as error:
            what = f"the check '{check.__name__}' broke: {type(error).__name__}: {error}"
            yield Finding(FAIL, what, "Please report this.")
