"""`qmodel audit`: the journal, executed once more on the model."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qmodel.cli.session import Session, common, session
from qmodel.errors import QmodelError

if TYPE_CHECKING:
    from qmodel.conformance.snapshot import Snapshot
    from qmodel.pipeline.auditing import Audit, Difference

STATE = click.Path(dir_okay=False)


@click.command("audit")
@click.option("--from", "begin", type=STATE, metavar="FILE", help="Begin with the state that --save or --take wrote.")
@click.option("--save", type=STATE, metavar="FILE", help="Write the state after the last entry, for the next --from.")
@click.option("--take", type=STATE, metavar="FILE", help="Only write the state that the server has now, for --from.")
@click.option("--state", is_flag=True, help="Compare the server's whole state, too, with what the model comes to.")
@click.option("--most", default=10, show_default=True, type=click.IntRange(1), help="How many differences are shown.")
def command(begin: str | None, save: str | None, take: str | None, state: bool, most: int) -> None:
    """Check that the server did what the model says: execute its journal once more.

    Each operation that the journal holds is executed on the model, at its moment; what it replies, or why it refuses,
    must be what the server answered. `qmodel config-set journal 1` begins a journal. Where the namespace was in use
    before, write its state with --take while the journal is on, and begin with that. With --from and --save each audit
    goes on where the one before ended. Exit code 1 when something differs.
    """
    at = session()
    if take:
        from qmodel.conformance.taking import taken

        found = taken(at.url)
        _write(take, found)
        _told(at, {"entry": found.journaled, "file": take}, f"The state after entry {found.journaled} is in {take}.")
        return
    _audit(at, begin, save, state, most)


def _audit(at: Session, begin: str | None, save: str | None, state: bool, most: int) -> None:
    from qmodel.conformance.taking import taken
    from qmodel.pipeline.auditing import Audit, differences
    from qmodel.pipeline.journaling import entries

    audit, began = Audit(_read(begin) if begin else None), time.monotonic()
    now = taken(at.url) if state else None
    shown = 0
    until = None if now is None else now.journaled
    for shown, found in enumerate(audit.follow(entries(at.client, audit.number, until)), 1):
        if shown <= most:
            _show(at, found)
    paths = differences(audit.state(), now) if now is not None else []
    for path in paths[:most] if not at.json else ():
        click.secho(f"state: {path}", fg="red")
    if save:
        _write(save, audit.state())
    _end(at, audit, shown, paths, time.monotonic() - began)


def _show(at: Session, found: Difference) -> None:
    if at.json:
        at.answer(found._asdict())
    else:
        click.secho(f"{found}\n", fg="red")


def _end(at: Session, audit: Audit, differ: int, paths: list[str], seconds: float) -> None:
    said = {"entries": audit.entries, "last": audit.number, "differences": differ, "state": paths}
    rate = audit.entries / seconds if seconds else 0
    sentence = f"{audit.entries} entries up to {audit.number}, {differ} differ ({rate:,.0f} a second)."
    if not audit.entries and not audit.number:
        sentence += " Nothing is recorded: begin with `qmodel config-set journal 1`."
    _told(at, said, sentence)
    if differ or paths:
        raise click.exceptions.Exit(1)


def _told(at: Session, said: dict[str, object], sentence: str) -> None:
    at.answer(said) if at.json else click.echo(sentence)


def _read(path: str) -> Snapshot:
    from qmodel.conformance import restoring

    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return restoring.loads(file.read())
    except (OSError, EOFError, ValueError) as error:
        raise QmodelError(f"{path} is no state that --save or --take wrote: {error}.") from None


def _write(path: str, found: Snapshot) -> None:
    """Write a state beside the file, then in its place: whoever is killed leaves the old one."""
    from qmodel.conformance import restoring

    beside = Path(f"{path}.new")
    try:
        with gzip.open(beside, "wt", encoding="utf-8", compresslevel=3) as file:
            file.write(restoring.dumps(found))
        beside.replace(path)
    except OSError as error:
        raise QmodelError(f"{path} cannot be written: {error.strerror}.") from None


common(command)
