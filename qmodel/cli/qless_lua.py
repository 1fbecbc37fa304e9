"""`qmodel qless-lua`: print the script that a qless binding loads."""

from __future__ import annotations

from pathlib import Path

import click

from qmodel.cli.session import common


@click.command("qless-lua")
@click.option("--prefix", default="ql:", show_default=True, help="The prefix of every key and channel.")
@click.option("--reqless", is_flag=True, help="For the bindings of reqless: other names, defaults and lists.")
@click.option("--document", type=click.Choice(["000", "001"]), help="Many scripts, with the calls of a 2012 document.")
@click.option("--into", type=click.Path(path_type=Path), help="The folder for a document's scripts, <operation>.lua.")
def command(prefix: str, reqless: bool, document: str | None, into: Path | None) -> None:
    """Print the script that a qless binding loads in place of its own qless.lua.

    \b
        qmodel qless-lua > qless.lua
        qmodel qless-lua --reqless > reqless.lua
        qmodel qless-lua --document 000 --into qless-core/

    It needs only a server with scripts: Redis 6 or later, or Valkey. docs/qless.md says where each
    binding keeps its script, and what differs.
    """
    from qmodel.backends import bundle

    if (document is None) != (into is None):
        raise click.UsageError("--document and --into go together: a document has a script for each operation.")
    if document is None or into is None:
        click.echo(bundle.qless_script(prefix, reqless=reqless), nl=False)
        return
    from qmodel.dialects.qless import DOCUMENTS

    into.mkdir(parents=True, exist_ok=True)
    for operation in DOCUMENTS[document]:
        (into / f"{operation}.lua").write_text(bundle.document_script(document, operation, prefix), encoding="utf-8")
    click.echo(f"{len(DOCUMENTS[document])} scripts are in {into}.", err=True)


common(command)
