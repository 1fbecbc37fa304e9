"""`qmodel audit`: execute the journal once more, on the model: that of a server, or an archived one."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from qmodel.cli import files
from qmodel.cli.archive.options import lost_ranges, ranges
from qmodel.cli.live import need
from qmodel.cli.on import on_options, on_spark, only
from qmodel.cli.session import Session, common, session
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.client.sync import Client
    from qmodel.model.snapshot import Snapshot
    from qmodel.pipeline.audit.replay import Audit


@click.command("audit")
@click.argument("archive", required=False)
@click.option("--most", default=10, show_default=True, type=click.IntRange(1), help="The most differences to show.")
@click.option("--from", "begin", metavar="FILE", help="Begin with the state that --save or --take wrote.")
@click.option("--save", metavar="FILE", help="Write the state after the last entry, for the next --from.")
@click.option("--take", metavar="FILE", help="Only write the state that the server has now, for --from.")
@click.option("--follow", is_flag=True, help="Go on with new entries as they come, until Ctrl-C.")
@click.option("--state", is_flag=True, help="Compare the server's whole state with the model's, too.")
@click.option("--after", type=click.IntRange(0), help="ARCHIVE: from the first state after this entry on.")
@click.option("--keep", is_flag=True, help="ARCHIVE: keep the state with which each namespace ends.")
@click.option("--processes", type=click.IntRange(1), help="ARCHIVE: the segments at a time.  [default: cores]")
@on_options
def command(
    archive: str | None,
    most: int,
    begin: str | None,
    save: str | None,
    take: str | None,
    follow: bool,
    state: bool,
    after: int | None,
    keep: bool,
    processes: int | None,
    on: str,
) -> None:
    """Check that the server did what the model says: execute its journal once more.

    Each operation in the journal is executed on the model, at its moment; the model's reply or refusal must equal the
    server's. `qmodel op config-set journal 1` starts a journal. If the namespace was in use
    before, write its state with --take while the journal is on, and begin with that state. With --from and --save each
    audit continues where the one before ended. Exit code 1 if something differs. With --follow it goes on with new
    entries as they come, and names a difference at once.

    In a deployment each shard is audited by itself, and FILE stands for a file of each, FILE.0 and so on. The first
    shard was in use when the deployment was created, so begin with --take there.

    The server keeps the last entries only. `qmodel archive run ARCHIVE --journal` keeps all; then ARCHIVE is audited:
    each namespace from its beginning, or from a state that `archive run --take` or --keep kept. The segments between
    states run side by side, in processes or on Spark; each must end with the state that begins the next.
    """
    at = session()
    if archive is not None:
        refused(_OF_SERVER, {"from": begin, "save": save, "take": take, "follow": follow, "state": state})
        _archived(at, archive, after or 0, keep, processes, most, on)
        return
    refused(_OF_ARCHIVE, {"after": after, "keep": keep, "processes": processes, "on": on != "local"})
    if take:
        for space in _spaces(at):
            found, file = space.state(), space.file(take)
            _write(file, found)
            told(at, {"entry": found.journaled, "file": file}, f"The state after entry {found.journaled} is in {file}.")
        return
    if follow:
        if state:
            raise click.UsageError("--state compares at one moment, and --follow goes on: leave out one of them.")
        if at.client.shards:
            raise click.UsageError("--follow is for one namespace: give the URL of a shard, with its prefix.")
        _follow(at, begin, save, most)
        return
    _audit(at, begin, save, state, most)


STATUS = 10.0
"""The seconds between two lines of --follow that say how far it is."""

_OF_SERVER = "is for the journal on a server: leave out ARCHIVE"
_OF_ARCHIVE = "is for an archived journal: give ARCHIVE"


def refused(why: str, given: dict[str, Any]) -> None:
    """Refuse options that do not fit. Raises UsageError."""
    if named := [name for name, value in given.items() if value]:
        raise click.UsageError(f"--{named[0]} {why}.")


def _archived(at: Session, root: str, after: int, keep: bool, processes: int | None, most: int, on: str) -> None:
    """Audit an archive, in processes of this machine or on Spark."""
    need("pyarrow", "arrow", "audit ARCHIVE")
    from qmodel.pipeline.archive.kinds import JOURNAL, opened
    from qmodel.pipeline.audit import findings
    from qmodel.pipeline.journal.archive import all_segments, left_out
    from qmodel.processes import processes as in_processes

    archive = opened(root, JOURNAL)
    archive.chosen(None)  # a misspelt one would have no difference for ever
    root, segments = archive.place, all_segments(archive.place, after)
    _tell_lost(root)
    for namespace in archive.namespaces():
        if gaps := left_out(root, [one for one in segments if one.namespace == namespace], namespace, after):
            click.echo(f"{namespace}: not audited, lost or without a state before them: {ranges(gaps)}", err=True)
    began = time.monotonic()
    if on == "spark":
        only("local", processes=processes)
        with on_spark("audit") as spark:
            from qmodel.pipeline.spark.audit import audit

            rows = [row.asDict() for row in audit(spark, root, after=after, save=keep).collect()]
    else:
        count = (processes or os.cpu_count() or 1) if len(segments) > 1 else 1
        with in_processes(count) as run:
            rows = [row for found in run(partial(findings.audited, root, save=keep), segments) for row in found]
    answer(at, rows, most, time.monotonic() - began, f"{root} has no entries after {after}.")


def _tell_lost(root: str) -> None:
    """Name the entries that exist twice: those that a server lost, and its own with the same numbers."""
    from qmodel.pipeline.archive.layout import Archive

    archive = Archive(root)
    for namespace in archive.namespaces():
        if lost := archive.lost(namespace):
            click.echo(
                f"{namespace}: the server forked, and entries exist twice. Not audited, in _lost: {lost_ranges(lost)}",
                err=True,
            )


class Space(NamedTuple):
    """A namespace that is audited: its URL, its client, and the number of the shard that it is."""

    url: str
    client: Client
    shard: int | None

    def state(self) -> Snapshot:
        """Take the state that it has now."""
        from qmodel.backends.redis.take_snapshot import snapshot_in, taken

        store = getattr(self.client.backend, "store", None)
        return taken(self.url) if self.shard is None or store is None else snapshot_in(store)

    def file(self, name: str) -> str:
        """Give the name of its own file."""
        return name if self.shard is None else f"{name}.{self.shard}"

    def named(self) -> dict[str, str]:
        """Give what its findings are named by."""
        return {} if self.shard is None else {"namespace": f"shard {self.shard}"}


def _spaces(at: Session) -> list[Space]:
    """List the shards of a deployment, or the one namespace."""
    from qmodel.backends.redis.namespaces import with_prefix
    from qmodel.client.sync import Client

    if not at.client.shards:
        return [Space(at.url, at.client, None)]
    made = [(shard, getattr(shard, "options", None)) for shard in at.client.shards]
    urls = [at.url if options is None else with_prefix(at.url, options.prefix) for _, options in made]
    return [Space(url, Client(shard), number) for number, (url, (shard, _)) in enumerate(zip(urls, made, strict=True))]


def _audit(at: Session, begin: str | None, save: str | None, state: bool, most: int) -> None:
    began, rows = time.monotonic(), list[dict[str, Any]]()
    for space in _spaces(at):
        try:
            found = _audited(space, begin and space.file(begin), save and space.file(save), state)
        except QmodelError as error:
            if space.shard is None:
                raise
            found = [{"kind": "not audited", "expected": str(error)}]
        rows += [space.named() | row for row in found]
    answer(at, rows, most, time.monotonic() - began)


def _audited(space: Space, begin: str | None, save: str | None, state: bool) -> list[dict[str, Any]]:
    """Audit one namespace; give the findings, and the end."""
    from qmodel.pipeline.audit.follow import history
    from qmodel.pipeline.audit.replay import Audit, differences, without_collection

    audit = Audit(_read(begin) if begin else None)
    now = space.state() if state else None
    pages = history(space.client, audit, None if now is None else now.journaled)
    rows = list[dict[str, Any]]()
    with without_collection():
        rows += [
            {"kind": "reply", **difference._asdict()}
            for difference in audit.follow(entry for page in pages for entry in page)
        ]
    if now is not None:
        rows += [{"kind": "state", "expected": path} for path in differences(audit.state(), now)]
    if save:
        _write(save, audit.state())
    return [*rows, {"kind": "end", "number": audit.number, "entries": audit.entries}]


def _follow(at: Session, begin: str | None, save: str | None, most: int) -> None:
    """Audit the journal as it grows, and name differences at once, until a signal ends it."""
    from qmodel.errors import ConnectError
    from qmodel.pipeline.audit.follow import follow
    from qmodel.pipeline.audit.replay import Audit

    audit, client, stop = Audit(_read(begin) if begin else None), at.client, threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    began, told_at, differ = time.monotonic(), 0.0, 0
    while not stop.is_set():
        try:
            for look in follow(client, audit, stop):
                shown = look.differences[: max(most - differ, 0)]
                differ += len(look.differences)
                for one in shown:
                    told(at, {"kind": "reply", **one._asdict()}, click.style(f"{one}\n", fg="red"))
                    sys.stdout.flush()
                if time.monotonic() - told_at >= STATUS:
                    told_at = time.monotonic()
                    _tell_status(at, audit, look.at, differ)
        except ConnectError as error:
            click.echo(f"{error} Retrying.", err=True)
            stop.wait(1)
    if save:
        _write(save, audit.state())
    rows: list[dict[str, Any]] = [{"kind": "reply"}] * differ
    rows.append({"kind": "end", "number": audit.number, "entries": audit.entries})
    answer(at, rows, 0, time.monotonic() - began)


def _tell_status(at: Session, audit: Audit, moment: int, differ: int) -> None:
    """Say on the standard error how far the audit is, and how long ago its last entry was recorded."""
    behind = f", {max(time.time() - moment / 1000, 0):.1f} s behind" if moment else ""
    entries = counted(audit.entries, "entry", "entries")
    click.echo(f"{entries} up to {audit.number}{behind}, {differ} differ.", err=True)


EMPTY = "The journal is empty. To start it: `qmodel op config-set journal 1`."


def answer(at: Session, rows: Sequence[dict[str, Any]], most: int, seconds: float, empty: str = EMPTY) -> None:
    """Print the findings of an audit; exit with 1 if there are any. `empty` is said if there was nothing to audit."""
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
    if not (last or wrong):
        click.echo(empty, err=at.json)
    if wrong:
        raise click.exceptions.Exit(1)


def told(at: Session, said: dict[str, Any], sentence: str) -> None:
    """Print a message, as JSON or as a sentence."""
    at.answer(said) if at.json else click.echo(sentence)


def _read(place: str) -> Snapshot:
    from qmodel.model import restore

    found = files.read(place)
    try:
        return restore.unpack(found)
    except (OSError, EOFError, ValueError) as error:
        raise QmodelError(f"{place} is not a state that --save or --take wrote: {error}.") from None


def _write(place: str, found: Snapshot) -> None:
    from qmodel.model import restore

    files.write(place, restore.pack(found))


common(command)
