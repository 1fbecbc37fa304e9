"""Resending: what a failed send means, and when to send the same strings again.

This module does no input and output, so the blocking backend and the asynchronous one share it.

redis-py's own retries are off. It would resend a pop without a request id and lease two jobs. Here every operation may
be sent any number of times (law 4): a request id is made once, outside the loop; finishing is keyed by the lease's
token; and all other operations set the same value again. So every temporary failure is answered by a resend: with
exponential backoff, to spare a server that is starting; with full jitter, so that a thousand clients of a restarted
server do not return together; and up to a deadline for the whole call.

The first connection is retried with the same pauses. Its deadline covers connecting, the checks of the server and
loading the library; in the asynchronous backend, where the first call connects, it is the deadline of that call.
`setup.is_hopeless` names the errors that fail the first connection at once.
"""

from __future__ import annotations

from typing import Final

from redis import exceptions as raised

from qmodel import runtime
from qmodel.errors import ConnectError, CorruptError

FAILURES: Final = (raised.RedisError, OSError)
"""The exceptions of a failed send. Any other exception is a bug here."""

AT_ONCE: Final = 4
"""How many times in a row a call follows MOVED without a pause: the maps of two nodes may contradict each other."""

FIRST_DELAY: Final = 0.02
LONGEST_DELAY: Final = 3.0

_PASSING: Final = frozenset(("LOADING", "BUSY", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS")) | {
    "UNBLOCKED",
    "MOVED",
    "ASK",
    "NOSCRIPT",
    "NOFUNCTION",
}
"""Error codes of a server that starts, fails over, or is busy. It executed nothing."""

_CODES: Final[dict[type[BaseException], str]] = {
    raised.AuthenticationError: "NOAUTH",
    raised.AuthorizationError: "NOAUTH",
    raised.BusyLoadingError: "LOADING",
    raised.ClusterDownError: "CLUSTERDOWN",
    raised.MasterDownError: "MASTERDOWN",
    raised.MovedError: "MOVED",
    raised.AskError: "ASK",  # after MOVED, which is a subclass
    raised.NoPermissionError: "NOPERM",
    raised.NoScriptError: "NOSCRIPT",
    raised.OutOfMemoryError: "OOM",
    raised.ReadOnlyError: "READONLY",
    raised.TryAgainError: "TRYAGAIN",
}
"""Error classes for codes that redis-py removes from the text."""

_NEXT: Final = {
    "OOM": (
        "Let workers finish jobs, which needs no memory, or raise maxmemory; then put again.",
        "The server has reached maxmemory, and takes nothing new.",
    ),
    "NOPERM": ("Extend the user's ACL rules; `qmodel doctor` lists what it needs.", ""),
    "NOAUTH": ("Check the user name and the password in the URL.", ""),
    "MISCONF": ("See the server's log for why it cannot write to its disk.", ""),
    "WRONGTYPE": ("Something else writes under this prefix: give it another one.", ""),
}


_DENIED_INSIDE: Final = ("ACL failure in script", "The user executing the script can't")
"""How Valkey and Redis begin the error of a command that is denied inside a function."""


class ServerError(ConnectError):
    """The server answered an operation with an error that a resend would not cure.

    `code` is the error's first word, such as OOM, NOPERM or MISCONF.
    """

    def __init__(self, code: str, sentence: str, next_step: str) -> None:
        super().__init__(sentence, next_step)
        self.code = code


def code_of(error: BaseException) -> str:
    """Give the code of an error reply; empty if there was no reply."""
    for one in (error, error.__cause__):  # the asynchronous client wraps errors of its handshake
        for known, code in _CODES.items():
            if isinstance(one, known):
                return code
    if not isinstance(error, raised.ResponseError):
        return ""
    text = str(error)
    if text.removeprefix("ERR ").startswith("Function not found"):
        return "NOFUNCTION"
    if text.removeprefix("ERR ").startswith(_DENIED_INSIDE):
        return "NOPERM"
    word = text.partition(" ")[0]
    return word if word.isupper() else "ERR"


def is_unloaded(error: BaseException) -> bool:
    """Whether the server has lost the library, or the script."""
    return code_of(error) in ("NOSCRIPT", "NOFUNCTION")


def is_of_connection(error: BaseException) -> bool:
    """Whether a new connection may help: this one is broken, or its server is no master, while the name of the host
    may already lead to another one.
    """
    return code_of(error) in ("", "READONLY", "MASTERDOWN")


def may_pass(error: BaseException) -> bool:
    """Whether a resend may help."""
    code = code_of(error)
    if code:
        return code in _PASSING
    return isinstance(error, (raised.ConnectionError, raised.TimeoutError, OSError))


def server_error(error: BaseException, where: str) -> ConnectError:
    """Make the caller's exception from an error reply."""
    code = code_of(error)
    if code == CorruptError.code:
        return CorruptError.read(str(error))
    next_step, sentence = _NEXT.get(code, ("", ""))
    return ServerError(
        code,
        sentence or f"{where} answered: {said_by(error)}",
        next_step or "That should not happen; please report it with the server's version.",
    )


NO_DATABASE: Final = "DB index is out of range"
"""The server's message for an unknown database. The asynchronous client of redis-py wraps it."""


def no_database(where: str) -> ServerError:
    """Make the error for a URL with an unknown database."""
    return ServerError(
        "ERR",
        f"{where} has no database of that number.",
        "Most servers have those from 0 to 15 (the setting `databases`), a cluster only 0. One database holds many "
        "namespaces: ?prefix=shop:",
    )


def said_by(error: BaseException) -> str:
    """Give an error's message as one sentence."""
    text = str(error).strip() or type(error).__name__
    return text if text.endswith((".", "!", "?")) else f"{text}."


class Attempts:
    """The resends of one call: how long to sleep before each, and when to give up.

    `longest` is the longest pause. `also` are codes of errors that may pass on this connection.
    """

    def __init__(
        self, deadline: float, where: str, longest: float = LONGEST_DELAY, also: frozenset[str] = frozenset()
    ) -> None:
        self._deadline = deadline
        self._where = where
        self._until = runtime.monotonic() + deadline
        self._longest = FIRST_DELAY
        self._most = longest
        self._also = also
        self._loaded = False
        self._moved = 0

    @property
    def left(self) -> float:
        """The seconds until the deadline; 0 after it."""
        return max(self._until - runtime.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return runtime.monotonic() > self._until

    def pause(self) -> float | None:
        """Give the seconds to sleep before the next try; None if the deadline would pass before it."""
        delay = runtime.uniform(0, self._longest)
        self._longest = min(2 * self._longest, self._most)
        return delay if runtime.monotonic() + delay <= self._until else None

    def delay(self, error: BaseException) -> float:
        """Give the seconds to sleep before the resend. Raises if a resend would not help, or the deadline has
        passed.
        """
        if not may_pass(error) and code_of(error) not in self._also:
            raise server_error(error, self._where) from error
        if is_unloaded(error) and not self._loaded:
            self._loaded = True
            return 0.0
        self._moved += code_of(error) == "MOVED"
        if code_of(error) == "MOVED" and self._moved <= AT_ONCE and not self.over:
            return 0.0
        delay = self.pause()
        if delay is None:
            raise ConnectError(
                f"{self._where} could not be used for {self._deadline:g} seconds: {said_by(error)}",
                "Is the server up? Whether the operation was executed is unknown; sending it again "
                "with the same request id is safe.",
            ) from error
        return delay
