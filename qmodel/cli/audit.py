"""`qmodel audit`: execute the journal once more, on the model."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qmodel.cli.session import Session, common, session
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.contract.replies import Recorded
    from qmodel.model.snapshot import Snapshot
    from qmodel.pipeline.audit.replay import Audit

STATE = click.Path(dir_okay=False)


@click.command("audit")
@click.option("--from", "begin", type=STATE, metavar="FILE", help="Begin with the state that --save or --take wrote.")
@click.option("--save", type=STATE, metavar="FILE", help="Write the state after the last entry, for the next --from.")
@click.option("--take", type=STATE, metavar="FILE", help="Only write the state that the server has now, for --from.")
@click.option("--state", is_flag=True, help="Compare the server's whole state with the model's, too.")
@click.option("--most", default=10, show_default=True, type=click.IntRange(1), help="The most differences to show.")
def command(begin: str | None, save: str | None, take: str | None, state: bool, most: int) -> None:
    """Check that the server did what the model says: execute its journal once more.

    Each operation in the journal is executed on the model, at its moment; the model's reply or refusal must equal the
    server's. `qmodel op config-set journal 1` starts a journal. If the namespace was in use
    before, write its state with --take while the journal is on, and begin with that state. With --from and --save each
    audit continues where the one before ended. Exit code 1 if something differs.

    `qmodel journals` keeps more of a journal than the server does, and audits that.
    """
    at = session()
    if take:
        from qmodel.backends.redis.take_snapshot import taken

        found = taken(at.url)
        _write(take, found)
        told(at, {"entry": found.journaled, "file": take}, f"The state after entry {found.journaled} is in {take}.")
        return
    _audit(at, begin, save, state, most)


def _audit(at: Session, begin: str | None, save: str | None, state: bool, most: int) -> None:
    from qmodel.backends.redis.take_snapshot import taken
    from qmodel.pipeline.audit.replay import Audit, differences, without_collection

    audit = Audit(_read(begin) if begin else None)
    now = taken(at.url) if state else None
    found = _one_history(at, audit, None if now is None else now.journaled)
    began, rows = time.monotonic(), list[dict[str, Any]]()
    with without_collection():
        rows += [{"kind": "reply", **difference._asdict()} for difference in audit.follow(found)]
    if now is not None:
        rows += [{"kind": "state", "expected": path} for path in differences(audit.state(), now)]
    if save:
        _write(save, audit.state())
    rows.append({"kind": "end", "number": audit.number, "entries": audit.entries})
    answer(at, rows, most, time.monotonic() - began)


def _one_history(at: Session, audit: Audit, last: int | None) -> Iterator[Recorded]:
    """Read the entries after those that were audited. Raises AuditForked if the server lost some of these."""
    from qmodel.errors import Forked
    from qmodel.pipeline.audit.replay import AuditForked
    from qmodel.pipeline.journal.pages import entries

    try:
        yield from entries(at.client, audit.number, last, epoch=audit.epoch)
    except Forked as fork:
        raise AuditForked(int(fork.after), int(fork.epoch), int(fork.current), int(fork.common)) from None


def answer(at: Session, rows: Sequence[dict[str, Any]], most: int, seconds: float) -> None:
    """Print the findings of an audit; exit with 1 if there are any."""
    from qmodel.pipeline.audit.replay import Difference

    wrong = [row for row in rows if row["kind"] != "end"]
    ends = [row for row in rows if row["kind"] == "end"]
    entries, last = sum(row["entries"] for row in ends), max((row["number"] for row in ends), default=0)
    if at.json:
        told(
            at, {"entries": entries, "last": last, "segments": len(ends), "found": wrong[:most], "all": len(wrong)}, ""
        )
    for row in wrong[:most] if not at.json else ():
        shown = Difference(**{name: row[name] for name in Difference._fields}) if row["kind"] == "reply" else ""
        where = f"{row['namespace']}: " if row.get("namespace") else ""
        click.secho(f"{where}{shown or row['kind'] + ': ' + row['expected']}\n", fg="red")
    rate = entries / seconds if seconds else 0
    click.echo(
        f"{counted(entries, 'entry', 'entries')} up to {last}, {len(wrong)} differ ({rate:,.0f} a second).", err=at.json
    )
    if not last:
        click.echo("The journal is empty. To start it: `qmodel op config-set journal 1`.", err=at.json)
    if wrong:
        raise click.exceptions.Exit(1)


def told(at: Session, said: dict[str, Any], sentence: str) -> None:
    """Print a message, as JSON or as a sentence."""
    at.answer(said) if at.json else click.echo(sentence)


def _read(path: str) -> Snapshot:
    from qmodel.model import restore

    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            return restore.loads(file.read())
    except (OSError, EOFError, ValueError) as error:
        raise QmodelError(f"{path} is not a state that --save or --take wrote: {error}.") from None


def _write(path: str, found: Snapshot) -> None:
    """Write a state beside the file, then rename it: a killed process leaves the old one."""
    from qmodel.model import restore

    beside = Path(f"{path}.new")
    try:
        with gzip.open(beside, "wt", encoding="utf-8", compresslevel=3) as file:
            file.write(restore.dumps(found))
        beside.replace(path)
    except OSError as error:
        raise QmodelError(f"{path} cannot be written: {error.strerror}.") from None


common(command)
