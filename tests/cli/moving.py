"""What the tests of `qmodel move` share: two places to move between, and a move that dies."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from click.testing import CliRunner, Result

from qmodel import Client
from qmodel.cli import cli
from tests.processes import started
from tests.servers import ROOT, Server


def names() -> tuple[str, str]:
    """Give the URLs of a namespace and of a deployment."""
    name = uuid.uuid4().hex
    return f"memory://{name}", f"memory://{name}d?shards=4"


def names_on(server: Server) -> tuple[str, str]:
    """Give the same on a server."""
    name = uuid.uuid4().hex
    return f"{server.url}?prefix={name}:", f"{server.url}?name={name}&shards=4"


def run(url: str, *arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["--url", url, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def perform(client: Client, done: Counter[str]) -> None:
    """Do the next job."""
    if job := client.queues["mails"].pop(worker="w"):
        done[job.jid] += 1
        job.complete()


class _Killed(Exception):
    pass


class _Dies:
    """A backend that dies before or after one of its calls."""

    def __init__(self, backend: Any, lives: list[float]) -> None:
        self._backend, self._lives = backend, lives

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def _call(self, call: Any, *given: Any) -> Any:
        self._lives[0] -= 0.5
        if self._lives[0] == 0:
            raise _Killed
        found = call(*given)
        self._lives[0] -= 0.5
        if self._lives[0] == 0:
            raise _Killed
        return found

    def execute(self, *given: Any) -> Any:
        return self._call(self._backend.execute, *given)

    def execute_many(self, ops: Sequence[Any], *given: Any) -> list[Any]:
        """Execute a part of them, one by one, before it dies."""
        return [self.execute(op, *given) for op in ops]


def dies(step: int, here: Client, there: Client, act: Callable[[], object]) -> bool:
    """Act until it dies before or after a call, counted in half calls of both clients; say whether it came to that."""
    living = here.backend, there.backend
    lives = [step / 2]
    here.backend, there.backend = (_Dies(backend, lives) for backend in living)
    try:
        act()
    except _Killed:
        return True
    finally:
        here.backend, there.backend = living
    return False


def kill_again_and_again(one: str, many: str, moved: Callable[[], int], most: int) -> None:
    """Kill the command at its first progress, up to four times."""
    command = [sys.executable, "-m", "qmodel", "--url", one, "move", many]
    kills = 0
    while moved() < most and kills < 4:
        before = moved()
        with started(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
            while moved() == before and process.poll() is None:
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
    assert kills
