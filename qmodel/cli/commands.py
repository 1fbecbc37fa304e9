"""The commands at the top of `qmodel`, in the groups in which `--help` lists them.

A command is `command` in a module of its name (`own`), or the command of an operation of the catalogue (`DAILY`). The
commands of all operations are under `qmodel op`; a daily one is the same object there and at the top.
"""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from textwrap import wrap
from typing import Final

import click

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Start": {
        "demo": "Count a folder's lines, words and characters as jobs. Begin here: it needs no server.",
        "init": "Write a file of jobs and a file of their tests.",
        "dev": "Run an app while you write it: a worker that reloads, pages, and a server in memory.",
    },
    "Run": {
        "worker": "Run the jobs of an app.",
        "call": "Enqueue a job of an app with arguments as for its function; wait for its result.",
        "put": "Enqueue a job, by queue and job type.",
        "wait": "Wait until jobs have ended, and print their results.",
        "signal": "Make workers take no more jobs, resume, or stop, wherever they run.",
    },
    "Inspect": {
        "top": "Watch queues, running jobs, failures and workers in the terminal.",
        "queues": "List the queues with their counts of jobs by state.",
        "queue": "Show the counts of one queue.",
        "get": "Show a job.",
        "why": "Explain why a job does not run.",
        "search": "Find jobs by queue, state, job type, tag, worker or failure group.",
        "failures": "Show the failed jobs by group; retry them.",
        "workers": "List the workers with their counts of jobs.",
        "stats": "Show how long the jobs of a queue waited and ran on a day.",
        "events": "Print events; with --follow, print new ones as they happen.",
    },
    "Repair": {
        "retry": "Retry failed jobs, by id.",
        "cancel": "Cancel jobs: delete them; with --complete those that are complete too.",
        "pause": "Pause queues: they hand out no jobs.",
        "unpause": "Unpause queues.",
        "config": "List the options and their values.",
        "doctor": "Check the environment, the server and the jobs; suggest repairs.",
    },
    "Servers": {
        "web": "Serve the web pages.",
        "http": "Serve the HTTP API, for programs in any language.",
        "serve": "Serve jobs over the Redis protocol, without Redis.",
    },
    "Pipeline": {
        "archive": "Keep all events, and the journal, in Parquet.",
        "statistics": "Show how long jobs waited and ran, and what failed, from an archive.",
        "query": "Answer SQL about the jobs and attempts of an archive.",
        "reconcile": "Compare the engine's statistics with those of its events, to the last bit.",
        "audit": "Execute the journal on the model, and compare the results.",
        "plan": "Simulate the queue: how many workers are enough, and how long will jobs wait?",
    },
    "Develop": {
        "op": "Execute any operation of the catalogue: put-many, pop, complete, fail, ...",
        "conformance": "Compare a backend, or a binding in any language, with the model.",
    },
}
"""The commands that `qmodel --help` explains, each with a sentence."""

MORE: Final[dict[str, str]] = {
    "types": "Show counts, waits, runs and failures by job type.",
    "flow": "Show a job's flow, with the dependencies between its jobs, as text or as a picture.",
    "run": "Execute a history: JSON lines, one operation each.",
    "outbox": "Put the jobs that transactions have written into a table of a database.",
    "exporter": "Export metrics of all queues to Prometheus.",
    "advance-schedules": "Compute the next moments of jobs that recur by cron.",
    "requests": "On Spark, enqueue the rows of a table as jobs, and collect their results.",
    "move": "Move the jobs of a namespace or deployment into another one.",
    "qless-convert": "Put the jobs of the original qless or reqless into a namespace of qmodel.",
    "qless-lua": "Print the script that a qless binding loads in place of its own.",
}
"""The commands that `qmodel --help` names only."""

DAILY: Final = frozenset(
    (
        "put",
        "queues",
        "queue",
        "get",
        "why",
        "search",
        "workers",
        "stats",
        "events",
        "cancel",
        "pause",
        "unpause",
        "config",
    )
)
"""The operations that people type daily: each has its command at the top, too."""


def listed() -> dict[str, str]:
    """Every command at the top, with its sentence."""
    return {name: said for group in (*GROUPS.values(), MORE) for name, said in group.items()}


def own() -> list[str]:
    """The commands that are no operations."""
    return [name for name in listed() if name not in DAILY]


def load(name: str) -> click.Command | None:
    """Make a command, or None if there is no such command."""
    if name in DAILY:
        from qmodel.cli.derive import command

        return command(name)
    if name not in listed():
        return None
    made: click.Command = importlib.import_module(f"qmodel.cli.{name.replace('-', '_')}").command
    return made


def hint(name: str) -> str:
    """Name the commands that a mistyped name may stand for, as a sentence; nothing if none is close.

    >>> hint("config_set"), hint("conformence"), hint("xyzzy")
    ("Did you mean 'qmodel op config-set'?", "Did you mean 'qmodel conformance'?", '')
    """
    from qmodel.cli.derive import hyphened
    from qmodel.contract.operations import CATALOGUE

    wanted = name.replace("_", "-")
    operations = [one for one in map(hyphened, CATALOGUE.values()) if one not in listed()]
    found = [wanted] if wanted in operations else get_close_matches(wanted, [*listed(), *operations], 3)
    meant = [f"'qmodel {'' if one in listed() else 'op '}{one}'" for one in found]
    return f"Did you mean {' or '.join(meant)}?" if meant else ""


class Commands(click.Group):
    """All commands at the top; each is made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the names of all commands."""
        return list(listed())

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Make a command."""
        return load(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command to run, or suggest the commands that were perhaps meant."""
        name = args[0]
        if name not in listed() and not name.startswith("-"):
            ctx.fail(f"There is no command '{name}'. {hint(name)}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by group, and the names of the others."""
        for heading, group in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(list(group.items()))
        with formatter.section("More"):
            names = wrap(", ".join(MORE), formatter.width - 4, break_on_hyphens=False)
            formatter.write("".join(f"  {line}\n" for line in names))
