"""Reports of a failure: a transcript to read, a vector to keep, a test to paste."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from qmodel.conformance.compare.runner import Difference
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.base import Crash, History, ModelSubject, Seen, observe
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.contract.replies import Job
from qmodel.present.numbers import counted

MOST_EVENTS = 30
LONGEST = 2000
"""The longest line of a transcript, in characters."""


@dataclass(slots=True)
class Failure:
    """A history on which a subject differs from the model: as drawn, and shrunk."""

    subject: str
    seed: str
    drawn: History
    history: History
    difference: Difference

    def __str__(self) -> str:
        parts = (
            f"{self.subject} {_what(self.difference)}"
            f" (seed {self.seed}, {counted(len(self.drawn), 'step')}, shrunk to {len(self.history)})",
            transcript(self.history, self.difference, self.subject),
            "As a vector:\n\n" + json_lines.dumps(self.history).rstrip(),
            "As a test:\n\n" + snippet(self.history, self.difference).rstrip(),
        )
        return "\n\n".join(parts)


def _what(difference: Difference) -> str:
    """Say what is wrong."""
    if difference.what == "laws":
        return "does as the model, and both break a law"
    return f"differs from the model in its {difference.what}"


def transcript(history: History, difference: Difference, subject: str = "subject") -> str:
    """Show the steps with the model's answers, up to the first step where the subject differs."""
    lines = list(lines_of(history[: difference.at + 1]))
    if difference.what == "laws":
        lines.append(f"  here {subject} and the model break a law:")
    else:
        lines.append(f"  here {subject} differs in its {difference.what} (model's != {subject}'s):")
    lines += [f"    {path}" for path in difference.paths[:20]]
    if len(difference.paths) > 20:
        lines.append(f"    and {len(difference.paths) - 20} more")
    return "\n".join(lines)


def lines_of(history: History, seen: Iterable[Seen] | None = None) -> list[str]:
    """List the steps of a history, and under each step its events and its outcome."""
    lines = []
    for (now, op), one in zip(history, seen or observe(ModelSubject(), history, 10**9), strict=False):
        lines.append(_short(f"{now:>6} {call(op)}"))
        for event in one.events[:MOST_EVENTS]:
            facts = " ".join(f"{name}={_text(fact)}" for name, fact in event.named.items())
            lines.append(f"       {event.seq:>4} {event.event} {facts}")
        if len(one.events) > MOST_EVENTS:
            lines.append(f"            and {len(one.events) - MOST_EVENTS} more events")
        lines.append(_short(f"       -> {outcome(one.outcome)}"))
    return lines


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}... ({len(line)} characters)"


def call(op: Operation) -> str:
    """Write an operation as Python, without the arguments that have their default."""
    values = []
    for argument in op.spec.arguments:
        value = getattr(op, argument.name)
        if argument.required:
            values.append(_value(value))
        elif value != argument.default or type(value) is not type(argument.default):
            values.append(f"{argument.name}={_value(value)}")
    return f"{type(op).__name__}({', '.join(values)})"


def _value(value: Any) -> str:
    if isinstance(value, Operation):
        return call(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_value, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def outcome(found: Any) -> str:
    """Write a reply or refusal in one line; a job is shown by its id, state, queue and token."""
    if isinstance(found, Refusal):
        return " ".join(("refused:", found.code, *(_text(fact) for fact in found.facts)))
    if isinstance(found, Crash):
        return f"CRASH {found.error}"
    if isinstance(found, Job):
        return f"{found.jid} ({found.state} in {_text(found.queue)}, token {found.token})"
    if isinstance(found, tuple) and found and all(isinstance(one, Job) for one in found):
        return ", ".join(map(outcome, found))
    return repr(found)


def _text(value: object) -> str:
    return str(value) if str(value).isalnum() else repr(value)


def snippet(history: History, difference: Difference | None = None) -> str:
    """Write a test for pytest that runs a history on the fixture `subject`."""
    name = history[-1].op.spec.name if history else "nothing"
    what = f"_{difference.what}" if difference is not None else ""
    classes = sorted({type(op).__name__ for op in _all_operations(history)})
    steps = "".join(f"            Step({now}, {call(op)}),\n" for now, op in history)
    return (
        "from qmodel.conformance.compare.agree import agree\n"
        "from qmodel.conformance.subjects.base import Step\n"
        f"from qmodel.contract.operations import {', '.join(classes)}\n\n\n"
        f"def test_{name}{what}_agrees(subject):\n"
        f"    agree(\n        subject,\n        [\n{steps}        ],\n    )\n"
    )


def _all_operations(history: History) -> Iterable[Operation]:
    for _, op in history:
        yield op
        inner = getattr(op, "jobs", ())
        yield from ((one for one in inner if isinstance(one, Operation)) if type(inner) is tuple else ())
