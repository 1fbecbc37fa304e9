"""The common options of all commands: the backend, the moment, and the format of the answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmodel.cli.convert import MOMENT

if TYPE_CHECKING:
    from rich.console import Console

    from qmodel.client.sync import Client

DEFAULT_URL = "memory://"

C = TypeVar("C", bound=click.Command)


class Session:
    """The values of the common options, and the client for them."""

    def __init__(self) -> None:
        self.url = DEFAULT_URL
        self.url_from = "the default"
        self.json = False
        self.now: int | None = None
        self.look_at_keys = False
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """Give the client, opened at the first use. Raises ConnectError."""
        if self._client is None:
            from qmodel.client.sync import Client

            self._client = Client(self.url)
            click.get_current_context().find_root().call_on_close(self._client.close)
        return self._client

    def answer(self, value: Any) -> None:
        """Print a value as JSON: on one line, or indented for a person."""
        indent = 2 if sys.stdout.isatty() else None
        click.echo(json.dumps(value, ensure_ascii=False, indent=indent))

    def console(self) -> Console:
        """Make the console for tables; in a pipe tables are as wide as they need."""
        from rich.console import Console

        terminal = sys.stdout.isatty()
        return Console(width=None if terminal else 200, highlight=False, soft_wrap=not terminal)


def session() -> Session:
    """Give the session of the running command."""
    return click.get_current_context().ensure_object(Session)


def _set(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is None or value is False:
            return
        found = ctx.ensure_object(Session)
        setattr(found, name, value)
        if name == "url":
            source = ctx.get_parameter_source(param.name or "")
            from_environment = source is click.core.ParameterSource.ENVIRONMENT
            found.url_from = "QMODEL_URL" if from_environment else "--url"

    return callback


def common(command: C, *, at_top: bool = False) -> C:
    """Give a command the common options. They may stand before the command's name, or after it."""
    command.params += [
        click.Option(
            ["--url"],
            envvar="QMODEL_URL" if at_top else None,
            show_envvar=at_top,
            metavar="URL",
            expose_value=False,
            callback=_set("url"),
            help=f"Where the jobs are: memory://, redis://host:6379/0, ... [default: {DEFAULT_URL}]",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_set("json"),
            help="Answer in JSON.",
        ),
        click.Option(
            ["--now"],
            type=MOMENT,
            metavar="MOMENT",
            expose_value=False,
            callback=_set("now"),
            help="The time of the operation: milliseconds since the epoch or ISO. [default: the server's clock]",
        ),
    ]
    return command
