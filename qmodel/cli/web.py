"""`qmodel web`: serve the web pages."""

from __future__ import annotations

from collections.abc import Callable

import click

from qmodel.cli.http import address, options
from qmodel.cli.session import common, session


@click.command("web")
@options(8700)
@click.option("--prefix", default="", metavar="PATH", help="The path prefix that a proxy in front removes.")
@click.option("--decode", metavar="MODULE:APP", help="Decrypt and fetch the data that this app's codecs stored.")
def command(
    host: str,
    port: int,
    writable: bool,
    auth: str | None,
    hosts: tuple[str, ...],
    prefix: str,
    decode: str | None,
) -> None:
    """Serve web pages of queues, jobs, failures, workers, schedules, flows and statistics.

    \b
        qmodel web --url redis://localhost:6379/0          read-only
        qmodel web --writable                              with actions: retry, cancel, pause, ...
        qmodel web --host 0.0.0.0 --auth ada:secret        for other machines; use TLS in front

    Without a password it answers only requests to this machine's own names. Under /api the same server is the HTTP API
    of `qmodel http`. It stops at SIGINT and SIGTERM. See docs/web.md.
    """
    where = address(host, port, auth)
    from qmodel.http.guard import LOCAL
    from qmodel.http.host import serve
    from qmodel.web import create
    from qmodel.web.source import hidden

    at = session()
    at.client.newest()  # an unreachable server is reported at the start, and not on the first page
    if at.url == "memory://":
        click.echo("memory:// is an empty store in this process: give --url, or set QMODEL_URL.", err=True)
    in_process = at.url.partition("://")[0] in ("memory", "embedded")
    names = (*LOCAL, *hosts) if hosts else None
    given = at.client if in_process else at.url
    readable = _decoder(decode) if decode else None
    app = create(given, writable=writable, auth=auth, prefix=prefix, hosts=names, decode=readable)
    how = "with actions" if writable else "read-only; --writable adds actions"
    prefix = f"/{prefix.strip('/')}/" if prefix.strip("/") else "/"
    serve(
        app,
        where,
        lambda url: click.echo(f"qmodel web shows {hidden(at.url)} at {url}{prefix} ({how})"),
        app.state.closing,
    )


def _decoder(where: str) -> Callable[[str, str], str]:
    """Load an app; make the function that shows what its codecs stored."""
    from qmodel.app.codecs import decoder
    from qmodel.app.load import load

    return decoder(load(where))


common(command)
