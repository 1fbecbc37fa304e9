"""Checks of this machine's Python and packages, and of the server: its clock, its settings, its memory and its keys."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from qmodel.backends import BUILT_IN, without_password
from qmodel.doctor.findings import FAIL, OK, SKIP, WARN, Asked, Finding
from qmodel.present.durations import format_duration
from qmodel.present.numbers import format_size
from qmodel.version import __version__


def python(at: Asked) -> Iterator[Finding]:
    """Show the Python version; qmodel does not start with a Python older than 3.11."""
    yield Finding(OK, f"Python {platform.python_version()} on {platform.system()} {platform.machine()}")


def packages(at: Asked) -> Iterator[Finding]:
    """Check that the required packages are installed; show the optional ones."""
    where = Path(__file__).parents[1]
    yield Finding(OK, f"qmodel {__version__} in {where}")
    for name in ("click", "rich", "sortedcontainers"):
        yield _package(name, None)
    for name, extra in EXTRAS:
        yield _package(name, extra)


EXTRAS = (
    ("redis", "redis"),
    ("cronsim", "cron"),
    ("textual", "top"),
    ("starlette", "web"),
    ("prometheus-client", "prometheus"),
    ("opentelemetry-api", "otel"),
    ("lupa", "conformance"),
    ("pyarrow", "arrow"),
    ("pyspark", "spark"),
)
"""The optional packages, and the extra that installs each."""


def _package(name: str, extra: str | None) -> Finding:
    try:
        return Finding(OK, f"{name} {version(name)}")
    except PackageNotFoundError:
        if extra is None:
            return Finding(FAIL, f"{name} is not installed", f"pip install {name}")
        return Finding(OK, f"{name} is not installed (optional): pip install '.[{extra}]' in a checkout")


def url(at: Asked) -> Iterator[Finding]:
    """Show the URL of the backend, and the source of that URL."""
    found = f"URL {without_password(at.url)}, from {at.url_from}"
    if at.url.partition("://")[0] in ("memory", "embedded"):
        fix = "For jobs that outlive this process: export QMODEL_URL=redis://localhost:6379/0"
        yield Finding(WARN, f"{found}: a store in this process only", fix)
    else:
        yield Finding(OK, found)


def reachable(at: Asked) -> Iterator[Finding]:
    """Check that the backend answers."""
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
    """Check that the server's clock and ours agree; only the sleep of idle workers depends on ours."""
    if at.url.partition("://")[0] not in SERVERS:
        return
    import redis

    try:
        with connection(at.client.backend) as server:
            seconds, micros = server.time()
    except redis.ResponseError as error:
        yield Finding(SKIP, f"the server's clock was not checked: {error}")
        return
    apart = abs(seconds * 1000 + micros // 1000 - time.time_ns() // 1_000_000)
    if apart < APART_MS:
        yield Finding(OK, f"the server's clock differs from ours by less than {format_duration(APART_MS)}")
    else:
        fix = "Synchronise the clocks (ntp); jobs use the server's clock."
        yield Finding(WARN, f"the server's clock differs from ours by {format_duration(apart)}", fix)


APART_MS = 5000
"""By how much clocks may differ before the check warns."""


def server(at: Asked) -> Iterator[Finding]:
    """Show the problems that the backend found when it connected: version, persistence, memory policy, rights."""
    warnings = getattr(at.client.backend, "warnings", None)
    if warnings is not None:
        for one in warnings:
            yield Finding(WARN, one.sentence, one.next_step)
        skipped = list(_not_read(at.client.backend))
        if not warnings:
            yield Finding(OK, f"the settings {'that were read' if skipped else 'of the server'} are correct")
        yield from (Finding(SKIP, what) for what in skipped)


def _not_read(backend: Any) -> Iterator[str]:
    """Name what a backend cannot know of its server."""
    found = getattr(backend, "found", None)
    if found is None:
        return
    facts = found.facts
    if facts.get("aof_enabled") == "1" and not facts.get("appendfsync"):
        yield "appendfsync was not checked: the server denies CONFIG GET"
    if not found.functions:
        yield "the user's rights to single commands were not checked: the library runs as a script, which cannot ask"


def memory(at: Asked) -> Iterator[Finding]:
    """Check that the server has free memory: a full server takes no new jobs."""
    if at.url.partition("://")[0] not in SERVERS:
        return
    import redis

    try:
        with connection(at.client.backend) as server:
            info: Any = server.info("memory")
    except redis.ResponseError as error:
        yield Finding(SKIP, f"the server's memory was not checked: {error}")
        return
    if not info.get("used_memory"):
        yield Finding(SKIP, "the server's memory was not checked: the server does not count it")
        return
    used, most = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    shown = format_size(used) + (f" of {format_size(most)}" if most else ", without a limit")
    if most and used > 0.8 * most:
        fix = "A full server takes no new jobs. Raise maxmemory, or keep fewer jobs: jobs-history, failed-history."
        yield Finding(WARN, f"the server uses {shown}", fix)
    else:
        yield Finding(OK, f"the server uses {shown}")


def invariants(at: Asked) -> Iterator[Finding]:
    """Check the invariants of the model in all keys."""
    read = _STATES.get(type(at.client.backend).__module__)
    if read is None or (at.url.partition("://")[0] in SERVERS and not at.look_at_keys):
        yield Finding(SKIP, _NOT_ASKED if read else _unreadable(at))
        return
    from qmodel.backends.redis.raw_keys import Corrupt
    from qmodel.model.invariants import check

    fix = "This is a bug in qmodel, or another program wrote to its keys. Please report it with the job's history."
    try:
        broken = check(read(at.client.backend))
    except _NotRead as error:
        fix = "Run `qmodel doctor --keys` as a user who may do that."
        yield Finding(SKIP, f"the keys were not checked: {error}", fix)
        return
    except Corrupt as error:
        yield Finding(FAIL, f"the keys are inconsistent: {error}", fix)
        return
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"the keys cannot be read: {type(error).__name__}: {error}"
        yield Finding(FAIL, what, "A key is missing or damaged. The check of damaged keys, above, may name it.")
        return
    for one in broken:
        yield Finding(FAIL, str(one), fix)
    if not broken:
        yield Finding(OK, "every invariant holds")


def _unreadable(at: Asked) -> str:
    return f"the invariants were not checked: nothing reads the state of {at.url.partition('://')[0]}://"


_NOT_ASKED = "the keys were not checked; `qmodel doctor --keys` does so, and blocks the server meanwhile"


SERVERS = {scheme for scheme, (module, _) in BUILT_IN.items() if module == "qmodel.backends.redis.connect"}


def _state_of_memory(backend: Any) -> Any:
    from qmodel.model import snapshot

    return snapshot.of(backend.store)


def _state_of_embedded(backend: Any) -> Any:
    from qmodel.backends.redis import raw_keys

    return raw_keys.decode(backend.namespace.keyspace.dump())


class _NotRead(Exception):
    """The server refuses to show its keys: mostly because the user has no right to `KEYS`."""


def _state_of_server(backend: Any) -> Any:
    """Read all keys of the prefix at one time, by one script."""
    import redis

    from qmodel.backends.redis import raw_keys
    from qmodel.backends.redis.dump import dump_command, dump_of
    from qmodel.model import restore

    with connection(backend) as server:
        if is_serve(server):
            return restore.loads(server.execute_command("DEBUG", "QMODEL", "SNAPSHOT", backend.options.prefix))
        try:
            raw: Any = server.execute_command(*dump_command(backend.options.prefix))
        except redis.ResponseError as error:
            raise _NotRead(str(error)) from None
    return raw_keys.decode(dump_of(raw), backend.options.prefix)


def is_serve(server: Any) -> bool:
    """Whether a connection leads to `qmodel serve`, which runs the model and has no keys."""
    return bool(server.info("server").get("server_name") == "qmodel")


def connection(backend: Any) -> Any:
    """Open a separate connection to the server that a backend uses now."""
    import redis

    from qmodel.backends.redis.route import class_of

    kind = class_of(backend.options, backend.at)
    return redis.Redis.from_pool(redis.ConnectionPool(connection_class=kind, **backend.at))


_STATES: dict[str, Callable[[Any], Any]] = {
    "qmodel.backends.memory": _state_of_memory,
    "qmodel.backends.embedded.backend": _state_of_embedded,
    "qmodel.backends.redis.backend": _state_of_server,
    "qmodel.backends.redis.deployment": _state_of_server,
    "qmodel.backends.deployment": _state_of_memory,
}
"""By the module of a backend, the function that reads the whole state from it."""
