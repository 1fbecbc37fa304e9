"""The server: listen, serve until SIGINT or SIGTERM, and stop cleanly."""

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
from qmodel.serve.disk import DISK, Disk
from qmodel.serve.dispatch import open_session
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.host import Host, Options
from qmodel.serve.journal import DamagedError, Journal
from qmodel.serve.proxy import ProxyExecutor

LOG = logging.getLogger("qmodel.serve")


def open_host(options: Options, disk: Disk = DISK) -> Host:
    """Make the host: with the model as its executor, or with a backend given by its URL."""
    if options.url == "memory://":
        return _with_journal(options, disk) if options.data else Host(options, ModelExecutor())
    if options.data:
        raise LocalError(
            "--data works with memory:// only; other backends store their jobs themselves.", "Leave out --data."
        )
    if options.judge or options.record:
        raise LocalError("--judge and --record work with the model only.", "Leave out --judge and --record, or --url.")
    return Host(options, ProxyExecutor(options.url))


def _with_journal(options: Options, disk: Disk) -> Host:
    journal = Journal(options.data, options.snapshot_every, disk)
    try:
        executor = _recovered(journal, options.salvage)
        executor.log = journal
        executor.begin_epochs()
        if journal.dirty:
            journal.commit()
    except BaseException:
        journal.close()
        raise
    return Host(options, executor, journal)


def _recovered(journal: Journal, salvage: bool) -> ModelExecutor:
    """Restore the state; if files are damaged and `salvage` is given, as much of it as is readable."""
    executor = ModelExecutor()
    try:
        if journal.recover(executor.spaces, executor.replay):
            journal.snapshot(executor.spaces)
    except DamagedError:
        if not salvage:
            raise
        executor = ModelExecutor()
        journal.salvage(executor.spaces, executor.replay)
    return executor


@asynccontextmanager
async def serving(host: Host) -> AsyncIterator[str]:
    """Listen, and give the URL for clients. At the end send the collected replies and close every connection."""
    loop = asyncio.get_running_loop()
    options = host.options
    secured = options.tls.context()
    try:
        if options.socket:
            _check_free(options.socket)
            listening = await loop.create_unix_server(lambda: open_session(host), options.socket, backlog=1024)
            where = f"unix://{options.socket}"
        else:
            listening = await loop.create_server(
                lambda: open_session(host), options.address, options.port, backlog=1024, ssl=secured
            )
            host.port = listening.sockets[0].getsockname()[1]
            shown = f"[{options.address}]" if ":" in options.address else options.address
            where = f"{'rediss' if secured else 'redis'}://{shown}:{host.port}"
    except OSError as error:
        at = options.socket or f"{options.address}:{options.port}"
        raise LocalError(
            f"The server cannot listen on {at}: {error.strerror}.", "Choose another --port or --socket."
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
    """Raise OSError if another server listens on the socket: the event loop would silently replace it."""
    import socket

    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError), socket.socket(socket.AF_UNIX) as probe:
        probe.connect(path)
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


async def _close(host: Host) -> None:
    for task in list(host.tasks):
        task.cancel()
    for session in list(host.sessions):
        session.end()
    for _ in range(100):  # one second for clients that read slowly
        if not host.sessions:
            break
        await asyncio.sleep(0.01)
    for session in list(host.sessions):
        session.cut()
    if isinstance(host.executor, ProxyExecutor):
        await host.executor.close()
    elif host.journal is not None:
        if host.failure is None:
            host.journal.snapshot(host.executor.spaces)
        host.journal.close()


async def serve(options: Options, ready: Callable[[str], object]) -> Host:
    """Serve until SIGINT or SIGTERM; return the host.

    Calls `ready` with the URL once the server accepts connections. Raises JournalError when the journal cannot be
    read, or can no longer be written.
    """
    host = open_host(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, host.stopping.set)
    async with serving(host) as where:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # most objects are stored jobs and stay: collect less often
        ready(where)
        await host.stopping.wait()
    if host.failure is not None:
        raise host.failure
    return host
