"""The arguments of a call as the data of a job, and back: an object of the arguments by name.

    send_email.put("a@b", subject="x")     ->  {"to": "a@b", "subject": "x"}
    def add(*numbers): add.put(1, 2)       ->  {"numbers": [1, 2]}
    def note(**fields): note.put(a=1)      ->  {"a": 1}

Only given arguments are stored; defaults are those of the code that performs the job. Python itself checks a call: for
each function, a function with the same parameters is compiled, which returns the dictionary. So an error is that of a
call, and the check costs no more than a call.

A parameter annotated `Context` is not an argument: it gets the context of the current attempt.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Container, Iterable, Mapping
from inspect import Parameter
from typing import Any, Final

from qmodel.app.errors import BadArguments, DeclarationError
from qmodel.app.values import Check, Converter, check_of, converter
from qmodel.contract.redaction import REDACTED
from qmodel.errors import hint

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
        # Arguments for `**others` have other names.
        self.names = [p.name for p in self.parameters if p.kind is not p.VAR_KEYWORD]
        kinds = {p.kind for p in self._all}
        self._simple = kinds <= set(_NAMED)
        self._defaults = {p.name: p.default for p in self.parameters if p.default is not p.empty}
        self._open = next((p.name for p in self.parameters if p.kind is Parameter.VAR_KEYWORD), None)
        self._bind = _compiled(klass, self.parameters)
        self._converters: dict[str, Converter] | None = None
        self._checks: dict[str, Check] = {}
        self._result: Converter | None = None
        self.redact: frozenset[str] = frozenset()

    # ---- annotations

    def _hint(self, parameter: Parameter) -> Any:
        return self.hints.get(parameter.name, parameter.annotation)

    @property
    def hints(self) -> dict[str, Any]:
        """The annotations as objects; as source text where one cannot be resolved."""
        if self._hints is None:
            self._hints = _hints(self._function)
        return self._hints

    def try_to_resolve(self) -> None:
        """Make the converters now, unless an annotation names something that the module defines later."""
        self.resolve()
        if any(isinstance(hint, str) for hint in self.hints.values()):
            self._converters = None

    def resolve(self) -> None:
        """Make the converters of arguments and result. At the first use all names of the module are defined. Raises
        DeclarationError.
        """
        self._hints = None
        found, checks = {}, {}
        for p in self.parameters:
            made = converter(self._hint(p), f"Argument {p.name} of {self.klass}")
            if made is not None:
                found[p.name] = _each(made, p.kind)
            elif (check := check_of(self._hint(p))) is not None:
                checks[p.name] = _check_each(check, p.kind)
        self._checks = checks
        self._result = converter(self.hints.get("return"), f"The result of {self.klass}")
        self._converters = found

    @property
    def converters(self) -> dict[str, Converter]:
        """The converters of arguments by name."""
        if self._converters is None:
            self.resolve()
        return self._converters or {}

    @property
    def result(self) -> Converter | None:
        """The converter of the result."""
        if self._converters is None:
            self.resolve()
        return self._result

    # ---- the call

    def given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Give the arguments of a call by name. Raises TypeError, as the call would."""
        found: dict[str, Any] = self._bind(*args, **kwargs)
        return found

    def plain(self, given: dict[str, Any]) -> dict[str, Any]:
        """Convert arguments by name to JSON's types. Raises BadArguments for one that is not of its annotation."""
        converters = self.converters
        self._check_types(given)
        if not converters:
            return given
        data = dict(given)
        for name, made in converters.items():
            for one in self._given_as(name, given):
                data[one] = self._dumped(one, given[one], made, name)
        return data

    def _given_as(self, name: str, given: Mapping[str, Any]) -> Iterable[str]:
        """The names of given arguments that belong to a parameter."""
        if name == self._open:
            return given.keys() - self._names
        return (name,) if name in given else ()

    def _check_types(self, given: Mapping[str, Any]) -> None:
        """Refuse arguments of other types than their annotations, but for defaults. Raises BadArguments."""
        for name, check in self._checks.items():
            for one in self._given_as(name, given):
                if not check(given[one]) and given[one] is not self._defaults.get(one, _UNSET):
                    raise self._refused(one, given[one], name)

    def _dumped(self, name: str, value: Any, made: Converter, parameter: str) -> Any:
        """Convert an argument, and see that it can be converted back, as the worker will."""
        try:
            dumped = made.dump(value)
            if value is not self._defaults.get(name, _UNSET):
                made.load(dumped)
        except Exception as error:
            cause = None if name in self.redact else error
            raise self._refused(name, value, parameter, f" {error}.") from cause
        return dumped

    def _refused(self, name: str, value: Any, parameter: str, why: str = "") -> BadArguments:
        wanted = next(inspect.formatannotation(self._hint(p)) for p in self.parameters if p.name == parameter)
        if name in self.redact:
            return BadArguments(f"{self.klass} takes {name}: {wanted}, not {REDACTED}.")
        return BadArguments(f"{self.klass} takes {name}: {wanted}, not {value!r:.80}.{why}")

    def complete(self, given: dict[str, Any]) -> dict[str, Any]:
        """Add the defaults of missing arguments."""
        several: dict[str, Any] = {p.name: [] for p in self.parameters if p.kind is p.VAR_POSITIONAL}
        return several | self._defaults | given

    # ---- and back

    def arguments(self, data: Any) -> dict[str, Any]:
        """Decode the arguments by name from a job's data. Raises BadArguments.

        The data are an object of arguments by name, a list of arguments in order, or None.
        """
        given = self.by_name(data)
        self.check(given)
        converters = self.converters
        self._check_types(given)
        for name, made in converters.items():
            for one in self._given_as(name, given):
                try:
                    given[one] = made.load(given[one])
                except Exception as error:
                    if one in self.redact:
                        raise BadArguments(f"{self.klass} cannot take {one} = {REDACTED}.") from None
                    raise BadArguments(f"{self.klass} cannot take {one} = {given[one]!r}: {error}") from error
        return given

    def by_name(self, data: Any) -> dict[str, Any]:
        """Read the arguments by name from data, without conversion. Raises BadArguments."""
        if data is None:
            return {}
        if isinstance(data, dict):
            return data
        if not isinstance(data, list):
            shown = REDACTED if self.redact else f"{data!r:.80}"
            raise BadArguments(f"The data of {self.klass} are not arguments by name: {shown}.")
        try:
            return self.given(tuple(data), {})
        except TypeError as error:
            raise BadArguments(str(error)) from None

    def check(self, given: Mapping[str, Any]) -> None:
        """Refuse missing and unknown arguments. Raises BadArguments."""
        missing = self._required - given.keys()
        missing |= {
            p.name for p in self.parameters if p.kind is p.POSITIONAL_ONLY and p.default is p.empty
        } - given.keys()
        if missing:
            raise BadArguments(f"{self.klass} lacks {', '.join(sorted(missing))}. It takes {self.signature}.")
        for p in self.parameters:
            if p.kind is p.VAR_POSITIONAL and not isinstance(given.get(p.name, ()), list | tuple):
                shown = REDACTED if p.name in self.redact else f"{given[p.name]!r:.80}"
                raise BadArguments(f"{self.klass} takes {p.name}: a list, not {shown}.")
        unknown = given.keys() - self._names
        if unknown and self._open is None:
            word = min(unknown)
            raise BadArguments(f"{self.klass} takes no {word!r}. {hint(word, self._names, 'It takes')}")

    def call(self, given: dict[str, Any], context: object) -> tuple[list[Any], dict[str, Any]]:
        """Make the positional and named arguments of the function from the result of `arguments`."""
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
    """Whether an annotation means the context, also one that only type checkers can resolve."""
    from qmodel.app.context import Context

    hint = getattr(hint, "__forward_arg__", hint)
    if isinstance(hint, str):
        return hint.removesuffix(" | None").rpartition(".")[2] == "Context"
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(map(is_context, typing.get_args(hint)))
    return isinstance(hint, type) and issubclass(hint, Context)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations of a function one by one. One that cannot be resolved stays text."""
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
    """Give the signature of a function, also if an annotation names something defined later."""
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
    """Make the converter of a `*args` parameter from the converter of one value."""
    if kind is not Parameter.VAR_POSITIONAL:
        return made
    return Converter(lambda several: list(map(made.dump, several)), lambda several: list(map(made.load, several)))


def _check_each(check: Check, kind: Any) -> Check:
    """Make the check of a `*args` parameter from the check of one value."""
    return (lambda several: all(map(check, several))) if kind is Parameter.VAR_POSITIONAL else check


def _compiled(klass: str, parameters: list[Parameter]) -> Callable[..., dict[str, Any]]:
    """Compile a function with these parameters that returns the given arguments of its call by name."""
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
    bind.__qualname__ = klass  # the name in the interpreter's errors
    return bind


def _free(name: str, taken: Container[str]) -> str:
    """Extend a name until no parameter has it."""
    while name in taken:
        name += "_"
    return name


_SEVERAL = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


class _Written:
    """A default value in the source of the compiled function."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _check_apart(by_place: set[str], others: Mapping[str, Any]) -> None:
    """Refuse an argument of `**others` with the name of a positional-only parameter."""
    if both := by_place & others.keys():
        raise TypeError(f"{min(both)!r} is positional-only, and a job's data have only names")


def check_function(klass: str, function: Any) -> None:
    """Refuse generator functions: their values would never be read."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(
            f"{klass} is a generator function, which does nothing when it is called.",
            "Return a list instead of yielding.",
        )
