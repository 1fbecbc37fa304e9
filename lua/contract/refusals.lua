-- Refusals. A verb raises one before its first change: the code, then its facts. register.lua replies it. It is kept
-- beside the error, because Redis turns an error that is a table into text.

local refusals = {}

function refusals.refuse(...)
  refusals.raised = {...}
  error('refused', 0)
end
