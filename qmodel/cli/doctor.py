"""`qmodel doctor`: print the findings of `qmodel.doctor`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from qmodel.cli.session import Session, common, session
from qmodel.doctor import CHECKS, FAIL, OK, SKIP, WARN, Finding, examine

COLORS = {OK: "green", SKIP: "cyan", WARN: "yellow", FAIL: "red"}


@click.command("doctor")
@click.option("--resolve", is_flag=True, help="Apply the repairs that are safe.")
@click.option("--keys", is_flag=True, help="On a server, check every key, too (up to 100,000), in one script.")
@click.option("--app", metavar="MODULE:APP", help="Check an app and the server of its jobs, too.")
def command(resolve: bool, keys: bool, app: str | None) -> None:
    """Check the environment, the server and the jobs; suggest repairs.

    `--resolve` removes silent workers from the list, computes the next moments of cron expressions, completes a step
    that stopped in its middle, renames keys of a wrong type to `<prefix>aside:<name>`, raises a sequence that is behind
    its events, and drops ids without a job from their lists; nothing else. Only a person can decide to unpause a queue
    or to retry a failed job; the next pop takes the jobs of lost workers; and of two keys that contradict each other
    none is known to be right.

    What could not be checked, or was not asked for, is named as SKIP. Exit code 1 if a check fails; warnings alone are
    not a failure.
    """
    at = session()
    at.look_at_keys = keys
    found = []
    for finding in _examined(at, app):
        done = finding.resolve() if resolve and finding.resolve else ""
        found.append(finding._replace(level=WARN) if done and finding.level == FAIL else finding)
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
    """Give all findings, those on an app first and last. Its server is checked, unless --url is given."""
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
