"""`qmodel qless-lua`: the script that a binding of qless loads."""

from __future__ import annotations

import click

from qmodel.cli.session import common


@click.command("qless-lua")
@click.option("--prefix", default="ql:", show_default=True, help="What every key and channel begins with.")
def command(prefix: str) -> None:
    """Print the script that a binding of qless loads in place of its own qless.lua.

    \b
        qmodel qless-lua > qless.lua

    It needs nothing but a server with scripts: Redis 6 or later, or Valkey. Where each binding
    keeps its script, and what is different, is told in docs/qless.md.
    """
    from qmodel.backends import bundle

    click.echo(bundle.qless_script(prefix), nl=False)


common(command)
