"""`qmodel conformance fresh`: campaigns with new seeds on each subject, which keep what differs."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmodel.cli.session import common, session
from qmodel.present.durations import format_duration
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.conformance.campaign.fresh import Campaign


@click.command("fresh")
@click.option(
    "--seconds",
    type=click.FloatRange(0),
    default=60.0,
    show_default=True,
    help="Processor time for each subject.",
)
@click.option(
    "--subject",
    "subjects",
    multiple=True,
    metavar="URL",
    help="What is compared with the model: embedded, valkey, redis, or a backend's URL, below whose prefix the "
    "histories have one of their own, removed at the end. Repeatable.  [default: embedded, and the servers found here]",
)
@click.option("--seed", help="The seed of the campaigns.  [default: a new random one]")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the shortest history of each difference there, as JSON lines for `qmodel run`.",
)
def command(seconds: float, subjects: tuple[str, ...], seed: str | None, keep: Path | None) -> None:
    """Compare subjects with the model on new random histories.

    Campaigns of several sizes follow one another, one of them in the dialect of qless, until the time is over or a
    difference is found; the subjects are compared side by side. Exit code 1 if any subject differs.
    """
    from qmodel.conformance.campaign import fresh
    from qmodel.conformance.subjects.named import Opening, available
    from qmodel.processes import spread

    names, seed = subjects or tuple(available()), seed or secrets.token_hex(4)
    for name in names:
        Opening(name).check()
    at = session()
    if not at.json:
        click.echo(f"Seed {seed}: {format_duration(seconds * 1000)} on each of {', '.join(names)}")
    found = []
    for campaigns in spread(fresh.Work(seed, seconds), names, len(names)):  # each waits for a server at times
        found.append(campaigns)
        if not at.json:
            _show(campaigns)
        if keep is not None and campaigns[-1].text:
            click.echo(f"Kept as {fresh.keep(keep, campaigns[-1])}", err=at.json)
    if at.json:
        at.answer({"seed": seed, "subjects": [_as_json(campaigns) for campaigns in found]})
    if any(campaigns[-1].text for campaigns in found):
        raise click.exceptions.Exit(1)


def _show(campaigns: list[Campaign]) -> None:
    last = campaigns[-1]
    if last.text:
        click.echo(f"{last.text}\n\nAgain: {last.again}")
    histories, steps = sum(one.histories for one in campaigns), sum(one.steps for one in campaigns)
    said = f"{last.subject}: {counted(len(campaigns), 'campaign')}, {counted(histories, 'history', 'histories')}, "
    said += f"{counted(steps, 'step')}: "
    click.secho(said + ("a difference" if last.text else "no difference"), fg="red" if last.text else "green")


def _as_json(campaigns: list[Campaign]) -> dict[str, object]:
    last = campaigns[-1]
    return {
        "subject": last.subject,
        "campaigns": [{"seed": one.seed, **one.size._asdict(), "run": one.again} for one in campaigns],
        "histories": sum(one.histories for one in campaigns),
        "steps": sum(one.steps for one in campaigns),
        "agrees": not last.text,
        "text": last.text,
        "vector": last.vector,
    }


common(command)
