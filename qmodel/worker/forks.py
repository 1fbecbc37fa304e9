"""Perform each job in its own process: in an empty folder, with limits, isolated from other jobs.

The process receives the job over a socket, performs it as a thread would, and answers with the outcome as JSON: the
code that runs there is not trusted to send anything else, such as a pickle. It opens its own connection to the server
if the job needs one. A process that ends without an answer is one failed attempt, and nothing else.
"""

from __future__ import annotations

import contextlib
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
from qmodel.processes import signal_name
from qmodel.worker.attempt import Abort, Attempt
from qmodel.worker.errors import ForkServerGone, Killed
from qmodel.worker.folders import WorkFolder
from qmodel.worker.fork_server import NOT_FORKED, ForkServer, read_exactly
from qmodel.worker.perform import begin, failure, final_outcome

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
"""The types of the fields of outcomes."""
_LONGEST: Final = 1 << 26
"""The maximum length of an answer in bytes, far above any outcome that can be stored."""
_NOT_SENT: Final = ("error",)
"""The fields of an outcome that are not sent: an exception is an object of the job's own code."""


class ForkRunner:
    """Threads that each wait for one process at a time."""

    def __init__(
        self, app: App, concurrency: int, on_end: Callable[[Attempt | Callable[[], None]], None], memory: int | None
    ) -> None:
        self._app = app
        self._on_end = on_end
        self._closed = False
        self._folder = WorkFolder()
        self._backlog: SimpleQueue[Attempt | None] = SimpleQueue()
        self._statuses: dict[int, SimpleQueue[int]] = {}
        self._sockets: dict[int, socket.socket] = {}
        self._numbers = itertools.count(1)
        self._fork_server = ForkServer(partial(_child, app, memory))
        self._threads = [
            threading.Thread(
                target=self._run, args=(self._folder.path / str(slot),), name=f"qmodel-job-{slot}", daemon=True
            )
            for slot in range(1, concurrency + 1)
        ]
        self._listener = threading.Thread(target=self._listen, name="qmodel-fork-server", daemon=True)

    def start(self) -> None:
        """Start the threads."""
        self._listener.start()
        for thread in self._threads:
            thread.start()

    def run(self, attempts: list[Attempt]) -> None:
        """Perform attempts, each as soon as a thread is free; `on_end` is called after each, in its thread."""
        for attempt in attempts:
            self._backlog.put(attempt)

    def waiting(self) -> int:
        """Count the attempts that have not begun."""
        return self._backlog.qsize()

    def take_back(self) -> list[Attempt]:
        """Remove the attempts that have not begun, and return them."""
        found = []
        try:
            while True:
                if (attempt := self._backlog.get_nowait()) is not None:
                    found.append(attempt)
        except Empty:
            return found

    def abort(self, attempt: Attempt, abort: Abort) -> None:
        """Abort an attempt: its process is killed, with all that it started."""
        if attempt.abort(abort) and attempt.slot is not None:
            self._fork_server.kill(attempt.slot)

    def close(self) -> None:
        """Stop the threads, and all processes."""
        self._closed = True
        for _ in self._threads:
            self._backlog.put(None)
        self._fork_server.close()
        self._folder.close()

    def _listen(self) -> None:
        """Forward the exit statuses of processes; when the fork server is gone, all processes were killed."""
        while (ended := self._fork_server.ended()) is not None:
            number, status = ended
            self._statuses[number].put(status)
            self._end_answer(number)
        for waiting in list(self._statuses.values()):
            waiting.put(-signal.SIGKILL)
        if not self._closed:
            self._on_end(_raise_gone)

    def _end_answer(self, number: int) -> None:
        """Wait no longer for the answer of a process that has ended: one that it left behind may hold its socket."""
        if (sock := self._sockets.get(number)) is not None:
            with contextlib.suppress(OSError):  # it is closed: the answer was read
                sock.shutdown(socket.SHUT_RD)

    def _run(self, folder: Path) -> None:
        while (attempt := self._backlog.get()) is not None:
            attempt.began = time.monotonic()
            outcome = None
            begin(self._app, attempt)
            try:
                if attempt.aborted is None:
                    folder.mkdir(mode=0o700, exist_ok=True)
                    outcome = self._perform(attempt, folder)
            except ConnectionError:  # the fork server is gone
                attempt.abort(Abort("stop", "Its worker stops."))
            except OSError as error:  # no room for its folder, or too many open files: only this attempt fails
                outcome = self._killed(attempt, f"No process could be started for it: {error.strerror}.")
            attempt.outcome = final_outcome(self._app, attempt, outcome)
            attempt.ended_at = time.monotonic()
            shutil.rmtree(folder, ignore_errors=True)
            self._on_end(attempt)

    def _perform(self, attempt: Attempt, folder: Path) -> Outcome | None:
        number = next(self._numbers)
        status: SimpleQueue[int] = SimpleQueue()
        self._statuses[number] = status
        try:
            sock = self._fork_server.fork(number)
        except OSError:
            del self._statuses[number]
            raise
        with sock:
            attempt.slot, self._sockets[number] = number, sock
            if not status.empty():
                self._end_answer(number)
            if attempt.aborted is not None:
                self._fork_server.kill(number)
            text = _ask(sock, pickle.dumps((attempt.job, str(folder))))
            del self._sockets[number]
        ended = status.get()
        attempt.slot = None
        del self._statuses[number]
        if text and (answer := _parsed(text)) is not None:
            return answer
        if attempt.aborted is not None:
            return None
        return self._killed(attempt, "The answer of its process is not valid." if text else _how(ended))

    def _killed(self, attempt: Attempt, how: str) -> Outcome:
        """Make the outcome of an attempt without an answer."""
        outcome = failure(self._app, attempt, Killed(how))
        self._app.hooks.fire("after", attempt.context, outcome)
        return outcome


