"""`qmodel run`: execute a history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from qmodel.cli import show
from qmodel.cli.session import as_json, common, session
from qmodel.contract import redaction
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.errors import error_of
from qmodel.wire.plain import plain


@click.command("run")
@click.argument("file", type=click.File(), default="-")
def command(file: Any) -> None:
    """Execute a history: JSON lines, one operation each, from FILE or the standard input.

    \b
        {"op": "put", "now": 0, "queue": "q", "jid": "a", "klass": "k", "data": ""}
        {"op": "pop", "now": 5, "queue": "q", "worker": "w"}

    Arguments have the catalogue's names and units; without `now` the server's clock is used. Empty
    lines and lines that begin with # are skipped. Each reply is printed; with --json as one
    object a line, {"op", "now", "reply"} or {"op", "now", "refused", "facts", "sentence"}. A
    refusal is a result like any other and does not end the run.
    """
    at = session()
    executed = refused = 0
    for now, op in _history(file, at.now):
        found = redaction.replied(op, at.client.backend.execute(op, now))
        executed += 1
        refused += isinstance(found, Refusal)
        if at.json:
            rest = plain(found) if isinstance(found, Refusal) else {"reply": plain(found)}
            click.echo(as_json({"op": op.spec.name, "now": now, **rest}))
        else:
            _print(op, now, found)
    if not at.json:
        click.echo(f"{executed} executed, {refused} refused", err=True)


def _history(file: Any, otherwise: int | None) -> Iterator[tuple[int | None, Operation]]:
    from qmodel.conformance.histories import json_lines

    def load(found: dict[str, Any]) -> tuple[int | None, Operation]:
        return found.get("now", otherwise), json_lines.load({**found, "now": found.get("now") or 0}).op

    try:
        yield from json_lines.read(file, load)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(str(error), param_hint="FILE") from None


def _print(op: Operation, now: int | None, found: Any) -> None:
    when = "" if now is None else f"{now:>8} "
    given = " ".join(str(getattr(op, a.name)) for a in op.spec.arguments if a.required)
    click.secho(f"{when}{op.spec.name} {show.shortened(given, 80)}".rstrip(), bold=True)
    if isinstance(found, Refusal):
        click.secho(f"  refused: {found.code} {error_of(found).sentence}", fg="red")
        return
    shown = plain(found)
    for one in shown if isinstance(shown, list) else [shown]:
        show.say(f"  {_line(one)}")
    if shown == []:
        click.echo("  nothing")


def _line(one: Any) -> str:
    if isinstance(one, dict) and "jid" in one and "state" in one:
        return f"{one['jid']} ({one['klass']} in {one['queue']}): {one['state']}, token {one['token']}"
    if isinstance(one, dict) and "wait" in one:
        return f"{one['wait']['count']} waited, {one['run']['count']} ran, {one['failures']} failed"
    return "nothing" if one is None else one if isinstance(one, str) else json.dumps(one)


common(command)
