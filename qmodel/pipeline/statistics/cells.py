"""Count durations in cells: counts and sums are whole numbers, which can be added in any order.

A cell is one of the engine's bins (`qmodel.present.histogram`) together with a fine cell, which percentiles are read
from. Fine cells are linear up to 64 ms, then there are 32 in each power of two, as in HdrHistogram. So a percentile is
exact below 64 ms and at most 1/64 off above, for any distribution. Sketches bound the error in rank instead, and in a
long tail a small error in rank is a large one in milliseconds.

Beside its count a cell has the sum of its durations and the sum of their squares, both exact. So mean and variance do
not depend on the order of addition: merged parts give the same bits as the whole.
"""

from __future__ import annotations

FINE = 32
"""The number of fine cells in a power of two."""

LONGEST = 2**43
"""The longest duration, in milliseconds (278 years), that SQL sorts into the right fine cell."""

SHIFT = 512
"""The factor between fine cells: a cell is `fine * SHIFT + bin`, and there are fewer bins than that."""


def fine_of(duration: int) -> int:
    """Find the fine cell of a duration in milliseconds.

    >>> fine_of(31), fine_of(63), fine_of(64), fine_of(65), fine_of(66)
    (31, 63, 64, 64, 65)
    """
    if duration < FINE:
        return duration
    shift = duration.bit_length() - FINE.bit_length()
    return FINE * shift + (duration >> shift)


def fine_range(fine: int) -> tuple[int, int]:
    """Give the shortest and the longest duration of a fine cell.

    >>> fine_range(63), fine_range(64), fine_range(fine_of(10**6))
    ((63, 63), (64, 65), (999424, 1015807))
    """
    if fine < 2 * FINE:
        return fine, fine
    shift = fine // FINE - 1
    low = (fine - FINE * shift) << shift
    return low, low + (1 << shift) - 1


def _bin_sql(ms: str) -> str:
    """Write `qmodel.model.state.stats.bin_of` as SQL; a test compares the two."""
    return (
        f"case when {ms} < 60000 then floor({ms} / 1000) when {ms} < 3600000 then 59 + floor({ms} / 60000)"
        f" when {ms} < 86400000 then 115 + floor({ms} / 900000) when {ms} < 259200000 then 187 + floor({ms} / 3600000)"
        f" when {ms} < 2592000000 then 256 + floor({ms} / 86400000) else 286 end"
    )


def _fine_sql(ms: str) -> str:
    """Write `fine_of` as SQL. The added half keeps the logarithm away from whole numbers, which rounding may miss."""
    shift = f"(floor(log2({ms} + 0.5e0)) - {FINE.bit_length() - 1})"
    return f"case when {ms} < {FINE} then {ms} else {FINE} * {shift} + floor({ms} / power(2, {shift})) end"


def cell_sql(ms: str) -> str:
    """Write the cell of a duration as SQL."""
    return f"cast(({_fine_sql(ms)}) * {SHIFT} + ({_bin_sql(ms)}) as bigint)"
