"""Fresh seeds: campaigns with new seeds on one subject, for a given processor time.

Long histories show faults that short ones do not, and the other way round, so the campaigns differ in size; some call
the dialect of qless. Some check the laws too, which find rules that are wrong on both sides. The seed is new each time,
so it must be printed: with it, every campaign can be run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, cycle
from pathlib import Path
from typing import Any, NamedTuple

from qmodel.conformance.campaign import campaign
from qmodel.conformance.dialects import json_lines as dialect_lines
from qmodel.conformance.dialects import runner as dialect_runner
from qmodel.conformance.dialects import subjects as dialect_subjects
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.conformance.subjects.named import Opening


class Size(NamedTuple):
    """The size of a campaign: histories, steps in each, the dialect, if it has one, and whether laws are checked."""

    examples: int
    steps: int
    dialect: str = ""
    lawful: bool = False


SIZES = (
    Size(25, 60),
    Size(100, 12),
    Size(15, 60, "qless", True),
    Size(4, 300),
    Size(25, 60, lawful=True),
    Size(10, 150),
)
"""The sizes of successive campaigns. Each takes a few seconds."""


class Campaign(NamedTuple):
    """A campaign that was run. `text` and `vector` show the first difference; they are empty if there was none."""

    subject: str
    seed: str
    size: Size
    histories: int
    steps: int
    seconds: float
    text: str = ""
    vector: str = ""

    @property
    def again(self) -> str:
        """The command that runs it again."""
        command = f"qmodel conformance run --examples {self.size.examples} --steps {self.size.steps} --seed {self.seed}"
        command += f" --subject {self.subject}"
        command += f" --dialect {self.size.dialect}" if self.size.dialect else ""
        return f"{command} --laws" if self.size.lawful else command


def campaigns(subject: str, seed: str, seconds: float) -> Iterator[Campaign]:
    """Run campaigns for so many seconds of processor time of this process, or until one finds a difference."""
    until = time.process_time() + seconds
    url = Opening(subject).url()
    with closing(open_subject(url)) as engine, closing(dialect_subjects.open_subject(url)) as dialect:
        runs = {"": _engine(subject, engine), "qless": _dialect(subject, dialect)}
        for number, size in zip(count(), cycle(SIZES)):
            done = runs[size.dialect](f"{seed}-{number}", size)
            yield done
            if done.text or time.process_time() >= until:
                return


def _engine(name: str, subject: Any) -> Callable[[str, Size], Campaign]:
    def run(seed: str, size: Size) -> Campaign:
        summary = campaign.run(size.examples, seed, subject, steps=size.steps, lawful=size.lawful)
        done = Campaign(name, seed, size, summary.histories, summary.steps, summary.seconds)
        for failure in summary.failures:
            operation = failure.history[failure.difference.at].op.spec.name
            what = f"its {failure.difference.what} after {operation} (seed {failure.seed})"
            return done._replace(text=str(failure), vector=_vector(name, what, json_lines.dumps(failure.history)))
        return done

    return run


def _dialect(name: str, subject: Any) -> Callable[[str, Size], Campaign]:
    def run(seed: str, size: Size) -> Campaign:
        summary = dialect_runner.run(size.examples, seed, subject, steps=size.steps, lawful=size.lawful)
        done = Campaign(name, seed, size, summary.histories, summary.steps, summary.seconds)
        for found in summary.failures:
            what = f"the dialect {size.dialect} (seed {seed})"
            return done._replace(text=str(found), vector=_vector(name, what, dialect_lines.dumps(found.history)))
        return done

    return run


def _vector(subject: str, what: str, lines: str) -> str:
    return f"# {subject} differed from the model in {what}.\n{lines}"


def keep(folder: Path, found: Campaign) -> Path:
    """Write the vector of a difference into a folder; a test replays the files there."""
    folder.mkdir(parents=True, exist_ok=True)
    ending = f".{found.size.dialect}.jsonl" if found.size.dialect else ".jsonl"
    path = folder / f"{found.subject.partition(':')[0]}-{found.seed}{ending}"
    path.write_text(found.vector, encoding="utf-8")
    return path


class Work:
    """The work of one process: all campaigns on one subject."""

    def __init__(self, seed: str, seconds: float) -> None:
        self.seed = seed
        self.seconds = seconds

    def __call__(self, subject: str) -> list[Campaign]:
        return list(campaigns(subject, self.seed, self.seconds))
