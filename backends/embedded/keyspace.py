"""A small Redis keyspace in memory: the commands that our Lua library uses, and no others.

Theory of operation. A keyspace is one dictionary from key to value. The class of the value is the
type of the key: `bytes` is a string, `dict` a hash, `list` a list, `set` a set, `SortedSet` and
`Stream` are below. So a wrong type is found by comparing two classes. A command that empties a
collection deletes its key.

A command is a method `_name(key, ...)` that takes and returns bytes. `COMMANDS` says how many
arguments it takes, whether it writes, and what shape its reply has. Replies use the types that are
cheapest to pass to Lua: an `int`, `bytes`, `False` for nil, `True` for OK, and a tuple for an array.
`bind` wraps one command for Lua. A refusal is returned as the pair `(None, text)`, because an
exception that crosses from Python to Lua is slow, and differs from the error that Redis raises.

A sorted set is a plain list of (score, member), kept in order with `bisect`. sortedcontainers is
slower up to about 10,000 members. Measured for one move: 0.9 us against 0.4 us for the list among
100 members, 1.6 us against 3.3 us among 20,000. The histories that run here have tens of members.

Where Redis defines no order, this keyspace has one: SMEMBERS, KEYS and SCAN reply in byte order.
SCAN replies in one page.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from qmodel import runtime

Clock = Callable[[], float]
Entry = tuple[float, bytes]
StreamId = tuple[int, int]

WRONG_TYPE: Final = "WRONGTYPE Operation against a key holding the wrong kind of value"
_WRONG_ARITY: Final = b"ERR Wrong number of args calling Redis command from script"
_READ_ONLY: Final = b"ERR Write commands are not allowed from read-only scripts."
SYNTAX: Final = "ERR syntax error"
NOT_AN_INTEGER: Final = "ERR value is not an integer or out of range"
NOT_A_FLOAT: Final = "ERR value is not a valid float"
NOT_POSITIVE: Final = "ERR value is out of range, must be positive"
OVERFLOW: Final = "ERR increment or decrement would overflow"
BAD_STREAM_ID: Final = "ERR Invalid stream ID specified as stream command argument"

# A longer array is not passed on the Lua stack, which has 8,000 slots.
LONGEST_TUPLE: Final = 1000


class CommandError(Exception):
    """Raised when a command refuses. The text is the error that Redis replies; its first word is the code."""


class Command(NamedTuple):
    """The description of a command. The numbers of arguments do not include its name."""

    method: str
    low: int
    high: int
    writes: bool
    reply: str


# ------------------------------------------------------------------------------- numbers and bounds


class _LastMember:
    """A value that is greater than every member."""

    def __gt__(self, other: object) -> bool:
        return True


_LAST_MEMBER: Any = _LastMember()
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_WORD = re.compile(rb"[+-]?(?:inf|infinity|nan)\Z", re.IGNORECASE)
_BIGGEST: Final = 2**63 - 1
_LAST_ID: Final = 2**64 - 1
_SMALL: Final = 128
_SHORT: Final = 64
"""In hashes with more fields, or with longer values, the server's order of fields is undefined."""


@lru_cache(maxsize=4096)
def integer(raw: bytes, refusal: str = NOT_AN_INTEGER) -> int:
    """Read a whole number as Redis does: 64 bits, in the canonical spelling only."""
    try:
        value = int(raw)
    except ValueError:
        raise CommandError(refusal) from None
    if b"%d" % value != raw or not -_BIGGEST - 1 <= value <= _BIGGEST:
        raise CommandError(refusal)
    return value


def _float(raw: bytes) -> float | None:
    """Read decimal text, as all servers do; Redis 7.0 also takes hexadecimal, Valkey 9 does not."""
    return float(raw) if _DECIMAL.match(raw) or _WORD.match(raw) else None


def score(raw: bytes) -> float:
    """Read a score. `inf` is accepted; a finite number too large for a double is refused."""
    if raw.isdigit() and len(raw) < 300:
        return float(raw)
    value = _float(raw)
    if value is None or value != value:
        raise CommandError(NOT_A_FLOAT)
    if math.isinf(value) and not _WORD.match(raw):
        raise CommandError(NOT_A_FLOAT)
    if value == 0 and re.search(rb"[1-9]", re.split(rb"[eE]", raw)[0]):
        raise CommandError(NOT_A_FLOAT)
    return value


def number_text(value: float) -> bytes:
    """Print a score as Redis 7 replies with it: whole numbers plain, others with 17 digits."""
    return b"%.17g" % value


class Bound(NamedTuple):
    """One end of a range of scores, as the value that `bisect` searches for.

    `(2.0,)` sorts before every entry of score 2, and `(the next float,)` after the last of them.
    """

    start: tuple[float, ...]
    stop: tuple[float, ...]


@lru_cache(maxsize=4096)
def score_bound(raw: bytes) -> Bound:
    """Read one end of a range of scores. As in C, empty text is 0, and a number that is too large is infinite."""
    exclusive = raw[:1] == b"("
    text = (raw[1:] if exclusive else raw).split(b"\0")[0]
    value = _float(text) if text else 0.0
    if value is None or value != value:
        raise CommandError("ERR min or max is not a float")
    before = (value,)
    after = (math.nextafter(value, math.inf),) if value < math.inf else (math.inf, _LAST_MEMBER)
    return Bound(after, before) if exclusive else Bound(before, after)


class LexBound(NamedTuple):
    """One end of a range of members. `end` is -1 for `-` (before all), 1 for `+` (after all), else 0."""

    end: int
    value: bytes
    exclusive: bool


