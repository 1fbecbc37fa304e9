"""Count what each step of the directed histories costs: `python -m tools.commands` writes the record.

How many commands the library calls, and which of its shorter ways it takes, is what a step costs the server, whatever
its load. No reply shows it, and a longer way gives the same replies as a shorter one. So both are kept in
tests/cost/commands.txt: a test compares them, and `./dev mutate` counts a mutant of the library as noticed if a step
calls another number of commands, or takes another way.

Beside the record stands a digest of it and of the code that it comes from: as long as that is the same, to count again
would give the same.

The library keeps texts and rows of plain calls from call to call. What it has kept is the same for each count: it
begins anew before every second step, and in rows of plain calls only at their start (`replay.rhythm`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, zip_longest
from pathlib import Path
from textwrap import fill
from typing import Final, NamedTuple

from qmodel.conformance.code_digest import Stamp
from qmodel.conformance.histories.directed.load import directed
from qmodel.conformance.histories.script import Named
from qmodel.wire import codec
from tools.mutation.faults import Call, gathered
from tools.mutation.loaded import Cost, Loaded
from tools.mutation.replay import PAIR, is_gathered, rhythm

ROOT: Final = Path(__file__).parents[1]
FILE: Final = ROOT / "tests" / "cost" / "commands.txt"
STAMP: Final = Stamp(FILE.with_suffix(".sha256"), ROOT, (
    "lua/**/*.lua", "qmodel/backends/bundle.py", "qmodel/backends/embedded/**/*.py",
    "qmodel/conformance/histories/**/*.py", "qmodel/conformance/histories/**/*.txt",
    "qmodel/contract/**/*.py", "qmodel/model/**/*.py", "qmodel/wire/*.py",
    "tests/cost/commands.txt", "tools/commands.py", "tools/mutation/*.py",
))  # fmt: skip
"""The stamp of the record and of what decides what it says."""

HEAD: Final = """\
Made by `python -m tools.commands`: how many commands the library calls in each step of the directed histories, and
which shorter way it takes: p plain, b bare, B from bare to plain, g in a group; verbs have no letter. `put 5p 4b*59`
are sixty puts: the first takes five commands as a plain call, and each of the others four as a bare one.
"""

_COST: Final = re.compile(r"(\d+)([a-zB]*)(?:\*(\d+))?")


class Count(NamedTuple):
    """A step's operation and what it costs."""

    operation: str
    cost: Cost


def counts(loaded: Loaded, named: Named) -> dict[str, list[Count]]:
    """Execute a history, also with several operations in a call if it is recorded so; count what each call costs."""
    found = {named.name: _executed(loaded, _calls(named), *rhythm(named))}
    if is_gathered(named):
        found[f"gathered {named.name}"] = _executed(loaded, gathered(named.steps), PAIR, False)
    return found


def _calls(named: Named) -> Iterator[Call]:
    for step in named.steps:
        with suppress(codec.Unencodable):
            yield Call(step, codec.encode(step.op, step.now))


def _executed(loaded: Loaded, calls: Iterable[Call], length: int, apart: bool) -> list[Count]:
    found = list[Count]()
    loaded.set({})
    for step, args, *_ in calls:
        loaded.prepare(len(found) % length == 0, apart)
        loaded.call(step, args)
        found.append(Count(step.op.spec.name, loaded.cost()))
    return found


def show(found: Mapping[str, Sequence[Count]]) -> str:
    """Write the record of these histories."""
    return HEAD + "".join(f"\n## {name}\n{fill(_line(of), 120)}\n" for name, of in found.items())


def _line(found: Sequence[Count]) -> str:
    return ", ".join(f"{name} {_runs(run)}" for name, run in groupby(found, lambda one: one.operation))


def _runs(run: Iterator[Count]) -> str:
    lengths = ((text, len(list(same))) for text, same in groupby(_text(one.cost) for one in run))
    return " ".join(f"{text}*{times}" if times > 1 else text for text, times in lengths)


def _text(cost: Cost) -> str:
    return f"{cost.commands}{cost.ways}"


def read(text: str | None = None) -> dict[str, list[Count]]:
    """Read the record."""
    _, *parts = re.split(r"^## ", text if text is not None else FILE.read_text(encoding="utf-8"), flags=re.M)
    pairs = (part.split("\n", 1) for part in parts)
    return {name: list(_counts(line)) for name, line in pairs}


def _counts(line: str) -> Iterator[Count]:
    for group in " ".join(line.split()).split(", "):
        operation, *runs = group.split(" ")
        for commands, ways, times in _COST.findall(" ".join(runs)):
            yield from [Count(operation, Cost(int(commands), ways))] * int(times or 1)


def differences(name: str, recorded: Sequence[Count], found: Sequence[Count]) -> list[str]:
    """Say which steps of a history cost something else than is recorded."""
    pairs = enumerate(zip_longest(recorded, found), 1)
    return [
        f"{name}, step {at}: {_said(one)} recorded, {_said(other)} now" for at, (one, other) in pairs if one != other
    ]


def _said(one: Count | None) -> str:
    return f"{one.operation} for {_text(one.cost)}" if one else "nothing"


def main() -> None:
    """Write the record, and say what has changed."""
    before = read() if FILE.exists() else {}
    loaded = Loaded({})
    found = {name: of for named in directed() for name, of in counts(loaded, named).items()}
    for name, of in found.items():
        for line in differences(name, before.get(name, of), of):
            print(line)
    FILE.write_text(show(found), encoding="utf-8")
    STAMP.renew()


if __name__ == "__main__":
    main()
