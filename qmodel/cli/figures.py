"""The options of `qmodel statistics`, and the display of figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from qmodel.cli import files, show
from qmodel.cli.convert import Parsed, format_duration
from qmodel.cli.session import Session, session
from qmodel.present.numbers import counted

if TYPE_CHECKING:
    from qmodel.pipeline.statistics.count import Engine
    from qmodel.pipeline.statistics.figures import Durations, Figures, Name
    from qmodel.pipeline.statistics.runs import Range

KINDS = ("queue", "klass", "worker", "tag")
C = TypeVar("C", bound=Callable[..., Any])


class Asked(NamedTuple):
    """The request that the options make."""

    archive: str
    kinds: tuple[str, ...]
    days: tuple[int, ...]
    together: bool
    namespace: str | None
    out: str | None
    top: int
    svg: str | None


def _kinds(text: str) -> tuple[str, ...]:
    named = text.split(",")
    if unknown := set(named) - set(KINDS):
        raise ValueError(f"there is no kind '{min(unknown)}': there are {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in named)


def options(command: C) -> C:
    """Give a command the common options."""
    for add in reversed(
        (
            click.argument("archive"),
            click.option(
                "--by",
                default="queue",
                show_default=True,
                type=Parsed("kinds", _kinds),
                help="One or more of queue,klass,worker,tag.",
            ),
            click.option(
                "--day", "days", multiple=True, type=click.DateTime(["%Y-%m-%d"]), help="Only this day (UTC)."
            ),
            click.option("--together", is_flag=True, help="All days as one."),
            click.option("--namespace", help="Only this namespace.  [default: all of the archive]"),
            click.option(
                "--out",
                metavar="FOLDER",
                help="Keep the counts here, or at a URL: the next run counts only new events.",
            ),
            click.option(
                "--top", default=20, show_default=True, type=click.IntRange(1), help="The rows of each kind to show."
            ),
            click.option("--svg", metavar="FILE", help="Draw the figures as a picture."),
        )
    ):
        command = add(command)
    return command


def asked(
    archive: str,
    by: tuple[str, ...],
    days: tuple[datetime, ...],
    together: bool,
    namespace: str | None,
    out: str | None,
    top: int,
    svg: str | None,
) -> Asked:
    """Read the options."""
    starts = tuple((day - datetime(1970, 1, 1)).days * 86_400_000 for day in days)
    return Asked(archive, by, starts, together, namespace, out, top, svg)


def answer(engine: Engine, what: Asked) -> None:
    """Count, and show the figures."""
    from qmodel.pipeline.archive.kinds import EVENTS, opened
    from qmodel.pipeline.statistics.count import collect, count

    at = session()
    new = count(engine, opened(what.archive, EVENTS), what.out, what.namespace)
    found = collect(
        engine, kinds=what.kinds, days=what.days, namespace=what.namespace, together=what.together, bins=False
    )
    if what.out:
        from qmodel.pipeline.statistics.tables import publish

        publish(engine, what.out)
    if what.svg:
        _draw(what.svg, what, found)
    if at.json:
        at.answer([{**one.shown(name), "groups": dict(one.groups)} for name, one in found.items()])
        return
    _show(at, what, found)
    click.echo(_said(new, what.out), err=True)


def _said(new: dict[str, Range], out: str | None) -> str:
    events = sum(one.until - one.after for one in new.values())
    spaces = counted(len(new), "namespace")
    if out:
        return f"Counted {counted(events, 'new event')} of {spaces}; the figures of all are in {out}."
    return f"Counted {counted(events, 'event')} of {spaces}."


DURATIONS = (">mean", ">p50", ">p95", ">p99")
COUNTS = (">failures", ">still failed", ">retries", ">busiest hour", "groups")
COLUMNS = ("day", ">waits", *DURATIONS, ">runs", *DURATIONS, *COUNTS)


def _show(at: Session, what: Asked, found: dict[Name, Figures]) -> None:
    several = len({name.namespace for name in found}) > 1
    for kind in what.kinds:
        of_kind = [(name, one) for name, one in found.items() if name.kind == kind]
        if not of_kind:
            click.echo(f"Nothing is counted by {kind}.")
            continue
        shown = _most(of_kind, what.top)
        columns = (*(("namespace",) if several else ()), kind, *COLUMNS)
        show.table(at, columns, (_row(what, several, name, one) for name, one in shown), (kind, "day"))
        if len(shown) < len(of_kind):
            click.echo(f"… and {len(of_kind) - len(shown):,} with less (--top, --json).")
        click.echo()


def _most(found: Iterable[tuple[Name, Figures]], top: int) -> list[tuple[Name, Figures]]:
    """Give the rows with the most jobs, ordered by name."""
    return sorted(
        sorted(found, key=lambda pair: -(pair[1].wait.count + pair[1].run.count))[:top], key=lambda pair: pair[0]
    )


def _draw(place: str, what: Asked, found: dict[Name, Figures]) -> None:
    from qmodel.pipeline.statistics.picture import svg

    chosen = [pair for kind in what.kinds for pair in _most((p for p in found.items() if p[0].kind == kind), what.top)]
    days = sorted({name.date for name in found})
    title = f"By {', '.join(what.kinds)}" + (f", {days[0]}" if days else "") + (f" to {days[-1]}" if days[1:] else "")
    files.write(place, svg(chosen, title).encode())


def _row(what: Asked, several: bool, name: Name, one: Figures) -> Sequence[object]:
    groups = ", ".join(f"{group} {count:,}" for group, count in one.groups.most_common(3))
    counts = (f"{number:,}" for number in (one.failures, one.failed, one.retries, one.busiest))
    day = "all" if what.together else name.date
    head = (*((name.namespace,) if several else ()), name.name or "-", day)
    return (*head, *_durations(one.wait), *_durations(one.run), *counts, groups)


def _durations(one: Durations) -> Sequence[str]:
    if not one.count:
        return ("0", "-", "-", "-", "-")
    told = (one.mean, *(one.percentiles[share] for share in (50, 95, 99)))
    return (f"{one.count:,}", *map(format_duration, told))
