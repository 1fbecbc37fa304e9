"""`./dev sim`: run seeds of the simulator, or repeat one."""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO

import click

from qmodel.errors import QmodelError
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted
from qmodel.processes import spread
from qmodel.simulator.settings import drawn
from qmodel.simulator.timed import Timed, timed
from qmodel.simulator.world import Result, run

_TIME = click.FloatRange(0, 1e9, min_open=True)


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True, help="How many seeds.")
@click.option("--first", default=1, show_default=True, help="The first of them; the others are the numbers after it.")
@click.option(
    "--seconds",
    type=_TIME,
    default=60.0,
    show_default=True,
    help="Virtual seconds in which faults come, for each seed.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    help="How many processes.  [default: one for each core]",
)
@click.option("--minutes", type=_TIME, help="Start no further seed after so many minutes by the clock.")
@click.option("--replay", metavar="SEED", help="Repeat one seed, and show what it draws and finds.")
@click.option("--dump", type=click.File("wb", lazy=False), help="With --replay: write all packets there.")
def command(
    seeds: int,
    first: int,
    seconds: float,
    processes: int,
    minutes: float | None,
    replay: str | None,
    dump: BinaryIO | None,
) -> None:
    """Run client, worker, App and serve in virtual time, with faults, each seed with settings of its own.

    Exit code 1 if anything was found that must not happen.
    """
    if replay is not None:
        _replay(replay, seconds, dump)
        return
    if dump is not None:
        raise click.UsageError("--dump writes the packets of one seed: name it with --replay.")
    total, cpu, elapsed, bad, done = Counter[str](), 0.0, 0.0, 0, 0
    until = time.monotonic() + minutes * 60 if minutes is not None else math.inf
    names = itertools.takewhile(lambda name: time.monotonic() < until, map(str, range(first, first + seeds)))
    for one in _results(partial(timed, seconds), names, min(processes, seeds)):
        total += one.result.counts
        cpu, elapsed, done = cpu + one.cpu, elapsed + one.result.seconds, done + 1
        if one.result.findings:
            bad += 1
            _show(one.result, seconds)
    said = f"{counted(done, 'seed')}, {format_duration(elapsed * 1000)} of virtual time, "
    said += f"{counted(total['operations'], 'operation')}, {format_duration(cpu * 1000)} of processor time"
    lost = total["puts lost by the failure model"]
    click.echo(f"{said}; {lost} of {counted(total['puts acknowledged'], 'put')} lost as the failure model allows")
    click.secho(f"{counted(bad, 'seed')} found something" if bad else "nothing found", fg="red" if bad else "green")
    sys.exit(1 if bad else 0)


def _results(work: Callable[[str], Timed], names: Iterable[str], processes: int) -> Iterator[Timed]:
    try:
        yield from spread(work, names, processes)
    except QmodelError as error:
        raise click.ClickException(str(error)) from None


def _replay(seed: str, seconds: float, dump: BinaryIO | None) -> None:
    settings = drawn(seed, seconds)
    for name, value in settings._asdict().items():
        click.echo(f"{name:>15}  {tuple(value) if isinstance(value, tuple) else value}")
    result = run(seed, settings, dump)
    for name, count in sorted(result.counts.items()):
        click.echo(f"{count:>15}  {name}")
    packets, switches = counted(result.packets, "packet"), counted(result.switches, "switch", "switches")
    click.echo(f"Digest {result.digest}: {packets}, {switches}")
    _show(result, seconds)
    sys.exit(1 if result.findings else 0)


def _show(result: Result, seconds: float) -> None:
    for one in result.findings:
        click.echo(f"seed {result.seed}, {one.at:.6f} s: {one.oracle}: {one.text}")
    if result.findings:
        more = "" if seconds == 60 else f" --seconds {seconds:.15g}"
        click.echo(f"Again: ./dev sim --replay {result.seed}{more}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets of strings is part of a run
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "qmodel.simulator", *sys.argv[1:]])
    command()
