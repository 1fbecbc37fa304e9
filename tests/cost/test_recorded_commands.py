"""What each step of the directed histories costs is what is on record (tests/cost/commands.txt).

If a change is meant, `python -m tools.commands` writes the record again; review the changes. To count all steps takes
half a minute, so it is done only if the code has changed since then, and in a run of everything.
"""

from __future__ import annotations

import pytest

from qmodel.backends.bundle import read
from qmodel.conformance.histories.directed.load import THEMES, directed, theme
from qmodel.conformance.histories.script import Named
from tests.tester import runs_everything
from tools import commands
from tools.commands import Count
from tools.mutation.loaded import Cost, Loaded


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return Loaded({})


def differences(loaded: Loaded, histories: list[Named]) -> list[str]:
    recorded = commands.read()
    return [
        line
        for named in histories
        for name, found in commands.counts(loaded, named).items()
        for line in commands.differences(name, recorded.get(name, ()), found)
    ]


@pytest.mark.skipif(commands.STAMP.is_current() and not runs_everything(), reason="this code has written the record")
@pytest.mark.parametrize("of", THEMES)
def test_no_step_costs_something_else_than_is_recorded(of: str, loaded: Loaded) -> None:
    assert differences(loaded, [named for named in directed() if theme(named.name) == of]) == []


def test_the_record_is_of_the_directed_histories() -> None:
    assert [name for name in commands.read() if not name.startswith("gathered ")] == [
        named.name for named in directed()
    ]


LONGER = (
    ("  local seq = store.seq + 1\n", "  redis.call('TYPE', keys.counters)\n  local seq = store.seq + 1\n"),
    ("or #data > INLINE or", "or true or"),
)
"""Changes of ops/bare.lua: one more command, and a longer way."""


@pytest.mark.parametrize("change", LONGER)
def test_a_step_that_costs_more_is_named(change: tuple[str, str]) -> None:
    text = read("ops/bare")
    longer = text.replace(*change, 1)
    assert longer != text
    found = differences(Loaded({"ops/bare": longer}), [named for named in directed() if "a_row_of_jobs" in named.name])
    assert found and all(" step " in line and "put for" in line for line in found)


def test_a_record_is_read_as_it_is_written() -> None:
    put, bare = Count("put", Cost(5, "p")), Count("put", Cost(4, "b"))
    one = [put, *[bare] * 300, Count("pop", Cost(0, "")), *[bare, Count("get", Cost(1, ""))] * 40]
    assert commands.read(commands.show({"a": one, "b": one[:1]})) == {"a": one, "b": one[:1]}
    assert commands.differences("a", one, one) == []
    assert commands.differences("a", one[:2], one[1:2]) == [
        "a, step 1: put for 5p recorded, put for 4b now",
        "a, step 2: put for 4b recorded, nothing now",
    ]


def test_another_cost_is_told_by_its_kind() -> None:
    others = Cost(5, "p"), Cost(4, ""), Cost(4, "p")
    assert [Cost(4, "p").difference(other) for other in others] == ["commands", "ways", None]
