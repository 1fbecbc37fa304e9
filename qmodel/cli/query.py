"""`qmodel query`: answer SQL about the jobs and attempts of an archive, on this machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import chain, count
from typing import Any

import click

from qmodel.cli import show
from qmodel.cli.live import need
from qmodel.cli.session import common, session
from qmodel.errors import QmodelError
from qmodel.present.numbers import counted

WHOLE = 1e15
"""Below this, a large fraction is shown as a whole number."""


@click.command("query")
@click.argument("archive")
@click.argument("sql")
@click.option(
    "--tables", metavar="FOLDER", help="Where the tables are kept, also a URL.  [default: _silver/ in ARCHIVE]"
)
@click.option("--memory", default="", metavar="SIZE", help="The most memory it may use: 2GB.  [default: most of it]")
def command(archive: str, sql: str, tables: str | None, memory: str) -> None:
    """Answer SQL about an archive of events, with DuckDB.

    The tables are `jobs` (a row for each job), `attempts` (a row for each lease) and `events`. They are brought up to
    date first, with new events only. docs/pipeline/queries.md has their columns, and ten questions.

    \b
        qmodel query /data/events "select queue, outcome, count(*) from jobs group by all"
    """
    need("duckdb", "duckdb", "query")
    need("pyarrow", "duckdb", "query")
    import duckdb

    from qmodel.pipeline.archive.kinds import EVENTS, opened
    from qmodel.pipeline.silver.build import update
    from qmodel.pipeline.statistics.local import DuckDB
    from qmodel.pipeline.statistics.runs import Range, again_if_merged

    at, root = session(), opened(archive, EVENTS)
    with DuckDB(memory) as engine:
        new: dict[str, Range] = {}

        def asked() -> tuple[list[str], list[tuple[Any, ...]]]:
            new.update(update(engine, root, tables or f"{archive.rstrip('/')}/_silver"))
            return engine.asked(sql)

        try:
            columns, rows = again_if_merged(asked)
        except duckdb.Error as error:
            raise QmodelError(str(error)) from None
    if at.json:
        names = _apart(columns)
        at.answer([{name: _plain(value) for name, value in zip(names, row, strict=True)} for row in rows])
        return
    heads = [f">{name}" if rows and _is_number(rows[0][index]) else name for index, name in enumerate(columns)]
    show.table(at, heads, ([_shown(value) for value in row] for row in rows), columns)
    events = sum(one.until - one.after for one in new.values())
    click.echo(f"{counted(len(rows), 'row')}; {counted(events, 'new event')} added to the tables.", err=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _apart(columns: Sequence[str]) -> list[str]:
    """Give each column a name of its own, as DuckDB does in tables: an object of JSON has a name once."""
    found: list[str] = []
    for name in columns:
        others = (f"{name}_{number}" for number in count(1))
        found.append(next(one for one in chain([name], others) if one not in found))
    return found


def _plain(value: Any) -> Any:
    """Convert a value to what JSON has: a number that is none becomes null."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):  # a minute in ms is 61234, and not 6.123e+04
        return f"{value:.0f}" if 1000 <= abs(value) < WHOLE else f"{value:.4g}"
    return str(value)


common(command)
