"""`qmodel op`: one command per operation of the catalogue."""

from __future__ import annotations

import click

from qmodel.cli import derive


class Operations(click.Group):
    """The commands of all operations; each is made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names of all operations, with hyphens."""
        from qmodel.contract.operations import CATALOGUE

        return [derive.hyphened(spec) for spec in CATALOGUE.values()]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Make the command of an operation; its name may be written with hyphens or as in the catalogue."""
        return derive.command(name.replace("_", "-"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the operation, or suggest those with similar names."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(name.replace("_", "-"), self.list_commands(ctx), 3)
            meant = " or ".join(f"'qmodel op {one}'" for one in close)
            ctx.fail(f"There is no operation '{name}'." + (f" Did you mean {meant}?" if meant else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the operations under the sections of the catalogue."""
        from qmodel.contract.operations import CATALOGUE, SECTIONS

        for section, heading in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(derive.hyphened(spec), spec.summary) for spec in CATALOGUE.values() if spec.section == section]
                )


@click.command("op", cls=Operations, short_help="Execute an operation of the catalogue.")
def command() -> None:
    """Execute an operation of the catalogue.

    Required arguments are positional; the others are options under the catalogue's names, with hyphens.

    \b
        qmodel op pop emails --worker me
        qmodel op complete JID --result '{"sent": 1}'
        qmodel op put --help
    """
