"""The kinds of actions, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.errors import RefusedError
from qmodel.present.fields import BadInput, Fields
from qmodel.present.numbers import counted

Tell = Callable[[Fields, list[Any]], str]


@dataclass(frozen=True)
class Action:
    """An action: its button's label, the question before it, and a box beside the question: its field and its text."""

    label: str
    question: str = ""
    box: tuple[str, str] = ("", "")


@dataclass(frozen=True, kw_only=True)
class Once(Action):
    """An action of a few operations. `look` reads what `choose` needs; without it `make` knows the operations."""

    tell: Tell
    make: Callable[[Fields], Sequence[ops.Operation]] = lambda fields: ()
    look: Callable[[Fields], ops.Operation] | None = None
    choose: Callable[[Fields, Any], Sequence[ops.Operation]] = lambda fields, seen: ()


class Step(NamedTuple):
    """The outcome of a step: how many it changed, how many are left, whether it goes on, and from which cursor."""

    done: int
    left: int
    more: bool
    cursor: str = ""


@dataclass(frozen=True, kw_only=True)
class Stepwise(Action):
    """An action of many steps: the operation of a step, from a cursor; the meaning of its reply; the sentence."""

    step: Callable[[Fields, str], ops.Operation]
    read: Callable[[Any], Step]
    tell: Callable[[Fields, Step], str]


@dataclass(frozen=True, kw_only=True)
class Signal(Action):
    """An action that workers hear within two seconds; it is a method of `client.workers`."""

    signal: Literal["quiet", "resume", "stop"]
    told: str

    def send(self, workers: Any, fields: Fields) -> Any:
        """Send it by the workers of a client; await the result of an asynchronous client."""
        names = fields.several("worker")
        if self.signal == "stop":
            return workers.stop(*names, now=bool(fields.text("now")))
        return workers.quiet(*names) if self.signal == "quiet" else workers.resume(*names)

    def tell(self, fields: Fields) -> str:
        """Say what the workers were told."""
        names = fields.all("worker")
        return f"{names[0]} is {self.told}." if len(names) == 1 else f"{counted(len(names), 'worker')} are {self.told}."


def question(action: Action, fields: Fields) -> str:
    """Fill in the question before an action; nothing if it has none. Raises BadInput for an empty field."""
    given = {"dependency": "any other job", **fields.fields}
    given |= {"jobs": fields.named("jid", "job"), "workers": fields.named("worker", "worker")}
    try:
        return action.question.format(**given)
    except KeyError as missing:
        raise BadInput(f"The field {missing} is empty.") from None


def outcome(action: Once, fields: Fields, found: Sequence[Any]) -> str:
    """Describe what operations changed, by their replies. The refusal of a single operation is raised."""
    if len(found) == 1 and isinstance(found[0], RefusedError):
        raise found[0]
    refused = [one for one in found if isinstance(one, RefusedError)]
    sentence = action.tell(fields, [one for one in found if not isinstance(one, RefusedError)])
    return f"{sentence} {len(refused):,} refused: {refused[0].sentence}" if refused else sentence


# ---- sentences


def said(text: str) -> Tell:
    """Make a sentence of the fields."""
    return lambda fields, found: text.format(**fields.fields)


def either(changed: str, unchanged: str) -> Tell:
    """Make the sentence of operations that reply whether they changed something."""
    return lambda fields, found: (changed if sum(found) else unchanged).format(**fields.fields)


def and_left(done: str) -> Callable[[Fields, Step], str]:
    """Make the sentence that says how many jobs were changed, and how many are left."""
    return lambda fields, step: f"{counted(step.done, 'job')} {done}, {step.left:,} left."


# ---- steps


def down_to(left: int) -> Step:
    """Read the reply of an operation that says how many are left."""
    return Step(0, left, left > 0)


def of_forgotten(reply: replies.Forgotten) -> Step:
    """Read the reply of an operation that forgets sub-requests: how many jobs it deleted, and how many are left."""
    return Step(reply.deleted, reply.left, reply.left > 0)


def up_to(count: int) -> Step:
    """Read the reply of an operation that says how many it changed."""
    return Step(count, 0, count > 0)


def of_bulk(reply: replies.Bulk | replies.Cleaned) -> Step:
    """Read the reply of an operation that continues from a cursor."""
    return Step(reply.done, reply.passed, bool(reply.cursor), reply.cursor)
