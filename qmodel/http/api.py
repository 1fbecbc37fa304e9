"""What surrounds every request: the guard, the limits on bodies and on waiting requests, and the handling of errors.

Nothing here knows operations. A handler takes a `Call` and returns a value that is sent as JSON, or a response; an
exception becomes a problem. A waiting call ends when its caller disconnects, so that no job is leased to an absent
caller.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from qmodel.client.aio import AsyncClient
from qmodel.contract.operations import Operation
from qmodel.contract.redaction import replied
from qmodel.errors import ConnectError, DataError, QmodelError, RefusedError
from qmodel.http import parse
from qmodel.http.clients import async_client, kept
from qmodel.http.feed import Feed
from qmodel.http.guard import READING, Denied, Guard, printable
from qmodel.http.problems import AGAIN, MEDIA_TYPE, Problem, meant
from qmodel.http.shutdown import Closing

T = TypeVar("T")

log = logging.getLogger("qmodel.http")


class Limits(NamedTuple):
    """The limits of one server: bytes of a body, seconds to receive it, seconds to answer a request that does not wait,
    seconds of a wait, and the number of waiting requests, in total and from one address.

    A stream sends a keep-alive after `alive_seconds`.
    """

    body: int = 8 << 20
    body_seconds: float = 30.0
    answer_seconds: float = 15.0
    wait_seconds: float = 300.0
    waiting: int = 1000
    waiting_each: int = 100
    alive_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A value that is sent as JSON, with a status other than 200 or with more headers."""

    value: Any
    status: int = 200
    headers: dict[str, str] | None = None


class Api:
    """One server: its client, its guard and its limits."""

    def __init__(self, client_or_url: Any, guard: Guard, limits: Limits) -> None:
        self._given = kept(client_or_url)
        self._client: AsyncClient | None = None
        self.guard = guard
        self.limits = limits
        self.closing = Closing()
        self._waiting: Counter[str] = Counter()
        self._feeds: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Feed] = weakref.WeakKeyDictionary()

    @property
    def client(self) -> AsyncClient:
        """Give the client, made at the first request: before it there may be no event loop."""
        if self._client is None:
            self._client = async_client(self._given)
        return self._client

    @property
    def feed(self) -> Feed:
        """Give the wake-ups of the event streams in this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._feeds:
            self._feeds[loop] = Feed(self.client)
        return self._feeds[loop]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Close the client at the end; the next start makes another one."""
        self.closing.clear()
        yield
        self.closing.set()
        used, self._client = self._client, None
        if used is not None and used is not self._given:
            await used.close()

    def check_room(self, who: str) -> None:
        """Refuse a request that would wait, if too many wait already."""
        if self._waiting.total() >= self.limits.waiting:
            raise _again("BUSY", f"{self.limits.waiting} requests wait at this server already.")
        if self._waiting[who] >= self.limits.waiting_each:
            raise _again("TOO_MANY_WAITING", f"{self.limits.waiting_each} requests of {who} wait already.")

    @contextmanager
    def counted(self, who: str) -> Iterator[None]:
        """Count a waiting request."""
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    def endpoint(self, handler: Handler, *, writes: bool | None, query: Collection[str] | None = None) -> Endpoint:
        """Make an endpoint of a handler, behind the guard. Other names in the query than these are refused."""

        async def answer(request: Request) -> Response:
            try:
                self.guard.check(request, writes=writes)
                _check(request, query)
                async with asyncio.timeout(self.limits.answer_seconds) as limit:
                    response = _response(await handler(Call(self, request, limit)))
            except TimeoutError as error:
                response = respond_to(self.late() if limit.expired() else error)
            except Exception as error:
                response = respond_to(error)
            self._note(request, response.status_code)
            return response

        return answer

    def late(self) -> ConnectError:
        """Make the error of a backend that has not answered in time."""
        return ConnectError(f"The jobs were not reached within {self.limits.answer_seconds:g} s.", "")

    def _note(self, request: Request, status: int) -> None:
        """Log a request: at INFO if it changed something or was denied, else at DEBUG."""
        loud = (request.method not in READING and status < 300) or status in (401, 403)
        who = f"{request.client.host if request.client else '?'} {self.guard.user(request)}".rstrip()
        level = logging.INFO if loud else logging.DEBUG
        log.log(level, "%s: %s %s, %d", who, printable(request.method), printable(request.url.path), status)


def _check(request: Request, names: Collection[str] | None) -> None:
    """Refuse names in the query that mean nothing: a misspelt one would be taken for left out."""
    for name in () if names is None else request.query_params.keys() - set(names):
        sentence = f"{printable(request.url.path)} has no argument {name!r}."
        raise Problem("UNKNOWN_ARGUMENT", sentence, meant(name, names or ()), {"argument": name})


