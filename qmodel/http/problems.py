"""Errors as `application/problem+json` (RFC 9457): a code, a sentence, the facts, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from qmodel.contract.refusals import EVERY_REASON

STATUS: Final[dict[str, int]] = {
    "BAD_ARGUMENT": 400,
    "BAD_PATTERN": 400,
    "BAD_SUBJECT": 400,
    "BAD_VALUE": 400,
    "DUPLICATE_JID": 400,
    "DUPLICATE_KEY": 400,
    "TOO_WIDE": 400,
    "OVER_BUDGET": 400,
    "BY_SHARD": 400,
    "CROSS_SHARD": 400,
    "SPLIT_LIMIT": 400,
    "UNTAGGED": 400,
    "JOB_NOT_FOUND": 404,
    "REQUEST_NOT_FOUND": 404,
    "SCHEDULE_NOT_FOUND": 404,
    "SUBSCRIPTION_NOT_FOUND": 404,
    "UNKNOWN_OPTION": 404,
} | dict.fromkeys(
    (
        "CANCEL_LIMIT",
        "DEPENDENCY_CYCLE",
        "DEPENDENCY_LIMIT",
        "DEPENDENCY_NOT_FOUND",
        "EPOCH_PASSED",
        "FORKED",
        "HAS_DEPENDENTS",
        "JOB_EXISTS",
        "LIMIT_REACHED",
        "LOCK_LOST",
        "NOT_A_DEAD_LETTER",
        "NOT_WHOLE",
        "OVER_CAPACITY",
        "QUEUE_BUSY",
        "QUEUE_NOT_EMPTY",
        "REQUEST_CONFLICT",
        "REQUEST_STATE",
        "SCHEDULE_OVER",
        "WRONG_STATE",
    ),
    409,
)
"""The status of each refusal: the request is invalid, or names something unknown, or conflicts with the state."""

OWN: Final[dict[str, tuple[int, str]]] = {
    "BAD_JSON": (400, "The body, or a part of the query, cannot be read."),
    "UNKNOWN_ARGUMENT": (400, "There is no argument of that name."),
    "MISSING_ARGUMENT": (400, "An argument is missing that has no default."),
    "UNAUTHORIZED": (401, "The password or token is missing or wrong."),
    "READ_ONLY": (403, "The server was not started with `--writable`."),
    "WRONG_HOST": (403, "Without a password the server answers only to this machine's own names."),
    "FORGED": (403, "A page of another site sent the request."),
    "UNKNOWN_OPERATION": (404, "The catalogue has no operation of that name."),
    "NOT_FOUND": (404, "There is nothing at this path."),
    "METHOD_NOT_ALLOWED": (405, "The path does not support this method."),
    "SLOW_REQUEST": (408, "The body did not come in time."),
    "TOO_LARGE": (413, "The body is larger than the server reads."),
    "NOT_JSON": (415, "The content type of the body is not `application/json`."),
    "TOO_MANY_WAITING": (429, "This client has too many waiting requests."),
    "INTERNAL": (500, "A fault of the server; its log says more."),
    "UNREACHABLE": (503, "The server cannot reach its backend; the request may or may not have been executed."),
    "BUSY": (503, "This server has too many waiting requests."),
}
"""The codes that exist only over HTTP: their status, and when they occur."""

AGAIN: Final = {"TOO_MANY_WAITING": "1", "UNREACHABLE": "1", "BUSY": "1"}
"""The seconds after which a retry makes sense, by code."""

MEDIA_TYPE: Final = "application/problem+json"


class Problem(Exception):
    """A request that is answered with a problem: a code, a sentence, and what to do."""

    def __init__(
        self,
        code: str,
        sentence: str,
        next_step: str,
        facts: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.next_step = next_step
        self.facts = dict(facts or {})
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        """Give the status of the response."""
        return STATUS[self.code] if self.code in EVERY_REASON else OWN[self.code][0]

    @property
    def body(self) -> dict[str, Any]:
        """Give the problem as JSON."""
        return {
            "type": f"urn:qmodel:problem:{self.code}",
            "title": self.sentence,
            "status": self.status,
            "detail": f"{self.sentence} {self.next_step}",
            "code": self.code,
            "facts": self.facts,
            "next_step": self.next_step,
        }


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Suggest the known word that is closest to a wrong one; else give another sentence, or list all known words.

    >>> meant("quue", ["queue", "jid"]), meant("x", ["queue", "jid"])
    ('Did you mean queue?', 'There are queue, jid.')
    """
    words = list(known)
    close = difflib.get_close_matches(word, words, 1)
    return f"Did you mean {close[0]}?" if close else otherwise or f"There are {', '.join(words) or 'none'}."
