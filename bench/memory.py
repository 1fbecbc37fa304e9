"""Measure bytes on the server for each waiting job with a payload of 100 bytes: growth of `used_memory` over 100,000
jobs.

Jobs are put in batches of a hundred; puts one by one give the same figure. It includes the record, the order, the
request id, and the events that the stream keeps. The stream keeps 10,000 events, so a job's share is a tenth of an
event among 100,000 jobs, and half an event among 20,000.
"""

from __future__ import annotations

from bench import Options
from bench.lifecycle import SPAN, Caller, Floor, fill
from bench.machine import candidates, pinned
from bench.raw import Connection
from bench.report import Report, Table, Verdict

COUNT = 100_000
MOST, AIM = 600, 480


def used(connection: Connection) -> int:
    """Read the bytes that the server has allocated."""
    said: str = connection.call("INFO", "memory").decode()
    return int(said.partition("used_memory:")[2].partition("\r")[0])


def per_job(caller: Caller, count: int = COUNT) -> float:
    """Put jobs; give the growth of the server's memory per job."""
    fill(caller, SPAN)
    before = used(caller.connection)
    fill(caller, count)
    return (used(caller.connection) - before) / count


def parts(connection: Connection, prefix: str) -> dict[str, float]:
    """Give `MEMORY USAGE` of each kind of key, in bytes per job."""
    found: dict[str, float] = {}
    for key in connection.call("KEYS", prefix + "*"):
        name = key.decode().removeprefix(prefix)
        kind = "j:<jid>" if name.startswith("j:") else name
        found[kind] = found.get(kind, 0) + connection.call("MEMORY", "USAGE", key, "SAMPLES", "0") / COUNT
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def run(options: Options) -> Report:
    """Measure on each requested server."""
    tables, verdicts, versions = [], [], []
    for candidate in candidates(options.server):
        with pinned(candidate) as server:
            caller = Caller(server.url).load()
            sizes = {count: _afresh(caller, count) for count in (20_000, COUNT)}
            table = Table(f"Bytes a waiting job on {server.version}", ["", "bytes"])
            for count, size in sizes.items():
                table.add(f"{count:,} jobs", f"{size:.0f}")
            for name, size in parts(caller.connection, "ql:").items():
                if size >= 0.5:
                    table.add(f"of that, `{name}` by MEMORY USAGE", f"{size:.0f}")
            table.add("the floor of `server`", f"{_floor(server.url):.0f}")
            tables.append(table)
            versions.append(server.version)
            verdicts.append(Verdict(f"{server.version}: a waiting job (aim {AIM})", sizes[COUNT], MOST, "bytes"))
    return Report("memory", "python -m bench memory", " ".join(str(__doc__).split()), tables, verdicts, versions)


def _afresh(caller: Caller, count: int) -> float:
    caller.connection.call("FLUSHALL", "SYNC")
    return per_job(caller, count)


def _floor(url: str) -> float:
    floor = Floor(url).load()
    floor.connection.call("FLUSHALL", "SYNC")
    floor.put()
    before = used(floor.connection)
    for _ in range(COUNT // SPAN):
        floor.put()
    return (used(floor.connection) - before) / COUNT
