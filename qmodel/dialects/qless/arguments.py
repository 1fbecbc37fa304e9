"""Check the arguments of commands; refuse wrong ones with qless's messages."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.contract.arguments import LONGEST_MS, MOST
from qmodel.contract.operations import Operation
from qmodel.contract.replies import Page
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.session import QlessError, Session


def need(command: str, name: str, value: str | None) -> str:
    """Give an argument; refuse if it is missing."""
    if value is None:
        raise QlessError(f'{command}(): Arg "{name}" missing')
    return value


def need_jid(jid: str | None) -> str:
    """Give a job's id; refuse if it is missing."""
    if jid is None:
        raise QlessError("Job(): no jid provided")
    return jid


def need_queue(queue: str | None) -> str:
    """Give a queue's name; refuse if it is missing."""
    if queue is None:
        raise QlessError("Queue(): no queue name provided")
    return queue


def need_data(command: str, data: str | None) -> str:
    """Give a job's data; refuse if they are missing or not JSON."""
    if data is None or not texts.is_json(data) or data.strip(" \t\r\n") == "false":  # `false` is refused by qless too
        raise QlessError(f'{command}(): Arg "data" missing or not JSON: {texts.shown(data)}')
    return data


def delay_of(command: str, text: str | None) -> int:
    """Parse a delay in seconds to milliseconds; a negative one counts as 0."""
    found = texts.number(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "delay" not a number: {texts.shown(text)}')
    if found * 1000 > LONGEST_MS:
        raise QlessError(f'{command}(): Arg "delay" must be at most {LONGEST_MS // 1000} seconds: {texts.shown(text)}')
    return max(texts.milliseconds(found), 0) if found > 0 else 0


def whole_of(command: str, name: str, text: str | None) -> int:
    """Parse a whole number, or refuse."""
    found = texts.whole(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "{name}" not a number: {texts.shown(text)}')
    return found


def strings_of(command: str, name: str, text: str | None) -> tuple[str, ...]:
    """Parse a JSON list of texts, or refuse."""
    found = texts.strings(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "{name}" not a JSON list of texts: {texts.shown(text)}')
    return found


def options_of(command: str, options: tuple[str, ...]) -> dict[str, str]:
    """Read names and values; the last value of a repeated name counts."""
    if len(options) % 2:
        raise QlessError(f"{command}(): Odd number of additional args: {len(options)}")
    return dict(zip(options[::2], options[1::2], strict=True))


def first(arguments: tuple[str, ...]) -> str | None:
    """Give the first of some arguments, or None."""
    return arguments[0] if arguments else None


def window(
    command: str, first: str, second: str, offset: str | None = "0", count: str | None = "25"
) -> tuple[int, int]:
    """Parse the begin and the size of a page."""
    return whole_of(command, first, offset), whole_of(command, second, count)


def limited(begin: int, size: int) -> tuple[int, int]:
    """The part of a list that a page names as Redis reads LIMIT: no negative size limits, and nothing is before 0."""
    return max(begin, 0), 0 if begin < 0 else MOST if size < 0 else min(size, MOST)


def ranged(begin: int, size: int, total: int) -> tuple[int, int]:
    """The part of a list that a page names as Redis reads a range: negative positions count from the end."""
    last = begin + size - 1
    begin = max(begin + total, 0) if begin < 0 else begin
    return begin, min(max((last + total if last < 0 else last) - begin + 1, 0), MOST)


def page(session: Session, command: str, read: Callable[[int, int], Operation], begin: int, size: int) -> Page:
    """Read a range of a list of ids."""
    if begin < 0 or size < 1:
        total = session.ask(command, read(0, 1)).total
        begin, size = ranged(begin, size, total)
        if size == 0:
            return Page(total, ())
    found: Page = session.ask(command, read(begin, min(size, MOST)))
    return found
