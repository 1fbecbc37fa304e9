"""What the arguments of a command must be, and qless's sentences where they are not."""

from __future__ import annotations

from qmodel.contract.arguments import LONGEST_MS, MOST
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.session import QlessError


def need(command: str, name: str, value: str | None) -> str:
    """An argument, or refuse when it is missing."""
    if value is None:
        raise QlessError(f'{command}(): Arg "{name}" missing')
    return value


def need_jid(jid: str | None) -> str:
    """A job's id, or refuse."""
    if jid is None:
        raise QlessError("Job(): no jid provided")
    return jid


def need_queue(queue: str | None) -> str:
    """A queue's name, or refuse."""
    if queue is None:
        raise QlessError("Queue(): no queue name provided")
    return queue


def need_data(command: str, data: str | None) -> str:
    """Data, which must be JSON, or refuse."""
    if data is None or not texts.is_json(data):
        raise QlessError(f'{command}(): Arg "data" missing or not JSON: {texts.shown(data)}')
    return data


def delay_of(command: str, text: str | None) -> int:
    """A delay in milliseconds; a negative one is none."""
    found = texts.number(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "delay" not a number: {texts.shown(text)}')
    if found * 1000 > LONGEST_MS:
        raise QlessError(f'{command}(): Arg "delay" must be at most {LONGEST_MS // 1000} seconds: {texts.shown(text)}')
    return max(texts.milliseconds(found), 0) if found > 0 else 0


def whole_of(command: str, name: str, text: str | None) -> int:
    """A whole number, or refuse."""
    found = texts.whole(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "{name}" not a number: {texts.shown(text)}')
    return found


def strings_of(command: str, name: str, text: str | None) -> tuple[str, ...]:
    """A JSON list of texts, or refuse."""
    found = texts.strings(text)
    if found is None:
        raise QlessError(f'{command}(): Arg "{name}" not a JSON list of texts: {texts.shown(text)}')
    return found


def options_of(command: str, options: tuple[str, ...]) -> dict[str, str]:
    """Names and values; of one given twice the last."""
    if len(options) % 2:
        raise QlessError(f"{command}(): Odd number of additional args: {len(options)}")
    return dict(zip(options[::2], options[1::2], strict=True))


def first(arguments: tuple[str, ...]) -> str | None:
    """The first of some arguments, if there is one."""
    return arguments[0] if arguments else None


def window(
    command: str, first: str, second: str, offset: str | None = "0", count: str | None = "25"
) -> tuple[int, int]:
    """Where a page begins, and how long it is: at most 1000, and so long where less than one is asked for."""
    begin = whole_of(command, first, offset)
    size = whole_of(command, second, count)
    return begin, size if 0 < size <= MOST else MOST
