"""The server: listens, serves until it is told to stop, and stops cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from qmodel.errors import LocalError
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host, Options
from qmodel.serve.journal import Journal
from qmodel.serve.proxy import PassingExecutor
from qmodel.serve.session import Session

LOG = logging.getLogger("qmodel.serve")


def open_host(options: Options) -> Host:
    """Make what serves: the model, or a backend by its URL."""
    if options.url == "memory://":
        return _with_journal(options) if options.data else Host(options, ModelExecutor())
    if options.data:
        raise LocalError(
            "Only memory:// is kept in --data; other backends keep their jobs themselves.", "Leave it out."
        )
    if options.judge or options.record:
        raise LocalError(
            "Only calls on the model can be judged and recorded.", "Leave out --judge and --record, or --url."
        )
    return Host(options, PassingExecutor(options.url))


def _with_journal(options: Options) -> Host:
    journal = Journal(options.data, options.snapshot_every)
    try:
        executor = ModelExecutor()
        if journal.recover(executor.spaces, executor.replay):
            journal.snapshot(executor.spaces)
        executor.log = journal
    except BaseException:
        journal.close()
        raise
    return Host(options, executor, journal)


@asynccontextmanager
async def serving(host: Host) -> AsyncIterator[str]:
    """Listen; gives the URL for clients. At the end every connection is closed, after it was sent what was said."""
    loop = asyncio.get_running_loop()
    options = host.options
    try:
        if options.socket:
            _check_free(options.socket)
            listening = await loop.create_unix_server(lambda: Session(host), options.socket, backlog=1024)
            where = f"unix://{options.socket}"
        else:
            listening = await loop.create_server(lambda: Session(host), options.address, options.port, backlog=1024)
            host.port = listening.sockets[0].getsockname()[1]
            shown = f"[{options.address}]" if ":" in options.address else options.address
            where = f"redis://{shown}:{host.port}"
    except OSError as error:
        at = options.socket or f"{options.address}:{options.port}"
        raise LocalError(
            f"Nothing can listen on {at}: {error.strerror}.", "Choose another --port or --socket."
        ) from None
    try:
        yield where
    finally:
        listening.close()
        await _close(host)
        if options.socket:
            with contextlib.suppress(OSError):
                os.unlink(options.socket)


def _check_free(path: str) -> None:
    """Raise OSError when another server listens on a socket: the event loop would take it away from that one."""
    import socket

    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError), socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


async def _close(host: Host) -> None:
    for task in list(host.tasks):
        task.cancel()
    for session in list(host.sessions):
        session.end()
    for _ in range(100):  # a second for those who read slowly
        if not host.sessions:
            break
        await asyncio.sleep(0.01)
    for session in list(host.sessions):
        session.cut()
    if isinstance(host.executor, PassingExecutor):
        await host.executor.close()
    elif host.journal is not None:
        if host.failure is None:
            host.journal.snapshot(host.executor.spaces)
        host.journal.close()


async def serve(options: Options, ready: Callable[[str], object]) -> Host:
    """Serve until SIGINT or SIGTERM; `ready` is told the URL once connections are taken. Gives what has served.

    Raises JournalError when the journal cannot be read, or can no longer be written.
    """
    host = open_host(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, host.stopping.set)
    async with serving(host) as where:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # what stays is most of what there is: look at it less often
        ready(where)
        await host.stopping.wait()
    if host.failure is not None:
        raise host.failure
    return host
