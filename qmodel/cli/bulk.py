"""Bulk operations: a step for each 1000 jobs, until all have been examined."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Final

import click

from qmodel.cli.session import Session
from qmodel.contract.operations import CancelMany, Clean, Obliterate, RetryMany
from qmodel.contract.replies import Bulk, Cleaned

BULK: Final = ("cancel_many", "clean", "obliterate", "retry_many")

ONE_STEP: Final = ("cursor", "count", "request")
"""Arguments that ask for a single step."""


def performed(at: Session, op: CancelMany | Clean | Obliterate | RetryMany) -> Bulk | Cleaned:
    """Execute an operation step by step to the end; give the sum, and show the progress on a terminal."""
    done = passed = 0
    jids: list[str] = []
    shown = False
    while True:
        part: Bulk | Cleaned = at.client.execute(op, now=at.now)
        done += part.done
        passed = part.passed if isinstance(op, Obliterate) else passed + part.passed
        jids += part.jids if isinstance(part, Cleaned) else ()
        if not _follows(op, part):
            break
        if sys.stderr.isatty():
            shown = True
            click.echo(
                f"\r{done}, {passed} {'left' if isinstance(op, Obliterate) else 'passed over'} ...", nl=False, err=True
            )
        op = replace(op, cursor=part.cursor)
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)
    return Cleaned(done, passed, "", tuple(jids)) if isinstance(op, Clean) else Bulk(done, passed, "")


def _follows(op: Any, part: Bulk | Cleaned) -> bool:
    """Say whether there is more to do. Jobs that enter an obliterated queue meanwhile are deleted, too."""
    return bool(part.cursor) or (isinstance(op, Obliterate) and bool(part.passed and part.done))
