"""Runs histories on both sides, and finds, shrinks and counts the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qmodel.conformance.compare.shrink import shorten
from tools.oracle.compare import Heard, difference
from tools.oracle.histories import Drawer
from tools.oracle.sides import Side, Words


@dataclass(frozen=True, slots=True)
class Found:
    """A difference: its seed, the shortest history that shows it, and what each side said to the last call."""

    seed: str
    history: tuple[Words, ...]
    said: str

    def __str__(self) -> str:
        return "\n".join(
            [f"history {self.seed}", *(f"  {' '.join(map(_shown, one))}" for one in self.history), self.said]
        )


def _shown(word: str) -> str:
    return word if word and " " not in word and '"' not in word else f"'{word}'"


@dataclass(slots=True)
class Result:
    """What a run found."""

    histories: int = 0
    steps: int = 0
    equal: int = 0
    found: list[Found] = field(default_factory=list)
    commands: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)


def record(side: Side, drawer: Drawer, steps: int) -> tuple[list[Words], list[Heard]]:
    """Draw a history against the original; give the calls and what it said."""
    side.begin()
    history: list[Words] = []
    said: list[Heard] = []
    for _ in range(steps):
        words = drawer.step()
        heard = side.call(words)
        drawer.hear(words, heard)
        history.append(words)
        said.append(heard)
    return history, said


def first(original: Side, ours: Side, history: Sequence[Words]) -> tuple[int, str] | None:
    """Run a history on both sides; give the first step that differs, and how."""
    original.begin()
    ours.begin()
    for at, words in enumerate(history):
        said = difference(original.call(words), ours.call(words))
        if said is not None:
            return at, said
    return None


def against(side: Side, history: Sequence[Words], said: Sequence[Heard]) -> int | None:
    """Run a recorded history on our side; give the first step that differs."""
    side.begin()
    for at, (words, heard) in enumerate(zip(history, said, strict=True)):
        if difference(heard, side.call(words)) is not None:
            return at
    return None


def run(
    original: Side,
    ours: Side,
    draw: Callable[[str], Drawer],
    histories: int,
    steps: int,
    seed: str,
    most: int = 1,
    progress: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Compare so many histories; shrink the first `most` differences, and count all by their command."""
    result = Result()
    for at in range(histories):
        name = f"{seed}.{at}"
        history, said = record(original, draw(name), steps)
        result.commands.update(words[0] for words in history)
        result.refused.update(words[0] for words, heard in zip(history, said, strict=True) if heard.error is not None)
        where = against(ours, history, said)
        result.histories += 1
        result.steps += len(history)
        if where is None:
            result.equal += 1
        else:
            result.differing[history[where][0]] += 1
            if len(result.found) < most:
                result.found.append(_shrunk(original, ours, name, history[: where + 1]))
        progress(result)
    return result


def _shrunk(original: Side, ours: Side, name: str, history: Sequence[Words]) -> Found:
    def differs(one: Sequence[Words]) -> int | None:
        found = first(original, ours, one)
        return None if found is None else found[0]

    short = shorten(history, differs)
    found = first(original, ours, short)
    return Found(name, tuple(short), found[1] if found is not None else "the difference did not appear again")
