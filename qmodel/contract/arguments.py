"""The kinds of argument: which values are accepted, and how they are written on the wire.

Every check here has a twin in `lua/wire/arguments.lua`. The generated `lua/contract/catalogue.lua` says which kind each
argument is of. A value that fails its check is refused with BAD_ARGUMENT before the operation reads anything.

Limits bound work (law 8): names and ids become part of keys, counts bound loops, texts bound memory. Whole numbers stay
below 10^14 because Lua prints at most fourteen digits. Two kinds are longer: an epoch stays below 9 * 10^15, which
Lua's numbers hold exactly; a token is a text of digits in Lua.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from qmodel.contract.lifecycle import STATES

MOST = 1000
"""The most items of any kind that one operation takes or gives."""

TEXT_BYTES = 1 << 20
NAME_BYTES = 128
TIME_END = 9 * 10**13
"""Times are whole milliseconds since the epoch, below this moment in the year 4821. A time ten years later still has 14
digits.
"""

EPOCH_END = 9 * 10**15
"""Epochs stay below this number: the seconds of the year 2255, times a million. Lua's numbers are exact up to 2^53, so
there is room above it for epochs that a server begins by itself.
"""

TOKEN_EPOCH = 10**14
"""A token is the epoch of a claim times this number, plus the sequence of the claim."""

LONGEST_MS = 10 * 366 * 86_400_000
RESERVED = ("-data", "-dependencies", "-dependents", "-results")
"""Endings that a job id may not have: `ql:j:<jid>-data` would be the key of two jobs."""

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_LABEL = re.compile("[A-Za-z0-9.:_-]+")


def _bytes(text: str) -> int:
    """Count the bytes of a text in UTF-8. A text that cannot be encoded (a lone surrogate) counts as one too long."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return TEXT_BYTES + 1


NAMES: Final[set[str]] = set()
"""A cache of accepted names: the same few come with every call."""

_NAMES_MOST = 200
_NAME_SHORT = 64
"""The most bytes of a cached name: less than the limit of any kind of name."""


