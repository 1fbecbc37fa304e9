"""The commands that each step of the directed histories costs are those on record (tests/cost/commands.txt).

If a change is meant, `python -m tools.commands` writes the record again; review the changes.
"""

from __future__ import annotations

import pytest

from qmodel.backends.bundle import read
from qmodel.conformance.histories.directed.load import THEMES, directed, theme
from qmodel.conformance.histories.script import Named
from tools import commands
from tools.commands import Count
from tools.mutation.replay import Loaded


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return Loaded({})


def differences(loaded: Loaded, histories: list[Named]) -> list[str]:
    recorded = commands.read()
    return [
        line
        for named in histories
        for line in commands.differences(named.name, recorded.get(named.name, ()), commands.counts(loaded, named))
    ]


@pytest.mark.parametrize("of", THEMES)
def test_no_step_costs_another_number_of_commands_than_is_recorded(of: str, loaded: Loaded) -> None:
    assert differences(loaded, [named for named in directed() if theme(named.name) == of]) == []


def test_the_record_is_of_the_directed_histories() -> None:
    assert list(commands.read()) == [named.name for named in directed()]


def test_a_step_that_takes_another_way_is_named() -> None:
    text = read("ops/bare")
    longer = text.replace(
        "  local seq = store.seq + 1\n", "  redis.call('TYPE', keys.counters)\n  local seq = store.seq + 1\n", 1
    )
    assert longer != text
    found = differences(Loaded({"ops/bare": longer}), [named for named in directed() if "a_row_of_jobs" in named.name])
    assert found and all(" step " in line and "put with" in line for line in found)


def test_a_record_is_read_as_it_is_written() -> None:
    one = [Count("put", 5), *[Count("put", 4)] * 300, Count("pop", 0), *[Count("put", 4), Count("get", 1)] * 40]
    assert commands.read(commands.show({"a": one, "b": one[:1]})) == {"a": one, "b": one[:1]}
    assert commands.differences("a", one, one) == []
    assert commands.differences("a", one[:2], one[1:2]) == [
        "a, step 1: put with 5 commands recorded, put with 4 commands now",
        "a, step 2: put with 4 commands recorded, nothing now",
    ]
