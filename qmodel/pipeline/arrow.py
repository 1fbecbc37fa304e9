"""Import Arrow (extra `arrow`); if it is missing, say how to install it."""

from __future__ import annotations

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

__all__ = ["pa"]