def _ask(sock: socket.socket, request: bytes) -> bytes:
    """Send a request and give the answer; nothing if the process ends before."""
    try:
        sock.sendall(_LENGTH.pack(len(request)) + request)
    except ConnectionError:
        return b""
    head = read_exactly(sock, _LENGTH.size)
    length = _LENGTH.unpack(head)[0] if head else 0
    return read_exactly(sock, length) if length <= _LONGEST else b"?"


def _parsed(text: bytes) -> Outcome | None:
    """Parse the outcome that a process answered; None if it is not valid: a job may write to any file descriptor."""
    try:
        name, facts = json.loads(text)
        made: Outcome = _OUTCOMES[name](**{key: tuple(v) if isinstance(v, list) else v for key, v in facts.items()})
        wrong = any(type(getattr(made, key)) not in _TYPES[key] for key in _facts(made))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return None if wrong else made


def _raise_gone() -> None:
    raise ForkServerGone


def _how(status: int) -> str:
    """Describe the end of a process that gave no answer."""
    if status == NOT_FORKED:
        return "No process could be started for it. Are there too many processes, or is there too little memory?"
    if status >= 0:
        return f"Its process exited with the status {status} before the job had ended."
    more = " Did it need more memory than is available?" if -status == signal.SIGKILL else ""
    return f"Its process was killed by {signal_name(-status)}.{more}"


# ---- in the process of a job


def _child(app: App, memory: int | None, sock: socket.socket) -> None:
    """Perform the job that arrives over the socket."""
    job, folder = pickle.loads(read_exactly(sock, _LENGTH.unpack(read_exactly(sock, _LENGTH.size))[0]))
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
        outcome = failure(app, attempt, error)
    if os.getpid() != here:  # the job forked, and this is the child
        os._exit(0)
    text = json.dumps([type(outcome).__name__, _facts(outcome)]).encode()
    sock.sendall(_LENGTH.pack(len(text)) + text)


def _facts(outcome: Any) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in outcome.__dataclass_fields__ if name not in _NOT_SENT}
