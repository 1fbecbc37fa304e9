"""`docs/states.md`: the states of a job, and what leads from one to another."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qmodel.contract import lifecycle
from qmodel.contract.lifecycle import STATES, TRANSITIONS
from tools.docs.reference import MADE, table

NOT_YET = "No operation leads here yet."


class Edge(NamedTuple):
    """What leads from one state to another; the empty state is a job that does not exist."""

    was: str
    now: str
    by: tuple[str, ...]


def reached() -> list[str]:
    """The states that a job can be in today."""
    return [state for state in STATES if any(state in pair for pair in TRANSITIONS)]


def sources(operation: str) -> set[str]:
    """The states that an operation leads from."""
    return {was for (was, _), by in TRANSITIONS.items() if operation in by and was}


def told_apart() -> dict[str, set[str]]:
    """The operations that a picture leaves out, with the states that they lead from: those that lead from almost every
    state, and those that do nothing but delete.
    """
    operations = dict.fromkeys(name for by in TRANSITIONS.values() for name in by)
    found = {name: sources(name) for name in operations}
    return {
        name: states
        for name, states in found.items()
        if len(states) >= len(reached()) - 1 or (len(states) > 1 and ends(name) == {""})
    }


def ends(operation: str) -> set[str]:
    """The states that an operation leads to."""
    return {now for (_, now), by in TRANSITIONS.items() if operation in by}


def drawn() -> Iterator[Edge]:
    """The transitions of a picture: without what is told apart, and what leads from a state to itself."""
    for (was, now), by in TRANSITIONS.items():
        shown = tuple(name for name in by if not was or name not in told_apart())
        if shown and was != now:
            yield Edge(was, now, shown)


def legend() -> list[str]:
    """A sentence for each operation that the picture leaves out."""
    said = []
    for name, states in told_apart().items():
        but = [state for state in reached() if state not in states]
        whose = "any job" + (f" that is not {listed(but)}" if but else "")
        if len(but) > 1:
            whose = f"jobs that are {listed(states)}"
        does = f"deletes {whose}" if ends(name) == {""} else f"makes {whose} {listed(ends(name))}"
        said.append(f"{name} {does}.")
    return said


def listed(names: Iterable[str]) -> str:
    """States, the last one after an `or`."""
    *first, last = [state for state in STATES if state in names]
    return f"{', '.join(first)} or {last}" if first else last


PAGE = """\
# The states of a job

{head}

![The states of a job](states.svg)

Not in the picture:

{legend}

## States

{states}
## Transitions

Every step from one state to another, and what makes it. Nothing else can happen: a test drives generated histories
through the model and compares what it sees with this table.

{transitions}
`due` and `lease ran out` are not operations. They become true by time alone, every read shows them at once, and the
next pop of the queue writes them down.

## The same as text

```mermaid
{mermaid}
```
"""


def _head() -> str:
    return "\n\n".join(inspect.cleandoc(lifecycle.__doc__ or "").split("\n\n")[1:])


def _states() -> str:
    said = []
    for state, meaning in STATES.items():
        said.append(f"**{state}.** {meaning}" + ("" if state in reached() else f" {NOT_YET}") + "\n")
    return "\n".join(said)


def _transitions() -> str:
    rows = ((was or "(no job)", now or "(no job)", ", ".join(by)) for (was, now), by in TRANSITIONS.items())
    return table(("from", "to", "by"), rows)


def mermaid() -> str:
    """The picture as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [f"    {was or '[*]'} --> {now or '[*]'}: {', '.join(by)}" for was, now, by in drawn()]
    return "\n".join(lines)


def markdown() -> str:
    """The text of docs/states.md."""
    return MADE.format("qmodel/contract/lifecycle.py") + PAGE.format(
        head=_head(),
        legend="\n".join(f"- {sentence}" for sentence in legend()),
        states=_states(),
        transitions=_transitions(),
        mermaid=mermaid(),
    )
