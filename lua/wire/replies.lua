-- Replies for the wire. A reply of one value costs the server a third of a list, and a job in a text a tenth of one in a list.
--
-- So a reply that is a text or a number stands alone, without `OK`; and jobs that have nothing but an id, a state and a
-- record are one text: for each `<jid>TAB<state>TAB<bytes of the record>LF<record>`. All other replies are lists.

local replies = {}

local SHORT = 6000 -- the bytes of records that are joined by one table.concat, which has a buffer of 8192

-- A job within such a text.
function replies.job(jid, state, text)
  return jid .. '\t' .. state .. '\t' .. store.text(#text) .. '\n' .. text
end

-- Join texts, sixteen at a time. A long text that table.concat makes is hashed in pieces, and again with each joining of two
-- of them; Redis 7.0 needs eleven instructions a byte.
local function joined(texts)
  while texts[2] do
    local longer = {}
    for i = 1, #texts, 16 do
      longer[#longer + 1] = texts[i] .. (texts[i + 1] or '') .. (texts[i + 2] or '') .. (texts[i + 3] or '')
        .. (texts[i + 4] or '') .. (texts[i + 5] or '') .. (texts[i + 6] or '') .. (texts[i + 7] or '')
        .. (texts[i + 8] or '') .. (texts[i + 9] or '') .. (texts[i + 10] or '') .. (texts[i + 11] or '')
        .. (texts[i + 12] or '') .. (texts[i + 13] or '') .. (texts[i + 14] or '') .. (texts[i + 15] or '')
    end
    texts = longer
  end
  return texts[1]
end

-- Leased jobs as a text, with the keys and texts of their records.
function replies.leased(jids, written)
  local parts, at, from, texts, bytes, heads = {}, 0, 1, {}, 0, {}
  for i = 1, #jids do
    local text = written[2 * i]
    local size = #text
    local head = heads[size]
    if not head then
      head = '\trunning\t' .. store.text(size) .. '\n'
      heads[size] = head
    end
    parts[at + 1] = jids[i]
    parts[at + 2] = head
    parts[at + 3] = text
    at, bytes = at + 3, bytes + size
    if bytes > SHORT then
      texts[#texts + 1] = table.concat(parts, '', from, at)
      from, bytes = at + 1, 0
    end
  end
  texts[#texts + 1] = table.concat(parts, '', from, at)
  return joined(texts)
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
