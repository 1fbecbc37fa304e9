"""What a form says: fields as text, and what they must be."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

from qmodel.present.durations import parse_duration
from qmodel.web.source import BadInput

MOST_BYTES = 1 << 18
"""Of a form; ids of all jobs that can be selected on a page take a tenth of it."""

MOST_FIELDS = 2000


class Form:
    """The fields of a form that was sent."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self.fields = dict(pairs)

    def text(self, name: str, default: str = "") -> str:
        """A text, without what stands around it."""
        return self.fields.get(name, "").strip() or default

    def needed(self, name: str) -> str:
        """A text that has to be given."""
        found = self.text(name)
        if not found:
            raise BadInput(f"The field '{name}' is empty.")
        return found

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field, each once."""
        return tuple(dict.fromkeys(value for one, value in self.pairs if one == name))

    def jids(self) -> tuple[str, ...]:
        """The jobs that are meant."""
        found = self.all("jid")
        if not found:
            raise BadInput("No job is selected.")
        return found

    def several(self, name: str) -> tuple[str, ...]:
        """Every value of a field of which there has to be one."""
        self.needed(name)
        return self.all(name)

    def whole(self, name: str) -> int:
        """A whole number that has to be given."""
        found = self.needed(name)
        if not found.removeprefix("-").isdecimal() or not found.isascii() or len(found) > 15:
            raise BadInput(f"{name} must be a whole number, not '{found[:40]}'.")
        return int(found)

    def whole_or_none(self, name: str) -> int | None:
        """A whole number, or None where nothing is written."""
        return self.whole(name) if self.text(name) else None

    def duration(self, name: str) -> int:
        """A duration in milliseconds that has to be given: 90 (seconds), 10m, 1h30m."""
        try:
            return parse_duration(self.needed(name).replace(" ", "").replace("min", "m"))
        except ValueError as error:
            raise BadInput(f"{name}: {error}.") from None

    def duration_or_none(self, name: str) -> int | None:
        """A duration, or None where nothing is written."""
        return self.duration(name) if self.text(name) else None


async def read(request: Request) -> Form:
    """Read a form, of a bounded size."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise BadInput(f"A form has at most {MOST_BYTES:,} bytes.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise BadInput("That is not a form as this server reads it (application/x-www-form-urlencoded).") from None
    return Form(pairs)
