"""Every key under a prefix, read from outside, in the form of `Keyspace.dump()`.

    string  bytes                        hash  {field: value}        set   frozenset of members
    list    [item, ...]                  zset  [(member, score), ...] in their order
    stream  ([(id, (field, value, ...)), ...], id of the last entry ever)

Conformance compares the contents of a server with the model by this. `dump_keys` uses only read commands and any number
of round trips. `dump_command` is one script that goes into a pipeline after each step, so it shows one moment. Both
change nothing, and refuse more keys than `most`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

import redis

Dump = dict[bytes, tuple[str, object]]

MOST: Final = 100_000

SCRIPT: Final = r"""
local read = {
  string = function(key) return redis.call('GET', key) end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  stream = function(key)
    local known = redis.call('XINFO', 'STREAM', key)
    for i = 1, #known, 2 do
      if known[i] == 'last-generated-id' then
        return {redis.call('XRANGE', key, '-', '+'), known[i + 1]}
      end
    end
  end,
}
local pattern = string.gsub(KEYS[1], '[%*%?%[%]\\]', '\\%0') .. '*'
local names = redis.call('KEYS', pattern)
if #names > tonumber(ARGV[1]) then
  return redis.error_reply('TOOMANY ' .. #names .. ' keys')
end
local found = {}
for _, key in ipairs(names) do
  if ARGV[2] == '' or key ~= KEYS[1] .. ARGV[2] then
    local kind = redis.call('TYPE', key).ok
    found[#found + 1] = {key, kind, read[kind](key)}
  end
end
return found
"""


def dump_command(prefix: str, most: int = MOST, without: str = "") -> tuple[str, ...]:
    """Write the command that replies all keys under a prefix except `without`. `dump_of` reads its raw reply."""
    return ("EVAL", SCRIPT, "1", prefix, str(most), without)


def dump_of(raw: Iterable[Any]) -> Dump:
    """Read the reply to `dump_command`."""
    found: Dump = {}
    for key, kind, content in raw:
        name = kind.decode()
        found[key] = name, _READ[name](content)
    return found


def _pairs(flat: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _scored(flat: list[bytes]) -> list[tuple[bytes, float]]:
    return [(member, float(score)) for member, score in _pairs(flat)]


def _entries(raw: list[Any]) -> tuple[list[tuple[bytes, tuple[bytes, ...]]], bytes]:
    return [(found, tuple(fields)) for found, fields in raw[0]], raw[1]


_READ: Final[dict[str, Callable[[Any], object]]] = {
    "string": bytes,
    "hash": lambda flat: dict(_pairs(flat)),
    "list": list,
    "set": frozenset,
    "zset": _scored,
    "stream": _entries,
}


def dump_keys(client: redis.Redis, prefix: str, most: int = MOST) -> Dump:
    """Read every key under a prefix with SCAN, TYPE and the read command of each type.

    `client` must not decode responses. Raises ValueError for more than `most` keys. Keys deleted meanwhile are left
    out.
    """
    names: set[bytes] = set()
    pattern = re.sub(r"([*?\[\]\\])", r"\\\1", prefix) + "*"
    for name in client.scan_iter(match=pattern, count=1000):
        names.add(name)
        if len(names) > most:
            raise ValueError(f"more than {most} keys under {prefix!r}")
    listed = sorted(names)
    with client.pipeline(transaction=False) as asking:
        for name in listed:
            asking.type(name)
        kinds = [kind.decode() for kind in asking.execute()]
    found: Dump = {}
    for start in range(0, len(listed), 1000):
        part = list(zip(listed, kinds, strict=True))[start : start + 1000]
        found.update(_contents(client, part))
    return found


def _contents(client: redis.Redis, keys: list[tuple[bytes, str]]) -> Dump:
    keys = [(name, kind) for name, kind in keys if kind != "none"]
    with client.pipeline(transaction=False) as asking:
        for name, kind in keys:
            _ASK[kind](asking, name)
            if kind == "stream":
                asking.xinfo_stream(name)
        replies = iter(asking.execute(raise_on_error=False))
    found: Dump = {}
    for name, kind in keys:
        reply = next(replies)
        info = next(replies) if kind == "stream" else None
        if not isinstance(reply, Exception) and not isinstance(info, Exception) and reply is not None:
            found[name] = kind, _TAKE[kind](reply, info)
    return found


_ASK: Final[dict[str, Callable[[Any, bytes], Any]]] = {
    "string": lambda asking, name: asking.get(name),
    "hash": lambda asking, name: asking.hgetall(name),
    "list": lambda asking, name: asking.lrange(name, 0, -1),
    "set": lambda asking, name: asking.smembers(name),
    "zset": lambda asking, name: asking.zrange(name, 0, -1, withscores=True),
    "stream": lambda asking, name: asking.xrange(name),
}

_TAKE: Final[dict[str, Callable[[Any, Any], object]]] = {
    "string": lambda reply, _: reply,
    "hash": lambda reply, _: dict(reply),
    "list": lambda reply, _: list(reply),
    "set": lambda reply, _: frozenset(reply),
    "zset": lambda reply, _: [(member, float(score)) for member, score in reply],
    "stream": lambda reply, info: (
        [(found, tuple(word for pair in fields.items() for word in pair)) for found, fields in reply],
        info["last-generated-id"],
    ),
}
