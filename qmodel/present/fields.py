"""What an action is about: fields as text, read as what they must be."""

from __future__ import annotations

from collections.abc import Iterable

from qmodel.contract.redaction import is_shown
from qmodel.present.durations import parse_duration
from qmodel.present.numbers import counted

SHOWN_ONLY = (
    "These data are redacted: storing them would replace the values that are not shown. Change them in a program."
)


class BadInput(ValueError):
    """An input that cannot be read; the text says why, and how it is written."""


class Fields:
    """The fields of an action: of a form that was sent, or given by a key."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = list(pairs)
        self.fields = dict(self.pairs)

    def text(self, name: str, default: str = "") -> str:
        """Give a text, stripped; the default if it is missing or empty."""
        return self.exact(name).strip() or default

    def exact(self, name: str) -> str:
        """Give a text as it was sent: a name may begin or end with blanks, and without them it is another one's."""
        return self.fields.get(name, "")

    def data(self) -> str:
        """Give the data of a job, with the line ends that they had before a browser sent them; raise BadInput if values
        were left out of them to show them.
        """
        found = self.text("data").replace("\r\n", "\n")
        if is_shown(found):
            raise BadInput(SHOWN_ONLY)
        return found

    def needed(self, name: str) -> str:
        """Give a text as it was sent; raise BadInput if it is empty."""
        found = self.exact(name)
        if not found:
            raise BadInput(f"The field '{name}' is empty.")
        return found

    def all(self, name: str) -> tuple[str, ...]:
        """Give the values of a field, without repetitions."""
        return tuple(dict.fromkeys(value for one, value in self.pairs if one == name))

    def jids(self) -> tuple[str, ...]:
        """Give the ids of the jobs; raise BadInput if there is none."""
        found = self.all("jid")
        if not found:
            raise BadInput("No job is selected.")
        return found

    def several(self, name: str) -> tuple[str, ...]:
        """Give every value of a field; raise BadInput if there is none."""
        self.needed(name)
        return self.all(name)

    def named(self, name: str, noun: str) -> str:
        """Name the values of a field in a sentence.

        >>> Fields([("jid", "a")]).named("jid", "job"), Fields([("jid", "a"), ("jid", "b")]).named("jid", "job")
        ('job a', '2 jobs')
        """
        found = self.all(name)
        return f"{noun} {found[0]}" if len(found) == 1 else counted(len(found), noun)

    def whole(self, name: str) -> int:
        """Give a whole number; raise BadInput if it is empty or something else."""
        found = self.needed(name).strip()
        if not found.removeprefix("-").isdecimal() or not found.isascii() or len(found) > 15:
            raise BadInput(f"{name} must be a whole number, not '{found[:40]}'.")
        return int(found)

    def whole_or_none(self, name: str) -> int | None:
        """Give a whole number, or None if the field is empty."""
        return self.whole(name) if self.text(name) else None

    def duration(self, name: str) -> int:
        """Give a duration in milliseconds, written as 90 (seconds), 10m or 1h30m; raise BadInput if it is empty."""
        try:
            return parse_duration(self.needed(name).replace(" ", "").replace("min", "m"))
        except ValueError as error:
            raise BadInput(f"{name}: {error}.") from None

    def duration_or_none(self, name: str) -> int | None:
        """Give a duration in milliseconds, or None if the field is empty."""
        return self.duration(name) if self.text(name) else None
