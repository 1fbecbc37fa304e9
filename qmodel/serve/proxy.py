"""Forward calls to any other backend, through the backend's own client.

There is one namespace, that of the backend's URL. A call blocks its own connection until the backend answers; other
connections continue. The request ids that a job's record remembers stay in the backend, and are empty in the records
that are forwarded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qs

from qmodel import runtime
from qmodel.backends import AsyncBackend, Backend, open_async_backend, open_backend, parts_of
from qmodel.contract.operations import Operation, Spec
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError
from qmodel.serve.functions import Clock, read, system_clock
from qmodel.serve.namespaces import WAKE
from qmodel.serve.replies import Raw, reply
from qmodel.serve.resp import Fault

POLL_SECONDS: Final = 1.0
"""How often a waiting thread checks whether its client is still connected."""


class ProxyExecutor:
    """Forwards calls to a backend."""

    def __init__(self, url: str, clock: Clock = system_clock) -> None:
        self.url = url
        self.prefix = parse_qs(parts_of(url).query).get("prefix", ["ql:"])[0]
        self.clock = clock
        self._blocking: Backend | None = None
        self._async: AsyncBackend | None = None
        try:
            self._async = open_async_backend(url)
        except ConnectError:
            self._blocking = open_backend(url)

    def call(self, db: int, spec: Spec, prefix: str, words: Sequence[str], at: int) -> Any:
        """Forward the call whose `now request argument ...` stand at words[at:]; give the reply, or a coroutine."""
        if db or prefix != self.prefix:
            return Fault(f"ERR this server has only one namespace: use database 0 and the prefix {self.prefix}")
        found = read(spec, words, at, self.clock)
        if isinstance(found, Refusal):
            return reply(spec.reply, found)
        return self._forward(spec, found[0], found[1] if at < len(words) and words[at] else None)

    async def _forward(self, spec: Spec, op: Operation, now: int | None) -> Raw:
        try:
            if self._async is not None:
                return reply(spec.reply, await self._async.execute(op, now))
            assert self._blocking is not None
            return reply(spec.reply, self._blocking.execute(op, now))
        except ConnectError as error:
            return _unreached(error)

    async def wait(self, keys: Sequence[str], seconds: float) -> list[str] | Fault | None:
        """Wait for a wake-up as the backend does; give the first key, for the backend does not name the queue."""
        head = f"{self.prefix}q:"
        queues = [key.removeprefix(head).removesuffix(WAKE) for key in keys if key.startswith(head)]
        try:
            if self._async is not None:
                woken = await self._async.wait(queues, seconds)
            else:
                woken = await self._wait_in_a_thread(queues, seconds)
        except ConnectError as error:
            return _unreached(error)
        return [keys[0], "1"] if woken else None

    async def _wait_in_a_thread(self, queues: Sequence[str], seconds: float) -> bool:
        """Wait in a thread for a backend that blocks; the thread ends soon after the client has gone."""
        loop, backend = asyncio.get_running_loop(), self._blocking
        result: asyncio.Future[bool] = loop.create_future()
        gone = runtime.Event()
        assert backend is not None

        def wait() -> None:
            woken, until = False, runtime.monotonic() + seconds
            failed: Exception | None = None
            try:
                while not (woken or gone.is_set()) and (left := until - runtime.monotonic()) > 0:
                    woken = backend.wait(queues, min(left, POLL_SECONDS))
            except Exception as error:
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(finish, woken, failed)

        def finish(woken: bool, failed: Exception | None) -> None:
            if result.done():
                return
            if failed is not None:
                result.set_exception(failed)
            else:
                result.set_result(woken)

        runtime.Thread(target=wait, daemon=True).start()
        try:
            return await result
        finally:
            gone.set()

    async def close(self) -> None:
        """Close the backend."""
        if self._async is not None:
            await self._async.close()
        elif self._blocking is not None:
            self._blocking.close()


def _unreached(error: ConnectError) -> Fault:
    """Make the reply of a call that did not reach the backend."""
    return Fault(f"{getattr(error, 'code', '') or 'ERR'} {error}")
