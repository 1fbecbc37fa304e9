"""The options --host and --port of all servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def listening(port: int) -> Callable[[F], F]:
    """Give a command --host and --port, with the default port."""

    def add(command: F) -> F:
        for option in (port_option(port, "The TCP port; 0 for any free port."), _HOST):
            command = option(command)
        return command

    return add


def port_option(port: int, told: str) -> Callable[[F], F]:
    """Make the option --port alone."""
    return click.option("--port", type=click.IntRange(0, 65535), default=port, show_default=True, help=told)


_HOST = click.option(
    "--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on."
)
