"""The check of a server's copies: its replicas and its disk, and what a failover or a power failure would lose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qmodel.doctor.environment import SERVERS, connection
from qmodel.doctor.findings import FAIL, OK, SKIP, WARN, Asked, Finding
from qmodel.present.numbers import counted

FSYNC = {
    "always": "a power failure loses nothing that was acknowledged",
    "everysec": "a power failure loses the last second or two",
    "no": "a power failure loses what the system has not written yet",
}


def copies(at: Asked) -> Iterator[Finding]:
    """Check the replicas, min-replicas-to-write and appendfsync, and whether they can give what `confirm` asks for."""
    if at.url.partition("://")[0] not in SERVERS:
        return
    import redis

    backend: Any = at.client.backend
    try:
        with connection(backend) as server:
            info: Any = server.info()
            settings = _settings(server)
    except redis.ResponseError as error:
        yield Finding(SKIP, f"the replicas and the disk were not checked: {error}")
        return
    if info.get("server_name") == "qmodel":
        yield Finding(SKIP, "no replicas were checked: qmodel serve has none")
        return
    yield from _seeds(backend)
    yield _disk(info, settings)
    yield from _replicas(info, settings, backend.options.confirm)


def _settings(server: Any) -> dict[str, str]:
    """Read the settings; those that the server does not show are left out, as on most managed servers."""
    import redis

    found: dict[str, str] = {}
    for name in ("min-replicas-to-write", "appendfsync"):
        try:
            found.update(server.config_get(name))
        except redis.ResponseError:
            return {}
    return found


def _seeds(backend: Any) -> Iterator[Finding]:
    """Check that every node or sentinel of the URL answers: those that do not are no help in a failover."""
    if backend.options.kind == "server":
        return
    silent = backend.silent_seeds()
    count, what = len(backend.options.seeds), {"cluster": "node", "sentinel": "sentinel"}[backend.options.kind]
    here = f"the master is {backend.at['host']}:{backend.at['port']}"
    if silent:
        names = ", ".join(f"{host}:{port}" for host, port in silent)
        fix = f"Start them, or name other {what}s in the URL: these are no help in a failover."
        yield Finding(WARN, f"{here}; of {counted(count, what)} in the URL these do not answer: {names}", fix)
    elif count == 1:
        fix = "Name several, so that one of them answers when another is away."
        yield Finding(WARN, f"{here}; the URL names one {what}", fix)
    else:
        yield Finding(OK, f"{here}; all {counted(count, what)} in the URL answer")


def _disk(info: Any, settings: dict[str, str]) -> Finding:
    if not int(info.get("aof_enabled", 0)):
        return Finding(OK, "appendonly is no, so nothing waits for the disk")
    how = settings.get("appendfsync", "")
    return Finding(OK, f"appendfsync is {how}: {FSYNC[how]}" if how in FSYNC else "appendonly is yes")


def _replicas(info: Any, settings: dict[str, str], confirm: Any) -> Iterator[Finding]:
    count = int(info.get("connected_slaves", 0))
    least = int(settings.get("min-replicas-to-write", 0))
    shown = counted(count, "replica")
    if settings:
        shown += f"; min-replicas-to-write is {least}"
    wanted = 0 if confirm is None else confirm.replicas
    if least > count:
        fix = f"Start {counted(least - count, 'replica')}, or CONFIG SET min-replicas-to-write {count}."
        yield Finding(FAIL, f"the server takes no writes: it has {shown}", fix)
    elif wanted > count:
        fix = "Start replicas, or lower confirm in the URL: until then every call ends in NotConfirmed."
        yield Finding(FAIL, f"the URL asks for confirm={wanted}, and the server has {shown}", fix)
    elif count and not wanted and settings:
        fix = "To lose nothing that was acknowledged, write confirm=1 in the URL."
        if not least:
            fix += " To limit what a master loses that is cut off: CONFIG SET min-replicas-to-write 1."
        yield Finding(WARN, f"a failover loses what replicas do not have yet: the server has {shown}", fix)
    else:
        yield Finding(OK, f"the server has {shown}" + (f"; confirm={confirm}" if confirm else ""))
