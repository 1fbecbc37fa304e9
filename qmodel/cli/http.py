"""`qmodel http`: serve jobs over HTTP."""

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
    help="A host name that needs no password, for a proxy that authenticates; may be given several times.",
)


def options(port: int) -> Callable[[F], F]:
    """Give a command the options of a server: --host, --port, --writable, --auth and --allow-host."""
    made = (
        listening(port),
        click.option("--writable", is_flag=True, help="Allow changes. [default: read-only]"),
        click.option(
            "--auth",
            envvar="QMODEL_AUTH",
            show_envvar=True,
            metavar="USER:PASSWORD|TOKEN",
            help="The password or token to require. Needed for an address that other machines can reach.",
        ),
        _ALLOW_HOST,
    )

    def add(command: F) -> F:
        for option in reversed(made):
            command = option(command)
        return command

    return add


def address(host: str, port: int, auth: str | None) -> Address:
    """Give the address to listen on; raise an error if it is unsafe, or if a package is missing."""
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
@click.option("--verbose", "-v", is_flag=True, help="Log every change and every denied request.")
def command(host: str, port: int, writable: bool, auth: str | None, hosts: tuple[str, ...], verbose: bool) -> None:
    """Serve jobs over HTTP, to programs in any language.

    \b
        qmodel http --url redis://localhost:6379/0 --writable
        curl localhost:8000/v1/queues/emails/jobs --json '{"klass": "SendEmail", "data": {"to": "ada"}}'
        curl localhost:8000/v1/queues/emails/pop --json '{"worker": "me", "timeout": 30}'
        curl -N localhost:8000/v1/events
        curl localhost:8000/openapi.json

    It stops at SIGINT and SIGTERM. See docs/http.md.
    """
    where = address(host, port, auth)
    from qmodel.http import create
    from qmodel.http.guard import LOCAL
    from qmodel.http.host import serve

    if verbose:
        _log()
    at = session()
    at.client.newest()  # an unreachable server is reported at the start, and not to the first caller
    in_process = at.url.partition("://")[0] in ("memory", "embedded")
    app = create(
        at.client if in_process else at.url, writable=writable, auth=auth, hosts=(*LOCAL, *hosts) if hosts else None
    )
    how = "with changes allowed" if writable else "read-only"
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
