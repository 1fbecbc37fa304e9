"""Servers for the tests: those of `qmodel.testing`, whose database is flushed at the start, and `qmodel serve`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qmodel.testing.servers import (
    NOTHING_FOUND,
    Candidate,
    Server,
    await_server,
    chosen_servers,
    running,
    server_commands,
)

ROOT = Path(__file__).parents[1]

SERVE = Candidate("serve", program=sys.executable)
"""`qmodel serve`: no Redis, but it answers like one."""


@contextmanager
def serving(*options: str) -> Iterator[Server]:
    """Start `qmodel serve`, with further options of its command line, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as folder:
        server = Server("serve", f"unix://{folder}/socket")
        command = [SERVE.program, "-m", "qmodel", "serve", "--socket", f"{folder}/socket", *options]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            try:
                await_server(server, process)
                yield server
            finally:
                process.terminate()


__all__ = [
    "NOTHING_FOUND",
    "SERVE",
    "Candidate",
    "Server",
    "chosen_servers",
    "running",
    "server_commands",
    "serving",
]
