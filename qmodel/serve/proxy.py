"""Any other backend behind the server: calls are read here, and passed on through the backend's own client.

It is one namespace, that of its URL, and answers when it has: until then the connection that asked waits, and others go
on. What a job's record remembers of requests stays where it is, and is empty in what passes through here.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from qmodel.backends import AsyncBackend, Backend, open_async_backend, open_backend
from qmodel.contract.operations import Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError
from qmodel.serve.functions import Clock, read, system_clock
from qmodel.serve.namespaces import WAKE
from qmodel.serve.replies import Raw, reply
from qmodel.serve.resp import Fault

LOOKS: Final = 1.0
"""In seconds."""


class PassingExecutor:
    """Passes calls on to a backend."""

    def __init__(self, url: str, clock: Clock = system_clock) -> None:
        self.url = url
        self.prefix = parse_qs(urlsplit(url).query).get("prefix", ["ql:"])[0]
        self.clock = clock
        self._blocking: Backend | None = None
        self._async: AsyncBackend | None = None
        try:
            self._async = open_async_backend(url)
        except ConnectError:
            self._blocking = open_backend(url)

    def call(self, db: int, spec: Spec, prefix: str, words: Sequence[str], at: int) -> Any:
        """Pass on the `now request argument ...` at words[at:]; give the reply, or what to wait for."""
        if db or prefix != self.prefix:
            return Fault(f"ERR behind this server is one namespace: use database 0 and the prefix {self.prefix}")
        found = read(spec, words, at, self.clock)
        if isinstance(found, Refusal):
            return reply(spec.reply, found)
        return self._passed(spec, found[0], found[1] if at < len(words) and words[at] else None)

    async def _passed(self, spec: Spec, op: Operation, now: int | None) -> Raw:
        try:
            if self._async is not None:
                return reply(spec.reply, await self._async.execute(op, now))
            assert self._blocking is not None
            return reply(spec.reply, self._blocking.execute(op, now))
        except ConnectError as error:
            return Fault(f"{getattr(error, 'code', '') or 'ERR'} {error}")

    async def wait(self, keys: Sequence[str], seconds: float) -> list[str] | None:
        """Wait for a wake-up as the backend does. Which of several queues it was is not known: the first is told."""
        head = f"{self.prefix}q:"
        queues = [key.removeprefix(head).removesuffix(WAKE) for key in keys if key.startswith(head)]
        if self._async is not None:
            woken = await self._async.wait(queues, seconds)
        else:
            woken = await self._wait_in_a_thread(queues, seconds)
        return [keys[0], "1"] if woken else None

    async def _wait_in_a_thread(self, queues: Sequence[str], seconds: float) -> bool:
        """Wait on a backend that blocks. The thread looks every second whether it is still wanted."""
        loop, backend = asyncio.get_running_loop(), self._blocking
        told: asyncio.Future[bool] = loop.create_future()
        gone = threading.Event()
        assert backend is not None

        def wait() -> None:
            woken, until = False, time.monotonic() + seconds
            while not (woken or gone.is_set()) and (left := until - time.monotonic()) > 0:
                woken = backend.wait(queues, min(left, LOOKS))
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(tell, woken)

        def tell(woken: bool) -> None:
            if not told.done():
                told.set_result(woken)

        threading.Thread(target=wait, daemon=True).start()
        try:
            return await told
        finally:
            gone.set()

    async def close(self) -> None:
        """Close the backend."""
        if self._async is not None:
            await self._async.close()
        elif self._blocking is not None:
            self._blocking.close()
