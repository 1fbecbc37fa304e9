"""The sorted list behaves like a list that is sorted after every step."""

from __future__ import annotations

import random
from bisect import bisect_right, insort

import pytest

from qmodel.model.sorted_list import BLOCK, Ordered

Entry = tuple[int, int, str]


def entry(chance: random.Random, number: int, spread: int) -> Entry:
    """Draw an entry: mostly greater than all before, sometimes at a random place."""
    moment = number if chance.random() < 0.8 else chance.randrange(spread)
    return (moment, number, f"j{number}")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [5, 3 * BLOCK])
def test_it_is_a_list_that_is_always_sorted(seed: int, size: int) -> None:
    chance = random.Random(seed)
    ordered: Ordered[Entry] = Ordered()
    plain: list[Entry] = []
    for number in range(6 * size):
        if len(plain) > size or (plain and chance.random() < 0.3):
            if chance.random() < 0.5:
                taken = chance.choice((1, 1, 2, BLOCK, size))
                assert ordered.take(taken) == plain[:taken]
                del plain[:taken]
            else:
                gone = chance.choice((plain[0], plain[-1], chance.choice(plain)))
                ordered.remove(gone)
                plain.remove(gone)
        new = entry(chance, number, 6 * size)
        ordered.add(new)
        insort(plain, new)
        start, moment = chance.randrange(len(plain)), chance.randrange(6 * size)
        until = bisect_right(plain, moment, key=lambda one: one[0])
        assert (ordered.size, len(ordered)) == (len(plain), len(plain))
        assert ordered[start] == plain[start] and ordered[-1] == plain[-1]
        assert ordered[start : start + 9] == plain[start : start + 9]
        assert ordered.count_until(moment) == until and ordered.begins_by(moment) == (until > 0)
        most = chance.choice((1, 7, BLOCK + 5))
        assert ordered.until(moment, most) == plain[: min(until, most)]
    assert list(ordered) == plain
    ordered.clear()
    assert list(ordered) == [] and not ordered and ordered.until(10**9, 5) == [] and ordered.take(3) == []


def test_it_stays_in_blocks_wherever_entries_come() -> None:
    for numbers in (range(5 * BLOCK), range(5 * BLOCK, 0, -1), [n * 7919 % 100_003 for n in range(5 * BLOCK)]):
        ordered = Ordered((number, 0, "") for number in numbers)
        assert list(ordered) == sorted((number, 0, "") for number in numbers)
        assert max(map(len, ordered._blocks)) <= BLOCK


@pytest.mark.parametrize("there", [0, 1, 3 * BLOCK])
def test_an_absent_entry_cannot_be_removed(there: int) -> None:
    ordered = Ordered((2 * number, 0, "") for number in range(there))
    for missing in (-1, 1, there, 10**9):
        with pytest.raises(ValueError, match="is not there"):
            ordered.remove((missing if missing % 2 or missing >= 2 * there else missing + 1, 0, ""))
    assert len(ordered) == there
