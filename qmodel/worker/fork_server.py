"""The fork server: a small process that forks a process for each job, because a worker with threads must not fork.

A fork copies one thread and the locks of all threads; a lock that another thread held stays locked for ever. So the
worker forks once, before it has threads. That copy, the fork server, stays single-threaded. It has the app loaded, only
forks, and reports how its children ended.

    worker -> fork server   `fork <number>` with a socket to the child as a file descriptor, or `kill <number>`
    fork server -> worker   `<number> <status>` when a child has ended

No process is left behind. When the socket to the worker closes, the fork server kills its children, each with all that
it has started, and exits. On Linux the system does so even sooner: a process is killed when its parent dies.
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
"""The length of a message in bytes, padded."""

NOT_FORKED: Final = 256
"""The status that is reported for a child that could not be forked."""


def message(word: str, number: int) -> bytes:
    """Write a message.

    >>> message("fork", 7)[:8]
    b'fork 7  '
    """
    return f"{word} {number}".ljust(MESSAGE).encode()


class ForkServer:
    """The worker's side: the process, and the socket to it."""

    def __init__(self, work: Callable[[socket.socket], None]) -> None:
        """Fork the fork server. Each child calls `work` with its socket to the worker, and exits."""
        self.socket, theirs = socket.socketpair()
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            self.socket.close()
            _serve(theirs, parent, work)
        theirs.close()

    def fork(self, number: int) -> socket.socket:
        """Request a new child with a number; give the socket to it."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.socket, [message("fork", number)], [theirs.fileno()])
        return ours

    def kill(self, number: int) -> None:
        """Request that a child is killed, with all that it started; nothing happens if it has ended."""
        with contextlib.suppress(OSError):  # then the fork server is gone, and its children too
            self.socket.sendall(message("kill", number))

    def ended(self) -> tuple[int, int] | None:
        """Wait until a child has ended; give its number and status, or None when the fork server is gone."""
        received = read_exactly(self.socket, MESSAGE)
        if not received:
            return None
        number, status = map(int, received.split())
        return number, status

    def close(self) -> None:
        """Stop the fork server and its children."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        os.waitpid(self.pid, 0)


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """Read exactly `count` bytes; none if the socket closes before."""
    parts = b""
    while len(parts) < count:
        try:
            more = sock.recv(min(count - len(parts), 1 << 20))
        except ConnectionError:
            return b""
        if not more:
            return b""
        parts += more
    return parts


# ---- in the process of the fork server


def _serve(sock: socket.socket, parent: int, work: Callable[[socket.socket], None]) -> None:
    """Fork children until the worker is gone."""
    try:
        die_with_parent(parent)
        os.setpgid(0, 0)  # a Ctrl-C in the terminal is for the worker
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _Children(sock, work).run()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


class _Children:
    """The children, by number."""

    def __init__(self, sock: socket.socket, work: Callable[[socket.socket], None]) -> None:
        self._socket = sock
        self._work = work
        self._children: dict[int, int] = {}
        self._signaled, signal_pipe = os.pipe()
        os.set_blocking(self._signaled, False)
        os.set_blocking(signal_pipe, False)
        signal.set_wakeup_fd(signal_pipe, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Execute the requests of the worker."""
        while True:
            ready, _, _ = select.select([self._socket.fileno(), self._signaled], [], [])
            if self._signaled in ready:
                os.read(self._signaled, 4096)
                self._reap()
            if self._socket.fileno() in ready and not self._receive():
                for pid in self._children.values():
                    _kill(pid)
                return

    def _receive(self) -> bool:
        received, passed, _, _ = socket.recv_fds(self._socket, MESSAGE, 1)
        if received and len(received) < MESSAGE:
            received += read_exactly(self._socket, MESSAGE - len(received))
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
        except OSError:  # no memory, or too many processes: only this attempt fails
            os.close(passed)
            self._socket.sendall(message(str(number), NOT_FORKED))
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
            self._socket.close()
            with socket.socket(fileno=passed) as sock:
                self._work(sock)
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
            if hasattr(os, "waitid"):  # kill what it has started before its process id can be reused
                if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    continue
                _kill(pid)
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                del self._children[number]
                self._socket.sendall(message(str(number), os.waitstatus_to_exitcode(status)))


def _kill(pid: int) -> None:
    """Kill a child, and its process group if it has created one."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
