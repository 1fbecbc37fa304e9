"""Values that the clients return, besides jobs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from qmodel.client.convert import decode
from qmodel.contract import replies

T = TypeVar("T")


class Listing(list[T]):
    """One page of a longer list; `total` is the length of the whole list."""

    def __init__(self, items: Iterable[T], total: int) -> None:
        super().__init__(items)
        self.total = total


class DependencyResults(dict[str, Any]):
    """The results of the named dependencies that are complete, by name. JSON is decoded; any other text stays text.

    `all` lists every named dependency in the order of naming: its name, id and state, and its result as text or the
    message of its failure.
    """

    def __init__(self, raw: Iterable[replies.Result]) -> None:
        self.all = list(raw)
        super().__init__((one.name, _result(one.result)) for one in self.all if one.state == "complete")


def _result(text: str) -> Any:
    """Decode a result from JSON; text that is not JSON is returned as it is."""
    try:
        return decode(text) if text else None
    except ValueError:
        return text


class Failure(NamedTuple):
    """Why and when a job last failed, and on which worker."""

    group: str
    message: str
    at: datetime
    worker: str


class Attempt(NamedTuple):
    """One attempt of a job: who made it, when, how it ended, and why if it was retried or failed.

    `outcome` is completed, failed, retried, released, lapsed or timed_out (its lease ended), lost (the job was moved),
    or running; then `ended` and `took` are None.
    """

    outcome: str
    worker: str
    began: datetime
    ended: datetime | None
    took: timedelta | None
    group: str
    message: str


class Stage(NamedTuple):
    """One entry of a job's history: what happened, when, and its facts by name."""

    what: str
    at: datetime
    facts: dict[str, str | int]
