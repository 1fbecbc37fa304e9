"""`qmodel flow`: show the dependencies between its jobs, as text or as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.session import common, session

if TYPE_CHECKING:
    from qmodel.client.flow_graph import Graph


@common
@click.command("flow", short_help="Show a job's flow, with the dependencies between its jobs, as text or as a picture.")
@click.argument("jid")
@click.option("--svg", type=click.File("w", encoding="utf-8"), help="Write it as a picture to this file, or to - .")
@click.option("--mermaid", is_flag=True, help="As Mermaid text, which GitHub and other sites draw.")
@click.option("--most", type=click.IntRange(1), default=1000, show_default=True, help="The most jobs to read.")
def command(jid: str, svg: Any, mermaid: bool, most: int) -> None:
    """Show a job's flow, with the dependencies between its jobs, as text or as a picture.

    The last job of a flow shows all of it; another job shows the jobs before it, and those that still wait for it.
    """
    at = session()
    graph = at.client.flow(jid, most)
    if graph.nodes[jid].state == "gone":
        click.echo(f"There is no job {jid}.", err=True)
        raise click.exceptions.Exit(1)
    if svg is not None:
        svg.write(graph.svg())
    elif mermaid:
        click.echo(graph.mermaid(), nl=False)
    elif at.json:
        edges = [{"from": one, "to": other, **edge._asdict()} for (one, other), edge in graph.edges.items()]
        at.answer({"jobs": [node._asdict() for node in graph.nodes.values()], "edges": edges})
    else:
        _show(graph)
    if not graph.is_whole:
        click.echo(f"The flow has more than {most} jobs: see --most.", err=True)


def _show(graph: Graph) -> None:
    before: dict[str, list[str]] = {jid: [] for jid in graph.nodes}
    for (one, other), edge in graph.edges.items():
        if other in before:
            policy = f" ({edge.on_failure})" if edge.on_failure != "block" else ""
            before[other].append(one + policy)
    for layer in graph.layers():
        for jid in layer:
            node = graph.nodes[jid]
            after = f"  after {', '.join(before[jid])}" if before[jid] else ""
            click.echo(f"{node.state:<10} {node.klass or '?':<20} {jid}{after}")
