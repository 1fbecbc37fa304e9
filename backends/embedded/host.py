"""Run a Redis function library inside this process, on lupa's Lua 5.1 and a `Keyspace`.

Theory of operation. Every loaded library, and every script, has a Lua state of its own: one costs
about 0.4 ms, which buys that no library sees what another left behind. In each state runs the
prelude below first. It takes what it needs of Lua's libraries and then builds what Redis shows of
them: while a library loads, only the `redis` table with `register_function`; while a function runs,
`redis.call` and the libraries that Redis has. Both are read-only, and reading a global that does
not exist is an error, as on the server.

What crosses between the languages is chosen for its price. A call from Python passes all keys and
arguments flat, and an answer comes back as a flat sequence of values: a tree is written out as
`true, length, items...`, an error as `false, text`. lupa turns such a sequence into a tuple in one
go, where reading a Lua table from Python costs a microsecond for each item. Nothing on the Python
side that Lua holds points back at the Lua state, or the state would never be freed: Python's
collector cannot look into it.

The prelude stands on one line when it is compiled. So the line hook, which cannot afford to ask in
whose code it was called, sees the prelude as line 1, and line 1 of a library is its `#!lua` line,
which holds no code.

Where servers differ the host does as Redis 7.0 does: a number becomes text by `%.17g` (Valkey 9
writes -0 as "0" and 0.1 as "0.1"), `pcall` gives the text of an error table and not the table, and
there is no `os`. It has no `cjson`, `cmsgpack`, `struct` and `bit`: our library does without them.
Never import another of lupa's Lua versions into the same process; some of them crash it.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import lupa.lua51 as lua51

from qmodel.backends.embedded.keyspace import COMMANDS, Clock, Keyspace

Text = str | bytes

PRELUDE: Final = r"""
local bind, take, sha1 = ...
local sethook, getinfo = debug.sethook, debug.getinfo
local type, select, tostring, unpack, error = type, select, tostring, unpack, error
local rawget, rawset, setmetatable, setfenv = rawget, rawset, setmetatable, setfenv
local raw_pcall, raw_xpcall, raw_loadstring, raw_load = pcall, xpcall, loadstring, load
local format, upper, gsub, find = string.format, string.upper, string.gsub, string.find
local concat = table.concat

-- Read-only tables. Redis has them in its C; here a proxy stands before the table.
local protected = setmetatable({}, {__mode = 'k'})
local function refuse() error('Attempt to modify a readonly table', 2) end
local function readonly(t)
  local proxy = setmetatable({}, {__index = t, __newindex = refuse})
  protected[proxy] = true
  return proxy
end
local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

-- redis.call. Commands are bound to the keyspace when they are first used.
local closures, readonly_closures, active
local shapes = {SHAPES}
local function texts(...)
  local out, n = {...}, select('#', ...)
  for i = 1, n do
    local kind = type(out[i])
    if kind == 'number' then out[i] = format('%.17g', out[i])
    elseif kind ~= 'string' then
      error({err = 'ERR Lua redis lib command arguments must be strings or integers'})
    end
  end
  return unpack(out, 1, n)
end
local function fetch()
  local words, n = {}, 0
  repeat
    local part = {take(n)}
    for i = 1, #part do words[n + i] = part[i] end
    n = n + #part
  until #part < 1000
  local at = 0
  local function read()
    at = at + 1
    local word = words[at]
    if word ~= true then return word end
    at = at + 1
    local out = {}
    for i = 1, words[at] do out[i] = read() end
    return out
  end
  return read()
end
local function slow(what, again, ...)
  if what == true then return again(texts(...)) end
  if what == false then return fetch() end
  error({err = what})
end
local make = {}
function make.value(f)
  local function run(...)
    local a, b = f(...)
    if a == nil then return slow(b, run, ...) end
    if a == true then return {ok = 'OK'} end
    return a
  end
  return run
end
function make.status(f)
  local function run(...)
    local a, b = f(...)
    if a == nil then return slow(b, run, ...) end
    return {ok = a}
  end
  return run
end
function make.list(f)
  local function run(...)
    local t = {f(...)}
    if t[1] == nil and t[2] ~= nil then return slow(t[2], run, ...) end
    return t
  end
  return run
end
make.tree = make.value
local function closures_for(read_only)
  return setmetatable({}, {__index = function(t, name)
    if type(name) == 'number' then name = format('%.17g', name) end
    if name == nil then
      error({err = 'ERR Please specify at least one argument for this redis lib call'})
    end
    if type(name) ~= 'string' then
      error({err = 'ERR Lua redis lib command arguments must be strings or integers'})
    end
    local known = upper(name)
    local run = make[shapes[known] or 'value'](bind(known, read_only))
    rawset(t, name, run)
    return run
  end})
