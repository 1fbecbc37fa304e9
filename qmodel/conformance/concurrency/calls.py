"""Calls: the operations of many clients, with their times and replies.

The module also answers two questions of the search for an order (linearizability.py) without the model: which calls may
come next, and what the replies reveal about the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.contract.events import Event
from qmodel.contract.operations import CompleteAndPop, Events, Operation, Pop, PopAny
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import CompletedAndPopped, Job


class Lost(NamedTuple):
    """Marks a reply that never came."""

    why: str = ""


LOST: Final = Lost()


class Skipped(NamedTuple):
    """Marks an operation that was not tried."""

    why: str


class Call(NamedTuple):
    """One operation of one client.

    `called` and `returned` are moments of one clock that all clients share, in nanoseconds; `returned` is None when the
    reply was lost. `now` is the operation's own time in milliseconds, and `outcome` its reply, a Refusal, or a Lost.
    """

    client: str
    called: int
    returned: int | None
    now: int
    op: Operation
    outcome: Any
    namespace: str = ""


class Unplaced:
    """The calls and returns of the operations that are not placed yet, by time: a linked list.

    At the same moment calls come before returns, so operations that touch count as overlapping. A call without a return
    does not limit the calls after it.
    """

    def __init__(self, history: Sequence[Call]) -> None:
        marks = [(call.called, 0, n) for n, call in enumerate(history)]
        marks += [(call.returned, 1, n) for n, call in enumerate(history) if call.returned is not None]
        marks.sort()
        self._op: list[int] = [-1, *(n for _, _, n in marks)]
        self._returns = [True, *(kind == 1 for _, kind, _ in marks)]
        self._next: list[int] = [*range(1, len(marks) + 1), 0]
        self._previous = [len(marks), *range(len(marks))]
        self._marks: list[list[int]] = [[] for _ in history]
        for mark, (_, _, n) in enumerate(marks, 1):
            self._marks[n].append(mark)

    def take(self, n: int) -> None:
        """Remove an operation."""
        for mark in self._marks[n]:
            self._next[self._previous[mark]] = self._next[mark]
            self._previous[self._next[mark]] = self._previous[mark]

    def put_back(self, n: int) -> None:
        """Put back the operation that was removed last."""
        for mark in reversed(self._marks[n]):
            self._next[self._previous[mark]] = self._previous[self._next[mark]] = mark

    def called(self) -> Iterator[int]:
        """Give the operations that were called before the first return."""
        mark = self._next[0]
        while not self._returns[mark]:
            yield self._op[mark]
            mark = self._next[mark]

    def first_return(self) -> int:
        """Give the operation that returned first, or -1."""
        mark = self._next[0]
        while not self._returns[mark]:
            mark = self._next[mark]
        return self._op[mark]


class Makers:
    """The operations that may have emitted each event, by the event's sequence number, as far as replies show.

    The token of a lease holds the sequence number of the event that granted it. So a reply with the token shows that
    its operation emitted the event, or that an operation with the same request id and a lost reply did. A reply that
    shows an event gives the event's moment, which is the moment of the operation that emitted it, and its kind. These
    rules only save time: in an order with another emitter, the model's reply would differ from the recorded one later.
    """

    def __init__(self, history: Sequence[Call], start: int) -> None:
        """Read the replies of a history; `start` is the sequence number of the last event before it."""
        self._start = start
        self._of: dict[int, frozenset[int]] = {}
        self.made: set[int] = set()
        asked: dict[tuple[str, str], list[int]] = {}
        at: dict[int, list[int]] = {}
        for n, call in enumerate(history):
            if not isinstance(call.outcome, Refusal):
                at.setdefault(call.now, []).append(n)
            if isinstance(call.op, Pop | PopAny | CompleteAndPop) and call.op.request:
                asked.setdefault((call.op.worker, call.op.request), []).append(n)
        for n, call in enumerate(history):
            for token in granted(call):
                op = call.op
                self._keep(token % TOKEN_EPOCH, asked.get((op.worker, op.request), (n,)))  # type: ignore[attr-defined]
        for event in {event for call in history for event in shown(call)}:
            able = (n for n in at.get(event.at, ()) if event.event in history[n].op.spec.events)
            self._keep(event.seq, tuple(able))
        self._events: list[list[int]] = [[] for _ in history]
        for seq, makers in self._of.items():
            for n in makers:
                self._events[n].append(seq)

    def _keep(self, seq: int, makers: Sequence[int]) -> None:
        if seq <= self._start:
            return
        self._of[seq] = self._of.get(seq, frozenset(makers)) & frozenset(makers)
        if len(makers) == 1:
            self.made.update(makers)

    def taken(self, n: int, before: int, after: int) -> int | None:
        """Give the first event after `before`, up to `after`, that the operation cannot have emitted."""
        return next((seq for seq in range(before + 1, after + 1) if seq in self._of and n not in self._of[seq]), None)

    def strands(self, n: int, seq: int, placed: Sequence[bool]) -> bool:
        """Whether placing an operation leaves an event after `seq` without an unplaced operation that can emit it."""
        return any(all(placed[one] or one == n for one in self._of[left]) for left in self._events[n] if left > seq)

    def of(self, seq: int) -> frozenset[int]:
        """Give the operations that may have emitted an event."""
        return self._of.get(seq, frozenset())

    def rank(self, n: int, seq: int) -> int:
        """Rank an operation as emitter of event `seq + 1`; the search tries low ranks first.

        The rank is 2 if the possible emitters are unknown, 1 if the operation is one of them, 0 if it is not: it emits
        no event, or it is refused here at once.
        """
        following = self._of.get(seq + 1)
        return 2 if following is None else int(n in following)

    def must_wait(self, n: int, seq: int) -> bool:
        """Whether an operation is known to have emitted some event, and cannot have emitted event `seq + 1`."""
        return n in self.made and seq + 1 in self._of and n not in self._of[seq + 1]


def granted(call: Call) -> list[int]:
    """Give the tokens that an operation's reply grants, in order. A wrong reply may have any form."""
    reply = call.outcome.jobs if isinstance(call.outcome, CompletedAndPopped) else call.outcome
    if not isinstance(call.op, Pop | PopAny | CompleteAndPop) or not isinstance(reply, tuple):
        return []
    return [job.token for job in reply if isinstance(job, Job)]


def shown(call: Call) -> list[Event]:
    """Give the events that a reply shows."""
    reply = call.outcome if isinstance(call.op, Events) and isinstance(call.outcome, tuple) else ()
    return [event for event in reply if isinstance(event, Event)]
