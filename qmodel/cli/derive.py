"""One command per operation, made from the catalogue.

Required arguments are positional and the rest are options, under the catalogue's names with hyphens. Arguments that the
client fills in are optional here, too: the jid of a new job, the worker's name, the request id, and the token of a
lease (then the token of the job's current lease is used).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import click

from qmodel.cli import bulk, show
from qmodel.cli.convert import DURATION, EXACT, MOMENT, TEXT, parse_duration
from qmodel.cli.following import check_after, follow
from qmodel.cli.session import Session, common, session
from qmodel.contract import redaction
from qmodel.contract.arguments import Choice, Flag, Kind, ListOf, Operations, Whole
from qmodel.contract.operations import CATALOGUE, Argument, Events, Operation, Spec
from qmodel.present.fields import SHOWN_ONLY
from qmodel.wire.plain import plain

FILLED_IN = {
    ("put", "jid"): "a new random one",
    ("token",): "the token of the job's current lease",
    ("worker",): "<hostname>-<pid>-<thread>",
    ("request",): "a new random one",
}
"""The required arguments that may be left out, with a description of the value that is filled in."""

LEFT_OUT = {("put", "data"), ("recur", "interval_ms")}
"""The positional arguments that are optional: data, and an interval with --cron."""

ASKED_FOR = {("worker", "worker")}
"""Arguments that are not filled in because they are the subject of the command."""


@cache
def command(name: str) -> click.Command | None:
    """Make the command of an operation, once, by its name with hyphens."""
    spec = next((spec for spec in CATALOGUE.values() if name == hyphened(spec)), None)
    return None if spec is None else common(_command(spec))


def hyphened(spec: Spec) -> str:
    """The name of an operation's command."""
    return spec.name.replace("_", "-")


def _command(spec: Spec) -> click.Command:
    def run(following: bool = False, keep: Path | None = None, tz: str | None = None, **values: Any) -> None:
        act: Callable[[Session, Any], None] = perform
        if following or keep is not None:
            act = partial(follow, keep=keep)
        if spec.name == "recur":
            values |= _by_cron(values, tz)
            act = _recur
        if spec.name in bulk.BULK and not any(values[name] for name in bulk.ONE_STEP):
            act = _bulk
        act(session(), _operation(session(), spec, values))

    made = click.Command(hyphened(spec), callback=run, help=spec.cls.__doc__, short_help=spec.summary)
    made.params = [_parameter(spec, argument) for argument in spec.arguments]
    if spec.name == "put":  # data is the last positional argument, and optional
        made.params.sort(key=lambda param: param.name == "data")
    if spec.name == "recur":
        made.params.append(click.Option(["--tz"], help="The time zone of --cron. [default: UTC]", metavar="TZ"))
    if spec.name == "events":
        made.params += [
            click.Option(
                ["following", "--follow", "-f"], is_flag=True, help="Print all events, and new ones as they happen."
            ),
            click.Option(
                ["--keep"],
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="Follow, begin after the last event that was printed with this file, and keep the place there.",
            ),
        ]
    return made


def filled_in(spec: Spec, argument: Argument) -> str | None:
    """Describe the value that is filled in for an argument, if there is one."""
    if (spec.name, argument.name) in ASKED_FOR:
        return None
    return FILLED_IN.get((spec.name, argument.name)) or FILLED_IN.get((argument.name,))


def _parameter(spec: Spec, argument: Argument) -> click.Parameter:
    kind = argument.kind
    if argument.required and filled_in(spec, argument) is None:
        several = isinstance(kind, ListOf)
        required = (spec.name, argument.name) not in LEFT_OUT
        return click.Argument(
            [argument.name],
            type=_type(spec, argument),
            nargs=-1 if several else 1,
            required=required,
            metavar=_metavar(argument) + "..." * several if required else f"[{_metavar(argument)}]",
        )
    if isinstance(kind, Flag):
        return click.Option([_option(spec, argument)], is_flag=True, help="Yes. [default: no]")
    return click.Option(
        [_option(spec, argument), argument.name],
        type=_type(spec, argument),
        multiple=isinstance(kind, ListOf),
        default=None,
        metavar=_metavar(argument),
        help=_help(spec, argument),
    )


