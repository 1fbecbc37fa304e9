-- What Redis is to a Lua library: the `redis` table, the sandbox, errors and replies.
-- host.py runs this file first in each Lua state. It removes comment lines and joins the rest to one line, so a comment
-- needs a line of its own. It replaces SHAPES by the shapes of the commands' replies.
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
