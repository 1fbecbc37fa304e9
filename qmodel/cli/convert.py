"""Parameter types of the command line: durations, moments and texts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from qmodel.client.convert import parse_exact_instant
from qmodel.present.durations import format_duration, format_moment, parse_duration, parse_moment

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # click 8.1's is not generic


class Parsed(ParamType):
    """A parameter type with a parser that raises ValueError."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse an argument."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Parsed("duration", parse_duration)
MOMENT = Parsed("moment", parse_moment)
EXACT = Parsed("time", parse_exact_instant)


def read_text(text: str) -> str:
    """Give the argument, or the whole standard input for a dash."""
    return sys.stdin.read() if text == "-" else text


TEXT = Parsed("text", read_text)

__all__ = [
    "DURATION",
    "EXACT",
    "MOMENT",
    "TEXT",
    "Parsed",
    "format_duration",
    "format_moment",
    "parse_duration",
    "parse_moment",
    "read_text",
]
