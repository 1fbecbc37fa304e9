"""`qmodel conformance`: compare a backend, or a binding in another language, with the model."""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli import campaigns, concurrent, fresh, graph, kit, without_password
from qmodel.cli.on import on_options, on_spark, only
from qmodel.cli.session import common, session

if TYPE_CHECKING:
    from qmodel.conformance.campaign.parts import Campaign, Total
    from qmodel.conformance.subjects.named import Opening


@click.group("conformance")
def command() -> None:
    """Compare a backend, or a binding in any language, with the model."""


@command.command("run")
@click.option("--examples", type=click.IntRange(1), default=100, show_default=True, help="How many histories.")
@click.option("--steps", type=click.IntRange(1), default=60, show_default=True, help="The operations of each history.")
@click.option("--seed", help="The seed of the histories.  [default: a new random one]")
@click.option(
    "--subject",
    "url",
    metavar="URL",
    help="The subject to compare with the model: a backend's URL, or valkey or redis, a server started for this. The "
    "histories are executed under prefixes of their own, below that of the URL, and removed.  [default: that of --url]",
)
@click.option("--dialect", type=click.Choice(["qless"]), help="Calls of a dialect instead of operations.")
@click.option("--processes", type=click.IntRange(1), help="Run in this many processes, and show the coverage.")
@click.option(
    "--laws", "lawful", is_flag=True, help="Check the laws too: they find rules that are wrong on both sides."
)
@click.option("--every", default=1, show_default=True, type=click.IntRange(1), help="Compare the state each N-th step.")
@campaigns.PICTURE
@on_options
@click.option("--tasks", type=click.IntRange(1), help="With --on spark.  [default: Spark's]")
@click.option(
    "--out", metavar="FOLDER", help="With --on spark: a new folder for parts, coverage, failures, as Parquet."
)
def run(
    examples: int,
    steps: int,
    seed: str | None,
    url: str | None,
    dialect: str | None,
    processes: int | None,
    lawful: bool,
    every: int,
    picture: Path | None,
    on: str,
    tasks: int | None,
    out: str | None,
) -> None:
    """Execute generated histories on a backend and on the model, and compare all replies and states.

    Ends at the first difference, shrunk to the fewest operations that show it; then the exit code is 1. Each history
    follows from the seed and its number, so --processes and --on spark run the same ones. On Spark, a difference is
    shrunk on its executor, and the campaign goes on.
    """
    at = session()
    if url is not None:
        at.url, at.url_from = url, "--subject"
    seed = seed or secrets.token_hex(4)
    if dialect and (processes or picture or on == "spark" or every > 1):
        raise click.UsageError(
            "A dialect is compared in one process, with all states: leave out --processes, --picture, --on and --every."
        )
    again = f"qmodel conformance run --examples {examples} --steps {steps} --seed {seed} "
    again += f"--subject {without_password(at.url)}"
    again += f" --dialect {dialect}" if dialect else ""
    again += " --laws" if lawful else ""
    again += f" --every {every}" if every > 1 else ""
    if on == "spark":
        only("local", processes=processes)
        total = _on_spark(_parts(steps, seed, every, lawful), examples, tasks, out)
        return campaigns.answer(at, total, seed, f"{again} --on spark", picture)
    only("spark", tasks=tasks, out=out)
    if processes or picture:
        total = _in_processes(_parts(steps, seed, every, lawful), examples, processes or 1)
        return campaigns.answer(at, total, seed, f"{again} --processes {processes or 1}", picture)
    with _progress(examples, shown=sys.stderr.isatty() and not at.json) as advance:
        summary = (
            _dialect_campaign(at.url, examples, seed, advance, steps=steps, lawful=lawful)
            if dialect
            else _campaign(at.url, examples, seed, advance, steps=steps, every=every, lawful=lawful)
        )
    _answer(summary, seed, f"Again: {again}")


def _answer(summary: Any, seed: str, again: str) -> None:
    at = session()
    if at.json:
        at.answer(
            {
                "subject": summary.subject,
                "seed": seed,
                "histories": summary.histories,
                "steps": summary.steps,
                "seconds": round(summary.seconds, 3),
                "agrees": summary.agrees,
                "failures": [str(failure) for failure in summary.failures],
            }
        )
    else:
        for failure in summary.failures:
            click.echo(f"{failure}\n")
        click.secho(str(summary), fg="green" if summary.agrees else "red")
        click.echo(again)
    if not summary.agrees:
        raise click.exceptions.Exit(1)


def _parts(steps: int, seed: str, every: int, lawful: bool) -> Campaign:
    """Make the campaign of the session's subject, for several processes."""
    from qmodel.conformance.campaign import parts

    return parts.Campaign(seed, _opening(session().url), steps, every, lawful=lawful)


def _in_processes(what: Campaign, examples: int, processes: int) -> Total:
    """Run the parts of a campaign side by side, until one has found a difference."""
    from qmodel.conformance.campaign import parts
    from qmodel.conformance.campaign.processes import perform

    total, began = parts.Total(), time.monotonic()
    size = max(1, min(parts.HISTORIES, examples // (4 * processes)))
    with _progress(examples, shown=sys.stderr.isatty() and not session().json) as advance:
        for part in perform(what, examples, processes, size):
            total.add(part)
            advance(total)
            if not total.agrees:
                break
    total.seconds = time.monotonic() - began
    return total


def _on_spark(what: Campaign, examples: int, tasks: int | None, out: str | None) -> Total:
    """Run the parts of a campaign on executors, and write their tables to `out`."""
    with on_spark("conformance run") as spark:
        from qmodel.pipeline.spark import campaign

        began, found = time.monotonic(), campaign.campaign(spark, what, examples, tasks=tasks)
        if out:
            found.write.parquet(f"{out}/parts")
            found = spark.read.parquet(f"{out}/parts")
            for name, table in (("coverage", campaign.coverage(found)), ("failures", campaign.failures(found))):
                table.coalesce(1).write.parquet(f"{out}/{name}")
        total = campaign.total(found)
    total.seconds = time.monotonic() - began
    return total


def _campaign(url: str, examples: int, seed: str, advance: Any, **options: Any) -> Any:
    from qmodel.conformance.campaign import campaign

    with contextlib.closing(_opening(url)()) as subject:
        return campaign.run(examples, seed, subject, advance, **options)


def _dialect_campaign(url: str, examples: int, seed: str, advance: Any, **given: Any) -> Any:
    from qmodel.conformance.dialects import runner, subjects

    with contextlib.closing(subjects.open_subject(_opening(url).url())) as subject:
        return runner.run(examples, seed, subject, advance, **given)


def _opening(url: str) -> Opening:
    """Give what opens a subject by its URL or word. Raises ConnectError if this machine cannot."""
    from qmodel.conformance.subjects.named import Opening

    opening = Opening(url)
    opening.check()
    return opening


class _progress:
    """Show a progress bar on the standard error, if it is a terminal; give the function to call after each history."""

    def __init__(self, examples: int, shown: bool) -> None:
        self._examples = examples
        self._shown = shown

    def __enter__(self) -> Any:
        if not self._shown:
            return lambda summary: None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("histories"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[steps]} steps"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        task = self._bar.add_task("", total=self._examples, steps=0)
        return lambda summary: self._bar.update(task, completed=summary.histories, steps=summary.steps)

    def __exit__(self, *exc: object) -> None:
        if self._shown:
            self._bar.stop()


common(command)
common(run)
command.add_command(concurrent.command)
command.add_command(fresh.command)
command.add_command(graph.command)
for _one in kit.COMMANDS:
    command.add_command(_one)
