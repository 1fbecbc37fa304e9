"""Measure operations per second of `qmodel serve`: put, pop and complete, one job per call.

Server and client have a CPU each. The client encodes its calls before the clock starts. It sends up to 500 calls before
it reads the first of their replies. It reads every reply, and completes each job with the token of its pop. In turns in
the same run, the same client uses a server that runs the Lua library. With `--data` every operation is on the disk
before its reply; the server with Lua stores nothing on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import Options
from bench.lifecycle import DATA, KLASS, QUEUE, WORKER, Caller, jid, request
from bench.machine import Pinned, candidates, favour, pin, pinned, spare_cpu
from bench.raw import Connection, pack
from bench.report import Report, Table, Verdict, median
from qmodel import __version__
from qmodel.backends.bundle import function_name
from qmodel.contract import operations as ops
from qmodel.wire.codec import decode
from tests.servers import Server

ROOT = Path(__file__).parent.parent
WINDOW = 500
TARGET = 60_000
POP = ops.Pop(QUEUE, WORKER)
Run = tuple[float, float, float, float, float]


def run(options: Options) -> Report:
    """Measure the server in memory and with a journal, beside a server with Lua."""
    jobs = 5_000 if options.quick else 20_000
    cpu = spare_cpu()
    pin(os.getpid(), *(os.sched_getaffinity(0) - {cpu} or {cpu}))
    rates: dict[str, list[Run]] = {}
    with ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="qmodel-"))
        servers = {
            "in memory": stack.enter_context(served(cpu)),
            "--data": stack.enter_context(served(cpu, "--data", data)),
        }
        for candidate in candidates("valkey" if options.server == "all" else options.server)[:1]:
            beside = stack.enter_context(pinned(candidate, cpu))
            Caller(beside.url).load()
            servers[f"{beside.version}, Lua"] = beside
        for _ in range(options.runs + 1):  # the first run warms up
            for name, server in servers.items():
                rates.setdefault(name, []).append(_rate(server, jobs))
    table = Table("Operations a second, pipelined", ["", "put", "pop", "complete", "all", "jobs/s", "server's us each"])
    for name, found in rates.items():
        *stages, cpu_us = (median(column) for column in zip(*found[1:], strict=True))
        table.add(name, *(f"{rate:,.0f}" for rate in stages), f"{stages[3] / 3:,.0f}", cpu_us)
    memory = median(one[3] for one in rates["in memory"][1:])
    verdicts = [Verdict("put, pop and complete in memory, operations a second", memory, TARGET, at_least=True)]
    return Report("serve", "python -m bench serve", " ".join(str(__doc__).split()), [table], verdicts)


@contextmanager
def served(cpu: int, *arguments: str) -> Iterator[Pinned]:
    """Start a server of our own, on one CPU."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        command = [sys.executable, "-m", "qmodel", "serve", "--socket", f"{folder}/socket", *arguments]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            pin(process.pid, cpu)
            favour(process.pid)
            try:
                version = f"qmodel serve {__version__}"
                yield Pinned(Server("serve", f"unix://{folder}/socket"), process.pid, version)
            finally:
                process.terminate()


def _rate(server: Pinned, jobs: int) -> Run:
    """Measure operations per second (put, pop, complete, all three), and the server's CPU microseconds for one."""
    connection = Connection(server.url)
    try:
        connection.call("FLUSHALL")
        puts = [_call("put", request(), QUEUE, jid(), KLASS, DATA) for _ in range(jobs)]
        pops = [_call("pop", request(), QUEUE, WORKER) for _ in range(jobs)]
        cpu, began = server.cpu_us(), time.perf_counter()
        exchange(connection, puts)
        put = time.perf_counter()
        popped = exchange(connection, pops)
        pop = time.perf_counter()
        held = [job for text in popped for job in decode(POP, text)]
        completes = [_call("complete", "", job.jid, str(job.token)) for job in held]
        made = time.perf_counter()
        exchange(connection, completes)
        complete, cpu = time.perf_counter(), server.cpu_us() - cpu
    finally:
        connection.close()
    spent = (put - began, pop - put, complete - made)
    return jobs / spent[0], jobs / spent[1], jobs / spent[2], 3 * jobs / sum(spent), cpu / (3 * jobs)


def _call(operation: str, *arguments: str | bytes) -> bytes:
    return pack("FCALL", function_name(operation), "1", "ql:", "", *arguments)


def exchange(connection: Connection, commands: Sequence[bytes]) -> list[bytes]:
    """Send commands, some before earlier replies have arrived; give the text of each reply. None may be refused."""
    line = connection.socket
    chunks = [b"".join(commands[at : at + WINDOW // 2]) for at in range(0, len(commands), WINDOW // 2)]
    line.sendall(b"".join(chunks[:2]))
    sent, buffer = 2, b""
    replies: list[bytes] = []
    while len(replies) < len(commands):
        buffer = _taken(buffer + line.recv(1 << 20), replies)
        while sent < len(chunks) and len(replies) >= (sent - 1) * (WINDOW // 2):
            line.sendall(chunks[sent])
            sent += 1
    return replies


def _taken(buffer: bytes, replies: list[bytes]) -> bytes:
    """Take the whole replies, which are all single texts; give the rest."""
    at = 0
    while (end := buffer.find(b"\r\n", at)) > 0:
        assert buffer[at : at + 1] == b"$", buffer[at : at + 500]
        begin = end + 2
        end = begin + int(buffer[at + 1 : end])
        if len(buffer) < end + 2:
            break
        replies.append(buffer[begin:end])
        at = end + 2
    return buffer[at:]
