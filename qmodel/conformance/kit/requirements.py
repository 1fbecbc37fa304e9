"""The requirements: what a binding must do, a sentence each, under ids that never change.

Those written here are about bindings: how calls are written, replies are read, and drivers behave. Those about what
each operation means, why it is refused, how a resend is answered and what forms replies have come from the catalogue.
A failure of the kit names the requirement that is broken; vectors name those that they touch.

The order is the order in which the kit tries them (`probes`): each builds upon those before it, so that the first one
that fails says what is wrong. Ids are never given twice, and the numbers in them need not follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from qmodel.contract import operations, replies
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import REASONS


class Requirement(NamedTuple):
    """A sentence of the contract, and the page with more about it."""

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
    ("DRIVER-1", _DRIVER, "A driver writes to its standard output one JSON object a line, and nothing else."),
    ("DRIVER-2", _DRIVER, "An answer carries the seq of its request; requests are answered once each, in order."),
    ("DRIVER-3", _DRIVER, "Every request is answered in time, and the answer is flushed."),
    ("DRIVER-4", _DRIVER, "A driver lives until `bye` or the end of its input, whatever it is asked."),
    ("DRIVER-5", _DRIVER, "A driver answers `hello` with the protocol that it speaks, who it is, and known features."),
    ("DRIVER-6", _DRIVER, "Every answer has the form that the schema gives for it."),
    ("DRIVER-7", _DRIVER, "A batch is answered with one result for each of its operations, the same as one by one."),
    ("DRIVER-8", _DRIVER, "An operation whose feature was announced in `hello` is executed, not skipped."),
    ("DRIVER-9", _DRIVER, "What an operation may be asked ends in a reply or a refusal; nothing else is raised."),
    ("NUMBER-1", _WIRE, "Whole numbers in replies stay whole numbers: not floats, not texts."),
    ("SPACE-1", _WIRE, "All that an operation touches lies under the prefix that it was given, and nowhere else."),
    ("READ-1", _SEMANTICS, "A read shows what is true at its moment: nothing that was read before is kept."),
    ("CALL-1", _WIRE, "Required arguments stand in the order of the catalogue."),
    ("NULL-1", _WIRE, "A reply of nothing is null: no empty text, no empty list, no error."),
    ("REFUSAL-1", _WIRE, "A reply that does not begin with OK is a refusal, and is told as one."),
    ("REFUSAL-2", _WIRE, "A refusal is told by its code, as the server gave it."),
    ("REFUSAL-3", _WIRE, "A refusal carries its facts, all of them, as texts, in their order."),
    ("TIME-1", _SEMANTICS, "The moment of an operation is the one that was given, in milliseconds."),
    ("TIME-2", _WIRE, "Durations are whole milliseconds."),
    ("TIME-3", _SEMANTICS, "Where no moment is given the server's clock says it: an empty text is written."),
    ("NUMBER-2", _WIRE, "Negative numbers keep their sign."),
    ("NUMBER-3", _WIRE, "Numbers of up to fourteen digits are written and read exactly, without an exponent."),
    ("LIST-1", _WIRE, "Every element of a list is written, and every element is read."),
    ("LIST-2", _WIRE, "Lists keep the order in which they are given, in calls and in replies."),
    ("SEND-1", _SEMANTICS, "An operation that is asked once is executed once; it is sent again only after a failure."),
    ("SEND-2", _SEMANTICS, "The request id that an operation is given is the one that is sent, each time."),
    ("SEND-3", _SEMANTICS, "Different operations never share a request id that nobody gave them."),
    ("CALL-2", _WIRE, "An argument that is not given is not written: the server knows what it is then."),
    ("CALL-3", _WIRE, "A list that is empty on purpose is written `no <name>`; left out it means something else."),
    ("FLAG-1", _WIRE, "A flag is written 1 or 0."),
    ("FLAG-2", _WIRE, "A flag in a reply is true or false."),
    ("JOB-1", _WIRE, "A job is read whole: each of its fields from its place in the record."),
    ("JOB-6", _WIRE, "Of a job's seven elements the last four may be left out; they are empty then."),
    ("JOB-2", _WIRE, "A job's state is the one before its record, true at the moment; the one inside may be older."),
    ("JOB-3", _WIRE, "Data of more than 1024 bytes stand apart from the record."),
    ("JOB-4", _WIRE, "A line of a job's log is read as it was written: line ends, backslashes and all."),
    ("TEXT-1", _WIRE, "Texts are UTF-8, and sizes count bytes."),
    ("TEXT-2", _WIRE, "Texts hold any character: NUL, line ends, tabs and other controls too."),
    ("TEXT-3", _WIRE, "Texts keep the blanks at their beginning and end."),
    ("TEXT-4", _WIRE, "Texts are written and read whole, however long."),
    ("TEXT-5", _SEMANTICS, "Data and results are opaque: what looks like JSON or a number is a text like any other."),
    ("NEST-1", _WIRE, "An operation inside another one is written with its size, and all of its arguments."),
    ("LEASE-1", _SEMANTICS, "A pop gives jobs with the token of their lease, which is what their worker keeps."),
    ("LEASE-2", _SEMANTICS, "Whoever finishes a job names the token of its lease, the very one that was given."),
    ("LEASE-3", _SEMANTICS, "Every claim makes a new token; an older one of the same job is another lease."),
    ("LEASE-4", _SEMANTICS, "A late worker is told LOCK_LOST, and has changed nothing."),
    ("JOB-5", _WIRE, "A job that was worked on is read whole: its result, its progress, and its failure."),
    ("NUMBER-4", _WIRE, "Numbers that are not whole are read to all of their seventeen digits."),
    ("MIXED-1", _SEMANTICS, "What one binding writes, every other binding reads the same."),
)  # fmt: skip


def _of_catalogue() -> Iterator[Requirement]:
    for shape in replies.SHAPES:
        users = ", ".join(f"`{spec.name}`" for spec in CATALOGUE.values() if spec.reply == shape)
        sentence = f"What {users} replies is read whole: `{shape}`, as the table of replies has it."
        yield Requirement(f"REPLY-{shape}", sentence, "docs/wire.md#a-reply")
    for kind, why in re.findall(r"^- `(\w+)`: (.+)$", operations.__doc__ or "", re.M):
        sentence = f"Sent again with the same request id or token, it is answered the same ({kind}): {why}"
        yield Requirement(f"RESEND-{kind}", sentence, "docs/semantics.md#sending-again")
    for code, reason in REASONS.items():
        said = re.sub("{(.+?)}", r"<\1>", reason.sentence)
        sentence = f"Refused with {code}, and nothing changed: {said}"
        yield Requirement(f"REFUSE-{code}", sentence, "docs/catalogue.md#refusals")
    for spec in CATALOGUE.values():
        yield Requirement(f"OP-{spec.name}", spec.summary, f"docs/catalogue.md#{spec.name}")


REQUIREMENTS: dict[str, Requirement] = {
    found.id: found
    for found in (*(Requirement(id, sentence, where) for id, where, sentence in _WRITTEN), *_of_catalogue())
}
"""All requirements by id."""


def of_step(operation: str, refusal: str = "", *, again: bool = False) -> list[str]:
    """List the requirements that one step of a history touches, the most specific first."""
    found = [f"OP-{operation}", f"REPLY-{CATALOGUE[operation].reply}"]
    if again:
        found.insert(0, f"RESEND-{CATALOGUE[operation].resend}")
    if refusal:
        found.insert(0, f"REFUSE-{refusal}")
    return found
