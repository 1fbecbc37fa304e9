"""`qmodel call`: enqueue a job of an app with arguments as for its function."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import Parameter
from typing import TYPE_CHECKING, Any, get_args

import click

from qmodel.cli.convert import DURATION, EXACT, format_duration
from qmodel.cli.session import Session, common, session
from qmodel.client.convert import utc
from qmodel.errors import QmodelError
from qmodel.present.text import on_a_line

if TYPE_CHECKING:
    from qmodel.app import JobType, TypedJob
    from qmodel.client.sync import Job

NUMBERS: dict[Any, tuple[type, ...]] = {int: (int,), float: (float, int), bool: (bool,)}
"""The types of a value for an annotation, so that a mistake is noticed here and not in the job."""


@click.command("call")
@click.argument("job_type", metavar="MODULE:JOB")
@click.argument("arguments", nargs=-1, metavar="[VALUE | NAME=VALUE]...")
@click.option("--wait", is_flag=True, help="Wait until the job has ended; print its result and its history.")
@click.option("--timeout", type=DURATION, help="The longest wait: 90 (seconds), 1.5s, 10m. [default: for ever]")
@click.option("--queue", help="A queue other than the job type's.")
@click.option("--delay", type=DURATION, help="The time until the job is ready.")
@click.option("--at", type=EXACT, help="When the job is ready: an ISO 8601 time with a time zone, instead of --delay.")
@click.option("--priority", type=int, help="Lower runs sooner.")
@click.option("--jid", help="The job's id. [default: a random one]")
def command(job_type: str, arguments: tuple[str, ...], wait: bool, timeout: int | None, **options: Any) -> None:
    """Enqueue a job of an app, with arguments as for its function, and print its id.

    \b
        qmodel call jobs:add 1 2                             the function `add` of jobs.py
        qmodel call jobs:welcome ada@example.com language=de --wait
        qmodel call jobs:app.welcome ada@example.com         by the name of its klass

    Values are read as JSON if possible, unless the parameter is text. With --wait the result is printed as JSON, and
    the history of the job on the standard error; the exit code is 1 if the job failed. Without a server (memory://)
    this process runs the job itself.
    """
    from qmodel.app import load_job
    from qmodel.app.connections import Connection

    at, kind = session(), load_job(job_type)
    if at.url_from == "--url":
        kind.app.connection = Connection(at.url)
    elif kind.app.url != at.url:
        at.url, at.url_from = kind.app.url, job_type
    args, kwargs = _given(kind, arguments)
    if alone := kind.app.url.startswith("memory://"):
        kind.app.connection.told()
    else:
        at.client  # noqa: B018 (a person does not wait for a minute to learn that there is no server)
    with _performing(kind, options["queue"]) if alone else _nothing():
        try:
            job = kind.options(**_options(options)).put(*args, **kwargs)
        except TypeError as error:
            raise click.UsageError(f"{error}. It takes {kind.binding.signature}.") from None
        if wait or alone:
            _wait(at, job, math.inf if timeout is None else timeout / 1000)
        elif at.json:
            at.answer({"jid": job.jid})
        else:
            click.echo(job.jid)


def _options(given: dict[str, Any]) -> Any:
    seconds = None if given["delay"] is None else given["delay"] / 1000
    at = None if given["at"] is None else utc(given["at"])
    return {name: value for name, value in {**given, "delay": seconds, "at": at}.items() if value is not None}


# ---- arguments


def _given(kind: JobType[..., Any, ..., Any], words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Read the arguments of a call, positional and by name. Raises UsageError for an unknown name."""
    names = set(kind.binding.names)
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in kind.binding.parameters)
    places = list(_places(kind.binding.parameters, len(words)))
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if equals and (name in names or (takes_any and name.isidentifier())):
            kwargs[name] = _value(kind, name, text)
            continue
        place = places[len(args)] if len(args) < len(places) else ""
        if equals and name.isidentifier():
            _refuse_name(kind, name, place)
        args.append(_value(kind, place, word))
    return args, kwargs