def lex_bound(raw: bytes) -> LexBound:
    """Read one end of a range of members: `-`, `+`, `[member` or `(member`."""
    if raw in (b"-", b"+"):
        return LexBound(-1 if raw == b"-" else 1, b"", False)
    if raw[:1] not in (b"[", b"("):
        raise CommandError("ERR min or max not valid string range item")
    return LexBound(0, raw[1:], raw[:1] == b"(")


def _slice(start: int, stop: int, length: int) -> tuple[int, int]:
    """Turn inclusive, possibly negative positions into a half-open range within the length."""
    if start < 0:
        start = max(start + length, 0)
    if stop < 0:
        stop += length
    start = min(start, length)
    return start, max(min(stop + 1, length), start)


# -------------------------------------------------------------------------------------- sorted sets


class SortedSet:
    """Members with their scores. `entries` has the same content, ordered by score, then by member.

    A score of -0 is stored as 0. A server stores 0 in small sets, and -0 in large ones.
    """

    __slots__ = ("entries", "scores")

    def __init__(self) -> None:
        self.scores: dict[bytes, float] = {}
        self.entries: list[Entry] = []

    def put(self, member: bytes, value: float) -> None:
        value += 0.0
        old = self.scores.get(member)
        if old is not None:
            del self.entries[bisect_left(self.entries, (old, member))]
        self.scores[member] = value
        insort(self.entries, (value, member))

    def remove(self, member: bytes) -> bool:
        old = self.scores.pop(member, None)
        if old is None:
            return False
        del self.entries[bisect_left(self.entries, (old, member))]
        return True

    def cut(self, low: int, high: int) -> list[Entry]:
        """Remove the entries of a half-open range of positions, and return them."""
        gone = self.entries[low:high]
        del self.entries[low:high]
        for _, member in gone:
            del self.scores[member]
        return gone

    def between(self, low: Bound, high: Bound) -> tuple[int, int]:
        """Return the half-open range of positions whose scores lie within two bounds."""
        start = bisect_left(self.entries, low.start)
        return start, max(start, bisect_left(self.entries, high.stop))

    def between_members(self, low: LexBound, high: LexBound) -> tuple[int, int]:
        """Return the half-open range of positions whose members lie within two bounds.

        Redis defines this only if all scores are equal.
        """
        start = self._at_member(low, after=low.exclusive)
        return start, max(start, self._at_member(high, after=not high.exclusive))

    def _at_member(self, bound: LexBound, after: bool) -> int:
        if bound.end:
            return 0 if bound.end < 0 else len(self.entries)
        find = bisect_right if after else bisect_left
        return find(self.entries, bound.value, key=_member_of)


def _member_of(entry: Entry) -> bytes:
    return entry[1]


# ------------------------------------------------------------------------------------------ streams


class Stream:
    """Entries, ordered by their ids.

    `MAXLEN ~` and `MINID ~` remove only whole nodes. So the number of remaining entries depends on how Redis
    packs entries into nodes: at most 100 entries and about 4,096 bytes of listpack. The packing is
    computed at the first such trim.
    """

    NODE_ENTRIES: Final = 100
    NODE_BYTES: Final = 4096
    TRIM_LIMIT: Final = 100 * NODE_ENTRIES

    __slots__ = ("_fields", "_first", "_size", "_total", "entries", "last", "nodes", "packed")

    def __init__(self) -> None:
        self.entries: list[tuple[StreamId, tuple[bytes, ...]]] = []
        self.last: StreamId = (0, 0)
        # The number of live entries in each node. The last node may still grow. `packed` counts the
        # entries in all nodes.
        self.nodes: list[int] = []
        self.packed = 0
        # About the last node: the id and field names of its first entry, its size in bytes, and how
        # many entries were ever added to it.
        self._first: StreamId = (0, 0)
        self._fields: tuple[bytes, ...] = ()
        self._size = 0
        self._total = 0

    def trim(self, length: int, approximate: bool) -> bool:
        """Remove the oldest entries down to a length; tell whether any was removed."""
        return self._remove(len(self.entries) - length, approximate)

    def trim_before(self, first: StreamId, approximate: bool) -> bool:
        """Remove the entries below an id; tell whether any was removed."""
        return self._remove(bisect_left(self.entries, first, key=_id_of), approximate)

    def _remove(self, surplus: int, approximate: bool) -> bool:
        if surplus <= 0:
            return False
        self._pack()
        gone = 0
        while self.nodes and gone < surplus:
            node = self.nodes[0]
            if approximate and gone + node > self.TRIM_LIMIT:
                break
            if gone + node <= surplus:
                del self.nodes[0]
                gone += node
            elif approximate:
                break
            else:
                self.nodes[0] -= surplus - gone
                gone = surplus
        del self.entries[:gone]
        self.packed -= gone
        return gone > 0

    def _pack(self) -> None:
        for stream_id, fields in self.entries[self.packed :]:
            self._pack_one(stream_id, fields)
        self.packed = len(self.entries)

    def _pack_one(self, stream_id: StreamId, fields: tuple[bytes, ...]) -> None:
        names, plain = fields[::2], sum(map(len, fields))
        full = self._size + plain >= self.NODE_BYTES or self._total >= self.NODE_ENTRIES
        if full or not self.nodes:
            self._first, self._fields, self._total = stream_id, names, 0
            # A listpack has a frame of 7 bytes. Its master entry is: count, deleted, number of
            # fields, names, 0.
            self._size = 7 + 2 + 2 + _packed_int(len(names)) + sum(map(_packed, names)) + 2
            self.nodes.append(0)
        self.nodes[-1] += 1
        self._total += 1
        self._size += self._entry_size(stream_id, names, fields)

    def _entry_size(self, stream_id: StreamId, names: tuple[bytes, ...], fields: tuple[bytes, ...]) -> int:
        size = 2 + _packed_int(stream_id[0] - self._first[0])
        size += _packed_int(stream_id[1] - self._first[1]) + sum(map(_packed, fields[1::2]))
        if names == self._fields:
            return size + _packed_int(len(names) + 3)
        size += _packed_int(len(names)) + sum(map(_packed, names))
        return size + _packed_int(2 * len(names) + 4)


