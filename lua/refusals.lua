-- A refusal is raised above the blank line of a verb, as a table: the code, then its facts. register.lua replies it.

local refusals = {}

function refusals.refuse(...)
  error({...}, 0)
end
