-- Aging: the priorities of a queue's waiting jobs improve with their age.
--
-- In a queue with the option `aging`, a ready job improves by one priority in every so many milliseconds. All jobs of the
-- queue do so at one rate, so the order of two of them never changes while they wait: they come by their even moment, when
-- a job has the priority 0. That is its ready time, later by the rate for each level that its priority is above 0, and
-- earlier for each level below. So the order stays total and static: even moment, ready time, sequence.
--
-- The score of a place by age is the even moment less APART, so it is below every priority. When the option is set, the
-- waiting jobs still have their places by priority, and so they come last; each pop moves the first of them to their
-- places by age. When it is removed, the waiting jobs keep their places.

local aging = {}

local APART = 500000000000000 -- what is taken from an even moment, so that it comes before every priority
local LAST = 99999999999999 -- even moments after this one count as this one; those before its negative, as that

aging.BOUND = '-400000000000001' -- the last place by age

-- The score of the place of a job, as text: its even moment, less APART.
function aging.first_number(rate, priority, ready_at)
  return string.format('%d', math.max(-LAST, math.min(ready_at + priority * rate, LAST)) - APART)
end

-- Whether a score, as text, is that of a place by age: no priority has so many digits.
function aging.is_by_age(score)
  return #score >= #aging.BOUND
end
