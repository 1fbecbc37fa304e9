-- Replies for the wire. A reply of one value costs the server a third of a list, and a job in a text a tenth of one in a list.
--
-- So a reply that is a text or a number stands alone, without `OK`; and jobs that have nothing but an id, a state and a
-- record are one text: for each `<jid>TAB<state>TAB<bytes of the record>LF<record>`. All other replies are lists.

local replies = {}

-- A job within such a text.
function replies.job(jid, state, text)
  return jid .. '\t' .. state .. '\t' .. store.text(#text) .. '\n' .. text
end

-- Jobs as a text; nil, if one of them has more.
local function text_of(views)
  local parts = {}
  for i = 1, #views do
    local view = views[i]
    if view[4] then
      return nil
    end
    parts[i] = replies.job(view[1], view[2], view[3])
  end
  return table.concat(parts)
end

-- Write what an operation has answered for the wire.
function replies.packed(operation, answer)
  local reply, shape = answer[2], catalogue.operations[operation]
  if answer[1] ~= 'OK' then
    return answer
  elseif type(reply) ~= 'table' then
    return reply or answer
  elseif shape and shape.jobs then
    return text_of(reply) or answer
  elseif shape and shape.follow then
    local text = text_of(reply[2])
    return text and reply[1] .. '\n' .. text or answer
  end
  return answer
end
