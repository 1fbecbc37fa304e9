"""The options of a namespace in Python's units."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final, cast

from qmodel.client.convert import Duration, milliseconds
from qmodel.contract.settings import OPTIONS, PER_QUEUE, meant_by

QUEUE_OPTIONS: Final = PER_QUEUE
"""The options that a queue may have for itself."""


def is_duration(option: str) -> bool:
    """Whether the value of an option is a duration."""
    known = OPTIONS.get(meant_by(option) or "")
    return known is not None and known.unit == "ms"


def to_setting(option: str, value: Duration) -> int:
    """Convert a value to the option's own unit: milliseconds where it is a duration."""
    if is_duration(option) or isinstance(value, timedelta):
        return milliseconds(value)
    return cast(int, value)


def from_setting(option: str, value: int) -> float:
    """Convert an option's value to Python's unit: seconds where it is a duration."""
    if not is_duration(option):
        return value
    return value // 1000 if value % 1000 == 0 else value / 1000


class AsyncConfigItems:
    """The asynchronous client has no item assignment, because an assignment cannot be awaited."""


class ConfigItems:
    """`config[option] = value`, `del config[option]` and iteration, for the synchronous client."""

    def set(self, option: str, value: Duration) -> float:
        """Set an option."""
        raise NotImplementedError

    def unset(self, option: str) -> float:
        """Set an option back to its default."""
        raise NotImplementedError

    def all(self) -> dict[str, float]:
        """Every option with its value."""
        raise NotImplementedError

    def __setitem__(self, option: str, value: Duration) -> None:
        """Set an option: seconds or a timedelta where it is a duration."""
        self.set(option, value)

    def __delitem__(self, option: str) -> None:
        """Set an option back to its default."""
        self.unset(option)

    def __iter__(self) -> Iterator[str]:
        """The names of the options."""
        return iter(self.all())
