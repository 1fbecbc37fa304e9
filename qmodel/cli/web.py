"""`qmodel web`: the pages on which people look at jobs and see to them."""

from __future__ import annotations

import click

from qmodel.cli.http import address, options
from qmodel.cli.session import common, session


@click.command("web")
@options(8700)
@click.option("--prefix", default="", metavar="PATH", help="What a proxy in front takes away from each path.")
def command(host: str, port: int, writable: bool, auth: str | None, hosts: tuple[str, ...], prefix: str) -> None:
    """Show queues, jobs, failures, workers, schedules, flows and statistics as pages in a browser.

    \b
        qmodel web --url redis://localhost:6379/0          to look at
        qmodel web --writable                              to retry, cancel, pause, too
        qmodel web --host 0.0.0.0 --auth ada:secret        for others; better behind TLS

    Without a password it answers only requests to this machine's own names. Under /api the same server speaks to
    programs, as `qmodel http` does. It stops at SIGINT and SIGTERM. docs/web.md says more.
    """
    where = address(host, port, auth)
    from qmodel.http.guard import LOCAL
    from qmodel.http.host import serve
    from qmodel.web import create
    from qmodel.web.source import hidden

    at = session()
    at.client.newest()  # who cannot be reached is told now, and not to the first who looks
    if at.url == "memory://":
        click.echo("memory:// is a store of this process alone, and empty: give --url, or set QMODEL_URL.", err=True)
    in_process = at.url.partition("://")[0] in ("memory", "embedded")
    names = (*LOCAL, *hosts) if hosts else None
    given = at.client if in_process else at.url
    app = create(given, writable=writable, auth=auth, prefix=prefix, hosts=names)
    how = "to be changed" if writable else "to be looked at; --writable lets people change things"
    prefix = f"/{prefix.strip('/')}/" if prefix.strip("/") else "/"
    serve(
        app,
        where,
        lambda url: click.echo(f"qmodel web shows {hidden(at.url)} at {url}{prefix} ({how})"),
        app.state.closing,
    )


common(command)