def _packed_int(value: int) -> int:
    """Count the bytes of a whole number in a listpack, including the byte for the length."""
    if 0 <= value <= 127:
        return 2
    for bits, size in ((13, 3), (16, 4), (24, 5), (32, 6)):
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return size
    return 10


def _packed(raw: bytes) -> int:
    """Count the bytes of a string in a listpack, which stores a canonical whole number as a number."""
    if len(raw) <= 20:
        try:
            return _packed_int(integer(raw))
        except CommandError:
            pass
    length = len(raw) + (1 if len(raw) < 64 else 2 if len(raw) < 4096 else 5)
    return length + (1 if length <= 127 else 2 if length < 16383 else 3)


def _stream_number(raw: bytes) -> int:
    """Read one half of a stream id. Unlike other numbers, it may begin with zeros or a plus sign."""
    if raw.isdigit() and len(raw) < 19:
        return int(raw)
    text = raw.lstrip(b" \t\n\v\f\r")
    text = text[1:] if text[:1] == b"+" else text
    if not text.isdigit() or int(text) > _LAST_ID:
        raise CommandError(BAD_STREAM_ID)
    return int(text)


def stream_id(raw: bytes, missing: int = 0) -> StreamId:
    """Read an explicit id. If it has no sequence number, it gets `missing`."""
    if b"*" in raw:
        raise CommandError("ERR XADD with a generated id (*) is not supported by this keyspace")
    millis, dash, sequence = raw.partition(b"-")
    return _stream_number(millis), _stream_number(sequence) if dash else missing


def _stream_bound(raw: bytes, low: bool) -> StreamId:
    """Read one end of a range of ids as an inclusive one: an exclusive end is moved by one."""
    if raw in (b"-", b"+"):
        return (0, 0) if raw == b"-" else (_LAST_ID, _LAST_ID)
    exclusive = raw[:1] == b"("
    found = stream_id(raw[1:] if exclusive else raw, 0 if low else _LAST_ID)
    if not exclusive:
        return found
    flat = (found[0] << 64 | found[1]) + (1 if low else -1)
    if not 0 <= flat < 1 << 128:
        raise CommandError(f"ERR invalid {'start' if low else 'end'} ID for the interval")
    return flat >> 64, flat & _LAST_ID


def _id_text(found: StreamId) -> bytes:
    return b"%d-%d" % found


def _id_of(entry: tuple[StreamId, tuple[bytes, ...]]) -> StreamId:
    return entry[0]


# ------------------------------------------------------------------------------ options of commands


class RangeOptions(NamedTuple):
    """The options that may follow the two ends of a ZRANGE."""

    by: bytes = b""
    reverse: bool = False
    limit: tuple[int, int] | None = None
    scores: bool = False

    def cut(self, low: int, high: int, skip: int, count: int) -> tuple[int, int]:
        """Apply LIMIT to a half-open range, counted from `low`, or with REV from `high`."""
        if skip < 0 or skip >= high - low:
            return low, low
        take = high - low - skip if count < 0 else min(count, high - low - skip)
        if self.reverse:
            return high - skip - take, high - skip
        return low + skip, low + skip + take


_ZRANGE_WORDS: Final = (b"BYSCORE", b"BYLEX", b"REV", b"LIMIT", b"WITHSCORES")
_NO_OPTIONS: Final = RangeOptions()


@lru_cache(maxsize=4096)
def _range_options(words: tuple[bytes, ...], allowed: tuple[bytes, ...]) -> RangeOptions:
    options, i = _NO_OPTIONS, 0
    while i < len(words):
        word, left = words[i].upper(), len(words) - i - 1
        if word not in allowed or (word == b"LIMIT" and left < 2):
            raise CommandError(SYNTAX)
        if word in (b"BYSCORE", b"BYLEX"):
            options = options._replace(by=word)
        elif word == b"REV":
            options = options._replace(reverse=True)
        elif word == b"WITHSCORES":
            options = options._replace(scores=True)
        else:
            options = options._replace(limit=(integer(words[i + 1]), integer(words[i + 2])))
            i += 2
        i += 1
    return options


