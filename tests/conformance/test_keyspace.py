"""The in-process keyspace behaves like a real server, command by command.

The same random commands run, through the same Lua library, in `LuaHost` and on a server: few keys
and members, so that commands meet, and arguments that are hostile on purpose. Compared are all
replies, the codes of errors, and then the whole content. A seed that fails is named in the message
together with the first command that differs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import redis

from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.backends.embedded.keyspace import COMMANDS, CommandError, Keyspace
from tests.servers import Server

LIBRARY = """#!lua name=differential
local function run(keys, args)
  local out, i = {}, 1
  while args[i] do
    local n = tonumber(args[i])
    out[#out + 1] = redis.pcall(unpack(args, i + 1, i + n))
    i = i + n + 1
  end
  return out
end

local read = {
  string = function(key) return redis.call('GET', key) end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  stream = function(key)
    return {redis.call('XRANGE', key, '-', '+'), redis.call('XINFO', 'STREAM', key)}
  end,
}
local function dump(keys, args)
  local out = {}
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local kind = redis.call('TYPE', key).ok
    out[#out + 1] = {key, kind, read[kind](key)}
  end
  return out
end

redis.register_function('differential_run', run)
redis.register_function('differential_dump', dump)
"""

Words = tuple[bytes, ...]
Draw = Callable[[random.Random], Words]

INTEGERS = b"0 1 2 3 -1 -2 -3 7 100 -100".split()
HOSTILE = [
    *b"abc 1.5 -0 +1 01 9223372036854775807 9223372036854775808 -9223372036854775808".split(),
    *b"1e3 1_0".split(),
    *b"nan inf -inf +inf Infinity 1e400 -1e400 1e-400 .5 5. 1e 99999999999999999999".split(),
    *(b"", b" 1", b"1 ", b"1\0", b"1\0x"),
]
# A blank before a bound passes in Redis 7.0; Valkey 9 refuses it, and so does the keyspace.
ALIKE = [word for word in HOSTILE if word != b" 1"]
SCORES = b"0 1 2 3 -1 0.1 1.5 -0 1e3 1700000000123 1e17 123456789012345678 3.0 inf -inf".split()
MEMBERS = [*b"a b c d aa ab 1 2 10".split(), b"", b"\0", b"\xff", b"a\0b", "é".encode()]
VALUES = [*MEMBERS, *INTEGERS, b"x" * 70]


def often(rng: random.Random, usual: list[bytes], hostile: list[bytes] = HOSTILE) -> bytes:
    return rng.choice(usual) if rng.random() < 0.85 else rng.choice(hostile)


def some(rng: random.Random, pool: list[bytes], most: int = 4) -> Words:
    return tuple(rng.choice(pool) for _ in range(rng.randint(1, most)))


def pairs(rng: random.Random, first: Callable[[], bytes], second: Callable[[], bytes]) -> Words:
    words = [word for _ in range(rng.randint(1, 4)) for word in (first(), second())]
    return tuple(words if rng.random() < 0.95 else words[:-1])


def maybe(rng: random.Random, *words: bytes, chance: float = 0.3) -> Words:
    return words if rng.random() < chance else ()


def cased(rng: random.Random, word: bytes) -> bytes:
    return word if rng.random() < 0.8 else word.lower()


# ----------------------------------------------------------------------- what each command is given

KEYS = {
    "string": [b"s1", b"s2"],
    "hash": [b"h1", b"h2"],
    "list": [b"l1", b"l2"],
    "set": [b"t1", b"t2"],
    "zset": [b"z1", b"z2"],
    "members": [b"z1", b"z2"],
    "stream": [b"x1", b"x2"],
}
ALL_KEYS = [key for keys in KEYS.values() for key in keys]
WRONG = {family: b"h1" if family == "string" else b"s1" for family in KEYS}


def member(rng: random.Random) -> bytes:
    return rng.choice(MEMBERS)


def value(rng: random.Random) -> bytes:
    return rng.choice(VALUES)


def number(rng: random.Random) -> bytes:
    return often(rng, INTEGERS)


def bound(rng: random.Random) -> bytes:
    text = often(rng, SCORES, ALIKE)
    return b"(" + text if rng.random() < 0.3 else text


def lex(rng: random.Random) -> bytes:
    return often(rng, [b"-", b"+", b"[" + member(rng), b"(" + member(rng)], [b"", b"a", b"--"])


def stream_bound(rng: random.Random) -> bytes:
    ids = b"- + 1 2 3-0 3-1 5-2 7 9 100-0 (2 (3-0 (5".split()
    return often(rng, ids, b"a 1-a -1 1-2-3 (- (+ 18446744073709551616 ( 01-02 1-".split())


def limit(rng: random.Random) -> Words:
    return maybe(rng, cased(rng, b"LIMIT"), number(rng), number(rng))


def zadd_words(rng: random.Random) -> Words:
    flags = [b"NX", b"XX", b"GT", b"LT", b"CH", b"CH"]
    chosen = tuple(cased(rng, rng.choice(flags)) for _ in range(rng.choice((0, 0, 1, 1, 2))))
    hostile_part = HOSTILE if rng.random() < 0.3 else SCORES
    return chosen + pairs(rng, lambda: often(rng, SCORES, hostile_part), lambda: member(rng))


def zrange_words(rng: random.Random) -> Words:
    return zrange_by(rng, rng.choice((b"", b"BYSCORE")))


def zrange_by(rng: random.Random, by: bytes) -> Words:
    end = {b"": number, b"BYSCORE": bound, b"BYLEX": lex}[by]
    words = [(cased(rng, by),)] if by else []
    words += [maybe(rng, b"REV"), maybe(rng, b"WITHSCORES"), limit(rng) if by else ()]
    words += [maybe(rng, b"LIMIT", b"1", chance=0.02), maybe(rng, b"FOO", chance=0.02)]
    rng.shuffle(words)
    return (end(rng), end(rng), *(word for part in words for word in part))


def xadd_words(rng: random.Random) -> Words:
    ids = [b"%d-%d" % (rng.randint(0, 60), rng.randint(0, 3)), b"%d" % rng.randint(1, 60)]
    bounds = b"0 1 2 5 50".split()  # a server reads an id of MINID up to a NUL
    how = rng.choice(((b"MAXLEN", often(rng, bounds)), (b"MAXLEN", often(rng, bounds)), (b"MINID", rng.choice(bounds))))
    trim = maybe(rng, how[0], *maybe(rng, rng.choice((b"~", b"="))), how[1])
    words = maybe(rng, b"NOMKSTREAM", chance=0.1) + trim
    hostile = b"0-0 0 a 1-a -1 18446744073709551615 01-1 1-".split()
    return (*words, often(rng, ids, hostile), *pairs(rng, lambda: member(rng), lambda: value(rng)))


def xtrim_words(rng: random.Random) -> Words:
    return (b"MAXLEN", *maybe(rng, rng.choice((b"~", b"="))), often(rng, b"0 1 2 5 50".split(), b"-1 a".split()))


def stream_range(rng: random.Random) -> Words:
    return (stream_bound(rng), stream_bound(rng), *maybe(rng, b"COUNT", number(rng)))


def scan_words(rng: random.Random) -> Words:
    cursor = often(rng, [b"0"], [b"abc"])
    return (
        cursor,
        *maybe(rng, b"MATCH", rng.choice((b"*", b"s*", b"zz*", b"s1"))),
        b"COUNT",
        b"1000",
    )


def any_keys(rng: random.Random) -> Words:
    return some(rng, ALL_KEYS)


FAMILIES: dict[str, dict[str, Draw]] = {
    "string": {
        "GET": lambda r: (),
        "STRLEN": lambda r: (),
        "SET": lambda r: (value(r), *maybe(r, cased(r, often(r, [b"NX", b"XX"], [b"ZZ"])))),
        "INCRBY": lambda r: (number(r),),
    },
    "hash": {
        "HGET": lambda r: (member(r),),
        "HMGET": lambda r: some(r, MEMBERS),
        "HSET": lambda r: pairs(r, lambda: member(r), lambda: value(r)),
        "HDEL": lambda r: some(r, MEMBERS),
        "HLEN": lambda r: (),
        "HKEYS": lambda r: (),
        "HVALS": lambda r: (),
        "HGETALL": lambda r: (),
        "HEXISTS": lambda r: (member(r),),
        "HINCRBY": lambda r: (member(r), number(r)),
    },
    "list": {
        "RPUSH": lambda r: some(r, VALUES),
        "LLEN": lambda r: (),
        "LRANGE": lambda r: (number(r), number(r)),
        "LPOP": lambda r: maybe(r, number(r)),
        "LTRIM": lambda r: (number(r), number(r)),
    },
    "set": {
        "SADD": lambda r: some(r, MEMBERS),
        "SREM": lambda r: some(r, MEMBERS),
        "SMEMBERS": lambda r: (),
        "SISMEMBER": lambda r: (member(r),),
        "SCARD": lambda r: (),
    },
    "zset": {
        "ZADD": zadd_words,
        "ZREM": lambda r: some(r, MEMBERS, 2),
        "ZCARD": lambda r: (),
        "ZSCORE": lambda r: (member(r),),
        "ZMSCORE": lambda r: some(r, MEMBERS),
        "ZCOUNT": lambda r: (bound(r), bound(r)),
        "ZINCRBY": lambda r: (often(r, SCORES), member(r)),
        "ZRANK": lambda r: (member(r),),
        "ZPOPMIN": lambda r: maybe(r, number(r)),
        "ZRANGE": zrange_words,
        "ZRANGEBYSCORE": lambda r: (bound(r), bound(r), *maybe(r, b"WITHSCORES"), *limit(r)),
        "ZREVRANGE": lambda r: (number(r), number(r), *maybe(r, b"WITHSCORES")),
        "ZREMRANGEBYSCORE": lambda r: (bound(r), bound(r)),
    },
    # By member only what has one score: the rest Redis leaves undefined, and replies are odd.
    "members": {
        "ZADD": lambda r: pairs(r, lambda: b"0", lambda: member(r)),
        "ZREM": lambda r: some(r, MEMBERS, 2),
        "ZRANGE": lambda r: zrange_by(r, b"BYLEX"),
    },
    "stream": {
        "XADD": xadd_words,
        "XTRIM": xtrim_words,
        "XLEN": lambda r: (),
        "XRANGE": stream_range,
        "XREVRANGE": stream_range,
    },
}

# These take no key of one type. TIME is left to the tests of the host, PUBLISH has nobody to reach.
ANYWHERE: dict[str, Draw] = {
    "MGET": any_keys,
    "MSET": lambda r: pairs(r, lambda: r.choice(KEYS["string"]), lambda: value(r)),
    "DEL": any_keys,
    "UNLINK": any_keys,
    "EXISTS": any_keys,
    "RENAME": lambda r: (r.choice(ALL_KEYS), r.choice(ALL_KEYS)),
    "TYPE": lambda r: (r.choice(ALL_KEYS),),
    "KEYS": lambda r: (r.choice((b"*", b"s*", b"z1*", b"none*", b"s1", b"")),),
    "SCAN": scan_words,
    "PUBLISH": lambda r: (b"channel", value(r)),
}


def command(rng: random.Random, family: str) -> Words:
    if rng.random() < 0.06:
        name = rng.choice(list(ANYWHERE))
        return (name.encode(), *ANYWHERE[name](rng))
    name = rng.choice(list(FAMILIES[family]))
    key = rng.choice(KEYS[family]) if rng.random() < 0.95 else WRONG[family]
    words = (cased(rng, name.encode()), key, *FAMILIES[family][name](rng))
    return words if rng.random() < 0.98 else words[: rng.randint(1, len(words))] + maybe(rng, b"x")


def keyless(rng: random.Random, _: str) -> Words:
    name = rng.choice([*ANYWHERE, "SET", "HSET", "SADD"])
    if name in ANYWHERE:
        return (name.encode(), *ANYWHERE[name](rng))
    return (name.encode(), rng.choice(ALL_KEYS), b"a", *maybe(rng, b"1", chance=0.6))


# --------------------------------------------------------------------------------- what is compared

# A hash keeps its order only until one value is longer than 64 bytes, or it has many fields.
UNORDERED = frozenset(("SMEMBERS", "KEYS", "HKEYS", "HVALS"))
# Their replies hold scores, which Redis 7.0 prints with 17 digits and Valkey 9 as short as
# possible.
WITH_SCORES = frozenset(("ZSCORE", "ZMSCORE", "ZINCRBY", "ZPOPMIN", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGE"))


def canonical(reply: Any) -> Any:
    """Convert replies of both sides to one form; errors become their code."""
    if isinstance(reply, list):
        return [canonical(item) for item in reply]
    if isinstance(reply, (redis.ResponseError, ReplyError)):
        # redis-py takes the word ERR away, and messages of ours and theirs begin with capitals.
        return ("error", "WRONGTYPE" if str(reply).startswith("WRONGTYPE ") else "ERR")
    return reply


def numbers(reply: Any) -> Any:
    if isinstance(reply, list):
        return [numbers(item) for item in reply]
    try:
        return float(reply)
    except (TypeError, ValueError):
        return reply


def same(name: str, ours: Any, theirs: Any, exact: bool = False) -> bool:
    if ours == theirs:
        return True
    if name in UNORDERED:
        return sorted(ours) == sorted(theirs)
    if name == "HGETALL":
        return fields(ours) == fields(theirs)
    if name == "SCAN" and isinstance(ours, list) and isinstance(theirs, list):
        return (ours[0], sorted(ours[1])) == (theirs[0], sorted(theirs[1]))
    return not exact and name in WITH_SCORES and numbers(ours) == numbers(theirs)


def fields(reply: list[Any]) -> dict[bytes, bytes]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def content(dumped: list[Any]) -> dict[bytes, tuple[str, object]]:
    return {key: (kind.decode(), shaped(kind, raw)) for key, kind, raw in dumped}


def shaped(kind: bytes, raw: Any) -> object:
    if kind == b"hash":
        return fields(raw)
    if kind == b"set":
        return frozenset(raw)
    if kind == b"zset":
        return [(who, float(score)) for who, score in zip(raw[::2], raw[1::2], strict=True)]
    if kind == b"stream":
        last = raw[1][raw[1].index(b"last-generated-id") + 1]
        return [(where, tuple(fields)) for where, fields in raw[0]], last
    return raw


class Pair:
    """The host and a server, side by side."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.host = LuaHost()
        self.host.load(LIBRARY)
        client.function_load(LIBRARY, replace=True)
        # Of the servers that print scores, only this one prints them as the keyspace does.
        self.exact = str(client.info("server")["redis_version"]).startswith("7.0.")

    def run(self, commands: list[Words], label: str) -> None:
        words = [word for line in commands for word in (b"%d" % len(line), *line)]
        pipeline = self.client.pipeline(transaction=False)
        pipeline.flushdb()
        pipeline.fcall("differential_run", 0, *words)
        pipeline.fcall("differential_dump", 0)
        _, theirs, dumped = pipeline.execute()
        keyspace = self.host.fresh()
        ours = self.host.fcall("differential_run", [], words)
        self._compare(commands, canonical(ours), canonical(theirs), label)
        assert keyspace.dump() == content(dumped), f"{label}: {commands}"
        assert keyspace.dump().keys() <= keyspace.touched

    def _compare(self, commands: list[Words], ours: list[Any], theirs: list[Any], label: str) -> None:
        assert len(ours) == len(theirs) == len(commands), label
        for i, (line, mine, real) in enumerate(zip(commands, ours, theirs, strict=True)):
            name = line[0].decode().upper()
            history = "\n".join(map(repr, commands[: i + 1]))
            assert same(name, mine, real, self.exact), f"{label}: ours {mine}, server {real}, after\n{history}"


@pytest.fixture(scope="module")
def pair(server: Server) -> Pair:
    return Pair(server.client())


# ---------------------------------------------------------------------------------------- the tests


@pytest.mark.server
@pytest.mark.parametrize("family", FAMILIES)
def test_a_command_replies_and_writes_as_the_server_does(pair: Pair, family: str) -> None:
    for seed in range(300):
        rng = random.Random(f"{family} {seed}")
        pair.run([command(rng, family) for _ in range(40)], f"{family} seed {seed}")


@pytest.mark.server
def test_commands_on_keys_of_any_type_do_as_the_server_does(pair: Pair) -> None:
    for seed in range(200):
        rng = random.Random(f"keys {seed}")
        pair.run([keyless(rng, "") for _ in range(40)], f"keys seed {seed}")


@pytest.mark.server
def test_approximate_trimming_leaves_what_the_server_leaves(pair: Pair) -> None:
    """`MAXLEN ~` and `MINID ~` remove whole nodes, whose size depends on the bytes in them."""
    for seed in range(40):
        rng = random.Random(f"trim {seed}")
        widest, most = rng.choice((1, 30, 300, 3000)), rng.choice((5, 100, 250))
        ids, lines = 0, []
        for _ in range(400):
            ids += rng.choice((1, 1, 300, 10**6, 10**12))
            names = (b"n",) if rng.random() < 0.8 else some(rng, MEMBERS)
            values = [rng.choice((b"7", b"-300", b"70000", b"v" * rng.randint(0, widest))) for _ in names]
            fields = [word for both in zip(names, values, strict=True) for word in both]
            how, bound = rng.choice(((b"MAXLEN", most), (b"MINID", rng.randint(ids // 2, ids))))
            trim = (how, rng.choice((b"~", b"~", b"~", b"=")), b"%d" % bound)
            lines.append((b"XADD", b"x1", *maybe(rng, *trim, chance=0.7), b"%d-0" % ids, *fields))
        pair.run(lines, f"trim seed {seed}")


@pytest.mark.server
def test_long_replies_do_as_the_server_does(pair: Pair) -> None:
    values = [b"%d" % i for i in range(3000)]
    scored = [word for each in values for word in (each, each)]
    lines = [
        (b"RPUSH", b"l1", *values),
        (b"LRANGE", b"l1", b"0", b"-1"),
        (b"LRANGE", b"l1", b"0", b"999"),
        (b"LRANGE", b"l1", b"0", b"1000"),
        (b"LPOP", b"l1", b"1500"),
        (b"ZADD", b"z1", *scored),
        (b"ZRANGE", b"z1", b"0", b"-1", b"WITHSCORES"),
        (b"ZPOPMIN", b"z1", b"2999"),
        (b"HSET", b"h1", b"a", b"b"),
    ]
    pair.run(lines, "long replies")


def test_the_comparison_sees_a_difference() -> None:
    assert not same("GET", b"1", b"1.0")
    assert not same("ZSCORE", b"1", b"2")
    assert not same("SMEMBERS", [b"a"], [b"a", b"b"])
    assert same("ZSCORE", b"0.10000000000000001", b"0.1")
    assert canonical([ReplyError("WRONGTYPE x"), ReplyError("ERR y")]) == [
        ("error", "WRONGTYPE"),
        ("error", "ERR"),
    ]


def test_every_command_of_the_keyspace_is_drawn() -> None:
    drawn = {name for family in FAMILIES.values() for name in family} | set(ANYWHERE)
    assert drawn | {"TIME", "INFO"} == set(COMMANDS)


def test_a_command_that_the_library_does_not_use_is_refused_by_name() -> None:
    with pytest.raises(CommandError, match="LINSERT"):
        Keyspace().execute("LINSERT", b"k")


def test_options_that_the_library_does_not_use_are_refused() -> None:
    keyspace = Keyspace()
    for line in (b"SET k v EX 1", b"ZADD k INCR 1 a", b"KEYS *a", b"XADD k * a b"):
        name, *words = line.split()
        with pytest.raises(CommandError, match="not supported by this keyspace"):
            keyspace.execute(name.decode(), *words)


def test_a_refused_command_touches_nothing() -> None:
    keyspace = Keyspace()
    keyspace.execute("SET", b"s", b"v")
    keyspace.touched.clear()
    for line in (
        b"HSET s a b",
        b"RPUSH s a",
        b"SADD s a",
        b"ZADD s 1 a",
        b"XADD s 1-0 a b",
        b"GET s",
    ):
        name, *words = line.split()
        try:
            keyspace.execute(name.decode(), *words)
        except CommandError as refusal:
            assert str(refusal).startswith("WRONGTYPE")
    assert not keyspace.touched
    assert keyspace.dump() == {b"s": ("string", b"v")}


def test_calls_are_counted_by_name() -> None:
    keyspace = Keyspace()
    for _ in range(3):
        keyspace.execute("GET", b"k")
    assert keyspace.calls == {"GET": 3}


def test_clear_forgets_everything() -> None:
    keyspace = Keyspace()
    keyspace.execute("SET", b"k", b"v")
    keyspace.clear()
    assert (keyspace.dump(), keyspace.touched, dict(keyspace.calls)) == ({}, set(), {})


def test_touched_keys_return_to_their_recorded_content() -> None:
    keyspace = Keyspace()
    keyspace.execute("SET", b"kept", b"1")
    keyspace.execute("ZADD", b"ordered", b"1", b"a")
    keyspace.execute("XADD", b"stream", b"1-0", b"e", b"x")
    recorded = keyspace.changed()
    keyspace.load(recorded)
    assert keyspace.touched == set()
    keyspace.execute("DEL", b"kept")
    keyspace.execute("ZADD", b"ordered", b"2", b"b")
    keyspace.execute("XADD", b"stream", b"2-0", b"e", b"y")
    keyspace.execute("HSET", b"new", b"f", b"v")
    assert not keyspace.equals(recorded)
    assert keyspace.changed()[b"kept"] is None
    after = keyspace.dump()
    keyspace.undo(recorded)
    assert keyspace.equals(recorded)
    assert keyspace.dump() != after
    assert keyspace.dump()[b"ordered"] == ("zset", [(b"a", 1.0)])
    assert b"new" not in keyspace.dump()
