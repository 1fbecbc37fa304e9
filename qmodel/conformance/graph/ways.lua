-- Have `note` told of each shorter way that an operation takes: bare, plain, bare-plain, which goes on from one to the
-- other, or group, with the number of operations that are done together. `answered` tells whether a plain way replied.
-- A text that is part of two libraries (setting.lua, and tools/mutation/parts.py): a comment needs a line of its own.
return function(bare, plain, answered, note)
  for name, way in pairs(bare.ways) do
    bare.ways[name] = function(...)
      local done = way(...)
      if done then note(answered() and 'bare-plain' or 'bare', 1) end
      return done
    end
  end
  for name, way in pairs(plain.ways) do
    plain.ways[name] = function(...)
      way(...)
      if answered() then note('plain', 1) end
    end
  end
  for name, way in pairs(plain.groups) do
    plain.groups[name] = function(...)
      local count = way(...)
      if count > 0 then note('group', count) end
      return count
    end
  end
end
