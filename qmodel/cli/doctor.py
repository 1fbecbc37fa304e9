"""`qmodel doctor`: what `qmodel.doctor` finds, on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from qmodel.cli.session import Session, common, session
from qmodel.doctor import CHECKS, FAIL, OK, WARN, Finding, examine

COLORS = {OK: "green", WARN: "yellow", FAIL: "red"}


@click.command("doctor")
@click.option("--resolve", is_flag=True, help="Do what can be done here.")
@click.option("--keys", is_flag=True, help="On a server, look at every key too (up to 100,000), in one script.")
@click.option("--app", metavar="MODULE:APP", help="Look at an app too, and at the place where it has its jobs.")
def command(resolve: bool, keys: bool, app: str | None) -> None:
    """Check the environment, the server and the jobs; say what to do.

    `--resolve` takes silent workers off the list, tells recurring jobs the next moments of their cron expressions, and
    nothing else: whether a paused queue should go on or a failed job run again only a person knows; lost workers' jobs
    are taken back by the next pop; and of two keys that contradict each other none says which is right.

    Exit code 1 when a check fails; a warning alone is no failure.
    """
    at = session()
    at.look_at_keys = keys
    found = []
    for finding in _examined(at, app):
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


def _examined(at: Session, where: str | None) -> Iterator[Finding]:
    """All findings; where there is an app, about that first and last. Its place is looked at, unless --url is given."""
    if where is None:
        yield from examine(at)
        return
    from qmodel.doctor import app_checks

    app, finding = app_checks.loaded(where)
    yield finding
    if app is not None:
        if at.url_from != "--url":
            at.url, at.url_from = app.url, where
        yield from examine(at, (*CHECKS, app_checks.check(app, where)))


common(command)
