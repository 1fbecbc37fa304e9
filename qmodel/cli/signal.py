"""`qmodel signal`: make workers take no more jobs, resume, or stop, wherever they run."""

from __future__ import annotations

import time

import click

from qmodel.cli import show
from qmodel.cli.convert import DURATION, format_duration
from qmodel.cli.session import Session, common, session
from qmodel.contract.arguments import MOST
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted

LOOKS = 0.2
"""Seconds between two checks whether workers have answered."""


@click.command("signal")
@click.argument("signal", type=click.Choice(["quiet", "resume", "stop"]), required=False)
@click.argument("workers", nargs=-1, metavar="[WORKER]...")
@click.option("--all", "everyone", is_flag=True, help="All workers on the list.")
@click.option("--give-back", is_flag=True, help="With stop: release the running jobs at once.")
@click.option(
    "--wait", type=DURATION, help="Wait for the answers of the workers, at most this long: 90 (seconds), 1.5s, 10m."
)
def command(signal: str | None, workers: tuple[str, ...], everyone: bool, give_back: bool, wait: int | None) -> None:
    """Make workers quiet (they take no more jobs), resume (they take jobs again), or stop, wherever they run.

    \b
        qmodel signal                               the last signal of each worker, and its answer
        qmodel signal quiet host-4711               no more jobs; running jobs continue
        qmodel signal resume host-4711
        qmodel signal stop host-4711 host-4712      end after the running jobs, or after --grace
        qmodel signal quiet --all --wait 10         before a deployment, for example

    A `qmodel worker` reads the signal within two seconds; programs with their own loop do not. `qmodel workers`
    lists the names. What started a worker (systemd, Kubernetes) decides whether another one begins when it stops.
    """
    at = session()
    if signal is None:
        _show(at)
        return
    if bool(workers) == everyone:
        raise click.UsageError("Name the workers, or give --all. `qmodel workers` lists them.")
    if give_back and signal != "stop":
        raise click.UsageError("--give-back goes with stop.")
    names = _listed(at) if everyone else workers
    if names:
        _send(at, signal, names, give_back)
        if wait is not None:
            _wait(at, names, wait)
    if at.json:
        at.answer({"signal": signal, "workers": list(names)})
    else:
        click.echo(f"Told {counted(len(names), 'worker')} to {_phrase(signal)}.")


def _phrase(signal: str) -> str:
    return "be quiet" if signal == "quiet" else signal


def _send(at: Session, signal: str, names: tuple[str, ...], give_back: bool) -> None:
    if signal == "quiet":
        at.client.workers.quiet(*names)
    elif signal == "resume":
        at.client.workers.resume(*names)
    else:
        at.client.workers.stop(*names, now=give_back)


def _listed(at: Session) -> tuple[str, ...]:
    found = at.client.workers.counts(0, MOST)
    if len(found) == MOST:
        raise click.UsageError(f"There are {MOST} workers or more: name the workers.")
    return tuple(one.name for one in found)


def _wait(at: Session, names: tuple[str, ...], wait: int) -> None:
    """Wait until workers have answered; one without a signal has ended."""
    until = time.monotonic() + wait / 1000
    while True:
        told = at.client.workers.signals()
        deaf = [name for name in names if name in told and not told[name].heard]
        if not deaf:
            return
        if time.monotonic() > until:
            raise QmodelError(
                f"No answer within {format_duration(wait)}: {', '.join(deaf[:5])}{', ...' * (len(deaf) > 5)}. "
                "Do they run `qmodel worker`? Only that reads signals."
            )
        time.sleep(LOOKS)


def _show(at: Session) -> None:
    told = at.client.workers.signals()
    if at.json:
        at.answer({name: one._asdict() for name, one in told.items()})
    elif not told:
        click.echo("No worker has a signal.")
    else:
        rows = [(name, one.signal, one.state or "(no answer yet)") for name, one in told.items()]
        show.table(at, ("worker", "signal", "state"), rows)


common(command)
