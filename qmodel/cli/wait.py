"""`qmodel wait`: wait until jobs have ended."""

from __future__ import annotations

import math
from typing import Any

import click

from qmodel.cli.convert import DURATION
from qmodel.cli.session import common, session
from qmodel.errors import DataError, QmodelError


@click.command("wait")
@click.argument("jids", nargs=-1, required=True, metavar="JID...")
@click.option("--timeout", type=DURATION, help="The longest wait: 90 (seconds), 1.5s, 10m. [default: for ever]")
def command(jids: tuple[str, ...], timeout: int | None) -> None:
    """Wait until all of the jobs have ended, and print their results, a line of JSON each.

    A job that is retried, or goes on to another queue, has not ended. If a job has no result, a line on the standard
    error says why, and the exit code is 1; with --json every job is an object, {"jid", "result"} or
    {"jid", "error", "sentence"}.
    """
    from qmodel.client.convert import encode

    at = session()
    found = at.client.wait(jids, math.inf if timeout is None else timeout / 1000)
    failed = False
    for jid, given in zip(jids, found, strict=True):
        result = _checked(given)
        error = isinstance(result, QmodelError)
        failed = failed or error
        if at.json:
            click.echo(encode({"jid": jid, **(_plain(result) if error else {"result": result})}))
        else:
            click.secho(str(result) if error else encode(result), fg="red" if error else None, err=error)
    if failed:
        raise click.exceptions.Exit(1)


def _checked(result: Any) -> Any:
    """Give a result, or the error of one that is no JSON: Python reads NaN, and others do not."""
    from qmodel.client.convert import encode

    if isinstance(result, QmodelError):
        return result
    try:
        encode(result)
    except DataError as error:
        return error
    return result


def _plain(error: QmodelError) -> dict[str, Any]:
    return {"error": type(error).__name__, "sentence": str(error)}


common(command)
