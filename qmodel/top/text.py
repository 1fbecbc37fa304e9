"""How times, messages and figures are told on one line."""

from __future__ import annotations

import re
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"

_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def clean(text: str) -> str:
    r"""A text without what a terminal would obey: data and messages are written by anybody.

    >>> clean("red: \x1b[31m, and a bell: \x07")
    'red: �[31m, and a bell: �'
    """
    return _ODD.sub("�", text)


def ago(ms: float) -> str:
    """A length of time in one or two figures and a unit.

    >>> [ago(ms) for ms in (-5, 900, 59_000, 61_000, 7_200_000, 200_000_000)]
    ['0s', '0s', '59s', '1m', '2h', '2d']
    """
    seconds = max(int(ms), 0) // 1000
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def gist(message: str, most: int = 80) -> str:
    r"""What a failure's message says on one line: of a traceback its last line, else the first that says anything.

    >>> gist("Traceback (most recent call last):\n  File ...\nValueError: no such address\n")
    'ValueError: no such address'
    >>> gist("The card was declined.\nSee the log.")
    'The card was declined.'
    """
    lines = [line.strip() for line in clean(message.replace("\r", "")).splitlines() if line.strip()]
    if not lines:
        return ""
    notes = (line for line in reversed(lines) if not line.startswith(("qmodel:", "^", "~")))
    line = next(notes, lines[-1]) if lines[0].startswith("Traceback ") else lines[0]
    return line if len(line) <= most else line[: most - 1] + "…"


def short(jid: str) -> str:
    """A job's id in a list: the begin and the end of a long one.

    >>> short("invoice-7"), short("758147edfd385af3584062f55ed4672a")
    ('invoice-7', '758147edf…5ed4672a')
    """
    return jid if len(jid) <= 20 else f"{jid[:9]}…{jid[-8:]}"


def spark(values: Sequence[float]) -> str:
    """Figures as a row of blocks, the tallest for the greatest; nothing at all is a low line.

    >>> spark([0, 1, 4, 2, 0])
    '▁▂█▄▁'
    >>> spark([0, 0])
    '▁▁'
    """
    most = max(values, default=0) or 1
    return "".join(BLOCKS[min(int(value / most * 7.999), 7)] for value in values)


def count(number: int) -> str:
    """A number that may be large, in few characters.

    >>> [count(number) for number in (0, 999, 12_345, 200_000, 3_400_000)]
    ['0', '999', '12,345', '200k', '3.4M']
    """
    if number < 100_000:
        return f"{number:,}"
    if number < 1_000_000:
        return f"{number // 1000}k"
    return f"{number / 1_000_000:.1f}M"
