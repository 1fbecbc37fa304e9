"""The examples of a page, and a terminal to run them.

Tests run everything that a reader can type, from top to bottom, in an empty folder:

    ```python                           runs here; the following ```text is its output
    ```python title="jobs.py"           is written to that file; likewise in other languages
    ```sh                               runs in the terminal; the following ```text is its output
    ```sh title="In another terminal"   runs in a second terminal until the end of the page
    ```console                          is not run

In an output, `...` matches any text. In the README and on pages at the top of docs/, only Python runs.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
URL = "redis://localhost:6379/0"
SERVER = re.compile(r"redis://localhost(:6379)?(/0)?(\?prefix=)?(?![:\d])")
"""The server in examples. A prefix in an example is appended to the prefix of the test."""
PORTS = ("6380", "8700")
"""The ports that examples use; tests replace them with free ones."""
ELSEWHERE = "In another terminal"
PATIENCE = 120


class Example(NamedTuple):
    """A block of a page, and the output shown below it."""

    language: str
    title: str
    text: str
    output: str


def pages() -> list[Path]:
    """List the README and all documents."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return str(page.relative_to(ROOT))


def examples(page: Path) -> list[Example]:
    """List the examples of a page, each with its output."""
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    found = []
    for block, after in zip_longest(blocks, blocks[1:]):
        follows = (
            after is not None and after[1] == "text" and not after[2] and not text[block.end() : after.start()].strip()
        )
        if block[1] != "text":
            found.append(Example(block[1], block[2] or "", block[3], after[3] if follows and after else ""))
    return found


def agrees(printed: str, shown: str) -> bool:
    """Compare an output with the shown one; `...` matches any text, and a space any number of spaces."""
    pattern = ".*".join(re.sub(r"(\\ )+", " +", re.escape(part.rstrip(" "))) for part in shown.split("..."))
    return re.fullmatch(pattern, printed, re.S) is not None


def free_port() -> str:
    """Find a free port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


class Terminal:
    """A shell in a folder, with this checkout's `qmodel`, `python` and `pytest`."""

    def __init__(self, folder: Path, url: str) -> None:
        self.url = url
        self.ports = {port: free_port() for port in PORTS}
        self.home = folder / "page"
        self.home.mkdir()
        self.kept = folder / "variables"
        self.kept.touch()
        self.background: list[tuple[subprocess.Popen[bytes], Path, str]] = []
        programs = folder / "bin"
        programs.mkdir()
        starts = {
            "qmodel": "-P -m qmodel",
            "python": "",
            "pytest": "-P -m pytest -p no:cacheprovider -p qmodel.testing.plugin",
        }
        for name, start in starts.items():
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {start} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "QMODEL_"))},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "COLUMNS": "100",
            "NO_COLOR": "1",
        }

    def here(self, text: str) -> str:
        """Replace the server and ports of a page with those of the test."""
        for port, free in self.ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return SERVER.sub(lambda _: self.url, text)

    def shown(self, text: str) -> str:
        """Replace the server and ports of the test with those of the page; drop the note of a slow connection."""
        text = re.sub(r"^\S+ does not answer yet; trying again \.\.\.\n", "", text, flags=re.M)
        for port, free in self.ports.items():
            text = re.sub(rf"\b{free}\b", port, text)
        return text.replace(self.url, URL)

    def write(self, name: str, text: str) -> None:
        """Write a file of the page."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.here(text), encoding="utf-8")

    def _shell(self, text: str) -> list[str]:
        kept = shlex.quote(str(self.kept))
        return ["bash", "-euc", f". {kept}; trap 'export -p >{kept}' EXIT\n{self.here(text)}"]

    def type(self, text: str) -> tuple[int, str]:
        """Run commands; return the exit status and the output."""
        done = subprocess.run(
            self._shell(text),
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, self.shown(done.stdout.decode())

    def start(self, text: str, output: str) -> None:
        """Start a command that keeps running, in a separate terminal."""
        said = self.kept.with_name(f"said-{len(self.background)}")
        with said.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-euc", f". {shlex.quote(str(self.kept))}\nexec {self.here(text).strip()}"],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.background.append((process, said, output))

    def stop(self) -> list[tuple[int, str, str]]:
        """Stop the running commands with Ctrl-C, the last first; return their exit status, output and shown output."""
        ended = []
        while self.background:
            process, said, output = self.background.pop()
            self._await_output(process, said)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            code = self._await(process)
            ended.append((code, self.shown(said.read_text(encoding="utf-8")), output))
        return ended

    @staticmethod
    def _await_output(process: subprocess.Popen[bytes], said: Path) -> None:
        """Wait until a command has printed something: Ctrl-C before that has another effect."""
        until = time.monotonic() + PATIENCE
        while not said.stat().st_size and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)

    @staticmethod
    def _await(process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(PATIENCE / 2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()


@contextmanager
def importing(folder: Path) -> Iterator[None]:
    """Import from the folder of a page, and afterwards undo the imports and changes to logging."""
    before, here, log = set(sys.modules), Path.cwd(), logging.getLogger()
    level, handlers = log.level, list(log.handlers)
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    try:
        yield
    finally:
        log.setLevel(level)
        log.handlers[:] = handlers
        os.chdir(here)
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
