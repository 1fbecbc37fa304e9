"""`qmodel conformance graph`: every state of a small scope, and every operation in each of them."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import click

from qmodel.backends import without_password
from qmodel.cli.session import common, session
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.conformance.graph.findings import Explored


@click.command("graph")
@click.argument("families", nargs=-1, metavar="[FAMILY]...")
@click.option("--scope", metavar="JOBSxWORKERS", help="How many jobs and workers there are.  [default: as in the gate]")
@click.option("--lua", is_flag=True, help="Compare each edge with the Lua library in this process.")
@click.option(
    "--server",
    metavar="URL",
    help="Compare one edge of each shape with a server too: valkey, redis, or a URL, below whose prefix each state "
    "has one of its own, removed at the end.",
)
@click.option(
    "--pairs",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    help="The share of the arrivals at a known state to try.",
)
@click.option(
    "--limit",
    type=click.FloatRange(0),
    default=0.0,
    help="Processor time for each search, in seconds.  [default: until it is closed]",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Processor time for all searches together: each gets a share of what is left, the small ones first.",
)
@click.option(
    "--edges",
    type=click.IntRange(0),
    default=0,
    help="The most edges of each search.  [default: those of the gate, or all]",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False),
    help="Append each search to a file as a JSON line; skip those that stand there, of the same code.",
)
@click.option("--night", is_flag=True, help="Search wider scopes too, and every pair of families.")
def command(
    families: tuple[str, ...],
    scope: str | None,
    lua: bool,
    server: str | None,
    pairs: float,
    limit: float,
    minutes: float | None,
    edges: int,
    record: str | None,
    night: bool,
) -> None:
    """Search every reachable state of a small scope, and compare every operation in each of them.

    A FAMILY is a set of operations that belong together, or two of them joined with `+`; without one, all are searched.
    `FAMILY/each` also tries every budget that is too small for an operation, `FAMILY/8` has one of 8 units, and in
    `FAMILY/fails` each command of an operation fails.
    With `--night` and families, only the searches of the night are made that have one of these in them.
    The model must keep its invariants, a refusal must change nothing, and from every state every job must be able to
    end. Exit code 1 if anything is wrong; its shortest history is shown.
    """
    from qmodel.conformance.graph import plan
    from qmodel.conformance.graph import record as records
    from qmodel.conformance.graph.alphabet import Scope
    from qmodel.conformance.graph.server import ServerCorner
    from qmodel.conformance.subjects.named import Opening

    try:
        runs = plan.chosen(families, Scope.parse(scope) if scope else None, limit, night, edges)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    found = []
    compared = ("library", without_password(server)) if server else ("library",) if lua else ()
    kept = records.Record(record, *compared)
    runs = [run for run in runs if not kept.has(run)]
    at = session()
    with ExitStack() as stack:
        corner = stack.enter_context(closing(ServerCorner(Opening(server).url()))) if server else None
        for run in plan.within(runs, 60 * minutes) if minutes else runs:
            found.append(run.search(lua or server is not None, corner, pairs))
            kept.add(run, found[-1])
            if not at.json:
                _show(found[-1])
    if at.json:
        at.answer({"searches": [records.line(one) for one in found]})
    else:
        _sum_up(found, corner.edges if corner is not None else 0)
    if any(one.findings for one in found):
        raise click.exceptions.Exit(1)


def _sum_up(found: list[Explored], on_server: int) -> None:
    states, edges = sum(one.states for one in found), sum(one.edges for one in found)
    said = f"{counted(len(found), 'search', 'searches')}: {counted(states, 'state')}, {counted(edges, 'edge')}"
    click.echo(said + (f", {on_server:,} on the server" if on_server else ""))


def _show(one: Explored) -> None:
    for finding in one.findings:
        click.secho(str(finding), fg="red")
    said = f"{one.family} {one.scope}: {'closed' if one.closed else 'open'}, {counted(one.states, 'state')}, "
    said += f"{counted(one.edges, 'edge')}, {counted(one.pairs, 'pair')}, {one.cpu:.1f} s"
    click.secho(said, fg="red" if one.findings else "green" if one.closed else "yellow")


common(command)
