"""`qmodel serve`: serve jobs over the Redis protocol."""

from __future__ import annotations

from typing import Any

import click

from qmodel.backends import without_password
from qmodel.cli.listen import listening
from qmodel.cli.session import DEFAULT_URL, common, session


@click.command("serve")
@listening(6380)
@click.option("--socket", default="", metavar="PATH", help="Listen on a unix socket instead.")
@click.option(
    "--data", default="", metavar="DIR", help="Keep the jobs in this folder; every answered operation is durable."
)
@click.option("--salvage", is_flag=True, help="If files of --data are damaged, start with what is readable.")
@click.option("--password", default="", envvar="QMODEL_SERVE_PASSWORD", show_envvar=True, help="Ask clients for it.")
@click.option(
    "--user", "users", multiple=True, metavar="NAME:PASSWORD", help="A user for AUTH; may be given several times."
)
@click.option("--users-file", default="", metavar="FILE", help="Users, one NAME:PASSWORD on each line.")
@click.option(
    "--protected-mode/--no-protected-mode",
    "protected",
    default=True,
    help="Without a password, refuse other machines.  [default: on]",
)
@click.option("--tls-cert", default="", metavar="FILE", help="Speak TLS, with this certificate (PEM).")
@click.option("--tls-key", default="", metavar="FILE", help="The key of the certificate, if it is in another file.")
@click.option("--tls-ca", default="", metavar="FILE", help="Ask clients for a certificate of this authority.")
@click.option(
    "--databases", type=click.IntRange(1), default=16, show_default=True, help="The number of databases for SELECT."
)
@click.option(
    "--connections", type=click.IntRange(1), default=10_000, show_default=True, help="The most connections at a time."
)
@click.option(
    "--snapshot-every",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="Changes between two snapshots of --data.",
)
@click.option(
    "--fault", "faults", multiple=True, metavar="RULE", help="A deliberate fault; may be given several times."
)
@click.option("--seed", default=0, help="The seed of random faults.")
@click.option(
    "--judge", is_flag=True, help="Check the calls of clients; report at the end, and exit with 1 if anything is wrong."
)
@click.option("--record", default="", metavar="FILE", help="Write the executed operations as vectors.")
def command(**given: Any) -> None:
    """Serve jobs to clients in any language, without Redis.

    The server speaks the Redis protocol, and answers FCALL qmodel_v1_<operation> as the model does.
    With --url it is in front of another backend.

    \b
        qmodel serve                              in memory, on port 6380
        qmodel serve --data /var/lib/qmodel       durable, on disk
        qmodel serve --port 0                     on a free port, which is printed
        qmodel serve --socket /tmp/q.sock         on a unix socket
        qmodel serve --host 0.0.0.0 --tls-cert c.pem --tls-key k.pem --users-file users
        qmodel serve --url embedded://            the Lua library in this process
        qmodel serve --judge --fault lost@5%      to test a binding: see docs/serve.md
    \b
        qmodel --url redis://localhost:6380 put emails SendEmail '{}'
        redis-cli -p 6380 FCALL qmodel_v1_pop 1 ql: '' r1 emails me

    It stops at SIGINT and SIGTERM, after it has sent all replies.
    """
    import asyncio

    from qmodel.serve.faults import rule
    from qmodel.serve.host import Options
    from qmodel.serve.server import serve
    from qmodel.serve.tls import Tls

    try:
        for text in given["faults"]:
            rule(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--fault") from None
    if given["salvage"] and not given["data"]:
        raise click.UsageError("--salvage is about the files of --data: name their folder.")
    given["address"] = given.pop("host")
    given["tls"] = Tls(*(given.pop(f"tls_{name}") for name in Tls._fields))
    at = session()  # QMODEL_URL is for clients, and may name this server
    options = Options(url=at.url if at.url_from == "--url" else DEFAULT_URL, **given)
    shown = without_password(options.url)
    host = asyncio.run(serve(options, lambda where: click.echo(f"qmodel serves {shown} at {where}")))
    if host.judge is not None:
        click.echo("\n".join(host.judge.lines()))
    if host.record is not None:
        click.echo(f"{host.record.write()} vectors are in {options.record}")
    if host.judge is not None and not host.judge.is_clean:
        raise click.exceptions.Exit(1)


common(command)