end
local function rebind(new_bind, new_take)
  bind, take = new_bind, new_take
  closures, readonly_closures = closures_for(false), closures_for(true)
  active = closures
end
rebind(bind, take)
local function call(name, ...)
  return active[name](...)
end
local function unwrap_table(_, ...) return ... end
local function redis_pcall(...) return unwrap_table(raw_pcall(call, ...)) end

-- What Redis has in `redis`.
local function field_reply(field)
  return function(...)
    if select('#', ...) ~= 1 or type((...)) ~= 'string' then
      return {err = 'ERR wrong number or type of arguments'}
    end
    return {[field] = (...)}
  end
end
local status_reply, plain_error = field_reply('ok'), field_reply('err')
local function error_reply(...)
  local reply = plain_error(...)
  if find(reply.err, '^%-') then reply.err = reply.err:sub(2)
  elseif not find(reply.err, ' ', 1, true) then reply.err = 'ERR ' .. reply.err end
  return reply
end
local function log(...)
  if select('#', ...) < 2 then error({err = 'ERR redis.log() requires two arguments or more.'}) end
  local level = (...)
  if type(level) ~= 'number' then
    error({err = 'ERR First argument must be a number (log level).'})
  end
  if level < 0 or level > 3 then error({err = 'ERR Invalid debug level.'}) end
end
local function sha1hex(...)
  if select('#', ...) ~= 1 then error({err = 'ERR wrong number of arguments'}) end
  local value = (...)
  if type(value) == 'number' then value = tostring(value) end
  return sha1(type(value) == 'string' and value or '')
end
local constants = {LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
                   REDIS_VERSION = '7.0.15', REDIS_VERSION_NUM = 0x0007000F}
local function with_constants(t)
  for k, v in pairs(constants) do t[k] = v end
  t.log = log
  return t
end

-- Redis' pcall unwraps error tables; its loadstring sees the sandbox, not Lua's own globals.
local env_meta, env = {}, {}
local function unwrap(ok, ...)
  if ok then return ok, ... end
  local e = ...
  if type(e) == 'table' and e.err ~= nil then return false, e.err end
  return false, e
end
local function sandbox_pcall(...) return unwrap(raw_pcall(...)) end
local function confined(compile)
  return function(...)
    local f, message = compile(...)
    if f then return setfenv(f, env) end
    return nil, message
  end
end
local run_globals = {
  _G = env, _VERSION = _VERSION, assert = assert, collectgarbage = collectgarbage, error = error,
  gcinfo = gcinfo, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
  pcall = sandbox_pcall, rawequal = rawequal, rawget = rawget, select = select,
  tonumber = tonumber, tostring = tostring, type = type, unpack = unpack, xpcall = raw_xpcall,
  load = confined(raw_load), loadstring = confined(raw_loadstring), coroutine = readonly(coroutine),
  math = readonly(math), string = readonly(string), table = readonly(table),
  redis = readonly(with_constants({call = call, pcall = redis_pcall, error_reply = error_reply,
    status_reply = status_reply, sha1hex = sha1hex}))}
function run_globals.rawset(t, k, v)
  if protected[t] then error({err = 'ERR Attempt to modify a readonly table'}) end
  return rawset(t, k, v)
end
function run_globals.setmetatable(t, meta)
  if protected[t] then error({err = 'ERR Attempt to modify a readonly table'}) end
  return setmetatable(t, meta)
end
setmetatable(run_globals, {__index = missing})
protected[env] = true
env_meta.__newindex = refuse
setmetatable(env, env_meta)

-- Loading.
local functions, flags_of, found = {}, {}, 0
local known_flags = {['no-writes'] = true, ['allow-oom'] = true, ['allow-stale'] = true,
                     ['no-cluster'] = true, ['allow-cross-slot-keys'] = true}
local function fail(message) error({err = 'ERR ' .. message}) end
local function add(name, callback, flags)
  if not find(name, '^[%w_]+$') then
    fail('Library names can only contain letters, numbers, or underscores(_)'
      .. ' and must be at least one character long')
  end
  if functions[name] then fail('Function already exists in the library') end
  functions[name], flags_of[name], found = callback, flags, found + 1
