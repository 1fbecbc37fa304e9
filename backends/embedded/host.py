"""Run a Redis function library inside this process, on lupa's Lua 5.1 and a `Keyspace`.

Theory of operation. Each loaded library and each script has a Lua state of its own. A state costs about 0.4 ms; in
return no library sees the leftovers of another. Each state first runs prelude.lua. The prelude takes what it needs of
Lua's libraries and then builds what Redis shows of them: while a library loads, only the `redis` table with
`register_function`; while a function runs, `redis.call` and the libraries that Redis has. Both are read-only, and
reading an undefined global is an error, as on the server.

The form of calls and replies between the languages is chosen for speed. A call from Python passes all keys and
arguments flat, and a reply comes back as a flat sequence of values: a tree is written as `true, length, items...`, an
error as `false, text`. lupa turns such a sequence into a tuple in one step; reading a Lua table from Python costs a
microsecond for each item. No Python object that Lua holds may refer to the Lua state: Python's garbage collector cannot
look into Lua, so the state would never be freed.

The prelude is compiled as a single line. So the line hook, which has no time to find out whose code runs, sees the
prelude as line 1. Line 1 of a library is its `#!lua` line, which holds no code.

Where servers differ the host does as Redis 7.0 does: a number becomes text by `%.17g` (Valkey 9 writes -0 as "0" and
0.1 as "0.1"), `pcall` gives the text of an error table and not the table, and there is no `os`. The host has no
`cjson`, `cmsgpack`, `struct` and `bit`: our library does not use them. Never import another of lupa's Lua versions into
the same process; some of them crash it.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Final

import lupa.lua51 as lua51

from qmodel.backends.embedded.keyspace import COMMANDS, Clock, Keyspace

Text = str | bytes

_SHAPES: Final = ", ".join(
    f"{name} = '{command.reply}'" for name, command in COMMANDS.items() if command.reply != "value"
)
_PRELUDE: Final = files("qmodel.backends.embedded").joinpath("prelude.lua").read_text(encoding="utf-8")
_PRELUDE_LINE: Final = re.sub(r"(?m)^\s*--.*$", "", _PRELUDE).replace("SHAPES", _SHAPES).replace("\n", " ")
_SHEBANG: Final = re.compile(r"#!([^ \n]*)([^\n]*)")
_LIBRARY_NAME: Final = re.compile(r"[A-Za-z0-9_]+\Z")

# Longer argument lists go into Lua as tables, because the Lua stack is limited.
_MOST_ON_STACK: Final = 200
_PART: Final = 4000
_LOWEST: Final = -(2**63)


class ReplyError(Exception):
    """An error reply, or an error raised in Lua, with the server's wording."""

    @property
    def code(self) -> str:
        """The first word. Clients distinguish errors by it."""
        return str(self).split(" ", 1)[0]


class LuaTimeout(ReplyError):
    """The instruction limit was exceeded. Writes made before that stay."""


class _State:
    """One Lua state with one library or script in it."""

    def __init__(self, keyspace: Keyspace) -> None:
        runtime: Any = lua51.LuaRuntime(
            encoding=None,
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
        )
        self.table_from: Any = runtime.table_from
        (
            self.unhook,
            self.rebind,
            self.watch,
            self.visited,
            self.forget,
            self.part,
            self.fcall,
            self.fcall_tables,
            self.run_script,
            self.compile,
            self.load_library,
            self.open_script,
        ) = runtime.execute(_PRELUDE_LINE, _binder(keyspace), keyspace.take, _sha1)

    def use(self, keyspace: Keyspace) -> None:
        self.rebind(_binder(keyspace), keyspace.take)

    def lines(self) -> set[int]:
        """Return the lines that ran, without line 1, which is the prelude."""
        return {int(line) for line in self.visited().split()} - {1}


def _binder(keyspace: Keyspace) -> Callable[[bytes, object], Callable[..., Any]]:
    def bind(name: bytes, read_only: object) -> Callable[..., Any]:
        return keyspace.bind(name.decode("latin-1"), bool(read_only))

    return bind


