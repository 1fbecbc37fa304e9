"""The notation of directed histories is read as documented, and errors name the line."""

from __future__ import annotations

from importlib import resources

import pytest

from qmodel.conformance.histories.directed import load, notation
from qmodel.conformance.histories.script import START
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops


def _steps(text: str) -> list[Step]:
    (written,) = notation.read("here", f"## one\nWhy.\n\n{text}")
    return notation.steps(written)


def test_an_offset_counts_from_the_previous_step() -> None:
    assert _steps("Length('q')\n+1500 Length('q')\n-20 Length('r')\nQueues()") == [
        Step(START, ops.Length("q")),
        Step(START + 1500, ops.Length("q")),
        Step(START + 1480, ops.Length("r")),
        Step(START + 1480, ops.Queues()),
    ]


def test_a_token_is_of_the_newest_lease_or_of_the_numbered_one() -> None:
    once = "Pop('q', 'w')\nRelease('a', token('a'))\n"
    steps = _steps(
        "Put('q', 'a', 'k', '')\n" + once + once + "Complete('a', token('a', 1))\nComplete('a', token('a') + 1)"
    )
    tokens = [step.op.token for step in steps if isinstance(step.op, ops.Release | ops.Complete)]
    assert tokens == [2, 4, 2, 5]


def test_a_repeat_counts_or_goes_through_a_table() -> None:
    counted = _steps("repeat i in span(8, 10)\n  +i*10 Log(f'j{i:02}', 'x')\n  Get('a')\nGet('b')")
    assert [step.now - START for step in counted] == [80, 80, 170, 170, 270, 270, 270]
    assert [step.op.jid for step in counted if isinstance(step.op, ops.Log)] == ["j08", "j09", "j10"]
    listed = _steps("repeat x, y in (('a', 1), ('b', 2))\n  Priority(x, y)")
    assert [step.op for step in listed] == [ops.Priority("a", 1), ops.Priority("b", 2)]


def test_calls_may_span_lines_and_comments_are_ignored() -> None:
    assert _steps("# a comment\nPut('q', 'a',\n      'k', '')\n\n  # another\n") == [
        Step(START, ops.Put("q", "a", "k", ""))
    ]


@pytest.mark.parametrize(
    "text", ["Putt('q')", "Get()", "open('x')", "Get(token('nobody'))", "Complete('a', token('a'))"]
)
def test_an_unknown_name_is_refused_with_its_line(text: str) -> None:
    with pytest.raises((NameError, TypeError, KeyError)) as caught:
        _steps(f"Queues()\n{text}")
    frames = [str(entry.path) for entry in caught.traceback]
    assert "here.txt:5" in frames


def test_every_file_is_a_theme_and_every_history_has_a_unique_name_and_a_reason() -> None:
    there = {path.name for path in resources.files(load.__package__).iterdir() if path.name.endswith(".txt")}
    assert there == {f"{theme}.txt" for theme in load.THEMES}
    found = load.directed()
    assert len({named.name for named in found}) == len(found) == len(load.reasons())
    assert all(reason.endswith((".", "?")) for reason in load.reasons().values())
    assert all(named.steps for named in found)
