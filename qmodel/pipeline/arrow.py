"""Import Arrow (extra `arrow`); if it is missing, say how to install it. Make arrays of texts that may be no UTF-8.

A server stores any bytes as data. Those that are not UTF-8 are lone surrogates in Python, which Arrow refuses. In
tables each of them is `\\udc` and two hexadecimal digits, as in JSON: so calls and data that are JSON stay what they
were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    import pyarrow as pa
except ModuleNotFoundError as missing:
    if missing.name != "pyarrow":
        raise
    raise ModuleNotFoundError(
        "Tables of events need pyarrow, which is not installed. "
        "Run: pip install pyarrow (or, in a checkout of qmodel: pip install '.[arrow]')",
        name="pyarrow",
    ) from None

__all__ = ["array", "pa"]


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Make an array of values that may contain texts that are not UTF-8."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_escaped(value) for value in values], kind)


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value
