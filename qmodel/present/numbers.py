"""Numbers: counts with their nouns, sizes, and figures in few characters."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"


def number(value: float) -> str:
    """Format a number with separators of thousands.

    >>> number(1234567), number(0.25)
    ('1,234,567', '0.25')
    """
    return f"{value:,}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun; `plural` is for a noun that does not just take an s.

    >>> counted(1, "job"), counted(1200, "job"), counted(0, "entry", "entries")
    ('1 job', '1,200 jobs', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def short_number(count: int) -> str:
    """Format a number that may be large in at most six characters.

    >>> [short_number(count) for count in (0, 999, 12_345, 200_000, 3_400_000)]
    ['0', '999', '12,345', '200k', '3.4M']
    """
    if count < 100_000:
        return f"{count:,}"
    if count < 1_000_000:
        return f"{count // 1000}k"
    return f"{count / 1_000_000:.1f}M"


def format_size(count: float) -> str:
    """Format a number of bytes, to three figures.

    >>> [format_size(count) for count in (0, 512, 1536, 200 * 2**20, 3 * 2**30)]
    ['0 B', '512 B', '1.5 KiB', '200 MiB', '3 GiB']
    """
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:,.3g} GiB" if abs(count) < 1000 else f"{count:,.0f} GiB"


def sparkline(values: Sequence[float]) -> str:
    """Draw figures as a row of blocks, the tallest for the greatest.

    >>> sparkline([0, 1, 4, 2, 0])
    '▁▂█▄▁'
    >>> sparkline([0, 0])
    '▁▁'
    """
    most = max(values, default=0) or 1
    return "".join(BLOCKS[min(int(value / most * 7.999), 7)] for value in values)
