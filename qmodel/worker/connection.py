"""The worker's connection to the server; it survives outages of any length.

Operations get their request ids once, and are resent until they are answered; the engine guarantees that a resend
changes nothing more. An outage is logged once when it begins, and once when it ends. An error that resending does not
cure is returned in place of the reply. So one operation that the server cannot execute (a full server takes no pop, for
example) does not block the others.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from qmodel import runtime
from qmodel.backends import BUILT_IN, parts_of
from qmodel.client.request_ids import with_request
from qmodel.client.sync import Client
from qmodel.contract.operations import Heartbeat, Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import ConnectError, error_of
from qmodel.model.deployment.plans import Call

log = logging.getLogger("qmodel.worker")

DEADLINE: Final = 2.0
"""Seconds for which the backend retries by itself, before the outage is logged."""

FAREWELL: Final = 5.0
"""Maximum seconds for which a worker that ends, and holds no job, waits for the server. A worker that cannot deregister
is off the list later.
"""

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 3.0

_SERVERS: Final = frozenset(scheme for scheme in BUILT_IN if scheme not in ("memory", "embedded"))


class GivenUp(Exception):
    """The worker must stop at once, and the server has not answered."""


def own_url(url: str) -> str | None:
    """Make the URL of the worker's own connection; None if it has to share the app's connection.

    Its deadline is at most DEADLINE: a worker tries for ever, and looks for a signal between two calls.

    >>> own_url("redis://localhost/0"), own_url("redis://localhost?deadline=9"), own_url("memory://")
    ('redis://localhost/0?deadline=2', 'redis://localhost?deadline=2', None)
    """
    if parts_of(url).scheme not in _SERVERS:
        return None
    plain, _, query = url.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    options.pop("connect_deadline", None)
    with contextlib.suppress(ValueError):  # the backend explains what is not a number
        if float(options.get("deadline", math.inf)) > DEADLINE:
            options["deadline"] = f"{DEADLINE:g}"
    return f"{plain}?{urlencode(options)}"


def is_error(reply: object) -> bool:
    """Whether a reply is an error of the server: the operation was neither executed nor refused."""
    return isinstance(reply, ConnectError)


def is_temporary(error: ConnectError) -> bool:
    """Whether the server may still come: it is not running, or is just starting."""
    cause = error.__cause__
    if cause is None:
        return False
    try:
        from qmodel.backends.redis.resend import may_pass
    except ImportError:
        return False
    return may_pass(cause)


class Connection:
    """Executes operations, and retries without a time limit until `giving_up` is set, or the time `until` has passed.

    `while_away` is called between two tries. `until` is a time of the monotonic clock, and so is `tried_at`, the moment
    of the last try of `execute_many`.
    """

    def __init__(self, url: str, shared: Callable[[], Client]) -> None:
        self.url = url
        self.giving_up = runtime.Event()
        self.gave_up = False
        self.until = math.inf
        self.tried_at = 0.0
        self.while_away: Callable[[], None] = lambda: None
        self._own = own_url(url)
        self._shared = shared
        self._client: Client | None = None
        self._logging = runtime.Lock()
        self._away_since = 0.0
        self._last_error = ""

    @property
    def client(self) -> Client:
        """The connected client."""
        assert self._client is not None
        return self._client

    def connect(self) -> None:
        """Connect; wait for the server if necessary. Raises ConnectError for an error that waiting does not cure."""
        pause = FIRST_PAUSE
        while self._client is None:
            try:
                self._client = Client(self._own) if self._own else self._shared()
            except ConnectError as error:
                if not is_temporary(error):
                    raise
                self.log_outage(error)
                pause = self._sleep(pause)
        self._log_return()

    def execute_many(self, operations: Sequence[Operation]) -> list[Any]:
        """Execute operations in one round trip; give the reply of each, its RefusedError, or a permanent ConnectError.

        Raises GivenUp when `giving_up` is set or `until` has passed, and the server has not answered.
        """
        made = [with_request(op) for op in operations]
        pause = FIRST_PAUSE
        while True:
            try:
                self.tried_at = runtime.monotonic()
                found = self.client.execute_many(made)
            except ConnectError as error:
                if not _is_answer(error):
                    self.log_outage(error)
                    pause = self._sleep(pause)
                    continue
                if len(made) == 1:
                    self._log_error(error)
                    return [error]
                return [self.execute_many([op])[0] for op in made]
            self._log_return()
            return found

    def try_calls(self, calls: Sequence[Call], seconds: float) -> list[Any]:
        """Execute operations in given shards, without waiting for nodes that are away; give the reply of each, its
        RefusedError, or a ConnectError.
        """
        backend: Any = self.client.backend
        replies = backend.try_calls(calls, seconds)
        for reply in replies:
            if is_error(reply) and _is_answer(reply):
                self._log_error(reply)
        return [error_of(reply) if type(reply) is Refusal else reply for reply in replies]

    def renew(self, leases: Sequence[Heartbeat]) -> list[Any]:
        """Renew leases; give the reply of each, its RefusedError, or in a deployment a ConnectError.

        Raises ConnectError if the server of a namespace does not answer.
        """
        homes = self.client.homes
        if homes is None or not hasattr(self.client.backend, "try_calls"):
            return self.client.execute_many(leases)
        return self.try_calls([Call(homes.home(one.jid), one) for one in leases], DEADLINE)

    def execute_last(self, operations: Sequence[Operation]) -> None:
        """Execute the last operations, unless the server is away for longer than the end of a worker may take."""
        self.end_soon()
        with contextlib.suppress(GivenUp):
            if not self.gave_up:
                self.execute_many(operations)

    def end_soon(self, now: bool = False) -> None:
        """Give up now, or when the server is away for longer than the end of a worker may take."""
        self.until = min(self.until, runtime.monotonic() + (0 if now else FAREWELL))
        if now:
            self.giving_up.set()

    def _sleep(self, pause: float) -> float:
        """Sleep, with jitter so that many workers do not return at once; give the next pause."""
        self.while_away()
        seconds = min(runtime.uniform(pause / 2, pause), max(self.until - runtime.monotonic(), 0))
        if self.giving_up.wait(seconds) or runtime.monotonic() >= self.until:
            self.gave_up = True
            raise GivenUp
        return min(2 * pause, LONGEST_PAUSE)

    def log_outage(self, error: ConnectError) -> None:
        """Log the beginning of an outage."""
        with self._logging:
            if not self._away_since:
                self._away_since = runtime.monotonic()
                log.warning("%s The worker keeps trying.", error.sentence)

    def _log_error(self, error: ConnectError) -> None:
        """Log an error that the server answers, once until another one comes."""
        with self._logging:
            if self._last_error != error.sentence:
                self._last_error = error.sentence
                log.error("%s %s The worker keeps trying.", error.sentence, error.next_step)

    def _log_return(self) -> None:
        """Log the end of an outage."""
        if self._away_since:
            with self._logging:
                away, self._away_since = self._away_since, 0.0
            if away:
                log.warning("%s is back after %.1f s.", self.shown_url, runtime.monotonic() - away)

    @property
    def shown_url(self) -> str:
        """The server's URL without its password and options."""
        parts = parts_of(self.url)
        user, at, host = parts.netloc.rpartition("@")
        shown = f"{user.partition(':')[0]}@{host}" if at and ":" in user else parts.netloc
        return f"{parts.scheme}://{shown}{parts.path}"

    def close(self) -> None:
        """Close the connection if it is the worker's own; threads that wait on it wake."""
        if self._own and self._client is not None:
            self._client.close()


def _is_answer(error: ConnectError) -> bool:
    """Whether the error is an answer of the server, which resending does not change."""
    return bool(getattr(error, "code", ""))