def _option(spec: Spec, argument: Argument) -> str:
    """Give an option's name. Beside `--unique` its duration is `--unique-for`, as it is in Python."""
    name = argument.name.removesuffix("_ms")
    taken = name != argument.name and any(other.name == name for other in spec.arguments)
    return "--" + (f"{name}_for" if taken else name).replace("_", "-")


def _metavar(argument: Argument) -> str:
    if isinstance(argument.kind, Operations):
        return "FILE"
    return argument.name.removesuffix("_ms").upper()


def _type(spec: Spec, argument: Argument) -> click.ParamType[Any] | None:
    kind = argument.kind.item if isinstance(argument.kind, ListOf) else argument.kind
    if isinstance(kind, Operations):
        return click.File()
    if argument.name.endswith("_ms"):
        return DURATION
    if (spec.name, argument.name) == ("put", "at"):
        return EXACT
    if argument.name in ("at", "since", "start_at", "end_at", "due_at"):
        return MOMENT
    if isinstance(kind, Choice):
        return click.Choice(kind.words)
    if isinstance(kind, Whole) and argument.name != "value":
        return click.INT
    if argument.name in ("data", "result", "message"):
        return TEXT
    return click.STRING


def _help(spec: Spec, argument: Argument) -> str:
    kind = argument.kind
    if argument.name.endswith("_ms"):
        expected = "a duration: 90 (seconds), 1.5s, 10m, 2h, 1d"
    elif (spec.name, argument.name) == ("put", "at"):
        expected = "an ISO 8601 time with a time zone, 2026-01-31T12:00:00+01:00, instead of --delay"
    elif argument.name in ("at", "since", "start_at", "end_at"):
        expected = "milliseconds since the epoch, an ISO time, today or yesterday"
    elif isinstance(kind, ListOf):
        expected = f"may be given several times; each {kind.item.expected}"
    else:
        expected = kind.expected
    default = filled_in(spec, argument) or argument.default
    shown = f" [default: {default}]" if default not in (None, "", ()) else ""
    return expected[0].upper() + expected[1:] + "." + shown


# ---- from arguments to the operation


def _operation(at: Session, spec: Spec, values: dict[str, Any]) -> Operation:
    given: dict[str, Any] = {}
    for argument in spec.arguments:
        value = values[argument.name]
        if isinstance(argument.kind, ListOf):
            value = tuple(value) or None
        elif isinstance(argument.kind, Operations) and value is not None:
            value = _read_operations(at, argument.kind.of.lower(), value)
        elif spec.name == "config_set" and argument.name == "value":
            value = _setting(values["option"], value)
        elif isinstance(argument.kind, Flag):
            value = value or None
        if value is None and argument.required:
            value = _fill_in(at, spec, argument.name, values)
        if value is not None:
            given[argument.name] = _checked(argument.kind, value, argument.name)
    return spec.cls(**given)


def _by_cron(values: dict[str, Any], tz: str | None) -> dict[str, Any]:
    """Give the arguments of recur that follow from a cron expression."""
    if values["cron"] is None:
        if values["interval_ms"] is None or tz is not None:
            raise click.UsageError("Give --cron with --tz, or an INTERVAL.")
        return {}
    from qmodel.client.cron import spec

    try:
        return {"cron": spec(values["cron"], tz or "UTC"), "kind": "cron", "interval_ms": values["interval_ms"] or 0}
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _fill_in(at: Session, spec: Spec, name: str, values: dict[str, Any]) -> Any:
    if name == "token":
        return at.client.jobs[values["jid"]].token
    if name == "worker":
        return at.client.worker
    if name == "data":
        return ""
    from uuid import uuid4

    return uuid4().hex