def _keep_name(name: str) -> bool:
    if len(name) <= _NAME_SHORT and name.isascii():
        if len(NAMES) == _NAMES_MOST:
            NAMES.clear()
        NAMES.add(name)
    return True


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be. `expected` completes the sentence "it must be ..."."""

    wire: ClassVar[str] = "text"

    def accepts(self, value: Any) -> bool:
        raise NotImplementedError

    @property
    def plain(self) -> str:
        """Give a Python expression that is true for most accepted values and for no refused one.

        The engine writes it into the checks of operations, where it saves a call for most arguments. It may refer to
        NAMES.
        """
        return "False"

    @property
    def expected(self) -> str:
        raise NotImplementedError

    def encode(self, value: Any) -> str:
        return str(value)


@dataclass(frozen=True, slots=True)
class Text(Kind):
    """Opaque text: stored and never parsed."""

    wire: ClassVar[str] = "text"
    most: int = TEXT_BYTES

    def accepts(self, value: Any) -> bool:
        return type(value) is str and (len(value) if value.isascii() else _bytes(value)) <= self.most

    @property
    def plain(self) -> str:
        return f"type(value) is str and len(value) <= {self.most} and value.isascii()"

    @property
    def expected(self) -> str:
        return f"text of at most {self.most} bytes in UTF-8"


@dataclass(frozen=True, slots=True)
class Name(Kind):
    """The name of a queue, worker, klass, tag or group: any text without control characters."""

    wire: ClassVar[str] = "name"
    most: int = NAME_BYTES

    def accepts(self, value: Any) -> bool:
        if type(value) is not str:
            return False
        if value.isascii():
            return 1 <= len(value) <= self.most and value.isprintable() and _keep_name(value)
        return _bytes(value) <= self.most and not _CONTROL.search(value)

    @property
    def plain(self) -> str:
        return "type(value) is str and value in NAMES"

    @property
    def expected(self) -> str:
        return f"1 to {self.most} bytes without control characters"


@dataclass(frozen=True, slots=True)
class Id(Kind):
    """A job id or request id: visible ASCII without spaces."""

    wire: ClassVar[str] = "id"
    most: int = NAME_BYTES

    def accepts(self, value: Any) -> bool:
        return (
            type(value) is str
            and 1 <= len(value) <= self.most
            and value.isascii()
            and value.isprintable()
            and " " not in value
            and not value.endswith(RESERVED)
        )

    @property
    def plain(self) -> str:
        ascii = f"type(value) is str and len(value) <= {self.most} and value.isascii()"
        visible = "value.isprintable() and value and ' ' not in value and '-d' not in value and '-r' not in value"
        return f"{ascii} and (value.encode().isalnum() or {visible})"

    @property
    def expected(self) -> str:
        return f"1 to {self.most} visible ASCII characters, not ending in " + ", ".join(RESERVED)


@dataclass(frozen=True, slots=True)
class Label(Kind):
    """An id that other ids are built from: letters, digits, and a few signs."""

    wire: ClassVar[str] = "label"
    most: int

    def accepts(self, value: Any) -> bool:
        return type(value) is str and len(value) <= self.most and _LABEL.fullmatch(value) is not None

    @property
    def expected(self) -> str:
        return f"1 to {self.most} characters of A-Z, a-z, 0-9, dot, colon, hyphen and underscore"


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """A whole number in a closed range."""

    wire: ClassVar[str] = "whole"
    low: int
    high: int

    def accepts(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high

    @property
    def plain(self) -> str:
        return f"type(value) is int and {self.low} <= value <= {self.high}"

    @property
    def expected(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Digits(Whole):
    """A whole number that may be too long for Lua and for JSON: Lua keeps its digits as text."""

    wire: ClassVar[str] = "digits"
    low: int = 0
    high: int = 10**30 - 1


@dataclass(frozen=True, slots=True)
class Flag(Kind):
    """Yes or no; `1` or `0` on the wire."""

    wire: ClassVar[str] = "flag"

    def accepts(self, value: Any) -> bool:
        return type(value) is bool

    @property
    def expected(self) -> str:
        return "true or false, written 1 or 0"

    def encode(self, value: Any) -> str:
        return {True: "1", False: "0"}.get(value, str(value)) if type(value) is bool else str(value)


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of a few words."""

    wire: ClassVar[str] = "choice"
    words: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        return type(value) is str and value in self.words

    @property
    def expected(self) -> str:
        return "one of " + ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class ListOf(Kind):
    """Several values of one kind, in order. On the wire the argument's name is repeated before each."""

    wire: ClassVar[str] = "list"
    item: Kind
    least: int = 0
    most: int = MOST

    def accepts(self, value: Any) -> bool:
        return type(value) is tuple and self.least <= len(value) <= self.most and all(map(self.item.accepts, value))

    @property
    def expected(self) -> str:
        return f"{self.least} to {self.most} values, each {self.item.expected}"


POLICIES = ("block", "fail", "ignore", "cancel")
"""What the failure of a dependency does to the job that waits for it. block: the job keeps waiting; fail: it fails too;
ignore: the dependency counts as met; cancel: the job is canceled.
"""

_EDGE_NAME = re.compile("[!-~]{1,64}")

_REQUEST = " request"
"""What follows the id of a request in a dependency. It stands where the policy of an edge to a job stands, so no edge
to a job reads the same, whatever the ids are. So one list of dependencies holds both, with one order, one limit and one
count: each operation that takes dependencies takes requests too, and a job is unblocked when the list is empty.
"""


def after_request(id: str) -> str:
    """Write the dependency on a request.

    >>> after_request("import-7")
    'import-7 request'
    """
    return id + _REQUEST


def awaited_request(dependency: str) -> str:
    """Give the id of the request that a dependency is on, or nothing if it is on a job.

    >>> awaited_request("import-7 request"), awaited_request("import-7")
    ('import-7', '')
    """
    return dependency.removesuffix(_REQUEST) if dependency.endswith(_REQUEST) else ""


