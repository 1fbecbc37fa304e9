"""`qmodel http`: the jobs over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from qmodel.cli import without_password
from qmodel.cli.listen import listening
from qmodel.cli.session import common, session
from qmodel.errors import not_installed

if TYPE_CHECKING:
    from qmodel.http.host import Address

F = TypeVar("F", bound=Callable[..., Any])


_ALLOW_HOST = click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name by which it may be asked without a password, for a proxy that asks for one; may be given again.",
)


def options(port: int) -> Callable[[F], F]:
    """The options of a command that serves: --host, --port, --writable, --auth and --allow-host."""
    made = (
        listening(port),
        click.option("--writable", is_flag=True, help="Let callers change things, and not only look."),
        click.option(
            "--auth",
            envvar="QMODEL_AUTH",
            show_envvar=True,
            metavar="USER:PASSWORD|TOKEN",
            help="Ask for it. Needed for an address that others can reach.",
        ),
        _ALLOW_HOST,
    )

    def add(command: F) -> F:
        for option in reversed(made):
            command = option(command)
        return command

    return add


def address(host: str, port: int, auth: str | None) -> Address:
    """Where to listen, if that is safe; and if what is needed for it is installed."""
    try:
        from qmodel.http.guard import Exposed, check_binding, checked
        from qmodel.http.host import Address
    except ImportError as error:
        raise not_installed(error, "HTTP needs", "starlette uvicorn", "http") from error
    try:
        if auth is not None:
            checked(auth)
        check_binding(host, auth)
    except Exposed as error:
        raise click.UsageError(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--auth") from None
    return Address(host, port)


@click.command("http")
@options(8000)
@click.option("--verbose", "-v", is_flag=True, help="Log who changes what, and whom it denies.")
def command(host: str, port: int, writable: bool, auth: str | None, hosts: tuple[str, ...], verbose: bool) -> None:
    """Serve jobs over HTTP, to programs in any language.

    \b
        qmodel http --url redis://localhost:6379/0 --writable
        curl localhost:8000/v1/queues/emails/jobs --json '{"klass": "SendEmail", "data": {"to": "ada"}}'
        curl localhost:8000/v1/queues/emails/pop --json '{"worker": "me", "timeout": 30}'
        curl -N localhost:8000/v1/events
        curl localhost:8000/openapi.json

    It stops at SIGINT and SIGTERM. docs/http.md says more.
    """
    where = address(host, port, auth)
    from qmodel.http import create
    from qmodel.http.guard import LOCAL
    from qmodel.http.host import serve

    if verbose:
        _log()
    at = session()
    at.client.newest()  # who cannot be reached is told now, and not to the first caller
    in_process = at.url.partition("://")[0] in ("memory", "embedded")
    app = create(
        at.client if in_process else at.url, writable=writable, auth=auth, hosts=(*LOCAL, *hosts) if hosts else None
    )
    how = "to be changed" if writable else "to be looked at"
    serve(
        app,
        where,
        lambda url: click.echo(f"qmodel http serves {without_password(at.url)}, {how}, at {url}"),
        app.state.api.closing,
    )


def _log() -> None:
    import logging

    from qmodel.telemetry import logs

    logs.install(level=logging.INFO)


common(command)
