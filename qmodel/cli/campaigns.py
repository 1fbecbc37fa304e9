"""Summaries of campaigns in several processes, for people and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.cli.session import Session
    from qmodel.conformance.campaign.parts import Total

PICTURE = click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw the coverage, as SVG.")

MOST_SHOWN = 3
"""The most kinds of failures to show in full."""


def answer(at: Session, total: Total, seed: str, again: str, picture: Path | None = None) -> None:
    """Show the summary of a campaign, draw its coverage if requested, and exit with 1 if a difference was found."""
    if picture is not None:
        from qmodel.conformance.campaign import reached_svg

        histories = counted(total.histories, "history", "histories")
        said = f"What {histories} ({counted(total.steps, 'operation')}) reached; red: never"
        picture.write_text(reached_svg.picture(total.reached, said), encoding="utf-8")
    if at.json:
        at.answer(as_json(total, seed))
    else:
        _show(total)
        click.echo(f"Again: {again}")
    if not total.agrees:
        raise click.exceptions.Exit(1)


def as_json(total: Total, seed: str) -> dict[str, Any]:
    """Give the summary of a campaign, for JSON."""
    from qmodel.conformance.campaign.parts import missed
    from qmodel.conformance.campaign.reached import pairs

    unreached = missed(total.reached)
    return {
        "subject": total.subject,
        "seed": seed,
        "histories": total.histories,
        "steps": total.steps,
        "seconds": round(total.seconds, 3),
        "agrees": total.agrees,
        "processes": dict(sorted(total.by.items())),
        "pairs": len(pairs()),
        "pairs_reached": len(pairs()) - len(unreached),
        "missed": [list(pair) for pair in unreached],
        "outcomes_reached": len(total.reached),
        "failures": [found._asdict() for found in total.failures],
    }


def _show(total: Total) -> None:
    from qmodel.conformance.campaign.parts import missed
    from qmodel.conformance.campaign.reached import pairs

    kinds = list(total.kinds())
    for found in kinds[:MOST_SHOWN]:
        click.echo(f"{found.text}\n")
    if len(kinds) > MOST_SHOWN:
        click.echo(f"and {len(kinds) - MOST_SHOWN} more kinds of differences; --json shows all\n")
    click.secho(str(total), fg="green" if total.agrees else "red")
    there, unreached = len(pairs()), missed(total.reached)
    some = ", ".join(f"{operation} on {situation}" for operation, situation in unreached[:3])
    rest = f"; not: {some}{', ...' if len(unreached) > 3 else ''}" if unreached else ""
    click.echo(
        f"{there - len(unreached)} of {there} pairs of operation and situation reached, "
        f"{len(total.reached)} outcomes of them{rest}"
    )