class Edge(NamedTuple):
    """A dependency: the job to wait for, the policy for its failure, and a name under which its result is kept. Or the
    request to wait for, as `<id> request`, and the policy for its failure.

    >>> Edge("a", "fail", "page").text, Edge.parse("a")
    ('a fail page', Edge(jid='a', on_failure='block', name=''))
    >>> Edge.to_request("import-7", "fail").text
    'import-7 request fail'
    """

    jid: str
    on_failure: str = "block"
    name: str = ""

    @property
    def text(self) -> str:
        """Write the edge as an argument: `<jid>`, `<jid> <on_failure>` or `<jid> <on_failure> <name>`; or `<id>
        request`, or `<id> request <on_failure>`.
        """
        if self.name:
            return f"{self.jid} {self.on_failure} {self.name}"
        return self.jid if self.on_failure == "block" else f"{self.jid} {self.on_failure}"

    @classmethod
    def parse(cls, text: str) -> Edge:
        """Read an edge from its text."""
        jid, *more = text.split(" ")
        if more[:1] == ["request"]:
            return cls.to_request(jid, *more[1:])
        return cls(jid, *more)

    @classmethod
    def to_request(cls, id: str, on_failure: str = "block") -> Edge:
        """Make the edge to a request."""
        return cls(after_request(id), on_failure)


@dataclass(frozen=True, slots=True)
class Dependency(Kind):
    """A job id, or an edge: the id, the policy for that job's failure, and optionally a name, separated by spaces. Or
    the id of a request, the word `request`, and optionally the policy.
    """

    wire: ClassVar[str] = "edge"

    def accepts(self, value: Any) -> bool:
        if type(value) is not str or " " not in value:
            return _JID.accepts(value)
        jid, on_failure, *name = value.split(" ")
        if on_failure == "request":
            return REQUEST_NAME.accepts(jid) and (not name or (len(name) == 1 and name[0] in POLICIES))
        return _JID.accepts(jid) and on_failure in POLICIES and len(name) <= 1 and all(map(_EDGE_NAME.fullmatch, name))

    @property
    def expected(self) -> str:
        return (
            f"a job id ({_JID.expected}), alone or with one of {', '.join(POLICIES)}, "
            "and then perhaps a name of 1 to 64 visible ASCII characters, with spaces between; or a request id, the "
            "word request, and perhaps a policy"
        )


@dataclass(frozen=True, slots=True)
class Awaited(Kind):
    """What a job waits for: a job id, or the id of a request and the word `request`."""

    wire: ClassVar[str] = "awaited"

    def accepts(self, value: Any) -> bool:
        id = awaited_request(value) if type(value) is str else ""
        return REQUEST_NAME.accepts(id) if id else _JID.accepts(value)

    @property
    def expected(self) -> str:
        return f"a job id ({_JID.expected}), or a request id and the word request"


_JID = Id()
REQUEST_NAME = Label(64)
"""Shorter than a job id, because sub-requests are called `<id>:<name>`."""


@dataclass(frozen=True, slots=True)
class Operations(Kind):
    """Several operations of one class, inside another operation."""

    wire: ClassVar[str] = "operations"
    of: str

    def accepts(self, value: Any) -> bool:
        return type(value) is tuple and 1 <= len(value) <= MOST and all(type(o).__name__ == self.of for o in value)

    @property
    def expected(self) -> str:
        return f"1 to {MOST} operations of class {self.of}"


TIME = Whole(0, TIME_END - 1)
REQUEST = Id(64)