def _refuse_name(kind: JobType[..., Any, ..., Any], name: str, place: str) -> None:
    """Raise UsageError for an unknown `name=...`, unless it can be a text for a positional parameter."""
    from qmodel.errors import did_you_mean

    wanted = kind.binding.hints.get(place)
    takes_text = bool(place) and (wanted in (None, Any, str) or str in get_args(wanted))
    close = did_you_mean(name, kind.binding.names)
    if close or not takes_text:
        meant = f" Did you mean {close}=...?" if close else ""
        raise click.UsageError(f"{kind.klass} has no argument {name!r}. It takes {kind.binding.signature}.{meant}")


def _places(parameters: Sequence[Parameter], most: int) -> Iterator[str]:
    """Give the names of the parameters that positional values go to."""
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_POSITIONAL:
            yield from [parameter.name] * most
        elif parameter.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            yield parameter.name


def _value(kind: JobType[..., Any, ..., Any], name: str, text: str) -> Any:
    """Read a word as a value of a parameter. Raises UsageError if it cannot be one."""
    wanted = kind.binding.hints.get(name)
    if wanted is str or (str in get_args(wanted) and text != "null"):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if type(value) not in NUMBERS.get(wanted, (type(value),)):
        raise click.UsageError(f"{name} of {kind.klass} is {getattr(wanted, '__name__', wanted)}, and not {text!r}.")
    made = kind.binding.converters.get(name)
    if made is None:
        return value
    several = any(p.name == name and p.kind is Parameter.VAR_POSITIONAL for p in kind.binding.parameters)
    try:
        return made.load([value])[0] if several else made.load(value)
    except Exception as error:
        raise click.UsageError(f"{name} of {kind.klass} cannot be {text!r}: {error}") from None


# ---- waiting


@contextmanager
def _nothing() -> Iterator[None]:
    yield


@contextmanager
def _performing(kind: JobType[..., Any, ..., Any], queue: str | None) -> Iterator[None]:
    """Run a worker in a thread of this process."""
    from qmodel.app import App
    from qmodel.worker import Worker

    assert isinstance(kind.app, App)
    worker = Worker(kind.app, (queue or kind.queue,))
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        worker.stop(now=True)
        thread.join(5)


def _wait(at: Session, job: TypedJob[Any], timeout: float) -> None:
    """Wait for a job, and print its outcome; after Ctrl-C only its history, for it has no outcome."""
    try:
        (found,) = job.client.wait([job], timeout)
    except KeyboardInterrupt:
        known = job.client.jobs.get(job.jid)
        if at.json:
            at.answer({"jid": job.jid, "history": _history(known)})
        else:
            _show(known, job.jid)
        raise
    error = found if isinstance(found, QmodelError) else None
    known = job.client.jobs.get(job.jid)
    result = known.result_text if known and known.state == "complete" else ""
    if at.json:
        at.answer({"jid": job.jid, **_ended(error, result), "history": _history(known)})
    else:
        _show(known, job.jid)
        click.secho(str(error) if error else result or "null", fg="red" if error else None, err=error is not None)
    if error is not None:
        raise click.exceptions.Exit(1)


def _ended(error: QmodelError | None, result: str) -> dict[str, Any]:
    if error is not None:
        return {"error": type(error).__name__, "sentence": str(error)}
    try:
        return {"result": json.loads(result or "null")}
    except ValueError:
        return {"result": result}


def _history(job: Job | None) -> list[dict[str, Any]]:
    stages = job.history if job else ()
    return [{"what": stage.what, "at": stage.at.isoformat(), **stage.facts} for stage in stages]


def _show(job: Job | None, jid: str) -> None:
    """Print the history of a job: each stage with the time since the one before."""
    click.secho(f"job {jid}" + (f": {job.klass} in {job.queue}" if job else " is gone"), err=True, bold=True)
    before = None
    for stage in job.history if job else ():
        since = "" if before is None else f"+{format_duration((stage.at - before).total_seconds() * 1000)}"
        facts = on_a_line(stage.what, stage.facts)
        moment = stage.at.isoformat(timespec="milliseconds")[11:23]
        click.echo(f"  {moment} {since:>8}  {stage.what:<10} {facts}".rstrip(), err=True)
        before = stage.at


common(command)
