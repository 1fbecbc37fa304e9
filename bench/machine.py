"""Describe this machine: its servers and CPUs, and measure CPU time of a process."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.servers import Candidate, Server, running, server_commands


class Pinned(NamedTuple):
    """A running server: its address, its process and its name."""

    server: Server
    pid: int
    version: str

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self.server.url

    def cpu_us(self) -> float:
        """The CPU time of the process so far: user and system time of all threads; on Linux exact to the nanosecond."""
        return time.clock_gettime_ns((~self.pid << 3) | 2) / 1000


def candidates(wanted: str) -> list[Candidate]:
    """List the programs to measure: `redis`, `valkey`, or `all` that are installed."""
    found = [one for one in server_commands() if one.program]
    return [one for one in found if wanted in ("all", _kind(one))]


def _kind(one: Candidate) -> str:
    return "redis" if "redis" in one.name else "valkey"


@contextmanager
def pinned(candidate: Candidate, cpu: int | None = None, *options: str) -> Iterator[Pinned]:
    """Start a server, on one CPU if requested."""
    with running(candidate, *options) as server, server.client() as client:
        said = client.info("server")
        pid = int(said["process_id"])
        if cpu is not None:
            pin(pid, cpu)
        favour(pid)
        name = "Valkey" if "valkey_version" in said else "Redis"
        yield Pinned(server, pid, f"{name} {said.get('valkey_version', said['redis_version'])}")


def pin(pid: int, *cpus: int) -> None:
    """Pin a process, its threads and its children to these CPUs."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), cpus)


def favour(pid: int) -> None:
    """Raise the priority of a process, if that is allowed."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, -10)
        with open(f"/proc/{pid}/autogroup", "w") as file:
            file.write("-10")


def spare_cpu() -> int:
    """Choose the CPU to measure on: the last one, because interrupts go to the first."""
    return max(os.sched_getaffinity(0))


def share_cpu() -> int:
    """Pin this process to the CPU to measure on, with a raised priority; give the CPU, for the server."""
    cpu = spare_cpu()
    pin(os.getpid(), cpu)
    favour(os.getpid())
    return cpu


def on_this_cpu(wanted: str) -> Iterator[Pinned]:
    """Start each requested server, one after the other, on one CPU with this process."""
    cpu = share_cpu()
    for candidate in candidates(wanted):
        with pinned(candidate, cpu) as server:
            yield server


def describe() -> str:
    """Describe the machine, the Python and the date in one line."""
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    cpu = model.group(1).strip() if model else platform.processor()
    return (
        f"{time.strftime('%Y-%m-%d %H:%M')}; {os.cpu_count()} x {cpu}, load {os.getloadavg()[0]:.1f}; "
        f"{platform.system()} {platform.release()}; {_python()}; "
        f"qmodel at {_commit()}."
    )


def _python() -> str:
    slow = "--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return f"{platform.python_implementation()} {platform.python_version()}" + slow * ", built without optimizations"


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "lua", "qmodel", "backends")
    return (git("rev-parse", "--short", "HEAD") or "an unknown commit") + (", with changes" if changed else "")
