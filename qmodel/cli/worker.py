"""`qmodel worker`: run the jobs of an app."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.convert import DURATION
from qmodel.cli.session import common, session
from qmodel.errors import did_you_mean

if TYPE_CHECKING:
    from qmodel.app import App


@click.command("worker")
@click.argument("app", metavar="MODULE:APP")
@click.option(
    "--queues",
    "-q",
    help="The queues, separated by commas; with weights, a=3,b=1. [default: those of the app's job types]",
)
@click.option(
    "--order",
    type=click.Choice(["ordered", "round-robin", "weighted"]),
    help="The order of the queues. [default: ordered; weighted with weights, round-robin without --queues]",
)
@click.option("--concurrency", "-c", default=1, show_default=True, help="The most jobs at a time, in each process.")
@click.option("--processes", "-p", default=1, show_default=True, help="How many processes.")
@click.option(
    "--runner", type=click.Choice(["thread", "async", "fork"]), default="thread", show_default=True,
    help="What runs the jobs: threads, an event loop, or a process for each job.",
)  # fmt: skip
@click.option("--memory", metavar="SIZE", help="The memory limit of a job with --runner fork, such as 512M.")
@click.option(
    "--prefetch", type=int, default=100, show_default=True, help="The most quick jobs to hold before they start."
)
@click.option(
    "--grace", type=DURATION, default="30", show_default=True, help="The time that running jobs have after SIGTERM."
)
@click.option("--name", help="The worker's name. [default: <host>-<pid>]")
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Answer /live, /ready and /metrics at this address.",
)
@click.option("--health-host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="On which address.")
@click.option("--burst", is_flag=True, help="End as soon as no job is ready and none runs.")
@click.option("--reload", is_flag=True, help="Restart when a Python file here changes. For development.")
@click.option("--log-json", is_flag=True, help="Write each line of the log as JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Say more.")
@click.option("--quiet", is_flag=True, help="Log only warnings and errors.")
def command(app: str, queues: str | None, order: str | None, **given: Any) -> None:
    """Run the jobs of an app.

    \b
        qmodel worker jobs:app                                   all queues of the app, round-robin, one job at a time
        qmodel worker jobs:app -q mails,images -c 10             ten at a time, mails first
        qmodel worker jobs:app -q mails=3,images=1 -c 10         three of four times mails first
        qmodel worker jobs:app --runner fork --memory 512M -c 4  each job in a process of its own
        qmodel worker jobs:app --reload                          restart with each change of the code
    \b
    Ctrl-C lets it finish the running jobs; a second Ctrl-C releases them. SIGTERM lets it finish within --grace.
    """
    from qmodel.app import load
    from qmodel.app.connections import Connection
    from qmodel.worker import Worker

    if given.pop("reload"):
        _reload()
        return
    _log(given.pop("verbose"), given.pop("quiet"), given.pop("log_json"))
    loaded = load(app)
    if session().url_from == "--url":
        loaded.connection = Connection(session().url)
    _check_url(loaded)
    names, weights = (list(loaded.queues), {}) if queues is None else _queues(queues)
    _check_queues(loaded, names)
    given |= {"memory": _size(given["memory"]), "grace": given["grace"] / 1000}
    host, port = given.pop("health_host"), given.pop("health_port")
    given["health"] = None if port is None else (host, port)
    by_default = "round-robin" if queues is None else "weighted" if weights else "ordered"
    given |= {"order": order or by_default, "weights": weights}
    try:
        worker = Worker(loaded, names, **given, profile=True)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    worker.run()
    # A plain function that does not check for the stop would keep this process alive.
    if worker.abandoned or _has_left_threads():
        logging.shutdown()
        os._exit(0)


def _check_url(loaded: App) -> None:
    """Refuse a URL that nobody has given, and warn of one that no other process can reach."""
    if loaded.connection.is_unset:
        raise click.UsageError(
            "No server is given, so this worker would wait for jobs that nobody can put: memory:// has only those of "
            "its own process. Set QMODEL_URL, or give --url redis://localhost:6379/0."
        )
    if loaded.url == "memory://":
        click.echo("memory:// has only the jobs of this process. Set QMODEL_URL, or give --url.", err=True)
        loaded.connection.told()


def _check_queues(loaded: App, names: list[str]) -> None:
    """Warn of a queue that no job type has, if its name is almost that of one that a job type has."""
    for name in names:
        close = did_you_mean(name, loaded.queues)
        if close and name not in loaded.queues:
            click.echo(f"No job type has the queue {name}. Did you mean {close}?", err=True)


def _has_left_threads() -> bool:
    """Say whether plain functions still run after the event loop has ended; idle threads have ended by now."""
    until = time.monotonic() + 1
    left = [one for one in threading.enumerate() if one.name.startswith("qmodel-plain")]
    for one in left:
        one.join(max(until - time.monotonic(), 0))
    return any(one.is_alive() for one in left)


def _queues(text: str) -> tuple[list[str], dict[str, float]]:
    """Read the queues and their weights.

    >>> _queues("a,b"), _queues("a=3,b")
    ((['a', 'b'], {}), (['a', 'b'], {'a': 3.0}))
    """
    names, weights = [], {}
    for one in filter(None, (part.strip() for part in text.split(","))):
        name, equals, weight = one.partition("=")
        names.append(name)
        if equals:
            try:
                weights[name] = float(weight)
            except ValueError:
                raise click.BadParameter(f"{weight!r} is not a weight of {name}.", param_hint="--queues") from None
    return names, weights


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _size(text: str | None) -> int | None:
    """Read a size in bytes.

    >>> _size("512M"), _size("2G"), _size(None)
    (536870912, 2147483648, None)
    """
    if text is None:
        return None
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not (number.isascii() and number.isdigit()) or unit not in _UNITS:
        raise click.BadParameter(f"{text!r} is not a size; write 512M or 2G.", param_hint="--memory")
    return int(number) * _UNITS[unit]


def _log(verbose: bool, quiet: bool, json: bool) -> None:
    from qmodel.telemetry import logs

    logs.install(json, level=logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO)


def _reload() -> None:
    """Run this command in another process, without --reload."""
    from qmodel.worker import reload

    given = [argument for argument in sys.argv[1:] if argument != "--reload"]
    reload.run([sys.executable, "-m", "qmodel", *given], Path.cwd())


common(command)
