"""`qmodel doctor`: what `qmodel.doctor` finds, on the terminal."""

from __future__ import annotations

import click

from qmodel.cli.session import common, session
from qmodel.doctor import FAIL, OK, WARN, examine

COLORS = {OK: "green", WARN: "yellow", FAIL: "red"}


@click.command("doctor")
@click.option("--resolve", is_flag=True, help="Do what can be done here.")
@click.option("--keys", is_flag=True, help="On a server, look at every key too (up to 100,000), in one script.")
def command(resolve: bool, keys: bool) -> None:
    """Check the environment, the server and the jobs; say what to do.

    `--resolve` takes silent workers off the list, and nothing else: whether a paused queue should go on or a failed job
    run again only a person knows; lost workers' jobs are taken back by the next pop; and of two keys that contradict
    each other none says which is right.

    Exit code 1 when a check fails; a warning alone is no failure.
    """
    at = session()
    at.look_at_keys = keys
    found = []
    for finding in examine(at):
        found.append(finding)
        done = finding.resolve() if resolve and finding.resolve else ""
        if not at.json:
            level = click.style(f"{finding.level:<4}", fg=COLORS[finding.level])
            click.echo(f"{level}  {finding.what}")
            if done or finding.fix:
                click.echo(f"      {'resolved: ' + done if done else finding.fix}")
    if at.json:
        at.answer([{"level": f.level, "what": f.what, "fix": f.fix} for f in found])
    if any(finding.level == FAIL for finding in found):
        raise click.exceptions.Exit(1)


common(command)