Jid = Annotated[str, Id()]
Jids = Annotated[tuple[str, ...], ListOf(Id(), 1)]
ScheduleId = Annotated[str, Id(112)]
"""Shorter than a job id, because the runs are called `<jid>-<number>`."""
AnyJids = Annotated[tuple[str, ...], ListOf(Id())]
Dependencies = Annotated[tuple[str, ...], ListOf(Dependency(), 1)]
AnyDependencies = Annotated[tuple[str, ...], ListOf(Dependency())]
AnyAwaited = Annotated[tuple[str, ...], ListOf(Awaited())]
QueueName = Annotated[str, Name()]
QueueNames = Annotated[tuple[str, ...], ListOf(Name(), 1)]
WorkerName = Annotated[str, Name()]
WorkerNames = Annotated[tuple[str, ...], ListOf(Name(), 1)]
Klass = Annotated[str, Name()]
ConcurrencyKey = Annotated[str, Name()]
FairKey = Annotated[str, Name()]
FairWeight = Annotated[int, Whole(1, 100)]
RequestName = Annotated[str, REQUEST_NAME]
ConcurrencyLimit = Annotated[int, Whole(1, MOST)]
RequestState = Annotated[str, Choice(("open", "closed", "canceling", "done", "canceled"))]
Group = Annotated[str, Name(160)]
"""Longer than other names, to hold `failed-retries-<queue>`."""
Tag = Annotated[str, Name()]
Tags = Annotated[tuple[str, ...], ListOf(Name(), 1)]
AnyTags = Annotated[tuple[str, ...], ListOf(Name())]
ThrottleName = Annotated[str, Name(NAME_BYTES + len("queue/"))]
"""Longer than other names, to hold `queue/<queue>`. With a `*` it is the pattern of a family."""
ThrottleIds = Annotated[tuple[str, ...], ListOf(Id(), 0, 8)]
Cost = Annotated[int, Whole(1, 1_000_000)]
Concurrency = Annotated[int, Whole(1, 1_000_000)]
Rate = Annotated[int, Whole(1, 10_000)]
Capacity = Annotated[int, Whole(1, 1_000_000)]
Refill = Annotated[int, Whole(1, 1_000_000)]
Daily = Annotated[int, Whole(1, 86_400_000)]
"""A duration of at most a day: its product with a capacity stays below 10^14."""
Data = Annotated[str, Text()]
Message = Annotated[str, Text(1 << 16)]
LogLine = Annotated[str, Text(1024)]
PriorityLevel = Annotated[int, Whole(-(2**31), 2**31 - 1)]
Retries = Annotated[int, Whole(0, 1_000_000)]
Backlog = Annotated[int, Whole(0, 1_000_000)]
Token = Annotated[int, Digits()]
Epoch = Annotated[int, Whole(0, EPOCH_END - 1)]
NewEpoch = Annotated[int, Whole(1, EPOCH_END - 1)]
Milliseconds = Annotated[int, Whole(0, LONGEST_MS)]
Interval = Annotated[int, Whole(1, LONGEST_MS)]
IntervalOrNone = Annotated[int, Whole(0, LONGEST_MS)]
"""0 if there is no interval."""
Limit = Annotated[int, Whole(0, 10**9)]
Cron = Annotated[str, Text(1024)]
ScheduleKind = Annotated[str, Choice(("interval", "cron", "after"))]
Missed = Annotated[str, Choice(("all", "one", "none"))]
Overlap = Annotated[str, Choice(("allow", "skip"))]
Count = Annotated[int, Whole(1, MOST)]
Tries = Annotated[int, Whole(0, MOST)]
Offset = Annotated[int, Whole(0, 10**9)]
Instant = Annotated[int, TIME]
Instants = Annotated[tuple[int, ...], ListOf(TIME)]
Sequence = Annotated[int, Whole(0, TIME_END - 1)]
Option = Annotated[str, Name(160)]
Value = Annotated[int, Whole(0, TIME_END - 1)]
Subject = Annotated[str, Name()]
Patterns = Annotated[tuple[str, ...], ListOf(Name(), 1)]
SubscriptionName = Annotated[str, Id(112)]
"""Shorter than a job id, because its jobs are called `<subscription>:<number>`."""
Wildcard = Annotated[str, Name()]
"""A name in which `*` stands for any characters, also none."""
Fragment = Annotated[str, Name(64)]
"""Short, because each byte of the data is compared with it."""
Reason = Annotated[str, Name()]
MetadataKey = Annotated[str, Name()]
MetadataValue = Annotated[str, Text(1024)]
Amount = Annotated[int, Whole(-(10**14) + 1, 10**14 - 1)]
State = Annotated[str, Choice(tuple(STATES))]
Ended = Annotated[str, Choice(("complete", "failed"))]
Cursor = Annotated[str, Text(256)]
UniqueKey = Annotated[str, Id()]
UniqueMode = Annotated[str, Choice(("pending", "window", "debounce", "again"))]
Switch = Annotated[bool, Flag()]
RequestId = Annotated[str, REQUEST]


def names_family(throttle: str) -> bool:
    """Whether a throttle of this name is a family, with limits for each throttle that matches: it has a `*`, and is not
    the throttle of a queue.
    """
    return "*" in throttle and not throttle.startswith("queue/")
