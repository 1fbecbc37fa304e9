-- Plain jobs: put, pop and complete where nothing special is asked for, is set, or is due.
--
-- Most calls are plain, and for them the verbs decide hundreds of things that are known beforehand. So each function of
-- plain.ways does one operation in the plain case, and writes the same texts as its verb. It leaves the reply in
-- plain.answer, or nothing where anything is not plain: then it has changed nothing, and the verb does the operation.
-- tests/property/test_plain.py compares the keys that both leave, byte for byte.
--
-- Each function of plain.groups does several operations of one kind in a row, which share a call (wire/calls.lua), as far
-- as they are plain: it gives how many, and leaves the list of their replies in plain.answer. They are steps of their own;
-- their writes go together, so that all of them are done or none is.
--
-- A function here never refuses: a call that must be refused is not plain. A command that fails is undone or completed as
-- in a verb (state/writes.lua).

local plain = {}

plain.answer = false -- the reply as it is written for the wire, from the first write that lasts on

-- The operations that have a plain case.
plain.ways = {
  put = plain_put.put, put_many = plain_put.put_many, pop = plain_pop.pop, complete = plain_complete.complete,
  complete_many = plain_complete.complete_many, complete_and_pop = plain_complete.complete_and_pop,
  request_add = plain_put.request_add,
}

-- Answer the operations of a group, each with one of these, and write their texts; give how many.
function plain.answer_all(answers, texts, simulated)
  plain.answer = answers
  store.write_all_plain(texts)
  store.end_plain(simulated)
  return #answers
end

plain.groups = {put = plain_put.group, pop = plain_pop.group, complete = plain_complete.group}
