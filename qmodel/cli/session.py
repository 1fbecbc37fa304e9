"""The common options of all commands: the backend, the moment, and the format of the answer.

A first connection. In a program it is tried again for a minute (`deadline=` in the URL), because a server that starts
or fails over is back by then. A person at a terminal more often has a wrong URL, or no server, and must not wait a
minute to learn that. So a command tries for CONNECT_DEADLINE seconds, and says so on the standard error after the first
second. Once connected, calls have the deadline of a program. A `deadline` or `connect_deadline` in the URL counts
instead, for scripts that start together with their server.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from qmodel.backends import with_option, without_password
from qmodel.cli.convert import MOMENT

if TYPE_CHECKING:
    from rich.console import Console

    from qmodel.client.sync import Client

DEFAULT_URL = "memory://"

CONNECT_DEADLINE: Final = 5
"""Seconds for which a command tries to connect."""

SILENT: Final = 2.0
"""Seconds after which a command says that it is still trying."""

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

            with _announced(self.url):
                self._client = Client(with_option(self.url, "connect_deadline", CONNECT_DEADLINE))
            click.get_current_context().find_root().call_on_close(self._client.close)
        return self._client

    def answer(self, value: Any) -> None:
        """Print a value as JSON: on one line, or indented for a person."""
        click.echo(as_json(value, 2 if is_terminal() else None))

    def console(self) -> Console:
        """Make the console for tables; in a pipe tables are as wide as they need."""
        from rich.console import Console

        terminal = is_terminal()
        return Console(width=None if terminal else 200, highlight=False, soft_wrap=not terminal)


def is_terminal() -> bool:
    """Whether the answer goes to a terminal; a standard output that is closed (`>&-`) is none."""
    return sys.stdout is not None and sys.stdout.isatty()


def as_json(value: Any, indent: int | None = None) -> str:
    """Encode a value as JSON that the standard output can write, with escapes where it cannot write a character.

    A number that JSON does not have, such as the NaN of a query, is null.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:
        value = _finite(value)
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # another encoding than UTF-8, or half of a surrogate pair
        return json.dumps(value, indent=indent)
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def _announced(url: str) -> Iterator[None]:
    """Say on the standard error that a connection is still tried, if it takes longer than SILENT."""
    sentence = f"{without_password(url)} does not answer yet; trying again ..."
    timer = threading.Timer(SILENT, lambda: click.echo(sentence, err=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


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
            help="Where the jobs are: memory://, redis://host:6379/0, redis+cluster://host1,host2/0?prefix={a}:, "
            f"redis+sentinel://host1,host2/mymaster/0, ... [default: {DEFAULT_URL}]",
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
