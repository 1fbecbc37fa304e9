"""The options of job types, and of one job of a type.

They extend the options of `Queue.put` and `Queue.recur` (`qmodel/client/options.py`). Their values are checked by the
model: each declared job type is put once into an empty model, and what the model refuses is refused here.
"""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple, Protocol

from qmodel.app.backoff import Backoff
from qmodel.app.errors import DeclarationError
from qmodel.app.serializers import Serializer
from qmodel.client.build import OPTION_OF, fingerprint, new_job
from qmodel.client.convert import Dependencies, Duration
from qmodel.client.options import DeclarableOptions, MomentOptions, RecurrenceOptions
from qmodel.contract.operations import Put
from qmodel.contract.refusals import Refusal, Refused
from qmodel.errors import BadArgument, error_of, hint

Key = bool | str | Iterable[str] | Callable[..., str]


class SharedOptions(DeclarableOptions, total=False):
    """Options of a job type, and of one job of it."""

    queue: str | None
    """The queue of the jobs. Default: `default`."""

    ordered: str | Callable[..., str] | None
    """Concurrency key: jobs with the same key start one after the other. A function makes it of the arguments."""

    fair_key: str | Callable[..., str] | None
    """Whose job it is: in a fair queue the keys take turns. A function makes it of the arguments."""

    unique: Key | None
    """Uniqueness key. True makes it of all arguments, several names of these arguments, a function of what it gets."""


class CallOptions(SharedOptions, MomentOptions, total=False):
    """Options of one job of a job type: those of `Queue.put` without `text`, and `queue`."""

    jid: str | None
    """The job's id. Default: a new random one."""

    depends: Dependencies | None
    """Jobs, or their ids, that must be complete before this job is ready, and requests that must have ended."""


class ScheduleOptions(RecurrenceOptions, total=False):
    """When jobs of a type recur: the options of `Queue.recur`, with `every` for its `interval`."""

    every: Duration | None
    """Time from one due run to the next."""


class JobOptions(SharedOptions, ScheduleOptions, total=False):
    """Options of a job type."""

    name: str | None
    """The klass of the jobs. Default: the name of the function or class."""

    backoff: Backoff
    """The delay before each retry. Default: exponential."""

    fail_on: type[BaseException] | tuple[type[BaseException], ...]
    """Exceptions after which a job fails at once and is not tried again."""

    redact: Iterable[str]
    """Names of arguments that are shown without their values: on pages, in `qmodel top`, by the command line and over
    HTTP, in failure messages, log lines and traces."""

    arguments: Mapping[str, Any]
    """The arguments of the runs of a recurring job, by name."""

    serializer: Serializer | None
    """Makes text of data and results. Default: the app's."""


CALL: Final = frozenset(CallOptions.__annotations__)
SCHEDULE: Final = frozenset(ScheduleOptions.__annotations__)
DECLARED: Final = frozenset(JobOptions.__annotations__)
SHARED: Final = frozenset(SharedOptions.__annotations__)

INSTEAD: Final = {"at": "delay", "delay": "at"}
"""Options that replace each other: a job with one of them does not take the other from its job type."""

RECURS: Final = frozenset({"queue", "priority", "retries", "tags", "throttles", "fair_key", "fair_weight"})
"""The options of a job type that the runs of a recurring job can have."""


def check_names(given: Iterable[str], known: frozenset[str], where: str) -> None:
    """Refuse unknown options. Raises DeclarationError."""
    for name in given:
        if name not in known:
            raise DeclarationError(f"{where} has no option {name!r}.", hint(name, sorted(known), "There are"))


