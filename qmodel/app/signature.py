"""From the arguments of a call to the data of a job, and back: an object of the arguments by name.

    send_email.put("a@b", subject="x")     ->  {"to": "a@b", "subject": "x"}
    def add(*numbers): add.put(1, 2)       ->  {"numbers": [1, 2]}
    def note(**fields): note.put(a=1)      ->  {"a": 1}

Only what was given is stored: defaults are those of the code that performs the job. A mistake is found by Python
itself: for each function one is compiled that has the same parameters and gives the dictionary, so that the error is
that of a call, and it costs no more than one.

A parameter that is annotated `Context` is no argument: it gets the job at hand.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Container, Mapping
from inspect import Parameter
from typing import Any, Final

from qmodel.app.errors import BadArguments, DeclarationError
from qmodel.app.values import Converter, converter
from qmodel.errors import hint

HEADERS: Final = "$headers"
"""The name under which what is no argument travels with a job: the trace that it belongs to, say. No argument can have
it."""

_UNSET: Final = object()
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Binding:
    """The parameters of one job type."""

    def __init__(self, klass: str, function: Callable[..., Any], *, method: bool = False) -> None:
        self.klass = klass
        self._function = function
        signature = signature_of(function)
        self._hints: dict[str, Any] | None = None
        parameters = list(signature.parameters.values())[1 if method else 0 :]
        self._all = parameters
        self.contexts = [p.name for p in parameters if is_context(self._hint(p))]
        self.parameters = [p for p in parameters if p.name not in self.contexts]
        shown = [p.replace(annotation=self._hint(p)) for p in self.parameters]
        self.signature = signature.replace(parameters=shown, return_annotation=signature.empty)
        self._required = {p.name for p in self.parameters if p.default is p.empty and p.kind in _NAMED}
        self._names = {p.name for p in self.parameters}
        # What `**others` takes has names of its own.
        self.names = [p.name for p in self.parameters if p.kind is not p.VAR_KEYWORD]
        kinds = {p.kind for p in self._all}
        self._simple = kinds <= set(_NAMED)
        self._open = next((p.name for p in self.parameters if p.kind is Parameter.VAR_KEYWORD), None)
        self._bind = _compiled(klass, self.parameters)
        self._converters: dict[str, Converter] | None = None
        self._result: Converter | None = None

    # ---- annotations

    def _hint(self, parameter: Parameter) -> Any:
        return self.hints.get(parameter.name, parameter.annotation)

    @property
    def hints(self) -> dict[str, Any]:
        """The annotations as objects; as they were written where one of them cannot be had."""
        if self._hints is None:
            self._hints = _hints(self._function)
        return self._hints

    def try_to_resolve(self) -> None:
        """Find out now what converts arguments and the result, unless a name of the module is still to come."""
        self.resolve()
        if any(isinstance(hint, str) for hint in self.hints.values()):
            self._converters = None

    def resolve(self) -> None:
        """Find out what converts arguments and the result, where that was not done yet: at the first use, when all
        names of the module are there. Raises DeclarationError.
        """
        self._hints = None
        found = {}
        for p in self.parameters:
            made = converter(self._hint(p), f"Argument {p.name} of {self.klass}")
            if made is not None:
                found[p.name] = _each(made, p.kind)
        self._result = converter(self.hints.get("return"), f"The result of {self.klass}")
        self._converters = found

    @property
    def converters(self) -> dict[str, Converter]:
        """What converts arguments, by name."""
        if self._converters is None:
            self.resolve()
        return self._converters or {}

    @property
    def result(self) -> Converter | None:
        """What converts the result."""
        if self._converters is None:
            self.resolve()
        return self._result

    # ---- the call

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name. Raises TypeError, as the call would."""
        found: dict[str, Any] = self._bind(*args, **kwargs)
        return found

    def plain(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name as JSON has them."""
        converters = self.converters
        if not converters:
            return given
        data = dict(given)
        for name, made in converters.items():
            if name == self._open:
                for extra in data.keys() - self._names:
                    data[extra] = made.dump(data[extra])
            elif name in data:
                data[name] = made.dump(data[name])
        return data

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, with the defaults of those that were not given."""
        several: dict[str, Any] = {p.name: [] for p in self.parameters if p.kind is p.VAR_POSITIONAL}
        return several | {p.name: p.default for p in self.parameters if p.default is not p.empty} | given

    # ---- and back

    def arguments(self, data: Any) -> dict[str, Any]:
        """The arguments that data of a job mean, by name, converted. Raises BadArguments.

        Data are an object of them by name, a list of them in order, or nothing.
        """
        given = self.by_name(data)
        self.check(given)
        for name, made in self.converters.items():
            for one in given.keys() - self._names if name == self._open else {name} & given.keys():
                try:
                    given[one] = made.load(given[one])
                except Exception as error:
                    raise BadArguments(f"{self.klass} cannot take {one} = {given[one]!r}: {error}") from error
        return given

    def by_name(self, data: Any) -> dict[str, Any]:
        """The arguments that data mean, by name, as they are stored. Raises BadArguments."""
        if data is None:
            return {}
        if isinstance(data, dict):
            return data
        if not isinstance(data, list):
            raise BadArguments(f"The data of {self.klass} are no arguments by name, but {data!r:.80}.")
        try:
            return self.given(tuple(data), {})
        except TypeError as error:
            raise BadArguments(str(error)) from None

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse arguments that are missing, or too many."""
        missing = self._required - given.keys()
        missing |= {
            p.name for p in self.parameters if p.kind is p.POSITIONAL_ONLY and p.default is p.empty
        } - given.keys()
        if missing:
            raise BadArguments(f"{self.klass} lacks {', '.join(sorted(missing))}. It takes {self.signature}.")
        unknown = given.keys() - self._names
        if unknown and self._open is None:
            word = min(unknown)
            raise BadArguments(f"{self.klass} takes no {word!r}. {hint(word, self._names, 'It takes')}")

    def call(self, given: dict[str, Any], context: object) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of the function, from those by name that `arguments` gave."""
        if self._simple:
            return [], {**given, **dict.fromkeys(self.contexts, context)} if self.contexts else given
        left = {**given, **dict.fromkeys(self.contexts, context)}
        args: list[Any] = []
        by_place = any(p.kind is p.VAR_POSITIONAL for p in self._all)
        for p in self._all:
            if p.kind is p.VAR_POSITIONAL:
                args += left.pop(p.name, ())
            elif p.kind is p.POSITIONAL_ONLY or (by_place and p.kind is p.POSITIONAL_OR_KEYWORD):
                args.append(left.pop(p.name) if p.name in left else p.default)
        return args, left


def is_context(hint: Any) -> bool:
    """Whether an annotation means the job at hand; also one that can only be had by type checkers."""
    from qmodel.app.context import Context

    hint = getattr(hint, "__forward_arg__", hint)
    if isinstance(hint, str):
        return hint.removesuffix(" | None").rpartition(".")[2] == "Context"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(map(is_context, typing.get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, Context)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, each by itself: one that cannot be had stays text."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        pass
    names = getattr(inspect.unwrap(function), "__globals__", {})
    found = {}
    for name, written in _annotations(function).items():
        try:
            found[name] = eval(written, names) if isinstance(written, str) else written
        except Exception:
            found[name] = written
    return found


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, also where an annotation names what is still to come."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        found = get_annotations(function, format=Format.FORWARDREF)
        return {name: getattr(one, "__forward_arg__", one) for name, one in found.items()}
    return inspect.get_annotations(function)


def _each(made: Converter, kind: Any) -> Converter:
    """What converts a parameter of several values, from what converts one."""
    if kind is not Parameter.VAR_POSITIONAL:
        return made
    return Converter(lambda several: list(map(made.dump, several)), lambda several: list(map(made.load, several)))


def _compiled(klass: str, parameters: list[Parameter]) -> Callable[..., dict[str, Any]]:
    """A function with these parameters that gives the arguments of its call by name, without those left out."""
    taken = {p.name for p in parameters}
    found, unset, check = (_free(name, taken) for name in ("found", "unset", "check"))
    left_out = _Written(unset)
    bare = [p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else left_out) for p in parameters]
    always = [f"{p.name!r}: {p.name}" for p in bare if p.default is p.empty and p.kind not in _SEVERAL]
    lines = [f"def bind{inspect.Signature(bare)}:", f" {found} = {{{', '.join(always)}}}"]
    for p in bare:
        if p.kind is p.VAR_POSITIONAL:
            lines += [f" if {p.name}: {found}[{p.name!r}] = [*{p.name}]"]
        elif p.kind is p.VAR_KEYWORD:
            lines += [f" {check}({p.name})", f" {found}.update({p.name})"]
        elif p.default is not p.empty:
            lines += [f" if {p.name} is not {unset}: {found}[{p.name!r}] = {p.name}"]
    by_place = {p.name for p in bare if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL)}
    names: dict[str, Any] = {unset: _UNSET, check: lambda others: _check_apart(by_place, others)}
    exec("\n".join([*lines, f" return {found}"]), names)
    bind: Callable[..., dict[str, Any]] = names["bind"]
    bind.__qualname__ = klass  # what the interpreter calls it in its errors
    return bind


def _free(name: str, taken: Container[str]) -> str:
    """A name like one that no parameter has."""
    while name in taken:
        name += "_"
    return name


_SEVERAL = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class _Written:
    """A default, as the compiled function writes it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _check_apart(by_place: set[str], others: Mapping[str, Any]) -> None:
    """Refuse an argument of `**others` that is called as one that can only be given by its place."""
    if both := by_place & others.keys():
        raise TypeError(f"{min(both)!r} can be given by its place only, for a job's data have names only")


def check_function(klass: str, function: Any) -> None:
    """Refuse what gives its values bit by bit: nobody would ask it for them."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(
            f"{klass} is a generator function, which does nothing when it is called.",
            "Return a list instead of yielding.",
        )