def _checked(kind: Kind, value: Any, name: str) -> Any:
    if not kind.accepts(value):
        params = click.get_current_context().command.params
        param = next((param for param in params if param.name == name), None)
        raise click.BadParameter(f"it must be {kind.expected}.", param=param)
    return value


def _setting(option: str, text: str) -> int:
    from qmodel.client.settings import is_duration

    try:
        return parse_duration(text) if is_duration(option) else int(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="VALUE") from None


def _read_operations(at: Session, name: str, file: Any) -> tuple[Operation, ...]:
    """Read the operations inside another one, from JSON lines with the catalogue's argument names."""
    spec = CATALOGUE[name]
    found = []
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            known = {argument.name: argument.kind for argument in spec.arguments}
            unknown = sorted(set(values) - set(known))
            if unknown:
                raise ValueError(f"{name} has no {unknown[0]}; it has {', '.join(known)}")
            for argument in spec.arguments:
                if argument.required and argument.name not in values:
                    values[argument.name] = _fill_in_line(at, spec, argument, values)
            found.append(spec.cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}))
        except (ValueError, TypeError, RecursionError) as error:
            raise click.BadParameter(f"line {number}: {error}", param_hint="FILE") from None
    return tuple(found)


def _lines(file: Any) -> list[str]:
    try:
        return list(file)
    except UnicodeDecodeError as error:
        raise click.BadParameter(str(error), param_hint="FILE") from None


def _fill_in_line(at: Session, spec: Spec, argument: Argument, values: dict[str, Any]) -> Any:
    if filled_in(spec, argument) is None and argument.name != "data":
        raise ValueError(f"{spec.name} needs {argument.name}")
    return _fill_in(at, spec, argument.name, values)


# ---- execution


def _bulk(at: Session, op: Any) -> None:
    """Repeat an operation until all jobs have been examined."""
    perform(at, op, bulk.performed)


def _once(at: Session, op: Operation) -> Any:
    if type(op) is Events and at.client.shards:
        check_after(at, op.after)
        return tuple(islice(at.client.events(), op.count))
    return at.client.execute(op, now=at.now)


def perform(at: Session, op: Operation, executed: Callable[[Session, Any], Any] = _once) -> None:
    """Execute an operation and print its reply."""
    spec = op.spec
    if not spec.reads and at.url_from == "the default":
        raise click.UsageError(
            f"No server is given, and what {spec.name} changes in {at.url} would be lost when this command ends. "
            "Set QMODEL_URL, or give --url redis://localhost:6379/0. To try it out, give --url memory://, or several "
            "operations to `qmodel run`."
        )
    if at.url.partition("://")[0] in ("memory", "embedded") and not spec.reads:
        click.echo(
            f"Note: {at.url} lives only as long as this process. Set --url or QMODEL_URL to a server, "
            "or give several operations to `qmodel run`.",
            err=True,
        )
    if redaction.is_shown(getattr(op, "data", None) or ""):
        raise click.UsageError(SHOWN_ONLY)
    if spec.name == "put":
        _warn_of_text(op)
    reply = redaction.replied(op, executed(at, op))
    if at.json:
        at.answer(plain(reply))
    else:
        show.reply(at, op, reply)
    if spec.name == "get" and reply is None:
        raise click.exceptions.Exit(1)


def _recur(at: Session, op: Any) -> None:
    """Create a recurring job, and compute the first moments of its expression."""
    perform(at, op)
    if op.kind == "cron" and not op.due_at and at.now is None:
        at.client.recurring[op.jid].advance()


def _warn_of_text(op: Any) -> None:
    try:
        json.loads(op.data or "null")
    except (ValueError, RecursionError):
        click.echo("Note: the data is not JSON; a Python worker reads it as job.text.", err=True)
