"""The library in one Lua state, a chunk for each file: with another text of a file it begins anew in 2 ms.

`LuaHost.load` compiles the whole library, which takes 60 milliseconds. Here each file is compiled once, and what the
files share is global to them instead of local: a table that is made anew when the library begins anew. Then all chunks
run again, which makes all functions and all that they keep, as after a restart of the server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Final

from qmodel.backends.bundle import DIALECTS, FILES, compiled, library, qualified, read
from qmodel.backends.embedded.host import LuaHost, ReplyError
from qmodel.backends.embedded.keyspace import Keyspace, frozen
from qmodel.conformance.graph.compare import WAYS

NAMES: Final = FILES + DIALECTS

LETTERS: Final = {"bare": "b", "plain": "p", "bare-plain": "B", "group": "g"}
"""The shorter ways, as the record of commands has them."""

_LUA: Final = """
local fcall, run_script, name = ...
local function kept(by, wanted)
  for i = 1, 255 do
    local found, value = debug.getupvalue(by, i)
    if found == wanted then return value end
  end
end
local functions, env = kept(fcall, 'functions'), getfenv(kept(run_script, 'script'))
local chunks, other, place, took, budget, usual = {}, nil, 0, {}, {}, 0
local function note(way, count)
  for _ = 1, count do took[#took + 1] = way end
end
local others = {}
local function is_same(one, other, depth)
  if one == other then return true end
  if type(one) ~= 'table' or type(other) ~= 'table' or depth == 0 then return false end
  for field, value in pairs(one) do
    if not is_same(value, other[field], depth - 1) then return false end
  end
  for field in pairs(other) do
    if one[field] == nil then return false end
  end
  return true
end
local function differs(way, other, values, count)
  if way == 'when' then return not values[1] ~= other() end
  local found = {pcall(other)}
  if not found[1] then return true end
  if way == 'truth' then return not values[1] ~= not found[2] end
  for i = 1, math.max(count, #found) do
    if not is_same(values[i], found[i + 1], 3) then return true end
  end
  return false
end
local function probed(count, ...)
  local values = {select(count + 1, ...)}
  for i = 1, count, 3 do
    local number, way, other = select(i, ...)
    if not others[number] and differs(way, other, values, select('#', ...) - count) then others[number] = true end
  end
  return select(count + 1, ...)
end
local function add(at, text)
  chunks[at] = assert(loadstring(text, name))
end
local function use(at, text)
  local message
  other, message = loadstring(text, name)
  place = other and at or 0
  return message
end
local function begin()
  local globals = {_G = env, probed = probed}
  function globals.register_function(named, callback)
    if type(named) == 'table' then named, callback = named.function_name, named.callback end
    functions[named] = callback
  end
  for i = 1, #chunks do
    local fine, message = pcall(setfenv(i == place and other or chunks[i], globals))
    if not fine then return tostring(message) end
  end
  local fine, message = pcall(watch, globals.bare, globals.plain, function() return globals.plain_answer end, note)
  if not fine then return tostring(message) end
  budget, usual = globals.budget, globals.budget.UNITS
end
local function ways()
  local found = table.concat(took, ' ')
  took = {}
  return found
end
local function within(units)
  budget.UNITS = units or usual
end
local function other_numbers()
  local found = {}
  for number in pairs(others) do found[#found + 1] = number end
  others = {}
  return table.concat(found, ' ')
end
return add, use, begin, ways, within, other_numbers
"""
"""`functions` are those that the host calls, by their names; `env` is what a library finds in Redis."""


class Shared(Keyspace):
    """A keyspace that is set to recorded keys without a copy: a key is copied when a command first reads it."""

    def load(self, keys: Mapping[bytes, Any]) -> None:
        """Replace all keys by recorded ones, and clear `touched`."""
        self._data = dict(keys)
        self._own: set[bytes] = set()
        self.touched.clear()

    def lose(self, key: bytes, other: str = "") -> None:
        """Delete a key without a command, or give it another type."""
        value = self._data.pop(key, None)
        if other:
            self._data[key] = [other.encode()] if type(value) is bytes else other.encode()
        self.touched.add(key)

    def _read(self, key: bytes, kind: Any) -> Any:
        self._take(key)
        return super()._read(key, kind)

    def _write(self, key: bytes, kind: Any) -> Any:
        self._take(key)
        return super()._write(key, kind)

    def _rename(self, key: bytes, name: bytes) -> Any:
        self._take(key)
        return super()._rename(key, name)

    def _take(self, key: bytes) -> None:
        value = self._data.get(key)
        if value is not None and value.__class__ is not bytes and key not in self._own:
            self._own.add(key)
            self._data[key] = frozen(value)


class Parts:
    """The library, right or with other texts, that can begin anew with another text of one file."""

    def __init__(self, texts: Mapping[str, str], host: LuaHost) -> None:
        self.texts = {name: texts.get(name) or read(name) for name in NAMES}
        source = library(self.texts)
        host.load(source)
        state = next(iter(host._libraries.values()))
        runtime = state.table_from.__self__
        made = runtime.execute(f"{WAYS} {_LUA}", state.fcall, state.run_script, b"@user_function")
        self._add, self._use, self._begin, self._ways, self.within, self._others = made
        self.firsts = first_lines(self.texts)
        """For each file, how many lines of the library come before it."""
        self._lines = source.split("\n")
        ends = [*list(self.firsts.values())[1:], self.firsts[NAMES[-1]] + self.texts[NAMES[-1]].count("\n") + 1]
        self._ends = dict(zip(NAMES, ends, strict=True))
        self._add(1, _shared("\n".join(["", *self._lines[1 : self.firsts[NAMES[0]]]])).encode())
        for at, name in enumerate(NAMES, 2):
            self._add(at, self._chunk(name, self._lines[self.firsts[name] : self._ends[name]]))
        self._add(len(NAMES) + 2, self._chunk(NAMES[-1], ["", *self._lines[ends[-1] :]]))

    def use(self, file: str, text: str) -> None:
        """Have another text of one file from the next beginning on; raises ReplyError if it cannot be compiled."""
        message = self._use(NAMES.index(file) + 2, self._chunk(file, self._changed(file, text)))
        if message is not None:
            raise ReplyError(f"ERR Error compiling function: {message.decode()}")

    def begin(self) -> None:
        """Begin anew; raises ReplyError if the other text cannot be loaded."""
        message = self._begin()
        if message is not None:
            raise ReplyError(f"ERR Error registering functions: {message.decode()}")

    def ways(self) -> str:
        """Give the ways that operations took since this was asked, a letter for each."""
        return "".join(LETTERS[way] for way in self._ways().decode().split())

    def others(self) -> list[int]:
        """Give the numbers of the probes that met another value since this was asked (probes.py)."""
        return [int(number) for number in self._others().split()]

    def _chunk(self, name: str, lines: list[str]) -> bytes:
        """Give the text of a chunk, with each line at its place in the library: coverage counts lines."""
        return ("\n" * self.firsts[name] + "\n".join(lines)).encode()

    def _changed(self, file: str, text: str) -> list[str]:
        """Give the lines of a file in the library with another text; only those that differ are translated."""
        right, other = self.texts[file].split("\n"), text.split("\n")
        head = _equal(right, other)
        tail = _equal(right[head:][::-1], other[head:][::-1])
        lines = self._lines[self.firsts[file] : self._ends[file]]
        changed = other[head : len(other) - tail]
        if changed:
            changed = qualified(compiled("\n".join(changed))).split("\n")
        return [*lines[:head], *changed, *lines[len(right) - tail :]]


def _equal(one: list[str], other: list[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _shared(head: str) -> str:
    """Make global what the library declares before its first file."""
    head = head.replace("local register_function = redis.register_function; ", "")
    return re.sub(r"\blocal (?=\w+ =)", "", re.sub(r"\blocal [\w, ]+; ", "", head))


def first_lines(texts: Mapping[str, str]) -> dict[str, int]:
    """Count the lines of the loaded library before each file; each file is closed by an `end` on its own line."""
    source = library(dict(texts))
    before, line = {}, source[: source.index(texts[FILES[0]].split("\n", 1)[0])].count("\n")
    for name in NAMES:
        before[name] = line
        line += (texts.get(name) or read(name)).count("\n") + 1
    return before
