"""Performs each job in a process of its own: in an empty folder, with limits, and without harm to any other.

The process gets the job over a line, performs it as a thread would, and answers with what became of it, as JSON: what
runs there may be anybody's, and is not trusted to send anything else. It connects to the server by itself, if its job
asks
for something. A process that ends without an answer is a failed attempt, and no more than that.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import resource
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from qmodel.app import outcome as outcomes
from qmodel.app.attempt import perform
from qmodel.app.context import Context
from qmodel.app.errors import Cancelled
from qmodel.app.outcome import Outcome
from qmodel.worker.attempt import begun, failed, judged
from qmodel.worker.attempts import Abort, Attempt
from qmodel.worker.errors import Killed, ZygoteGone
from qmodel.worker.folders import Home
from qmodel.worker.fork_server import NOT_FORKED, Zygote, read_exactly

if TYPE_CHECKING:
    from qmodel.app import App

_LENGTH: Final = struct.Struct("!Q")
_OUTCOMES: Final[dict[str, Any]] = {
    cls.__name__: cls
    for cls in (outcomes.Completed, outcomes.Retried, outcomes.Failed, outcomes.Released, outcomes.Unknown)
}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "result_text": (str,),
    "delay_ms": (int,),
    "group": (str,),
    "message": (str,),
    "data": (str, type(None)),
    "depends": (tuple,),
    "klass": (str,),
    "did_you_mean": (str,),
    "known": (tuple,),
}
"""What the facts of outcomes are."""
_LONGEST: Final = 1 << 26
"""Bytes of an answer; no outcome that can be stored comes near."""
_UNSAID: Final = ("error",)
"""What of an outcome stays in the process: an exception is an object of the job's own."""


class ForkRunner:
    """Threads that each wait for one process after the other."""

    def __init__(
        self, app: App, concurrency: int, tell: Callable[[Attempt | Callable[[], None]], None], memory: int | None
    ) -> None:
        self._app = app
        self._tell = tell
        self._closed = False
        self._home = Home()
        self._line: SimpleQueue[Attempt | None] = SimpleQueue()
        self._statuses: dict[int, SimpleQueue[int]] = {}
        self._numbers = itertools.count(1)
        self._zygote = Zygote(partial(_child, app, memory))
        self._threads = [
            threading.Thread(
                target=self._run, args=(self._home.path / str(slot),), name=f"qmodel-job-{slot}", daemon=True
            )
            for slot in range(1, concurrency + 1)
        ]
        self._listener = threading.Thread(target=self._listen, name="qmodel-zygote", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._listener.start()
        for thread in self._threads:
            thread.start()

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as a thread is free; `ended` is called at the end of each, in its thread."""
        for attempt in attempts:
            self._line.put(attempt)

    def waiting(self) -> int:
        """How many have not begun."""
        return self._line.qsize()

    def take_back(self) -> list[Attempt]:
        """Take out those that have not begun."""
        found = []
        try:
            while True:
                if (attempt := self._line.get_nowait()) is not None:
                    found.append(attempt)
        except Empty:
            return found

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Let an attempt not go on: its process is killed, with all that it started."""
        if attempt.abort(abort) and attempt.slot is not None:
            self._zygote.kill(attempt.slot)

    def close(self) -> None:
        """End, and all processes with us."""
        self._closed = True
        for _ in self._threads:
            self._line.put(None)
        self._zygote.close()
        self._home.close()

    def _listen(self) -> None:
        """Pass on how processes ended; when the zygote is gone, so are they all."""
        while (told := self._zygote.ended()) is not None:
            number, status = told
            self._statuses[number].put(status)
        for waiting in list(self._statuses.values()):
            waiting.put(-signal.SIGKILL)
        if not self._closed:
            self._tell(_gone)

    def _run(self, folder: Path) -> None:
        while (attempt := self._line.get()) is not None:
            attempt.began = time.monotonic()
            folder.mkdir(mode=0o700, exist_ok=True)
            outcome = None
            begun(self._app, attempt)
            try:
                if attempt.aborted is None:
                    outcome = self._perform(attempt, folder)
            except OSError:  # the zygote is gone
                attempt.abort(Abort("stop", "Its worker stops."))
            attempt.outcome = judged(self._app, attempt, outcome)
            attempt.ended_at = time.monotonic()
            shutil.rmtree(folder, ignore_errors=True)
            self._tell(attempt)

    def _perform(self, attempt: Attempt, folder: Path) -> Outcome | None:
        number = next(self._numbers)
        status: SimpleQueue[int] = SimpleQueue()
        self._statuses[number] = status
        with self._zygote.fork(number) as line:
            attempt.slot = number
            if attempt.aborted is not None:
                self._zygote.kill(number)
            text = _asked(line, pickle.dumps((attempt.job, str(folder))))
        ended = status.get()
        attempt.slot = None
        del self._statuses[number]
        if text and (answer := _told(text)) is not None:
            return answer
        if attempt.aborted is not None:
            return None
        how = "What its process answered cannot be read." if text else _how(ended)
        outcome = failed(self._app, attempt, Killed(how))
        self._app.hooks.fire("after", attempt.context, outcome)
        return outcome


def _asked(line: socket.socket, request: bytes) -> bytes:
    """Send a request and give the answer; nothing if the other side is gone before."""
    try:
        line.sendall(_LENGTH.pack(len(request)) + request)
    except ConnectionError:
        return b""
    head = read_exactly(line, _LENGTH.size)
    length = _LENGTH.unpack(head)[0] if head else 0
    return read_exactly(line, length) if length <= _LONGEST else b"?"


def _told(text: bytes) -> Outcome | None:
    """An outcome from what the process answered, or None where that is none: a job may have written to any line."""
    try:
        name, facts = json.loads(text)
        made: Outcome = _OUTCOMES[name](**{key: tuple(v) if isinstance(v, list) else v for key, v in facts.items()})
        wrong = any(type(getattr(made, key)) not in _TYPES[key] for key in _facts(made))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return None if wrong else made


def _gone() -> None:
    raise ZygoteGone


def _how(status: int) -> str:
    """How a process ended that gave no answer."""
    if status == NOT_FORKED:
        return "No process could be had for it. Are there too many, or is there too little memory?"
    if status >= 0:
        return f"Its process ended with the status {status} before the job had."
    name = signal.Signals(-status).name
    more = " Did it need more memory than there is?" if -status == signal.SIGKILL else ""
    return f"Its process was killed by {name}.{more}"


# ---- in the process of a job


def _child(app: App, memory: int | None, line: socket.socket) -> None:
    """Perform the job that comes over the line."""
    job, folder = pickle.loads(read_exactly(line, _LENGTH.unpack(read_exactly(line, _LENGTH.size))[0]))
    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    here = os.getpid()
    attempt = Attempt(job, time.monotonic())
    attempt.context = Context(app, job)
    try:
        outcome: Outcome = perform(app, job, attempt.context)
    except Cancelled:
        outcome = outcomes.Released()
    except (KeyboardInterrupt, GeneratorExit) as error:
        outcome = failed(app, attempt, error)
    if os.getpid() != here:  # the job has forked, and its child came back from it
        os._exit(0)
    text = json.dumps([type(outcome).__name__, _facts(outcome)]).encode()
    line.sendall(_LENGTH.pack(len(text)) + text)


def _facts(outcome: Any) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in outcome.__dataclass_fields__ if name not in _UNSAID}
