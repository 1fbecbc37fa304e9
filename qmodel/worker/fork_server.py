"""A small process that forks the process of each job, for a worker that has threads and must not fork by itself.

A fork copies one thread and the locks of all; what another thread held stays locked for ever. So the worker forks once,
before it has threads, and that copy, the zygote, stays alone with one thread: it has the app loaded, does nothing but
fork, and tells how its children ended.

    worker -> zygote   `fork <number>` with a line to the child as a file descriptor, or `kill <number>`
    zygote -> worker   `<number> <status>` when a child has ended

Nobody is left behind. The line to the worker is the zygote's life: when it closes, it kills its children, each with all
that it has started, and ends. On Linux the system kills it, and them, even sooner: whoever's parent dies goes too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

from qmodel.processes import die_with_parent

MESSAGE: Final = 64
"""Bytes of a message, padded."""

NOT_FORKED: Final = 256
"""The status of a child that there never was."""


def message(word: str, number: int) -> bytes:
    """A message as it is sent.

    >>> message("fork", 7)[:8]
    b'fork 7  '
    """
    return f"{word} {number}".ljust(MESSAGE).encode()


class Zygote:
    """The worker's side: the process, and the line to it."""

    def __init__(self, work: Callable[[socket.socket], None]) -> None:
        """Fork it. `work` is what each child does with its line to the worker; then the child ends."""
        self.line, theirs = socket.socketpair()
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            self.line.close()
            _live(theirs, parent, work)
        theirs.close()

    def fork(self, number: int) -> socket.socket:
        """Have a child forked, known by a number; give the line to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.line, [message("fork", number)], [theirs.fileno()])
        return ours

    def kill(self, number: int) -> None:
        """Have a child killed, with all that it started; one that has ended is left alone."""
        with contextlib.suppress(OSError):  # then it is gone, and its children too
            self.line.sendall(message("kill", number))

    def ended(self) -> tuple[int, int] | None:
        """Wait until a child has ended; give its number and status, or None when the zygote is gone."""
        received = read_exactly(self.line, MESSAGE)
        if not received:
            return None
        number, status = map(int, received.split())
        return number, status

    def close(self) -> None:
        """Let it end, and its children with it."""
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)
        os.waitpid(self.pid, 0)


def read_exactly(line: socket.socket, count: int) -> bytes:
    """Read so many bytes; nothing where the line was closed before."""
    parts = b""
    while len(parts) < count:
        try:
            more = line.recv(min(count - len(parts), 1 << 20))
        except ConnectionError:
            return b""
        if not more:
            return b""
        parts += more
    return parts


# ---- the other side


def _live(line: socket.socket, parent: int, work: Callable[[socket.socket], None]) -> None:
    """Fork until the worker is gone."""
    try:
        die_with_parent(parent)
        os.setpgid(0, 0)  # a Ctrl-C in the terminal is for the worker
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _Nursery(line, work).run()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


class _Nursery:
    """The children, by their numbers."""

    def __init__(self, line: socket.socket, work: Callable[[socket.socket], None]) -> None:
        self._line = line
        self._work = work
        self._children: dict[int, int] = {}
        self._woken, waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve the worker."""
        while True:
            ready, _, _ = select.select([self._line.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._line.fileno() in ready and not self._hear():
                for pid in self._children.values():
                    _kill(pid)
                return

    def _hear(self) -> bool:
        received, passed, _, _ = socket.recv_fds(self._line, MESSAGE, 1)
        if received and len(received) < MESSAGE:
            received += read_exactly(self._line, MESSAGE - len(received))
        if len(received) < MESSAGE:
            return False
        word, number = received.split()
        if word == b"fork":
            self._fork(int(number), passed[0])
        elif (pid := self._children.get(int(number))) is not None:
            _kill(pid)
        return True

    def _fork(self, number: int, passed: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:  # no memory, or too many processes: the attempt fails, and we go on
            os.close(passed)
            self._line.sendall(message(str(number), NOT_FORKED))
            return
        if not pid:
            self._be_child(parent, passed)
        os.close(passed)
        self._children[number] = pid

    def _be_child(self, parent: int, passed: int) -> Any:
        status = 1
        try:
            os.setsid()
            die_with_parent(parent)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            self._line.close()
            with socket.socket(fileno=passed) as line:
                self._work(line)
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # the job may have closed it
                    stream.flush()
            os._exit(status)

    def _reap(self) -> None:
        for number, pid in list(self._children.items()):
            if hasattr(os, "waitid"):  # what it has started is killed while its number is still its own
                if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    continue
                _kill(pid)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                del self._children[number]
                self._line.sendall(message(str(number), os.waitstatus_to_exitcode(status)))


def _kill(pid: int) -> None:
    """Kill a child, and its group if it has come to have one."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
