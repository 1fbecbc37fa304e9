"""What a process takes from its machine: time, sleep, randomness, threads, queues, selectors, and the class of its
connections.

The client, the worker and the server use these names through the module (`runtime.monotonic()`), so that a call costs
what it costs without this module. The simulator replaces them all at once with `replaced`; everything else then runs
unchanged in virtual time, and a seed decides which thread runs next.

Work in other processes (the fork runner, supervisors) and the faces use the machine itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import random as _random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    import selectors
    import socket

# ---- time

monotonic: Callable[[], float] = time.monotonic
time_ns: Callable[[], int] = time.time_ns
sleep: Callable[[float], None] = time.sleep

# ---- randomness and identity

random: Callable[[], float] = _random.random
uniform: Callable[[float, float], float] = _random.uniform
sample: Callable[[list[Any], int], list[Any]] = _random.sample
urandom: Callable[[int], bytes] = os.urandom
token_hex: Callable[[int], str] = secrets.token_hex
randbelow: Callable[[int], int] = secrets.randbelow
getpid: Callable[[], int] = os.getpid

# ---- threads

Thread: Callable[..., threading.Thread] = threading.Thread
Event: Callable[[], threading.Event] = threading.Event
Lock: Callable[[], threading.Lock] = threading.Lock
SimpleQueue: Callable[[], queue.SimpleQueue[Any]] = queue.SimpleQueue
current_thread: Callable[[], threading.Thread] = threading.current_thread
get_ident: Callable[[], int] = threading.get_ident


def _raise_in(thread: int, error: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))


raise_in: Callable[[int, type[BaseException]], None] = _raise_in
"""Raise an exception in a thread, as soon as that executes Python code again."""


def _new_event_loop() -> asyncio.AbstractEventLoop:
    import asyncio

    return asyncio.new_event_loop()


new_event_loop: Callable[[], asyncio.AbstractEventLoop] = _new_event_loop

# ---- connections


def _as_given(cls: Any) -> Any:
    return cls


connection_class: Callable[[Any], Any] = _as_given
"""Give the class to use in place of one of redis-py's classes of connections."""


def _selector() -> selectors.BaseSelector:
    import selectors

    return selectors.DefaultSelector()


def _socketpair() -> tuple[socket.socket, socket.socket]:
    import socket

    return socket.socketpair()


selector: Callable[[], selectors.BaseSelector] = _selector
socketpair: Callable[[], tuple[socket.socket, socket.socket]] = _socketpair


@contextlib.contextmanager
def replaced(by: Mapping[str, Any]) -> Iterator[None]:
    """Replace names of this module until the end of the block. Raises KeyError for a name that it does not have."""
    names = globals()
    before = {name: names[name] for name in by}
    names.update(by)
    try:
        yield
    finally:
        names.update(before)