end
local function flags_from(given)
  local flags = {}
  if type(given) ~= 'table' then
    fail('flags argument to redis.register_function must be a table representing function flags')
  end
  for _, flag in ipairs(given) do
    if not known_flags[flag] then fail('unknown flag given') end
    flags[flag] = true
  end
  return flags
end
local function register_named(t)
  local name, callback, flags
  for key, value in pairs(t) do
    if key == 'function_name' then
      if type(value) == 'number' then value = tostring(value) end
      if type(value) ~= 'string' then
        fail('function_name argument given to redis.register_function must be a string')
      end
      name = value
    elseif key == 'callback' then
      if type(value) ~= 'function' then
        fail('callback argument given to redis.register_function must be a function')
      end
      callback = value
    elseif key == 'flags' then flags = flags_from(value)
    elseif key ~= 'description' then fail('unknown argument given to redis.register_function') end
  end
  if not name then fail('redis.register_function must get a function name argument') end
  if not callback then fail('redis.register_function must get a callback argument') end
  add(name, callback, flags or {})
end
local function register_function(...)
  local count, first, second = select('#', ...), ...
  if count == 1 then
    if type(first) == 'table' then return register_named(first) end
    fail('calling redis.register_function with a single argument is only applicable to Lua table'
      .. ' (representing named arguments).')
  end
  if count ~= 2 then fail('wrong number of arguments to redis.register_function') end
  if type(first) == 'number' then first = tostring(first) end
  if type(first) ~= 'string' then
    fail('first argument to redis.register_function must be a string')
  end
  if type(second) ~= 'function' then
    fail('second argument to redis.register_function must be a function')
  end
  add(first, second, {})
end
local load_redis = with_constants({register_function = register_function})
setmetatable(load_redis, {__index = missing})
local load_globals = setmetatable({redis = readonly(load_redis)}, {__index = missing})

-- The guard against endless loops, and line coverage: one hook does both.
local step, ticks, budget, lines = 100000, 0, 0, {}
local function overrun() error('instruction limit exceeded', 0) end
local function hook(event, line)
  if event == 'line' then
    lines[line] = true
    return
  end
  ticks = ticks + 1
  if ticks * step >= budget then
    sethook(overrun, '', 1)
    overrun()
  end
end
local function watch(limit, by_line)
  budget = limit
  step = limit > 0 and limit < 100000 and limit or 100000
  ticks = 0
  if limit > 0 then sethook(hook, by_line and 'l' or '', step)
  elseif by_line then sethook(hook, 'l')
  else sethook() end
