-- A refusal is raised above the blank line of a verb: the code, then its facts. register.lua replies it. It is kept beside
-- the error, since Redis makes text of an error that is a table.

local refusals = {}

function refusals.refuse(...)
  refusals.raised = {...}
  error('refused', 0)
end
