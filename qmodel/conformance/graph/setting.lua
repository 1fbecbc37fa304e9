-- What the graph adds to the library: functions that set a budget, and that tell which way an operation took.
-- compare.py appends it to the last line of state/budget.lua, behind `watch`, which is ways.lua. It removes comment lines
-- and joins the rest to one line, so a comment needs a line of its own.
local took = {}
local function note(way) took[#took + 1] = way end

-- Set the budget of an operation.
register_function('within', function(_, args) budget.UNITS = args[1] + 0 end)

-- Forget what is known of the keys, and accept these names too; give all that are accepted.
register_function('meet', function(_, args)
  if not redis then bound() end
  store.meet() plain_pop.meet() plain_records.meet()
  took = {}
  for _, name in ipairs(args) do arguments.names[name] = true end
  local found = {}
  for name in pairs(arguments.names) do found[#found + 1] = name end
  return found
end)

-- Forget the names that are accepted: the library does so once there are too many.
register_function('forget', function()
  if not redis then bound() end
  local old = arguments.names
  for _ = 1, 999 do
    if arguments.names == old then arguments.is_name('x', 1) end
  end
  arguments.names.x = nil
end)

-- Note the shorter ways that operations take from now on (ways.lua); give the operations that have any.
register_function('watch', function()
  if not redis then bound() end
  watch(bare, plain, function() return plain.answer end, note)
  local found = {}
  for name in pairs(plain.ways) do found[#found + 1] = name end
  return found
end)

-- Give the ways that were noted, and forget them.
register_function('took', function()
  local found = took
  took = {}
  return found
end)
