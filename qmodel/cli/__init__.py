"""The command line: `commands` lists the commands for people; `qmodel op` has one for each operation of the catalogue.

Exit codes: 0 for done, 1 for a refusal or a failed check, 2 for a wrong command line, 69 (EX_UNAVAILABLE) when the
backend cannot be reached. Modules that are slow to import are imported where they are used, so that `--help` is quick.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from qmodel.backends import without_password
from qmodel.cli.commands import Commands
from qmodel.cli.session import Session, common, session
from qmodel.errors import ConnectError, LocalError, NotConfirmed, QmodelError, RefusedError
from qmodel.version import __version__

EX_UNAVAILABLE = 69
INTERRUPTED = 130
"""What a shell gives for a program that Ctrl-C has ended."""


class CommandLine(Commands):
    """All commands, and the exit code of each outcome."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; a file or an output that fails is told in a sentence, a closed pipe by click."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            click.echo(f"Error: {where}{error.strerror or error}.", err=True)
            _drop_what_cannot_be_written()
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; print a refusal or a connection error, and what to do about it."""
        ctx.ensure_object(Session)  # one for all commands below
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except RefusedError as refused:
            _say_refused(session(), refused)
        except ConnectError as error:
            _say_unreachable(session(), error)
            raise click.exceptions.Exit(EX_UNAVAILABLE) from None
        except QmodelError as error:
            click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(1)


def _drop_what_cannot_be_written() -> None:
    """Send the rest of a full output nowhere: Python would fail at its end once more, with a code of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_refused(at: Session, refused: RefusedError) -> None:
    if at.json:
        facts = {"refused": refused.code, "facts": refused.facts}
        at.answer({**facts, "sentence": refused.sentence, "next_step": refused.next_step})
        return
    click.secho(f"Refused ({refused.code}): {refused.sentence}", fg="red", err=True)
    click.echo(refused.next_step, err=True)


def _say_unreachable(at: Session, error: ConnectError) -> None:
    if at.json:
        at.answer(
            {
                "unconfirmed" if isinstance(error, NotConfirmed) else "unreachable": without_password(at.url),
                "url_from": at.url_from,
                "sentence": error.sentence,
                "next_step": error.next_step,
            }
        )
        return
    click.secho(error.sentence, fg="red", err=True)
    click.echo(error.next_step, err=True)
    if isinstance(error, LocalError | NotConfirmed):
        return
    click.echo(f"\nThe URL was {without_password(at.url)} (from {at.url_from}). To try:", err=True)
    click.echo("  qmodel demo --url memory://      without any server", err=True)
    click.echo("  qmodel --url redis://host:6379/0 ...", err=True)
    click.echo("  export QMODEL_URL=redis://host:6379/0", err=True)
    click.echo("  qmodel doctor                    looks closer", err=True)


@click.group(
    cls=CommandLine,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`qmodel COMMAND --help` explains a command. Times are UTC. Durations: 90 (seconds), 1.5s, 10m, 2h, 1d.",
)
@click.version_option(__version__, "--version", message="qmodel %(version)s")
def cli() -> None:
    """A job queue defined by an executable reference model."""


common(cli, at_top=True)


def main() -> None:
    """Run the command line. A character that the terminal's encoding lacks is shown as its number."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    cli(prog_name="qmodel")


__all__ = ["cli", "main", "without_password"]
