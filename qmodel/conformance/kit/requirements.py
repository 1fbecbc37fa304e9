"""The requirements: what a binding must do, one sentence each, under ids that never change.

The requirements written here are about bindings: how to write calls, how to read replies, how drivers behave. The
requirements about operations, refusals, resends and forms of replies come from the catalogue. A failure of the kit
names the violated requirement; vectors name the requirements that they test.

The order is the order in which the kit tests them (`probes`): each builds on the earlier ones, so the first failure
names the fault. An id is never reused, and numbers may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from qmodel.contract import operations, replies
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import REASONS


class Requirement(NamedTuple):
    """A sentence of the contract, and the page that explains it."""

    id: str
    sentence: str
    where: str

    @property
    def text(self) -> str:
        """The whole requirement in one line."""
        return f"{self.id}: {self.sentence} ({self.where})"


_WIRE = "docs/wire.md"
_DRIVER = "docs/driver.md"
_SEMANTICS = "docs/semantics.md"

_WRITTEN = (
    ("DRIVER-1", _DRIVER, "A driver writes one JSON object per line to its standard output, and nothing else."),
    ("DRIVER-2", _DRIVER, "An answer has the seq of its request; each request is answered once, in order."),
    ("DRIVER-3", _DRIVER, "Every request is answered within the time limit, and the answer is flushed."),
    ("DRIVER-4", _DRIVER, "A driver runs until `bye` or the end of its input; no request ends it earlier."),
    ("DRIVER-5", _DRIVER, "A driver answers `hello` with its protocol version, its name, and its features."),
    ("DRIVER-6", _DRIVER, "Every answer conforms to its schema."),
    ("DRIVER-7", _DRIVER, "A batch is answered with one result per operation, as if each had been sent alone."),
    ("DRIVER-8", _DRIVER, "An operation whose feature was announced in `hello` is executed, not skipped."),
    ("DRIVER-9", _DRIVER, "Every operation ends with a reply or a refusal; no other error is raised."),
    ("NUMBER-1", _WIRE, "Whole numbers in replies are read as whole numbers, not as floats or texts."),
    ("SPACE-1", _WIRE, "An operation reads and writes only keys under the prefix that it was given."),
    ("READ-1", _SEMANTICS, "A read shows the state at its moment: a binding does not cache earlier reads."),
    ("CALL-1", _WIRE, "Required arguments are written in the order of the catalogue."),
    ("NULL-1", _WIRE, "An empty reply is null: not an empty text, not an empty list, not an error."),
    ("REFUSAL-1", _WIRE, "A reply that does not begin with OK is a refusal, and is reported as one."),
    ("REFUSAL-2", _WIRE, "A refusal is reported with the server's code."),
    ("REFUSAL-3", _WIRE, "A refusal is reported with all its facts, as texts, in their order."),
    ("TIME-1", _SEMANTICS, "The moment of an operation is the given one, in milliseconds."),
    ("TIME-2", _WIRE, "Durations are whole milliseconds."),
    ("TIME-3", _SEMANTICS, "If no moment is given, an empty text is written, and the server's clock is used."),
    ("NUMBER-2", _WIRE, "Negative numbers keep their sign."),
    ("NUMBER-3", _WIRE, "Numbers of up to fourteen digits are written and read exactly, without an exponent."),
    ("LIST-1", _WIRE, "Every element of a list is written, and every element is read."),
    ("LIST-2", _WIRE, "Lists keep the order in which they are given, in calls and in replies."),
    ("SEND-1", _SEMANTICS, "An operation is sent once; it is sent again only after a failure."),
    ("SEND-2", _SEMANTICS, "A given request id is sent unchanged, each time the operation is sent."),
    ("SEND-3", _SEMANTICS, "Different operations never share a request id that the binding made."),
    ("CALL-2", _WIRE, "An argument that is not given is not written: the server decides its value."),
    ("CALL-3", _WIRE, "A given empty list is written `no <name>`; an omitted list has another meaning."),
    ("FLAG-1", _WIRE, "A flag is written 1 or 0."),
    ("FLAG-2", _WIRE, "A flag in a reply is true or false."),
    ("JOB-1", _WIRE, "All fields of a job are read, each from its place in the record."),
    ("JOB-6", _WIRE, "A job has seven elements; the last four may be missing and are empty then."),
    ("JOB-2", _WIRE, "A job's state is the element before its record; the state inside the record may be older."),
    ("JOB-3", _WIRE, "Data of more than 1024 bytes are an element of their own, outside the record."),
    ("JOB-4", _WIRE, "A line of a job's log is read as it was written, with line ends and backslashes."),
    ("TEXT-1", _WIRE, "Texts are UTF-8, and sizes count bytes."),
    ("TEXT-2", _WIRE, "Texts may contain any character, also NUL, line ends, tabs and other controls."),
    ("TEXT-3", _WIRE, "Texts keep blanks at their beginning and end."),
    ("TEXT-4", _WIRE, "Texts of any length are written and read completely."),
    ("TEXT-5", _SEMANTICS, "Data and results are opaque: a text that looks like JSON or a number is not changed."),
    ("NEST-1", _WIRE, "An operation inside another one is written with its size and all its arguments."),
    ("LEASE-1", _SEMANTICS, "A pop returns jobs with the token of their lease; the worker keeps the token."),
    ("LEASE-2", _SEMANTICS, "A worker finishes a job with the token that the pop returned."),
    ("LEASE-3", _SEMANTICS, "Every pop of a job makes a new token; an older token belongs to another lease."),
    ("LEASE-4", _SEMANTICS, "An operation with a lost lease is refused with LOCK_LOST and changes nothing."),
    ("JOB-5", _WIRE, "The result, progress and failure of a job are read."),
    ("NUMBER-4", _WIRE, "Numbers that are not whole are read with all seventeen digits."),
    ("MIXED-1", _SEMANTICS, "What one binding writes, every other binding reads the same."),
)  # fmt: skip


def _of_catalogue() -> Iterator[Requirement]:
    for shape in replies.SHAPES:
        users = ", ".join(f"`{spec.name}`" for spec in CATALOGUE.values() if spec.reply == shape)
        sentence = f"The reply of {users} is read completely: `{shape}` in the table of replies."
        yield Requirement(f"REPLY-{shape}", sentence, "docs/wire.md#a-reply")
    for kind, why in re.findall(r"^- `(\w+)`: (.+)$", operations.__doc__ or "", re.M):
        sentence = f"An operation sent again with the same request id or token gets the same reply ({kind}): {why}"
        yield Requirement(f"RESEND-{kind}", sentence, "docs/semantics.md#sending-again")
    for code, reason in REASONS.items():
        said = re.sub("{(.+?)}", r"<\1>", reason.sentence)
        sentence = f"An operation refused with {code} changes nothing: {said}"
        yield Requirement(f"REFUSE-{code}", sentence, "docs/catalogue.md#refusals")
    for spec in CATALOGUE.values():
        yield Requirement(f"OP-{spec.name}", spec.summary, f"docs/catalogue.md#{spec.name}")


REQUIREMENTS: dict[str, Requirement] = {
    found.id: found
    for found in (*(Requirement(id, sentence, where) for id, where, sentence in _WRITTEN), *_of_catalogue())
}
"""All requirements by id."""


def of_step(operation: str, refusal: str = "", *, again: bool = False) -> list[str]:
    """List the requirements that one step of a history tests, the most specific first."""
    found = [f"OP-{operation}", f"REPLY-{CATALOGUE[operation].reply}"]
    if again:
        found.insert(0, f"RESEND-{CATALOGUE[operation].resend}")
    if refusal:
        found.insert(0, f"REFUSE-{refusal}")
    return found
