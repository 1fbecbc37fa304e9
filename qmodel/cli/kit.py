"""`qmodel conformance driver`, `mixed`, `vectors`, `schema` and `requirements`: the kit for authors of bindings."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from qmodel.cli.session import common, session
from qmodel.present.numbers import counted

F = TypeVar("F", bound=Callable[..., Any])

LEVELS = ("smoke", "core", "full", "soak")

EXIT_CODES = "Exit codes: 0 conforms, 1 does not, 2 wrong command line, 3 a driver broke the protocol, 69 no server."


TIME = click.FloatRange(0, min_open=True)

OPTIONS = (
    click.option("--level", type=click.Choice(LEVELS), default="core", show_default=True, help="How far to go."),
    click.option("--seed", default="1", show_default=True, help="The seed of the generated histories."),
    click.option("--minutes", type=TIME, default=1.0, show_default=True, help="How long `soak` lasts."),
    click.option(
        "--timeout", type=TIME, default=30.0, show_default=True, help="Seconds that a driver has for an answer."
    ),
    click.option(
        "--most-failures",
        type=click.IntRange(1),
        default=5,
        show_default=True,
        help="The failures after which a level ends.",
    ),
    click.option("--expected", type=click.File(), help="A list of failures that are expected."),
    click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML to this file."),
    click.option(
        "--badge", type=click.Path(dir_okay=False, path_type=Path), help="Write the JSON of a badge to this file."
    ),
)


def options(function: F) -> F:
    """Give a command the options of runs with drivers."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@click.command("driver", epilog=EXIT_CODES)
@click.argument("command", nargs=-1, required=True)
@options
def driver(command: tuple[str, ...], **given: Any) -> None:
    """Check a binding: run its driver through the suite.

    COMMAND starts the driver; write it after two dashes. It uses the server of --url, in namespaces of its own.
    docs/driver.md describes the protocol, docs/binding.md how to write a first driver.

    \b
        qmodel conformance driver --url redis://localhost:6379/0 -- node examples/drivers/node_driver.mjs
    """
    _run([command], **given)


@click.command("mixed", epilog=EXIT_CODES)
@click.option("--driver", "commands", multiple=True, required=True, metavar="COMMAND", help="A driver; give several.")
@options
def mixed(commands: tuple[str, ...], **given: Any) -> None:
    """Check bindings against each other: several drivers share one namespace and the operations of a history.

    What one binding writes must mean the same to the others: two bindings, or two versions of one.
    """
    if len(commands) < 2:
        raise click.UsageError("Give --driver twice at least.")
    _run([tuple(shlex.split(command)) for command in commands], **given)


def _run(
    commands: Sequence[tuple[str, ...]],
    level: str,
    seed: str,
    minutes: float,
    timeout: float,
    most_failures: int,
    expected: Any,
    junit: Path | None,
    badge: Path | None,
) -> None:
    from qmodel.conformance.kit import show, suite
    from qmodel.conformance.kit.driver import Driver
    from qmodel.conformance.kit.namespace import namespaces
    from qmodel.conformance.kit.session import Session

    at, listed = session(), _listed(expected)
    names = _names(commands)
    with namespaces(_server(at.url)) as there:
        drivers = [Driver(one, name=name, answer_s=timeout) for one, name in zip(commands, names, strict=True)]
        running = Session(drivers, there, seed)
        try:
            how: dict[str, Any] = {"seed": seed, "minutes": minutes, "most_failures": most_failures}
            report = suite.run(running, level, expected=listed, progress=_progress(at.json), **how)
        finally:
            running.close()
    for path, text in ((junit, show.junit), (badge, show.badge)):
        if path is not None:
            path.write_text(text(report), encoding="utf-8")
    if at.json:
        at.answer(show.as_json(report))
    else:
        click.echo("".join(f"{show.failure(result)}\n" for result in report.failures), nl=False)
        click.echo("\n".join(show.introduced(one.name, one.hello) for one in drivers))
        click.secho(show.summary(report), fg="green" if report.conforms else "red")
    raise click.exceptions.Exit(report.exit_code)


def _listed(expected: Any) -> Any:
    """Read the list of expected failures."""
    from qmodel.conformance.kit.expected import read

    try:
        return read(expected.read()) if expected else []
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--expected") from None


def _server(url: str) -> str:
    if url.startswith("memory://") or url.startswith("embedded://"):
        raise click.UsageError(
            f"A driver is another process, which cannot reach {url}: give --url redis://host:6379/0."
        )
    return url


def _names(commands: Sequence[tuple[str, ...]]) -> list[str]:
    """Make a short name for each driver: that of its file, with a number if two are equal."""
    found: list[str] = []
    for command in commands:
        name = Path(next((word for word in reversed(command) if not word.startswith("-")), command[0])).name
        found.append(name if name not in found else f"{name}#{sum(one.startswith(name) for one in found) + 1}")
    return found


def _progress(quiet: bool) -> Callable[[Any], None]:
    """Show a counter on the standard error, if it is a terminal."""
    if quiet or not sys.stderr.isatty():
        return lambda report: None

    def show(report: Any) -> None:
        last = report.results[-1].case
        line = f"{len(report.results)} run, {len(report.failures)} failed  {last.name}"
        click.echo(f"\r\x1b[K{line[:78]}", nl=False, err=True)

    return show


@click.command("vectors")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write to.")
def vectors(out: Path) -> None:
    """Write the vectors: histories with the expected result of each step, as JSON lines, and their schema.

    Any program can run them: examples/run_vectors.py does it in 50 lines.
    """
    from qmodel.conformance.kit import vectors as made

    out.mkdir(parents=True, exist_ok=True)
    told = []
    for level in made.LEVELS:
        shutil.copyfile(made.path_of(level), out / f"{level}.jsonl")
        with (out / f"{level}.jsonl").open(encoding="utf-8") as file:
            told.append(json.loads(file.readline()))
    (out / "vectors.schema.json").write_text(json.dumps(made.as_schema(), indent=1) + "\n", encoding="utf-8")
    if session().json:
        session().answer(told)
        return
    for head in told:
        size = f"{counted(head['vectors'], 'vector')}, {counted(head['operations'], 'operation')}"
        click.echo(f"{out}/{head['level']}.jsonl: {size}")
    click.echo(f"{out}/vectors.schema.json")


@click.command("schema")
@click.argument("name", type=click.Choice(("driver", "vectors")))
def schema(name: str) -> None:
    """Print a JSON Schema: of the driver protocol, or of the vectors."""
    from qmodel.conformance.kit import protocol
    from qmodel.conformance.kit import vectors as made

    found = protocol.as_schema() if name == "driver" else made.as_schema()
    click.echo(json.dumps(found, indent=1))


@click.command("requirements")
def requirements() -> None:
    """List the requirements of a binding, a sentence each."""
    from qmodel.conformance.kit.requirements import REQUIREMENTS

    if session().json:
        session().answer([one._asdict() for one in REQUIREMENTS.values()])
        return
    for one in REQUIREMENTS.values():
        click.echo(f"{one.id:<28} {one.sentence}")


COMMANDS = tuple(map(common, (driver, mixed, vectors, schema, requirements)))