def given_only(options: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the options that are None, which means not given."""
    return {name: value for name, value in options.items() if value is not None}


# ---- values


def check(klass: str, queue: str, options: Mapping[str, Any]) -> Put:
    """Build the put of a job with these options and no data. Refuse what the model would refuse in any state."""
    from qmodel.model.engine import fault
    from qmodel.model.rules import deduplication, stages

    try:
        put = new_job(queue, klass, text="", **{"jid": "tried", **options})
    except (TypeError, ValueError, AttributeError) as error:
        raise DeclarationError(
            f"The options of {klass} cannot be used: {str(error).rstrip('.')}.", "See Queue.put for each."
        ) from error
    if (wrong := fault(put)) is not None:
        raise _refused(klass, put, options, Refusal("BAD_ARGUMENT", ("put", wrong)))
    try:
        stages.check(put, "put")
        deduplication.check(put, "put")
    except Refused as refused:
        raise _refused(klass, put, options, refused.refusal) from None
    return put


def try_out(klass: str, put: Put) -> None:
    """Put a job into an empty model. Raises DeclarationError if the model refuses it."""
    from qmodel.model.engine import step
    from qmodel.model.state.store import Store

    tried = Put(**{field.name: getattr(put, field.name) for field in fields(put)} | {"jid": "tried"})
    reply = step(Store(), 0, tried)
    if type(reply) is Refusal:
        raise _refused(klass, put, {}, reply)


def _refused(klass: str, put: Put, options: Mapping[str, Any], refusal: Refusal) -> DeclarationError:
    error = error_of(refusal)
    if not isinstance(error, BadArgument):
        return DeclarationError(f"{klass} can never be put: {error.sentence}", error.next_step)
    value = getattr(put, error.argument)
    option = OPTION_OF.get(error.argument, error.argument)
    if option == "klass":
        return DeclarationError(f"A job type cannot be called {value!r}.", error.next_step)
    if (together := _TOGETHER.get(option)) is not None and (value is None or _fits(error.argument, value)):
        return DeclarationError(f"{klass} cannot have {option} with these options.", together)
    unit = " (These are milliseconds.)" if option != error.argument else ""
    return DeclarationError(f"{klass} cannot have {option} = {options.get(option, value)!r}.", error.next_step + unit)


def _fits(argument: str, value: Any) -> bool:
    return next(a.kind.accepts(value) for a in Put.spec.arguments if a.name == argument)


_TOGETHER: Final = {
    "at": "Give either at or delay.",
    "unique_mode": "unique_mode needs unique: True, names of arguments, or a key.",
    "unique_for": "unique_for needs unique, and the mode pending or window. The mode window needs unique_for.",
    "unique_max": "unique_max needs unique_mode='debounce'.",
}


# ---- redacted arguments


class _Parameters(Protocol):
    names: list[str]
    parameters: list[inspect.Parameter]


def redaction(klass: str, given: Mapping[str, Any], binding: _Parameters) -> tuple[str, ...]:
    """Give the names of the redacted arguments. Refuse unknown ones, and options of the job that would show them."""
    chosen = given.get("redact", ())
    names = tuple(dict.fromkeys([chosen] if isinstance(chosen, str) else chosen))
    takes_others = any(p.kind is p.VAR_KEYWORD for p in binding.parameters)
    for name in names:
        if not isinstance(name, str) or not (name in binding.names or (takes_others and name.isidentifier())):
            raise DeclarationError(
                f"{klass} cannot redact {name!r}: it has no such argument.", hint(str(name), binding.names, "It takes")
            )
    for option in ("ordered", "fair_key", "tags", "throttles", "unique"):
        value = given.get(option)
        texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ()
        for text in texts if option != "unique" or isinstance(value, str) else ():
            if shown := [name for name in _fields_in(str(text)) if name in names]:
                raise DeclarationError(
                    f"{klass} cannot have {option} = {text!r}: {shown[0]} is redacted, and {option} are shown.",
                    f"Make it of other arguments, or of a hash: {option}=lambda {shown[0]}, **others: ...",
                )
    return names


def _fields_in(text: str) -> list[str]:
    """Find the arguments that a text with placeholders names; none in a text that is no such text."""
    try:
        places = [place for _, place, _, _ in string.Formatter().parse(text) if place]
    except ValueError:
        return []
    return [found[0] for place in places if (found := _FIELD.match(place))]


# ---- options that are computed from the arguments

Maker = Callable[[dict[str, Any]], Any]
"""Makes the value of an option from the arguments of a call by name, with defaults filled in."""


class Made(NamedTuple):
    """An option with a different value for each job; a value to try; and whether it is made from the arguments
    converted to JSON's types.
    """

    make: Maker
    tried: Any
    plain: bool = False

    def __call__(self, arguments: dict[str, Any]) -> Any:
        return self.make(arguments)


def apart(
    klass: str, options: Mapping[str, Any], names: Iterable[str], *, templates: bool
) -> tuple[dict[str, Any], dict[str, Made]]:
    """Divide options into those with the same value for each job, and makers of the others.

    With `templates`, texts such as `customer-{customer}` are filled in; otherwise they are taken as they are.
    """
    static = given_only(options)
    makers: dict[str, Made] = {}
    for option in ("unique", "ordered", "fair_key", "tags", "throttles"):
        if option not in static:
            continue
        made = _made(klass, option, static[option], list(names), templates)
        if isinstance(made, Made):
            makers[option] = made
            del static[option]
        else:
            static[option] = made
    return static, makers


def _made(klass: str, option: str, value: Any, names: list[str], templates: bool) -> Any:
    if callable(value):
        _check_takes(klass, option, value, names)
        return Made(lambda arguments: value(**arguments), "tried")
    if option == "unique" and not isinstance(value, str):
        return _unique(klass, None if value is True else list(value), names) if value else None
    several = option in ("tags", "throttles")
    texts = [value] if isinstance(value, str) else list(value) if several else value
    if not templates or not isinstance(texts, list):
        return tuple(texts) if several else value
    fillers = [_template(klass, option, text, names) for text in texts]
    if all(fill is None for fill in fillers):
        return tuple(texts) if several else value
    fill_in = [fill or (lambda arguments, text=text: text) for fill, text in zip(fillers, texts, strict=True)]
    if several:
        return Made(lambda arguments: tuple(fill(arguments) for fill in fill_in), ("tried",))
    return Made(fill_in[0], "tried")


def _unique(klass: str, chosen: list[str] | None, names: list[str]) -> Made:
    """Make the maker of a uniqueness key from some arguments, or from all."""
    for word in chosen or ():
        if word not in names:
            raise DeclarationError(
                f"{klass} cannot be unique by {word!r}: it has no such argument.", hint(str(word), names, "It takes")
            )

    def make(arguments: dict[str, Any]) -> str:
        return fingerprint(klass, arguments if chosen is None else {name: arguments[name] for name in chosen})

    return Made(make, "tried", plain=True)


_FIELD = re.compile(r"\A\w+")


def _template(klass: str, option: str, text: str, names: list[str]) -> Maker | None:
    """Make the function that fills arguments into a text; None for a text without placeholders."""
    wrong = f"{klass} cannot have {option} = {text!r}"
    try:
        places = [place for _, place, _, _ in string.Formatter().parse(text) if place is not None]
    except ValueError as error:
        raise DeclarationError(f"{wrong}: {error}.", "Write {{ for a literal brace.") from None
    for place in places:
        found = _FIELD.match(place)
        word = found[0] if found else place
        if word not in names:
            raise DeclarationError(f"{wrong}: it takes no argument {word!r}.", hint(word, names, "It takes"))
    if not places:
        return None
    return lambda arguments: text.format(**arguments)


def _check_takes(klass: str, option: str, function: Callable[..., Any], names: list[str]) -> None:
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise DeclarationError(
            f"{klass} cannot have this function as {option}: {error}.",
            f"It is called with the arguments of the job by name: {', '.join(names)}; **others accepts the rest.",
        ) from None
