"""The command line: one command per operation, derived from the catalogue, and a few more.

Exit codes: 0 for done, 1 for refused or found wanting, 2 for a wrong command line, 69 (EX_UNAVAILABLE) when the
backend cannot be reached. What is slow to import is imported where it is used, so that `--help` is quick.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from qmodel.backends import without_password
from qmodel.cli.session import Session, common, session
from qmodel.errors import ConnectError, LocalError, QmodelError, RefusedError
from qmodel.version import __version__

EX_UNAVAILABLE = 69

OWN = {
    "demo": "Count a folder's lines, words and characters as jobs. Begin here: it needs no server.",
    "init": "Write a file of jobs, and tests of them, to begin with.",
    "dev": "Perform the jobs of an app while it is written, with pages that show them.",
    "call": "Put a job of an app, as its function is called; wait for its result.",
    "worker": "Perform the jobs of an app.",
    "signal": "Tell workers from afar to be quiet, to go on, or to stop.",
    "run": "Execute a history: JSON lines, one operation each.",
    "wait": "Wait until jobs have ended, and print their results.",
    "flow": "Show a job's flow: which jobs wait for which, as text or as a picture.",
    "advance-schedules": "Tell the next moments of jobs that recur by cron.",
    "top": "Look at queues, running jobs, failures and workers as they change.",
    "failures": "Show what has failed, by group, with the newest message; try it again.",
    "exporter": "Tell Prometheus what there is in all queues.",
    "doctor": "Check the environment, the server and the jobs; say what to do.",
    "journals": "Keep journals in Parquet, and audit them.",
    "audit": "Check that the server did what the model says: execute its journal once more.",
    "qless-lua": "Print the script that a binding of qless loads in place of its own.",
    "serve": "Serve jobs over the protocol of Redis, without Redis.",
    "web": "Show queues, jobs, failures and workers as pages in a browser.",
    "http": "Serve jobs over HTTP, to programs in any language.",
    "statistics": "Show how long jobs waited and ran, and what failed, from an archive.",
    "plan": "Simulate the queue: how many workers are enough, and how long will jobs wait?",
    "reconcile": "Compare the engine's statistics with those of its events, to the last bit.",
    "spark": "Keep, count, check and simulate what happened, on Spark.",
    "conformance": "Compare a backend, or a binding in any language, with the model.",
}
"""The commands that are not operations: each is `command` in a module of its name."""


class Commands(click.Group):
    """All commands; each is made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names of all commands: our own, then the catalogue's."""
        from qmodel.cli.derive import hyphened
        from qmodel.contract.operations import CATALOGUE

        return [*OWN, *map(hyphened, CATALOGUE.values())]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Make a command."""
        if name in OWN:
            made: click.Command = importlib.import_module(f"qmodel.cli.{name.replace('-', '_')}").command
            return made
        from qmodel.cli.derive import command

        return command(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command to run, or say which one was perhaps meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(name.replace("_", "-"), self.list_commands(ctx), 3)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"There is no command '{name}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under the headings of the verbs' modules."""
        from qmodel.cli.derive import hyphened
        from qmodel.contract.operations import CATALOGUE, SECTIONS

        with formatter.section("Start here"):
            formatter.write_dl(list(OWN.items()))
        for section, heading in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(hyphened(spec), spec.summary) for spec in CATALOGUE.values() if spec.section == section]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; say what was refused, or what could not be reached, and what to do."""
        ctx.ensure_object(Session)  # one for all commands below
        try:
            return super().invoke(ctx)
        except RefusedError as refused:
            _say_refused(session(), refused)
        except ConnectError as error:
            _say_unreachable(session(), error)
            raise click.exceptions.Exit(EX_UNAVAILABLE) from None
        except QmodelError as error:
            click.echo(f"Error: {error}", err=True)
        raise click.exceptions.Exit(1)


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
                "unreachable": without_password(at.url),
                "url_from": at.url_from,
                "sentence": error.sentence,
                "next_step": error.next_step,
            }
        )
        return
    click.secho(error.sentence, fg="red", err=True)
    click.echo(error.next_step, err=True)
    if isinstance(error, LocalError):
        return
    click.echo(f"\nThe URL was {without_password(at.url)} (from {at.url_from}). To try:", err=True)
    click.echo("  qmodel demo --url memory://      without any server", err=True)
    click.echo("  qmodel --url redis://host:6379/0 ...", err=True)
    click.echo("  export QMODEL_URL=redis://host:6379/0", err=True)
    click.echo("  qmodel doctor                    looks closer", err=True)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Times are UTC. Durations: 90 (seconds), 1.5s, 10m, 2h, 1d.",
)
@click.version_option(__version__, "--version", message="qmodel %(version)s")
def cli() -> None:
    """A job queue defined by an executable reference model."""


common(cli, at_top=True)


def main() -> None:
    """Run the command line."""
    cli(prog_name="qmodel")


__all__ = ["OWN", "cli", "main", "without_password"]
