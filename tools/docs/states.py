"""`docs/states.md`: the states of a job, and the transitions between them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from qmodel.contract import lifecycle
from qmodel.contract.lifecycle import STATES, TRANSITIONS
from tools.docs.reference import MADE, table

NOT_YET = "No operation leads here yet."


class Edge(NamedTuple):
    """A transition between two states with its causes; the empty state is a job that does not exist."""

    was: str
    now: str
    by: tuple[str, ...]


def reached() -> list[str]:
    """List the states that some operation can produce."""
    return [state for state in STATES if any(state in pair for pair in TRANSITIONS)]


def sources(operation: str) -> set[str]:
    """Collect the states in which an operation starts a transition."""
    return {was for (was, _), by in TRANSITIONS.items() if operation in by and was}


def omitted() -> dict[str, set[str]]:
    """Collect the operations that the picture omits, with their source states.

    These are operations that apply to almost every state, and operations that only delete.
    """
    operations = dict.fromkeys(name for by in TRANSITIONS.values() for name in by)
    found = {name: sources(name) for name in operations}
    return {
        name: states
        for name, states in found.items()
        if len(states) >= len(reached()) - 1 or (len(states) > 1 and ends(name) == {""})
    }


def ends(operation: str) -> set[str]:
    """Collect the states in which a transition of an operation ends."""
    return {now for (_, now), by in TRANSITIONS.items() if operation in by}


def drawn() -> Iterator[Edge]:
    """Yield the transitions of the picture, without omitted operations and without loops."""
    for (was, now), by in TRANSITIONS.items():
        shown = tuple(name for name in by if not was or name not in omitted())
        if shown and was != now:
            yield Edge(was, now, shown)


def legend() -> list[str]:
    """Write a sentence for each operation that the picture omits."""
    said = []
    for name, states in omitted().items():
        but = [state for state in reached() if state not in states]
        whose = "any job" + (f" that is not {listed(but)}" if but else "")
        if len(but) > 1:
            whose = f"jobs that are {listed(states)}"
        does = f"deletes {whose}" if ends(name) == {""} else f"makes {whose} {listed(ends(name))}"
        said.append(f"{name} {does}.")
    return said


def listed(names: Iterable[str]) -> str:
    """Join states with commas, the last one with `or`."""
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

Every transition between two states, and its causes. There are no others: a test runs generated histories through the
model and compares the transitions with this table.

{transitions}
`due` and `lease ran out` are not operations. They become true when time passes. Every read shows them at once, and the
next pop of the queue stores them.

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
    """Write the picture as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    direction LR"]
    lines += [f"    {was or '[*]'} --> {now or '[*]'}: {', '.join(by)}" for was, now, by in drawn()]
    return "\n".join(lines)


def markdown() -> str:
    """Write the text of docs/states.md."""
    return MADE.format("qmodel/contract/lifecycle.py") + PAGE.format(
        head=_head(),
        legend="\n".join(f"- {sentence}" for sentence in legend()),
        states=_states(),
        transitions=_transitions(),
        mermaid=mermaid(),
    )