def _sha1(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()


def _encoded(words: Sequence[Text]) -> list[bytes]:
    """Encode words; a lone surrogate stands for the byte that it was in a reply (`_decoded`)."""
    try:
        return [word if word.__class__ is bytes else word.encode() for word in words]  # type: ignore[union-attr]
    except UnicodeEncodeError:
        return [word if isinstance(word, bytes) else word.encode("utf-8", "surrogateescape") for word in words]


class LuaHost:
    """Load function libraries and call their functions, as FUNCTION LOAD, FCALL and EVAL do.

    `clock` returns seconds as a float; TIME replies with it. `limit` is the number of Lua instructions that one call
    may take; 0 means no limit.

    >>> host = LuaHost()
    >>> host.load('''#!lua name=greet
    ... redis.register_function('hello', function(keys, args)
    ...   redis.call('SET', keys[1], args[1])
    ...   return {redis.call('GET', keys[1]), #args, {err = 'SAID so'}}
    ... end)''')
    'greet'
    >>> host.fcall('hello', ['k'], ['hi'])
    [b'hi', 1, ReplyError('SAID so')]
    >>> host.keyspace.touched
    {b'k'}
    """

    def __init__(self, clock: Clock = time.time, limit: int = 10_000_000, keyspace: Keyspace | None = None) -> None:
        self.functions: dict[str, frozenset[str]] = {}
        self._clock = clock
        self._limit = limit
        self._by_line = False
        self._keyspace = keyspace or Keyspace(clock)
        self._libraries: dict[str, _State] = {}
        self._scripts: dict[str, _State] = {}
        self._owners: dict[str, tuple[_State, bytes]] = {}

    # ---- the keyspace

    @property
    def keyspace(self) -> Keyspace:
        """The keys that the functions work on. Assigning another keyspace, and `clear`, take constant time."""
        return self._keyspace

    @keyspace.setter
    def keyspace(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        for state in self._states():
            state.use(keyspace)

    def fresh(self) -> Keyspace:
        """Replace the keyspace by an empty one with the same clock, and return the new one."""
        self.keyspace = Keyspace(self._clock)
        return self._keyspace

    def _states(self) -> Iterator[_State]:
        yield from self._libraries.values()
        yield from self._scripts.values()

    # ---- loading

    def load(self, source: str, name: str = "user_function") -> str:
        """Load a library, replace a loaded one of the same name, and return its name.

        `name` is the name of the chunk in error messages. Raises ReplyError for a library that the server would refuse.
        """
        library = _library_name(source)
        state = self._compiled(source, name, "ERR Error compiling function: ")
        ok, found = self._guarded(state, state.load_library)
        if not ok:
            raise ReplyError(f"ERR Error registering functions: {_decoded(found)}")
        if not found:
            raise ReplyError("ERR No functions registered")
        self._register(library, state, _decoded(found).split("\n"))
        return library

    def _register(self, library: str, state: _State, words: list[str]) -> None:
        old = self._libraries.get(library)
        for function in words[::2]:
            owner = self._owners.get(function)
            if owner and owner[0] is not old:
                raise ReplyError(f"ERR Function {function} already exists")
        self.unload(library)
        self._libraries[library] = state
        for function, flags in zip(words[::2], words[1::2], strict=True):
            self._owners[function] = (state, function.encode())
            self.functions[function] = frozenset(flags.split())

    def unload(self, library: str) -> None:
        """Remove a library and its functions, if it is loaded."""
        state = self._libraries.pop(library, None)
        for function, (owner, _) in list(self._owners.items()):
            if owner is state:
                del self._owners[function], self.functions[function]

    def _compiled(self, source: str, name: str, refusal: str) -> _State:
        state = _State(self._keyspace)
        self._watch(state)
        body = re.sub(r"\A#![^\n]*", "", source)
        ok, message = state.compile(body.encode(), f"@{name}".encode())
        if not ok:
            raise ReplyError(refusal + _decoded(message))
        return state

    # ---- calling

    def fcall(self, name: str, keys: Sequence[Text] = (), args: Sequence[Text] = ()) -> Any:
        """Call a function and return its reply. Raises ReplyError for an error reply."""
        owner = self._owners.get(name) or self._owner(name)
        state, known = owner
        if len(keys) + len(args) > _MOST_ON_STACK:
            tables = state.table_from(_encoded(keys)), state.table_from(_encoded(args))
            return self._reply(state, self._guarded(state, state.fcall_tables, known, *tables))
        try:
            reply = state.fcall(known, len(keys), *_encoded(keys), *_encoded(args))
        except lua51.LuaError as error:
            raise self._timeout(state, error) from None
        if reply.__class__ is bytes:
            return reply
        return self._reply(state, reply)

    def _owner(self, name: str) -> tuple[_State, bytes]:
        """Find a function whose name differs only in case, as Redis does."""
        for known, owner in self._owners.items():
            if known.lower() == name.lower():
                return owner
        raise ReplyError("ERR Function not found")

    def eval(self, source: str, keys: Sequence[Text] = (), args: Sequence[Text] = ()) -> Any:
        """Run a script. The same text is compiled only once."""
        state = self._scripts.get(source)
        if state is None:
            refusal = "ERR Error compiling script (new function): "
            state = self._scripts[source] = self._compiled(source, "user_script", refusal)
            state.open_script()
        head = _SHEBANG.match(source)
        read_only = bool(head and "no-writes" in head[2])
        tables = state.table_from(_encoded(keys)), state.table_from(_encoded(args))
        digest = _sha1(source.encode())
        return self._reply(state, self._guarded(state, state.run_script, digest, read_only, *tables))

    def _guarded(self, state: _State, function: Any, *args: object) -> Any:
        try:
            return function(*args)
        except lua51.LuaError as error:
            raise self._timeout(state, error) from None

    def _timeout(self, state: _State, error: Exception) -> ReplyError:
        """Reset the instruction limit, and make the error.

        The hook still stops each instruction, so it is removed from C before Lua sets it anew.
        """
        state.unhook()
        self._watch(state)
        if self._limit and "instruction limit" in str(error):
            return LuaTimeout("ERR instruction limit exceeded")
        return ReplyError(f"ERR {error}")

    def _reply(self, state: _State, reply: Any) -> Any:
        if reply.__class__ is not tuple:
            return _whole(reply) if reply.__class__ is float else reply
        if reply[0] is False:
            if self._keyspace.fault is not None:
                raise self._keyspace.fault
            raise ReplyError(_decoded(reply[1]))
        if reply[1] is False:
            reply = _gathered(state, reply[2])
        items = reply[2:]
        if reply[1] == len(items) and float not in map(type, items):
            return list(items)
        return _tree(iter(reply))

    # ---- the guard and line coverage

    def limit(self, instructions: int) -> None:
        """Set how many Lua instructions one call may take; 0 means no limit."""
        self._limit = instructions
        for state in self._states():
            self._watch(state)

    def coverage(self, on: bool) -> None:
        """Start or stop recording the lines that run. Lines recorded before are discarded."""
        self._by_line = on
        for state in self._states():
            state.forget()
            self._watch(state)

    def lines(self) -> dict[str, set[int]]:
        """Return the lines that ran, by the name of the library or the text of the script."""
        named = [*self._libraries.items(), *self._scripts.items()]
        return {name: state.lines() for name, state in named}

    def _watch(self, state: _State) -> None:
        state.watch(self._limit, self._by_line)


def _library_name(source: str) -> str:
    head = _SHEBANG.match(source)
    if not head:
        raise ReplyError("ERR Missing library metadata")
    if head[1].lower() != "lua":
        raise ReplyError(f"ERR Engine '{head[1]}' not found")
    name = None
    for word in head[2].split():
        if not word.startswith("name="):
            raise ReplyError(f"ERR Invalid metadata value given: {word}")
        if name is not None:
            raise ReplyError("ERR Invalid metadata value, name argument was given multiple times")
        name = word[5:]
    if name is None:
        raise ReplyError("ERR Library name was not given")
    if not _LIBRARY_NAME.match(name):
        raise ReplyError(
            "ERR Library names can only contain letters, numbers, or underscores(_)"
            " and must be at least one character long"
        )
    return name


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _whole(number: float) -> int:
    """Cut a number to 64 bits as a C cast of a double does on the machines that Redis runs on."""
    return int(number) if -(2.0**63) <= number < 2.0**63 else _LOWEST


def _gathered(state: _State, count: int) -> tuple[Any, ...]:
    """Fetch a long reply in parts. A part of a single value comes without a tuple."""
    words: list[Any] = []
    for start in range(1, count + 1, _PART):
        found = state.part(start, min(start + _PART - 1, count))
        words.extend(found if found.__class__ is tuple else (found,))
    return tuple(words)


def _tree(words: Iterator[Any]) -> Any:
    word = next(words)
    if word is True:
        return [_tree(words) for _ in range(next(words))]
    if word is False:
        return ReplyError(_decoded(next(words)))
    return _whole(word) if word.__class__ is float else word