class Call:
    """One request, as a handler sees it."""

    def __init__(self, api: Api, request: Request, limit: asyncio.Timeout) -> None:
        self.api = api
        self.request = request
        self._limit = limit

    @property
    def client(self) -> AsyncClient:
        """Give the client of the jobs."""
        return self.api.client

    @property
    def key(self) -> str | None:
        """Give the idempotency key of the request, if any. It counts for one method of one path: the same key for two
        queues means two jobs.
        """
        key = self.request.headers.get("idempotency-key")
        where = f"{self.request.method} {self.request.scope['path']} {key}"
        return hashlib.sha256(where.encode(errors="surrogateescape")).hexdigest() if key else None

    @property
    def who(self) -> str:
        """Give the address of the caller."""
        return self.request.client.host if self.request.client else "?"

    async def ask(self, op: Operation) -> Any:
        """Execute an operation; give its reply as the caller may see it."""
        return replied(op, await self.client.execute(op))

    def query(self) -> list[tuple[str, str]]:
        """Give the query, name by name."""
        return self.request.query_params.multi_items()

    def name(self, parameter: str) -> str:
        """Give a part of the path. Paths are matched as sent, so that a name may have any character (`%2F`)."""
        try:
            return unquote(str(self.request.path_params[parameter]), errors="strict")
        except UnicodeDecodeError:
            raise Problem("BAD_JSON", "The path is not UTF-8.", "Encode names in UTF-8, byte by byte.") from None

    def seconds(self, given: Any, usual: float = 0) -> float:
        """Give the seconds to wait, up to the limit of this server."""
        try:
            value = usual if given is None else parse.finite(given) if isinstance(given, str) else float(given)
            if isinstance(given, bool) or value < 0:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise Problem(
                "BAD_JSON",
                "The timeout is not a number of seconds.",
                f"Give 0 to {self.api.limits.wait_seconds:g}.",
                {"argument": "timeout"},
            ) from None
        return min(value, self.api.limits.wait_seconds)

    async def body(self) -> Any:
        """Parse the body; an empty one is an empty object."""
        kind = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        self._allow(self.api.limits.body_seconds)
        raw = await self._read()
        self._allow()
        if not raw:
            return {}
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise Problem(
                "NOT_JSON",
                f"The body is {kind[:100] or 'of no type'}, and not application/json.",
                "Send the header Content-Type: application/json.",
            )
        return parse.loads(raw)

    async def _read(self) -> bytes:
        limits = self.api.limits
        parts: list[bytes] = []
        length = 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for part in self.request.stream():
                    length += len(part)
                    if length > limits.body:
                        raise Problem(
                            "TOO_LARGE",
                            f"The body has more than {limits.body} bytes.",
                            "Send it in parts.",
                            headers={"Connection": "close"},
                        )
                    parts.append(part)
        except TimeoutError:
            raise Problem(
                "SLOW_REQUEST",
                f"The body did not come within {limits.body_seconds:g} s.",
                "Send it again.",
                headers={"Connection": "close"},
            ) from None
        return b"".join(parts)

    def _allow(self, seconds: float = 0) -> None:
        """Restart the time limit for the answer, and extend it by some seconds."""
        self._limit.reschedule(asyncio.get_running_loop().time() + seconds + self.api.limits.answer_seconds)

    async def waiting(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for work, up to some seconds, or until the caller is gone; the body has been read before."""
        try:
            self.api.check_room(self.who)
            self._allow(seconds)
            with self.api.counted(self.who):
                return await self._unless_gone(asyncio.ensure_future(work))
        finally:
            work.close()

    async def _unless_gone(self, task: asyncio.Future[T]) -> T:
        gone = asyncio.ensure_future(_gone(self.request))
        closing = asyncio.ensure_future(self.api.closing.wait())
        try:
            await asyncio.wait((task, gone, closing), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise _again("BUSY", "This server is about to stop." if closing.done() else "Nobody waits any more.")
        finally:
            for one in (task, gone, closing):
                one.cancel()
            await asyncio.gather(task, gone, closing, return_exceptions=True)


Handler = Callable[[Call], Awaitable[Any]]
Endpoint = Callable[[Request], Awaitable[Response]]


async def _gone(request: Request) -> None:
    """Return when the caller has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _again(code: str, sentence: str) -> Problem:
    return Problem(code, sentence, "Try again in a moment.")


# ---- responses


def _response(found: Any) -> Response:
    """Make the response of a handler's value."""
    if isinstance(found, Response):
        return found
    made = found if isinstance(found, Answer) else Answer(found)
    return as_json(made.value, made.status, made.headers)


def as_json(value: Any, status: int = 200, headers: dict[str, str] | None = None, kind: str = "") -> Response:
    """Make a JSON response that is not cached."""
    try:
        raw = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, in what is said of bad input
        raw = json.dumps(value, separators=(",", ":")).encode()
    kept = {"Cache-Control": "no-store"} | (headers or {})
    return Response(raw + b"\n", status, kept, media_type=kind or "application/json")


def respond_to(error: Exception) -> Response:
    """Make the response of an exception."""
    problem = problem_of(error)
    again = {"Retry-After": AGAIN[problem.code]} if problem.code in AGAIN else {}
    return as_json(problem.body, problem.status, again | problem.headers, MEDIA_TYPE)


def problem_of(error: Exception) -> Problem:
    """Make the problem of an exception; the details of a server fault are only in the log."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RefusedError):
        return Problem(error.code, error.sentence, error.next_step, error.facts)
    if isinstance(error, Denied):
        return Problem(error.code, error.sentence, error.next_step, headers=error.headers)
    if isinstance(error, HTTPException):
        if error.status_code == 405:
            return Problem(
                "METHOD_NOT_ALLOWED", "The path does not support this method.", _SEE, headers=dict(error.headers or {})
            )
        return Problem("NOT_FOUND", "There is nothing at this path.", _SEE)
    if isinstance(error, ConnectError):
        log.warning("%s", error)
        return Problem("UNREACHABLE", error.sentence, "Send it again, with the same Idempotency-Key.")
    if isinstance(error, DataError):
        return Problem("BAD_JSON", "The data cannot be stored as JSON.", "Send them as a text.")
    if not isinstance(error, QmodelError):
        log.error("a request failed", exc_info=error)
    return Problem("INTERNAL", "The server made a mistake.", "Its log says more.")


_SEE = "GET /openapi.json lists all paths."
