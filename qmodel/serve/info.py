"""INFO, CONFIG, TIME and DBSIZE: facts about this server. All of them are true; none is made up for compatibility."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from qmodel import runtime
from qmodel.backends import without_password
from qmodel.serve.commands import COMPATIBLE, command, subcommand
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host
from qmodel.serve.resp import OK, Fault, Pairs
from qmodel.serve.session import Session
from qmodel.version import __version__


def sections(host: Host) -> dict[str, dict[str, Any]]:
    """Collect the facts of INFO, by section."""
    executor = host.executor
    jobs: dict[int, int] = {}
    if isinstance(executor, ModelExecutor):
        for space in executor.spaces:
            if space.store.jobs:
                jobs[space.db] = jobs.get(space.db, 0) + len(space.store.jobs)
    return {
        "server": {
            "redis_version": COMPATIBLE, "server_name": "qmodel", "qmodel_version": __version__,
            "redis_mode": "standalone", "process_id": runtime.getpid(), "tcp_port": host.port,
            "uptime_in_seconds": int(host.uptime), "backend": without_password(host.options.url),
        },
        "clients": {
            "connected_clients": len(host.sessions), "maxclients": host.options.connections,
            "blocked_clients": sum(one.waiting is not None for one in host.sessions),
        },
        "memory": {"maxmemory": 0, "maxmemory_policy": "noeviction"},
        "persistence": {"loading": 0, "aof_enabled": 1 if host.journal else 0},
        "stats": {"total_connections_received": host.received, "total_commands_processed": host.performed},
        "replication": {"role": "master", "connected_slaves": 0},
        "cluster": {"cluster_enabled": 0},
        "keyspace": {f"db{db}": f"keys={count},expires=0,avg_ttl=0" for db, count in sorted(jobs.items())},
    }  # fmt: skip


@command("INFO", -1, "loading stale")
def info(session: Session, words: list[str]) -> Any:
    """Show facts about the server: INFO [section ...]."""
    wanted = {word.lower() for word in words[1:]} - {"all", "everything", "default"}
    parts = []
    for name, facts in sections(session.host).items():
        if not wanted or name in wanted:
            lines = "".join(f"{key}:{value}\r\n" for key, value in facts.items())
            parts.append(f"# {name.capitalize()}\r\n{lines}")
    return "\r\n".join(parts)


def _settings(host: Host) -> dict[str, str]:
    return {
        "appendonly": "yes" if host.journal else "no",
        "appendfsync": "always",
        "save": "",
        "maxmemory": "0",
        "maxmemory-policy": "noeviction",
        "maxclients": str(host.options.connections),
        "databases": str(host.options.databases),
        "port": str(host.port),
        "proto-max-bulk-len": str(host.options.limits.argument),
        "timeout": "0",
    }


@command("CONFIG", -2)
def config(session: Session, words: list[str]) -> Any:
    """Show settings: CONFIG GET pattern ...; they are options of the command line."""
    found = subcommand(words, "GET", "SET", "RESETSTAT")
    if isinstance(found, Fault):
        return found
    if found == "SET":
        return Fault("ERR settings of this server are options of its command line: see qmodel serve --help")
    if found == "RESETSTAT":
        return OK
    shown: list[str] = []
    for name, value in _settings(session.host).items():
        if any(fnmatchcase(name, pattern.lower()) for pattern in words[2:]):
            shown += (name, value)
    return Pairs(shown)


@command("TIME", 1, "fast")
def time(session: Session, words: list[str]) -> Any:
    """Read the server's clock: seconds, and microseconds."""
    now = session.host.executor.clock()
    return [str(now // 1000), str(now % 1000 * 1000)]


@command("DBSIZE", 1, "readonly fast")
def dbsize(session: Session, words: list[str]) -> Any:
    """Count the jobs of the database."""
    executor = session.host.executor
    if not isinstance(executor, ModelExecutor):
        return Fault("ERR another backend stores the jobs of this server; ask the backend itself")
    return sum(len(space.store.jobs) for space in executor.spaces if space.db == session.db)