_NO_FLAGS: Final[frozenset[bytes]] = frozenset()
_ZADD_FLAGS: Final = frozenset((b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"))
_SET_ELSEWHERE: Final = frozenset((b"EX", b"PX", b"EXAT", b"PXAT", b"KEEPTTL", b"GET", b"IFEQ"))


def _zadd_flags(words: tuple[bytes, ...]) -> tuple[frozenset[bytes], tuple[bytes, ...]]:
    """Separate the flags from the other arguments; a flag may be repeated."""
    if words[0].upper() not in _ZADD_FLAGS:
        return _NO_FLAGS, words
    count = 1
    while count < len(words) and words[count].upper() in _ZADD_FLAGS:
        count += 1
    return frozenset(word.upper() for word in words[:count]), words[count:]


def _zadd_refusal(flags: frozenset[bytes]) -> None:
    if b"INCR" in flags:
        raise CommandError("ERR ZADD with INCR is not supported by this keyspace")
    if b"NX" in flags and b"XX" in flags:
        raise CommandError("ERR XX and NX options at the same time are not compatible")
    if len(flags & {b"GT", b"LT", b"NX"}) > 1:
        raise CommandError("ERR GT, LT, and/or NX options at the same time are not compatible")


def _pairs(words: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(words[::2], words[1::2], strict=True)


class Added(NamedTuple):
    """An XADD, parsed."""

    create: bool
    length: int | None
    first: StreamId | None
    approximate: bool
    stream_id: StreamId
    fields: tuple[bytes, ...]


def _xadd_words(words: Sequence[bytes]) -> Added:
    create, length, first, approximate, i = True, None, None, False, 0
    while i < len(words):
        word, left = words[i].upper(), len(words) - i - 1
        if word == b"NOMKSTREAM":
            create = False
        elif word in (b"MAXLEN", b"MINID") and left:
            approximate = words[i + 1] == b"~"
            i += 1 if left > 1 and words[i + 1] in (b"~", b"=") else 0
            length, first = (integer(words[i + 1]), None) if word == b"MAXLEN" else (None, stream_id(words[i + 1]))
            i += 1
            if length is not None and length < 0:
                raise CommandError("ERR The MAXLEN argument must be >= 0.")
        elif word == b"LIMIT":
            raise CommandError("ERR XADD with LIMIT is not supported by this keyspace")
        else:
            break
        i += 1
    if i >= len(words):
        raise CommandError("ERR wrong number of arguments for 'xadd' command")
    found = stream_id(words[i])
    fields = tuple(words[i + 1 :])
    if not fields or len(fields) % 2:
        raise CommandError("ERR wrong number of arguments for 'xadd' command")
    if found == (0, 0):
        raise CommandError("ERR The ID specified in XADD must be greater than 0-0")
    return Added(create, length, first, approximate, found, fields)


# ----------------------------------------------------------------------------------------- keyspace

_TYPES: Final = {
    bytes: "string",
    dict: "hash",
    list: "list",
    set: "set",
    SortedSet: "zset",
    Stream: "stream",
}
_T = TypeVar("_T")


def frozen(value: Any) -> Any:
    """Copy a key's content, so that later commands on the key do not change the copy."""
    if value is None or value.__class__ is bytes:
        return value
    if value.__class__ is SortedSet:
        copy: Any = SortedSet()
        copy.scores, copy.entries = value.scores.copy(), value.entries.copy()
        return copy
    if value.__class__ is Stream:
        copy = Stream()
        for slot in Stream.__slots__:
            part = getattr(value, slot)
            setattr(copy, slot, part.copy() if part.__class__ is list else part)
        return copy
    return value.copy()


def same(one: Any, other: Any) -> bool:
    """Tell whether two keys have the same content."""
    if one.__class__ is not other.__class__:
        return False
    if one.__class__ is SortedSet:
        return bool(one.scores == other.scores)
    if one.__class__ is Stream:
        return bool(one.entries == other.entries and one.last == other.last)
    return bool(one == other)


class Keyspace:
    """The keys of one server, and the commands on them.

    `touched` collects the keys that were written, `calls` counts the commands by name. The caller
    may clear both at any time.

    >>> keyspace = Keyspace()
    >>> keyspace.execute("HSET", b"h", b"a", b"1")
    1
    >>> keyspace.dump()
    {b'h': ('hash', {b'a': b'1'})}

    `failing` lets commands fail, as a server's rights or its faults do:

    >>> keyspace.failing = lambda name, writes: "NOPERM it is denied" if name == "HSET" else None
    >>> keyspace.execute("HSET", b"h", b"b", b"2")
    Traceback (most recent call last):
    qmodel.backends.embedded.keyspace.CommandError: NOPERM it is denied
    """

    def __init__(self, clock: Clock = time.time) -> None:
        self.clock = clock
        self.run_id = runtime.token_hex(20).encode()
        self.touched: set[bytes] = set()
        self.calls: Counter[str] = Counter()
        # An exception other than a refusal: a bug in this file, which Lua would hide.
        self.fault: Exception | None = None
        # Called with the channel and the text of each published message.
        self.subscriber: Callable[[bytes, bytes], object] | None = None
        # Called with the name of each command and whether it writes; a text that it gives is the command's error.
        self.failing: Callable[[str, bool], str | None] | None = None
        self._data: dict[bytes, Any] = {}
        self._pending: list[object] = []

    def clear(self) -> None:
        """Delete all keys, and clear `touched` and `calls`."""
        self._data = {}
        self.touched.clear()
        self.calls.clear()

    def load(self, keys: Mapping[bytes, Any]) -> None:
        """Replace all keys by recorded ones (`changed`), and clear `touched`."""
        self._data = {key: frozen(value) for key, value in keys.items()}
        self.touched.clear()

    def changed(self) -> dict[bytes, Any]:
        """Copy the content of the touched keys; None for a key that is gone."""
        return {key: frozen(self._data.get(key)) for key in self.touched}

    def undo(self, keys: Mapping[bytes, Any]) -> None:
        """Set the touched keys to their recorded content, and clear `touched`: all keys are as recorded again."""
        for key in self.touched:
            if key in keys:
                self._data[key] = frozen(keys[key])
            else:
                self._data.pop(key, None)
        self.touched.clear()

    def equals(self, keys: Mapping[bytes, Any]) -> bool:
        """Tell whether the touched keys have their recorded content."""
        return all(same(self._data.get(key), keys.get(key)) for key in self.touched)

    def dump(self, keys: set[bytes] | None = None) -> dict[bytes, tuple[str, object]]:
        """Return the content of all keys, or of the given ones, as values that can be compared."""
        chosen = self._data if keys is None else keys & self._data.keys()
        return {key: self._content(self._data[key]) for key in chosen}

    def _content(self, value: Any) -> tuple[str, object]:
        kind = _TYPES[type(value)]
        if kind == "string":
            return kind, value
        if isinstance(value, SortedSet):
            return kind, [(member, found) for found, member in value.entries]
        if isinstance(value, Stream):
            entries = [(_id_text(found), fields) for found, fields in value.entries]
            return kind, (entries, _id_text(value.last))
        if isinstance(value, set):
            return kind, frozenset(value)
        return kind, value.copy()

    # ---- running a command

    def execute(self, name: str, *args: bytes) -> Any:
        """Execute a command for Python: nil becomes None, a status bytes, an array a list."""
        reply = self.bind(name)(*args)
        if type(reply) is tuple and len(reply) == 2 and reply[0] is None:
            if reply[1] is not False:
                raise CommandError(reply[1].decode())
            return _to_python(self._unflatten())
        return _to_python(reply)

    def bind(self, name: str, read_only: bool = False) -> Callable[..., Any]:
        """Return the function that Lua calls for a command.

        It returns a value, a tuple for an array, or one of three pairs: `(None, text)` is a refusal;
        `(None, True)` asks Lua to send the arguments again as strings; `(None, False)` says that
        Lua gets the reply in parts, with `take`. Lua converts all numbers other than plain integers,
        because only Lua can distinguish -0 from 0.
        """
        command = COMMANDS.get(name)
        if command is None:
            return lambda *args: (None, _unknown(name).encode())
        method: Callable[..., Any] = getattr(self, command.method)
        low, high, tree = command.low, command.high, command.reply == "tree"
        refused = read_only and command.writes
        calls = self.calls

        def call(*args: Any) -> Any:
            for arg in args:
                if arg.__class__ is not bytes:
                    texts = _texts(args)
                    if texts is None:
                        return None, True
                    args = texts
                    break
            calls[name] += 1
            if not low <= len(args) <= high:
                return None, _WRONG_ARITY
            if refused:
                return None, _READ_ONLY
            if self.failing is not None and (error := self.failing(name, command.writes)) is not None:
                return None, error.encode()
            try:
                reply = method(*args)
            except CommandError as refusal:
                return None, str(refusal).encode()
            except Exception as fault:
                self.fault = fault
                raise
            if reply.__class__ is tuple and (tree or len(reply) > LONGEST_TUPLE):
                self._pending = list(_flatten(reply))
                return None, False
            return reply

        return call

    def take(self, offset: int) -> tuple[object, ...]:
        """Return the next part of a long or nested reply; True and a length begin an array."""
        return tuple(self._pending[offset : offset + LONGEST_TUPLE])

    def _unflatten(self) -> Any:
        return _nest(iter(self._pending))

    # ---- keys: read a key of a type, or refuse; create one; delete an empty one

    def _read(self, key: bytes, kind: type[_T]) -> _T | None:
        value = self._data.get(key)
        if value is None or value.__class__ is kind:
            return value
        raise CommandError(WRONG_TYPE)

    def _write(self, key: bytes, kind: type[_T]) -> _T:
        value = self._data.get(key)
        if value is None:
            value = self._data[key] = kind()
        elif value.__class__ is not kind:
            raise CommandError(WRONG_TYPE)
        self.touched.add(key)
        return value

    def _shrunk(self, key: bytes, left: object) -> None:
        self.touched.add(key)
        if not left:
            del self._data[key]

    # ---- strings and keys

    def _get(self, key: bytes) -> Any:
        value = self._read(key, bytes)
        return False if value is None else value

    def _strlen(self, key: bytes) -> int:
        return len(self._read(key, bytes) or b"")

    def _set(self, key: bytes, value: bytes, *words: bytes) -> Any:
        flags = {word.upper() for word in words}
        if flags & _SET_ELSEWHERE:
            raise CommandError("ERR SET with options other than NX and XX is not supported by this keyspace")
        if flags - {b"NX", b"XX"} or len(flags) > 1:
            raise CommandError(SYNTAX)
        if flags and (key in self._data) != (b"XX" in flags):
            return False
        self._data[key] = value
        self.touched.add(key)
        return True

    def _mget(self, *keys: bytes) -> Any:
        found = map(self._data.get, keys)
        return tuple([value if value.__class__ is bytes else False for value in found])

    def _mset(self, *words: bytes) -> Any:
        if len(words) % 2:
            raise CommandError("ERR wrong number of arguments for 'mset' command")
        self._data.update(_pairs(words))
        self.touched.update(words[::2])
        return True

    def _del(self, *keys: bytes) -> int:
        gone = 0
        for key in keys:
            if self._data.pop(key, None) is not None:
                self.touched.add(key)
                gone += 1
        return gone

    def _exists(self, *keys: bytes) -> int:
        return sum([key in self._data for key in keys])

    def _rename(self, key: bytes, name: bytes) -> bytes:
        if key not in self._data:
            raise CommandError("ERR no such key")
        self._data[name] = self._data.pop(key)
        self.touched.update((key, name))
        return b"OK"

    def _incrby(self, key: bytes, amount: bytes) -> int:
        by = integer(amount)
        old = self._read(key, bytes)
        total = by if old is None else by + integer(old)
        if not -_BIGGEST - 1 <= total <= _BIGGEST:
            raise CommandError(OVERFLOW)
        self._data[key] = b"%d" % total
        self.touched.add(key)
        return total

    def _time(self) -> Any:
        seconds, micros = divmod(round(self.clock() * 1_000_000), 1_000_000)
        return b"%d" % seconds, b"%d" % micros

    def _info(self, *sections: bytes) -> bytes:
        return b"# Server\r\nrun_id:%b\r\n" % self.run_id

    def _type(self, key: bytes) -> bytes:
        value = self._data.get(key)
        return b"none" if value is None else _TYPES[type(value)].encode()

    def _keys(self, pattern: bytes) -> Any:
        prefix = pattern[:-1] if pattern[-1:] == b"*" else pattern
        if re.search(rb"[*?\[\\]", prefix):
            raise CommandError("ERR KEYS with a pattern other than prefix* is not supported by this keyspace")
        if prefix is pattern:
            return (pattern,) if pattern in self._data else ()
        return tuple(sorted(key for key in self._data if key.startswith(prefix)))

    def _scan(self, cursor: bytes, *words: bytes) -> Any:
        if not cursor.isdigit() or int(cursor) > _LAST_ID:
            raise CommandError("ERR invalid cursor")
        pattern = b"*"
        for i in range(0, len(words), 2):
            word = words[i].upper()
            if i + 1 >= len(words) or word not in (b"MATCH", b"COUNT"):
                raise CommandError(SYNTAX)
            if word == b"MATCH":
                pattern = words[i + 1]
            elif integer(words[i + 1]) < 1:
                raise CommandError(SYNTAX)
        return b"0", self._keys(pattern) if cursor == b"0" else ()

    def _publish(self, channel: bytes, message: bytes) -> int:
        if self.subscriber is None:
            return 0
        self.subscriber(channel, message)
        return 1

    # ---- hashes

    def _hget(self, key: bytes, field: bytes) -> Any:
        found = self._read(key, dict)
        return False if found is None else found.get(field, False)

    def _hmget(self, key: bytes, *fields: bytes) -> Any:
        found = self._read(key, dict) or {}
        return tuple([found.get(field, False) for field in fields])

    def _hset(self, key: bytes, *words: bytes) -> int:
        if len(words) % 2:
            raise CommandError("ERR wrong number of arguments for 'hset' command")
        found = self._write(key, dict)
        before = len(found)
        if len(words) == 2:
            found[words[0]] = words[1]
        else:
            found.update(_pairs(words))
        return len(found) - before

    def _hdel(self, key: bytes, *fields: bytes) -> int:
        found = self._read(key, dict)
        if found is None:
            return 0
        gone = sum([found.pop(field, None) is not None for field in fields])
        if gone:
            self._shrunk(key, found)
        return gone

    def _hlen(self, key: bytes) -> int:
        return len(self._read(key, dict) or ())

    def _hkeys(self, key: bytes) -> Any:
        return tuple(self._read(key, dict) or ())

    def _hvals(self, key: bytes) -> Any:
        return tuple((self._read(key, dict) or {}).values())

    def _hgetall(self, key: bytes) -> Any:
        found = self._read(key, dict)
        if not found:
            return ()
        pairs = list(found.items())
        if len(found) > _SMALL or any(len(value) > _SHORT for value in found.values()):
            pairs.reverse()
        return tuple([word for pair in pairs for word in pair])

    def _hexists(self, key: bytes, field: bytes) -> int:
        return int(field in (self._read(key, dict) or ()))

    def _hincrby(self, key: bytes, field: bytes, amount: bytes) -> int:
        by = integer(amount)
        old = (self._read(key, dict) or {}).get(field)
        total = by if old is None else by + integer(old, "ERR hash value is not an integer")
        if not -_BIGGEST - 1 <= total <= _BIGGEST:
            raise CommandError(OVERFLOW)
        self._write(key, dict)[field] = b"%d" % total
        return total

    # ---- lists

    def _rpush(self, key: bytes, *values: bytes) -> int:
        found = self._write(key, list)
        found.extend(values)
        return len(found)

    def _llen(self, key: bytes) -> int:
        return len(self._read(key, list) or ())

    def _lrange(self, key: bytes, start: bytes, stop: bytes) -> Any:
        low, high = integer(start), integer(stop)
        found = self._read(key, list)
        if found is None:
            return ()
        low, high = _slice(low, high, len(found))
        return tuple(found[low:high])

    def _lpop(self, key: bytes, *count: bytes) -> Any:
        amount = _count(count)
        found = self._read(key, list)
        if found is None:
            return False
        gone = tuple(found[:amount])
        if gone:
            del found[:amount]
            self._shrunk(key, found)
        return gone if count else gone[0]

    def _ltrim(self, key: bytes, start: bytes, stop: bytes) -> Any:
        low, high = integer(start), integer(stop)
        found = self._read(key, list)
        if found is not None:
            low, high = _slice(low, high, len(found))
            found[:] = found[low:high]
            self._shrunk(key, found)
        return True

    # ---- sets

    def _sadd(self, key: bytes, *members: bytes) -> int:
        found = self._write(key, set)
        before = len(found)
        found.update(members)
        return len(found) - before

    def _srem(self, key: bytes, *members: bytes) -> int:
        found = self._read(key, set)
        if found is None:
            return 0
        before = len(found)
        found.difference_update(members)
        gone = before - len(found)
        if gone:
            self._shrunk(key, found)
        return gone

    def _smembers(self, key: bytes) -> Any:
        return tuple(sorted(self._read(key, set) or ()))

    def _sismember(self, key: bytes, member: bytes) -> int:
        return int(member in (self._read(key, set) or ()))

    def _scard(self, key: bytes) -> int:
        return len(self._read(key, set) or ())

    # ---- sorted sets

    def _zadd(self, key: bytes, *words: bytes) -> int:
        flags, pairs = _zadd_flags(words)
        if not pairs or len(pairs) % 2:
            raise CommandError(SYNTAX)
        if flags:
            _zadd_refusal(flags)
        scored = [(score(raw), member) for raw, member in _pairs(pairs)]
        if self._read(key, SortedSet) is None and b"XX" in flags:
            return 0
        found = self._write(key, SortedSet)
        added, changed = 0, 0
        for value, member in scored:
            old = found.scores.get(member)
            if old is None:
                if b"XX" not in flags:
                    found.put(member, value)
                    added += 1
            elif value != old and (not flags or _may_change(flags, old, value)):
                found.put(member, value)
                changed += 1
        return added + changed if b"CH" in flags else added

    def _zrem(self, key: bytes, *members: bytes) -> int:
        found = self._read(key, SortedSet)
        if found is None:
            return 0
        gone = sum([found.remove(member) for member in members])
        if gone:
            self._shrunk(key, found.scores)
        return gone

    def _zcard(self, key: bytes) -> int:
        found = self._read(key, SortedSet)
        return 0 if found is None else len(found.scores)

    def _zscore(self, key: bytes, member: bytes) -> Any:
        found = self._read(key, SortedSet)
        value = None if found is None else found.scores.get(member)
        return False if value is None else number_text(value)

    def _zmscore(self, key: bytes, *members: bytes) -> Any:
        found = self._read(key, SortedSet)
        values = map((found.scores if found else {}).get, members)
        return tuple([False if value is None else number_text(value) for value in values])

    def _zcount(self, key: bytes, low: bytes, high: bytes) -> int:
        bounds = score_bound(low), score_bound(high)
        found = self._read(key, SortedSet)
        if found is None:
            return 0
        start, stop = found.between(*bounds)
        return stop - start

    def _zincrby(self, key: bytes, amount: bytes, member: bytes) -> bytes:
        by = score(amount)
        known = self._read(key, SortedSet)
        old = known.scores.get(member) if known else None
        total = by if old is None else old + by
        if total != total:
            raise CommandError("ERR resulting score is not a number (NaN)")
        if total != old:
            self._write(key, SortedSet).put(member, total)
        return number_text(total)

    def _zrank(self, key: bytes, member: bytes) -> Any:
        found = self._read(key, SortedSet)
        value = None if found is None else found.scores.get(member)
        if found is None or value is None:
            return False
        return bisect_left(found.entries, (value, member))

    def _zpopmin(self, key: bytes, *count: bytes) -> Any:
        amount = _count(count)
        found = self._read(key, SortedSet)
        if found is None or not amount:
            return ()
        gone = found.cut(0, amount)
        self._shrunk(key, found.scores)
        return _with_scores(gone)

    def _zrange(self, key: bytes, start: bytes, stop: bytes, *words: bytes) -> Any:
        options = _range_options(words, _ZRANGE_WORDS) if words else _NO_OPTIONS
        if options.limit and not options.by:
            raise CommandError(f"{SYNTAX}, LIMIT is only supported in combination with either BYSCORE or BYLEX")
        if options.scores and options.by == b"BYLEX":
            raise CommandError(f"{SYNTAX}, WITHSCORES not supported in combination with BYLEX")
        if options.reverse and options.by:
            start, stop = stop, start
        return self._range(key, start, stop, options)

    def _zrangebyscore(self, key: bytes, low: bytes, high: bytes, *words: bytes) -> Any:
        options = _range_options(words, (b"LIMIT", b"WITHSCORES"))
        return self._range(key, low, high, options._replace(by=b"BYSCORE"))

    def _zrevrange(self, key: bytes, start: bytes, stop: bytes, *words: bytes) -> Any:
        options = _range_options(words, (b"WITHSCORES",))
        return self._range(key, start, stop, options._replace(reverse=True))

    def _range(self, key: bytes, start: bytes, stop: bytes, options: RangeOptions) -> Any:
        """Read both ends, then the key, then the entries: Redis checks in this order."""
        read = _READ_END[options.by]
        first, last = read(start), read(stop)
        found = self._read(key, SortedSet)
        if found is None:
            return ()
        low, high = _positions(found, first, last, options.reverse)
        if options.limit is not None:
            low, high = options.cut(low, high, *options.limit)
        entries = found.entries[low:high]
        if options.reverse:
            entries.reverse()
        if options.scores:
            return _with_scores(entries)
        return tuple([member for _, member in entries])

    def _zremrangebyscore(self, key: bytes, low: bytes, high: bytes) -> int:
        bounds = score_bound(low), score_bound(high)
        found = self._read(key, SortedSet)
        return 0 if found is None else self._cut(key, found, found.between(*bounds))

    def _cut(self, key: bytes, found: SortedSet, positions: tuple[int, int]) -> int:
        gone = len(found.cut(*positions))
        if gone:
            self._shrunk(key, found.scores)
        return gone

    # ---- streams

    def _xadd(self, key: bytes, *words: bytes) -> Any:
        added = _xadd_words(words)
        found = self._read(key, Stream)
        if found is None and not added.create:
            return False
        if found is not None and added.stream_id <= found.last:
            raise CommandError("ERR The ID specified in XADD is equal or smaller than the target stream top item")
        found = self._write(key, Stream)
        found.entries.append((added.stream_id, added.fields))
        found.last = added.stream_id
        if added.length is not None:
            found.trim(added.length, added.approximate)
        elif added.first is not None:
            found.trim_before(added.first, added.approximate)
        return _id_text(added.stream_id)

    def _xtrim(self, key: bytes, how: bytes, *words: bytes) -> int:
        if how.upper() != b"MAXLEN" or (len(words) == 2 and words[0] not in (b"~", b"=")):
            raise CommandError("ERR XTRIM with other than MAXLEN is not supported by this keyspace")
        length = integer(words[-1])
        if length < 0:
            raise CommandError("ERR The MAXLEN argument must be >= 0.")
        found = self._read(key, Stream)
        if found is None:
            return 0
        before = len(found.entries)
        found = self._write(key, Stream)
        found.trim(length, words[0] == b"~")
        return before - len(found.entries)

    def _xlen(self, key: bytes) -> int:
        found = self._read(key, Stream)
        return 0 if found is None else len(found.entries)

    def _xrange(self, key: bytes, low: bytes, high: bytes, *words: bytes) -> Any:
        return self._entries(key, low, high, words, reverse=False)

    def _xrevrange(self, key: bytes, high: bytes, low: bytes, *words: bytes) -> Any:
        return self._entries(key, low, high, words, reverse=True)

    def _entries(self, key: bytes, low: bytes, high: bytes, words: Sequence[bytes], reverse: bool) -> Any:
        first, last = _stream_bound(low, low=True), _stream_bound(high, low=False)
        count = _stream_count(words)
        found = self._read(key, Stream)
        if found is None:
            return ()
        if count == 0:
            return False
        start = bisect_left(found.entries, first, key=_id_of)
        chosen = found.entries[start : bisect_right(found.entries, last, key=_id_of)]
        if reverse:
            chosen.reverse()
        return tuple([(_id_text(where), fields) for where, fields in chosen[:count]])


def _may_change(flags: frozenset[bytes], old: float, new: float) -> bool:
    if b"NX" in flags or (b"GT" in flags and new < old):
        return False
    return not (b"LT" in flags and new > old)


_READ_END: Final[dict[bytes, Callable[[bytes], Any]]] = {
    b"": integer,
    b"BYSCORE": score_bound,
    b"BYLEX": lex_bound,
}


def _positions(found: SortedSet, first: Any, last: Any, reverse: bool) -> tuple[int, int]:
    if isinstance(first, Bound):
        return found.between(first, last)
    if isinstance(first, LexBound):
        return found.between_members(first, last)
    low, high = _slice(first, last, len(found.entries))
    return (len(found.entries) - high, len(found.entries) - low) if reverse else (low, high)


def _with_scores(entries: Sequence[Entry]) -> tuple[bytes, ...]:
    return tuple([word for value, member in entries for word in (member, number_text(value))])


def _count(words: Sequence[bytes]) -> int:
    """Read the optional count of a command that pops."""
    if not words:
        return 1
    amount = integer(words[0], NOT_POSITIVE)
    if amount < 0:
        raise CommandError(NOT_POSITIVE)
    return amount


def _stream_count(words: Sequence[bytes]) -> int | None:
    """Read `COUNT n` of a range of entries. A negative count is 0. With 0 the reply is nil, not all entries."""
    count = None
    for i in range(0, len(words), 2):
        if words[i].upper() != b"COUNT" or i + 1 >= len(words):
            raise CommandError(SYNTAX)
        count = max(integer(words[i + 1]), 0)
    return count


# ------------------------------------------------------------------------------- replies, arguments


def _texts(args: Sequence[Any]) -> tuple[bytes, ...] | None:
    """Convert plain integers to bytes; return None if Lua must convert an argument, or refuse it."""
    texts = []
    for arg in args:
        if arg.__class__ is bytes:
            texts.append(arg)
        elif arg.__class__ is int and arg and -(10**16) < arg < 10**16:
            texts.append(b"%d" % arg)
        else:
            return None
    return tuple(texts)


def _unknown(name: str) -> str:
    return f"ERR Unknown Redis command called from script: this keyspace has no {name!r}"


def _flatten(reply: object) -> Iterator[object]:
    if isinstance(reply, tuple):
        yield True
        yield len(reply)
        for item in reply:
            yield from _flatten(item)
    else:
        yield reply


def _nest(words: Iterator[object]) -> object:
    word = next(words)
    if word is not True:
        return word
    length = next(words)
    assert isinstance(length, int)
    return tuple([_nest(words) for _ in range(length)])


def _to_python(reply: object) -> object:
    if isinstance(reply, tuple):
        return [_to_python(item) for item in reply]
    if reply is False:
        return None
    return b"OK" if reply is True else reply


_MANY: Final = 1 << 30


_TABLE: Final = """
GET 1 r value; STRLEN 1 r value; SET 2+ w value; MGET 1+ r list; MSET 2+ w value; DEL 1+ w value; UNLINK 1+ w value;
EXISTS 1+ r value; RENAME 2 w status; INCRBY 2 w value; TIME 0 r list; TYPE 1 r status; KEYS 1 r list; SCAN 1+ r tree;
PUBLISH 2 w value; HGET 2 r value; HMGET 2+ r list; HSET 3+ w value; HDEL 2+ w value;
HLEN 1 r value; HKEYS 1 r list; HVALS 1 r list; HGETALL 1 r list; HEXISTS 2 r value;
HINCRBY 3 w value; RPUSH 2+ w value; LLEN 1 r value; LRANGE 3 r list; LPOP 1-2 w tree;
LTRIM 3 w value; SADD 2+ w value; SREM 2+ w value; SMEMBERS 1 r list; SISMEMBER 2 r value;
SCARD 1 r value; ZADD 3+ w value; ZREM 2+ w value; ZCARD 1 r value; ZSCORE 2 r value;
ZMSCORE 2+ r list; ZCOUNT 3 r value; ZINCRBY 3 w value; ZRANK 2 r value; ZPOPMIN 1-2 w list;
ZRANGE 3+ r list; ZRANGEBYSCORE 3+ r list; ZREVRANGE 3+ r list;
ZREMRANGEBYSCORE 3 w value; XADD 4+ w value; XTRIM 3-4 w value; XLEN 1 r value; XRANGE 3+ r tree; XREVRANGE 3+ r tree;
INFO 0-1 r value
"""


def _commands() -> dict[str, Command]:
    """Read the table: name, number of arguments, reads or writes, shape of the reply."""
    commands = {}
    for entry in _TABLE.split(";"):
        name, counts, mode, reply = entry.split()
        low, high = _arity(counts)
        method = "_del" if name == "UNLINK" else f"_{name.lower()}"
        commands[name] = Command(method, low, high, mode == "w", reply)
    return commands


def _arity(counts: str) -> tuple[int, int]:
    if counts.endswith("+"):
        return int(counts[:-1]), _MANY
    low, _, high = counts.partition("-")
    return int(low), int(high or low)


COMMANDS: Final = _commands()
