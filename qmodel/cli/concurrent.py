"""`qmodel conformance concurrent`: run many clients at once, and check that the replies are linearizable."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import click

from qmodel.backends import parts_of
from qmodel.cli import without_password
from qmodel.cli.session import common, session

EXIT_CODES = "Exit codes: 0 linearizable, 1 not, 2 wrong command line, 4 undecided, 69 no server."
UNDECIDED = 4


@click.command("concurrent", epilog=EXIT_CODES)
@click.option(
    "--clients",
    default=8,
    show_default=True,
    type=click.IntRange(0, 200),
    help="The number of clients, besides drivers.",
)
@click.option(
    "--operations",
    default=2000,
    show_default=True,
    type=click.IntRange(1),
    help="The number of operations, of all clients.",
)
@click.option("--jobs", default=5, show_default=True, type=click.IntRange(1, 1000), help="How many they meet at.")
@click.option("--seed", help="The seed of the operations.  [default: a new random one]")
@click.option("--lose", default=0.0, type=click.FloatRange(0, 0.5), help="The share of lost packets, such as 0.01.")
@click.option("--driver", "commands", multiple=True, metavar="COMMAND", help="A driver as one more client; repeatable.")
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=120.0,
    show_default=True,
    help="The processor time to search for an order.",
)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Write a timeline to this HTML file.")
def command(
    clients: int,
    operations: int,
    jobs: int,
    seed: str | None,
    lose: float,
    commands: tuple[str, ...],
    seconds: float,
    picture: Path | None,
) -> None:
    """Run many clients at once, and check that their replies are linearizable.

    They work in a namespace of their own on the server that --url says, about a few jobs in two queues. A lost packet
    cuts the client's connection; then neither the client nor the checker knows the outcome. The picture shows the
    clients side by side, the longest order that the model accepts, and the operations that do not fit into it.

    The same seed gives the same operations; their overlap differs each time.

    \b
        qmodel conformance concurrent --url redis://localhost:6379/0 --lose 0.01 --picture violation.html
    """
    from qmodel.conformance.concurrency import timeline
    from qmodel.conformance.concurrency.contention import Run
    from qmodel.conformance.concurrency.linearizability import check

    if not clients and not commands:
        raise click.UsageError("Give --clients or --driver.")
    at, seed = session(), seed or secrets.token_hex(4)
    run = Run(-(-operations // (clients + len(commands))), seed, jobs)
    history = _recorded(at.url, clients, [shlex.split(one) for one in commands], lose, run)
    verdict = check(history, seconds)
    if picture is not None:
        picture.write_text(timeline.page(verdict), encoding="utf-8")
    if at.json:
        at.answer({"seed": seed, "answer": verdict.answer, "operations": len(history), "said": str(verdict)})
    else:
        colors = {"linearizable": "green", "violation": "red", "undecided": "yellow"}
        click.secho(str(verdict), fg=colors[verdict.answer])
        if verdict.stuck is not None:
            click.echo(timeline.headline(verdict))
        again = f"--clients {clients} --operations {operations} --jobs {jobs} --seed {seed} --lose {lose:g}"
        click.echo(f"Again: qmodel conformance concurrent --url {without_password(at.url)} {again}")
    if verdict.answer != "linearizable":
        raise click.exceptions.Exit(1 if verdict.answer == "violation" else UNDECIDED)


def _recorded(url: str, clients: int, commands: list[list[str]], lose: float, run: Any) -> list[Any]:
    from qmodel.conformance.concurrency import contention
    from qmodel.conformance.concurrency.lossy import LossyLine
    from qmodel.conformance.kit.contender import ByDriver
    from qmodel.conformance.kit.namespace import is_server, namespaces

    if lose and not (is_server(url) and "+" not in parts_of(url).scheme):
        raise click.UsageError("--lose needs a server of its own: give --url redis://host:6379/0.")
    with ExitStack() as stack:
        spaces = stack.enter_context(namespaces(url))
        prefix = spaces.fresh()
        serves = is_server(url)
        own = _with(url, prefix=prefix, requests="given") if serves else url
        watcher = contention.ByBackend(own)
        stack.callback(watcher.close)
        if watcher.layout is not None:
            raise click.UsageError("This works in one namespace: give the URL of a shard, or of a server.")
        line = stack.enter_context(LossyLine(own, lose, run.seed)).url if lose else own
        drivers = [_opener(ByDriver, one, spaces.url, prefix) for one in commands]
        among = clients + len(drivers)

        def work(begun: Any) -> list[Any]:
            if not serves:
                return contention.threads([lambda: watcher] * clients + drivers, begun)
            with ThreadPoolExecutor(1) as beside:
                others = beside.submit(contention.threads, drivers, begun, clients, among)
                sent = _with(line, deadline="0", requests="given")
                return (contention.processes(sent, clients, among, begun) if clients else []) + others.result()

        return contention.record(watcher, work, run)


def _opener(kind: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    return lambda: kind(*given)


def _with(url: str, **options: str) -> str:
    """Add options to a URL."""
    head, _, query = url.partition("?")
    return f"{head}?{urlencode(dict(parse_qsl(query)) | options)}"


common(command)