end
local function visited()
  local out = {}
  for line in pairs(lines) do out[#out + 1] = line end
  return concat(out, ' ')
end
local function forget() lines = {} end

-- Errors as Redis words them: the place is that of the nearest frame in the library.
local chunk_name
local function described(err)
  if type(err) ~= 'table' then err = {err = 'ERR ' .. tostring(err)} end
  local text = err.err
  if type(text) == 'number' then text = tostring(text) end
  if type(text) ~= 'string' then text = 'ERR unknown error' end
  for level = 2, 1000000 do
    local info = getinfo(level, 'Sl')
    if not info then return text, nil end
    if info.source == chunk_name then return text, info.currentline end
  end
end
local label
local function explain(err)
  local text, line = described(err)
  if not line then return text end
  return text .. ' script: ' .. label .. ', on ' .. chunk_name .. ':' .. line .. '.'
end
local function explain_load(err)
  if type(err) == 'table' and type(err.err) == 'string' then return err.err end
  return 'ERR ' .. tostring(err)
end

-- Replies.
local function one_line(text) return (gsub(text, '[\r\n]', ' ')) end
local function flatten(value, out, n)
  local kind = type(value)
  if kind ~= 'table' then
    if value == true then value = 1 end
    if kind == 'string' or kind == 'number' or kind == 'boolean' then out[n + 1] = value or nil end
    return n + 1
  end
  local failed = rawget(value, 'err')
  if type(failed) == 'string' then
    out[n + 1], out[n + 2] = false, one_line(failed)
    return n + 2
  end
  local fine = rawget(value, 'ok')
  if type(fine) == 'string' then
    out[n + 1] = one_line(fine)
    return n + 1
  end
  local at, i = n + 2, 1
  out[n + 1], n = true, n + 2
  local item = rawget(value, 1)
  while item ~= nil do
    n = flatten(item, out, n)
    i = i + 1
    item = rawget(value, i)
  end
  out[at] = i - 1
  return n
end
local words
local function part(from, to) return unpack(words, from, to) end
local function finish(ok, value)
  ticks = 0
  if not ok then return false, one_line(value) end
  local kind = type(value)
  if kind == 'string' or kind == 'number' then return value end
  if value == true then return 1 end
  if kind ~= 'table' then return end
  local out = {}
  local n = flatten(value, out, 0)
  if n <= 4000 then return unpack(out, 1, n) end
  words = out
  return true, false, n
end
local function invoke(name, f, read_only, keys, args)
  label, ticks = name, 0
  active = read_only and readonly_closures or closures
  return finish(raw_xpcall(function() return f(keys, args) end, explain))
end

local function fcall(name, count, ...)
  local read_only, f = flags_of[name]['no-writes'], functions[name]
  if count == 1 then
    local key = ...
    return invoke(name, f, read_only, {key}, {select(2, ...)})
  end
  local words = {...}
  return invoke(name, f, read_only, {unpack(words, 1, count)}, {unpack(words, count + 1)})
end
local function fcall_tables(name, keys, args)
  return invoke(name, functions[name], flags_of[name]['no-writes'], keys, args)
end
local script, script_meta
local function run_script(name, read_only, keys, args)
  rawset(env, 'KEYS', keys)
  rawset(env, 'ARGV', args)
  return invoke(name, script, read_only, {}, {})
end
local function compile(source, name)
  chunk_name = name
  env_meta.__index = load_globals
  local f, message = raw_loadstring(source, name)
  if not f then return false, message end
  script = setfenv(f, env)
  return true, ''
end
local function load_library()
  local ok, message = raw_xpcall(script, explain_load)
  if not ok then return false, message end
  env_meta.__index = run_globals
  local names = {}
  for name in pairs(functions) do
    names[#names + 1] = name
    local flags = {}
    for flag in pairs(flags_of[name]) do flags[#flags + 1] = flag end
    names[#names + 1] = concat(flags, ' ')
  end
  return true, concat(names, '\n')
end
local function open_script() env_meta.__index = run_globals end
return sethook, rebind, watch, visited, forget, part,
  fcall, fcall_tables, run_script, compile, load_library, open_script
"""

_SHAPES: Final = ", ".join(
    f"{name} = '{command.reply}'" for name, command in COMMANDS.items() if command.reply != "value"
)
_PRELUDE_LINE: Final = re.sub(r"(?m)^\s*--.*$", "", PRELUDE).replace("SHAPES", _SHAPES).replace("\n", " ")
_SHEBANG: Final = re.compile(r"#!([^ \n]*)([^\n]*)")
_LIBRARY_NAME: Final = re.compile(r"[A-Za-z0-9_]+\Z")

# More arguments than this go into Lua as tables, because the Lua stack is not endless.
_MOST_ON_STACK: Final = 200
_PART: Final = 4000
_LOWEST: Final = -(2**63)


class ReplyError(Exception):
    """An error reply, or an error raised in Lua, as the server would word it."""

    @property
    def code(self) -> str:
        """The first word, by which a client tells errors apart."""
        return str(self).split(" ", 1)[0]


class LuaTimeout(ReplyError):
    """The instruction limit was exceeded; what was written before stays written."""


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
        """The lines that ran, without line 1, on which the prelude stands."""
        return {int(line) for line in self.visited().split()} - {1}


def _binder(keyspace: Keyspace) -> Callable[[bytes, object], Callable[..., Any]]:
    def bind(name: bytes, read_only: object) -> Callable[..., Any]:
        return keyspace.bind(name.decode("latin-1"), bool(read_only))

    return bind


def _sha1(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()


def _encoded(words: Sequence[Text]) -> list[bytes]:
    return [word if word.__class__ is bytes else word.encode() for word in words]  # type: ignore[union-attr]


class LuaHost:
    """Load function libraries and call their functions, as FUNCTION LOAD, FCALL and EVAL do.

    The clock gives seconds as a float and is what TIME replies with. The limit is in Lua
    instructions for one call; 0 switches it off.

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
        """The keys that the functions work on; assign another, or `clear` it, in constant time."""
        return self._keyspace

    @keyspace.setter
    def keyspace(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        for state in self._states():
            state.use(keyspace)

    def fresh(self) -> Keyspace:
        """Replace the keyspace by an empty one with the same clock, and return it."""
        self.keyspace = Keyspace(self._clock)
        return self._keyspace

    def _states(self) -> Iterator[_State]:
        yield from self._libraries.values()
        yield from self._scripts.values()

    # ---- loading

    def load(self, source: str, name: str = "user_function") -> str:
        """Load a library, replacing one of the same name, and return its name.

        `name` is what errors call the chunk. A library that the server would refuse raises
        `ReplyError`.
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
        """Forget a library and its functions, if it is there."""
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
        """Call a function and return its reply; an error reply raises `ReplyError`."""
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
        """Find a function by its name in another case, as Redis does."""
        for known, owner in self._owners.items():
            if known.lower() == name.lower():
                return owner
        raise ReplyError("ERR Function not found")

    def eval(self, source: str, keys: Sequence[Text] = (), args: Sequence[Text] = ()) -> Any:
        """Run a script; it is compiled once."""
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
        """Wind the guard up again: it still stops each instruction, so first from C, then Lua."""
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
        """Set how many Lua instructions one call may take; 0 for any number."""
        self._limit = instructions
        for state in self._states():
            self._watch(state)

    def coverage(self, on: bool) -> None:
        """Record from now on which lines run, or stop recording; either way begin with none."""
        self._by_line = on
        for state in self._states():
            state.forget()
            self._watch(state)

    def lines(self) -> dict[str, set[int]]:
        """Return the lines that ran, by the name of the library, or by the text of the script."""
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
    """Cut a number as C casts a double to 64 bits on the machines Redis runs on."""
    return int(number) if -(2.0**63) <= number < 2.0**63 else _LOWEST


def _gathered(state: _State, count: int) -> tuple[Any, ...]:
    """Fetch a long reply in parts; one that is a single value comes without a tuple."""
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


# --------------------------------------------------------------------------------- executable lines


def active_lines(source: str) -> frozenset[int]:
    """Return the lines of a chunk that hold code which can run.

    The chunk is compiled, not run, and read from its bytecode: `debug.getinfo` with `L` tells only
    of functions that exist already. The `return` that Lua adds at the end of each function counts
    only where it is reached.
    """
    runtime: Any = lua51.LuaRuntime(encoding=None)
    dump = runtime.eval("function(s) return string.dump(assert(loadstring(s))) end")
    body = re.sub(r"\A#![^\n]*", "", source)
    return frozenset(_Bytecode(dump(body.encode())).lines)


class _Bytecode:
    """A reader of Lua 5.1 bytecode of 64 bits, little endian: what `string.dump` gives here."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 12
        self.lines: set[int] = set()
        self._function()

    def _int(self) -> int:
        self.at += 4
        return int.from_bytes(self.raw[self.at - 4 : self.at], "little")

    def _skip_string(self) -> None:
        self.at += 8 + int.from_bytes(self.raw[self.at : self.at + 8], "little")

    def _ints(self) -> list[int]:
        return [self._int() for _ in range(self._int())]

    def _function(self) -> None:
        self._skip_string()
        self.at += 8 + 4
        code = self._ints()
        self._skip_constants()
        for _ in range(self._int()):
            self._function()
        line_of = self._ints()
        for _ in range(self._int()):
            self._skip_string()
            self.at += 8
        for _ in range(self._int()):
            self._skip_string()
        self.lines |= {line_of[pc] for pc in _reached(code)}

    def _skip_constants(self) -> None:
        for _ in range(self._int()):
            kind = self.raw[self.at]
            self.at += 1
            if kind == 4:
                self._skip_string()
            else:
                self.at += {0: 0, 1: 1, 3: 8}[kind]


_JUMP: Final = 22
_LOADBOOL: Final = 2
_RETURN: Final = 30
_FORLOOP: Final = 31
_FORPREP: Final = 32
_SETLIST: Final = 34
# EQ, LT, LE, TEST, TESTSET, TFORLOOP: the next instruction is skipped or not.
_TESTS: Final = frozenset((23, 24, 25, 26, 27, 33))


def _reached(code: list[int]) -> set[int]:
    """Return the positions that control can reach from the first one."""
    reached: set[int] = set()
    left = [0]
    while left:
        pc = left.pop()
        if pc not in reached:
            reached.add(pc)
            left.extend(_successors(code, pc))
    return reached


def _successors(code: list[int], pc: int) -> list[int]:
    word = code[pc]
    operation, target = word & 0x3F, pc + 1 + (word >> 14) - 131071
    if operation == _RETURN:
        return []
    if operation in (_JUMP, _FORPREP):
        return [target]
    if operation == _FORLOOP:
        return [pc + 1, target]
    if operation in _TESTS:
        return [pc + 1, pc + 2]
    if operation == _LOADBOOL and word >> 14 & 0x1FF:
        return [pc + 2]
    # A long list keeps its count in the word after the instruction.
    return [pc + 2 if operation == _SETLIST and not word >> 14 & 0x1FF else pc + 1]
