"""Servers for the tests: those of `qmodel.testing`, whose database is flushed at the start, and `qmodel serve`."""

from __future__ import annotations

import sys
from pathlib import Path

from qmodel.testing.servers import (
    NOTHING_FOUND,
    Candidate,
    Server,
    chosen_servers,
    running,
    server_commands,
    serving,
)

ROOT = Path(__file__).parents[1]

SERVE = Candidate("serve", program=sys.executable)
"""`qmodel serve`: no Redis, but it answers like one."""

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
