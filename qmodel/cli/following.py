"""`qmodel events --follow`: print events as they happen, from a place that a file may keep."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from qmodel.cli import show
from qmodel.cli.files import write
from qmodel.cli.session import Session, as_json
from qmodel.client.cursor import Cursor
from qmodel.contract.events import Event
from qmodel.wire.plain import plain


def follow(at: Session, op: Any, keep: Path | None) -> None:
    """Print events until an interrupt; with `keep`, after the event that this file names, and keep the place there."""
    if at.url.partition("://")[0] in ("memory", "embedded"):
        raise click.UsageError(f"No other process can reach {at.url}: there will be no events. Give --url of a server.")
    check_after(at, op.after)
    with contextlib.suppress(KeyboardInterrupt):
        for event in at.client.follow(op.after, epoch=op.epoch) if keep is None else _kept(at, op, keep):
            if at.json:
                click.echo(as_json(plain(event)))
            else:
                show.reply(at, op, (event,))


def check_after(at: Session, after: int) -> None:
    """Refuse a sequence number for the events of a deployment."""
    if after and at.client.shards:
        raise click.UsageError(
            "Each shard of a deployment numbers its own events, so --after means nothing here. Leave it out, or give "
            "--follow with --keep FILE; or the --url of one shard, with prefix= in place of name=; `qmodel doctor` "
            "lists the prefixes."
        )


def _kept(at: Session, op: Any, keep: Path) -> Iterator[Event]:
    """Give the events after a kept place. The place moves when the next event is asked for, so this one is printed."""
    if op.after or op.epoch is not None:
        raise click.UsageError("--keep says where to begin. Leave out --after and --epoch, or --keep.")
    cursor, sharded = _read(keep, len(at.client.shards) or 1), bool(at.client.shards)
    seq, epoch = cursor.places[0]
    for event in at.client.follow(cursor) if sharded else at.client.follow(seq, epoch=epoch):
        yield event
        if not sharded:  # in a deployment the client moves the cursor
            cursor.move(0, event)
        write(str(keep), str(cursor).encode())


def _read(keep: Path, shards: int) -> Cursor:
    try:
        cursor = Cursor.read(keep.read_text(encoding="utf-8").strip() if keep.exists() else "")
        cursor.begin(shards)
    except ValueError as error:
        raise click.UsageError(f"{keep} keeps no place in these events: {error}. Give another file.") from None
    return cursor
