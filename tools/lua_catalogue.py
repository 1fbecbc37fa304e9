"""Writes the generated files of the Lua library: `lua/contract/catalogue.lua` and `lua/wire/verbs.lua`."""

from __future__ import annotations

from typing import Any

from qmodel.contract.arguments import (
    MOST,
    REQUEST,
    REQUEST_NAME,
    TIME,
    Awaited,
    Choice,
    Dependency,
    Digits,
    Flag,
    Id,
    Kind,
    Label,
    ListOf,
    Name,
    Operations,
    Text,
    Whole,
)
from qmodel.contract.operations import CATALOGUE, Argument, Spec
from qmodel.contract.settings import OPTIONS
from qmodel.wire.layout import positional


class _Kinds:
    """The kinds that occur, each written once: fewer tables for Lua's collector to walk through."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}

    def __call__(self, kind: Kind, optional: bool = False) -> str:
        return self.names.setdefault(_kind(kind, optional), f"kinds[{len(self.names) + 1}]")


def _kind(kind: Kind, optional: bool = False) -> str:
    said = [f"kind = '{kind.wire}'"]
    match kind:
        case Text(most) | Name(most) | Id(most) | Label(most):
            said.append(f"most = {most}")
        case Whole(low, high) if not isinstance(kind, Digits):
            said.append(f"low = {low}, high = {high}")
        case ListOf(item, least, most):
            said.append(f"item = {_kind(item)}, least = {least}")
            if most != MOST:
                said.append(f"most = {most}")
            if optional:
                said.append("optional = true")
        case Operations(of):
            said.append(f"of = '{of.lower()}', least = 1")
        case Choice(words):
            said.append(f"words = {{{', '.join(f'{word} = true' for word in words)}}}")
        case Flag() | Dependency() | Awaited() | Digits():
            pass
    return "{" + ", ".join(said) + "}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case ():
            return "NONE"
        case _:
            return f"'{value}'"


def _check(argument: Argument, kinds: _Kinds) -> str:
    """A condition that holds of a bad value; a number takes the place of its text."""
    name, kind = argument.name, argument.kind
    match kind:
        case Text(most):
            return f"not ({name} and #{name} <= {most})"
        case Name(most):
            return f"not (arguments.names[{name}] or arguments.is_name({name}, {most}))"
        case Id(most):
            return f"not arguments.is_id({name}, {most})"
        case Digits():
            return f"not arguments.is_digits({name})"
    return f"{name} == nil"


def _decode(name: str, spec: Spec, kinds: _Kinds) -> list[str]:
    """The function that reads the operation written in args[at..last]."""
    placed = positional(spec)
    given = {a.name: a.name for a in placed}
    for argument in spec.arguments:
        if argument.name == "request":
            given["request"] = "''"
        elif not argument.required and argument.default is not None:
            given[argument.name] = _value(argument.default)
    lines = ["    decode = function(operation, args, at, last)"]
    if placed:
        places = ("at" if i == 0 else f"at + {i}" for i in range(len(placed)))
        end = f"at + {len(placed) - 1}" if len(placed) > 1 else "at"
        lines += [
            f"      if last < {end} then args = arguments.only(args, at, last) end",
            f"      local {', '.join(a.name for a in placed)} = {', '.join(f'args[{place}]' for place in places)}",
        ]
    for a in placed:
        if isinstance(a.kind, Whole) and not isinstance(a.kind, Digits):
            lines.append(f"      {a.name} = arguments.whole({a.name}, {a.kind.low}, {a.kind.high})")
        elif not isinstance(a.kind, Text | Name | Id | Digits):
            lines.append(f"      {a.name} = {a.name} and arguments.accept({kinds(a.kind)}, {a.name})")
        lines.append(f"      if {_check(a, kinds)} then arguments.refuse(operation, '{a.name}') end")
    lines.append(f"      local op = {{{', '.join(f'{a} = {value}' for a, value in given.items())}}}")
    further = f"arguments.named(operation, catalogue.operations.{name}, op, args, at + {len(placed)}, last)"
    lists = [a for a in spec.arguments if isinstance(a.kind, ListOf | Operations)]
    if any(a.required for a in lists):
        lines.append(f"      {further}")
    else:
        lines.append(f"      if last >= at + {len(placed)} then {further} end")
    return [*lines, "      return op", "    end,"]


_SHAPES = {"jobs": " jobs = true,", "completed_and_popped": " follow = true,"}
"""What wire/replies.lua has to know of a shape of reply."""


def _operation(name: str, spec: Spec, kinds: _Kinds) -> list[str]:
    lists = ", ".join(f"'{a.name}'" for a in spec.arguments if isinstance(a.kind, ListOf | Operations))
    lines = [
        f"  {name} = {{",
        f"    reads = {_value(spec.reads)}, memo = {_value(spec.resend == 'memo')}, "
        f"asks = {_value(any(a.name == 'request' for a in spec.arguments))}, "
        f"cascades = {_value(spec.cascades)}, lists = {{{lists}}},{_SHAPES.get(spec.reply, '')}",
        *_decode(name, spec, kinds),
        "    arguments = {",
    ]
    for argument in spec.arguments:
        lines.append(f"      {argument.name} = {kinds(argument.kind, not argument.required)},")
    return [*lines, "    },", "  },"]


def catalogue() -> str:
    """Write what the Lua library has to know of the catalogue."""
    lines = [
        "-- Made by `./dev docs` from qmodel/contract/operations and qmodel/contract/settings.py. Change those.",
        "",
        "local catalogue = {}",
        "",
        "local NONE = {} -- the list that stands for one that was left out",
        "",
        f"catalogue.most = {MOST}",
        f"catalogue.time = {_kind(TIME)}",
        f"catalogue.request = {_kind(REQUEST)}",
        f"catalogue.id = {_kind(Id())}",
        f"catalogue.request_name = {_kind(REQUEST_NAME)}",
        "catalogue.size = {kind = 'whole', low = 1, high = 100000}",
        "",
    ]
    kinds = _Kinds()
    operations = [line for name, spec in CATALOGUE.items() for line in _operation(name, spec, kinds)]
    lines += ["local kinds = {", *(f"  {kind}," for kind in kinds.names), "}", ""]
    lines += ["catalogue.operations = {", *operations, "}", "", "catalogue.options = {"]
    for option, (default, low, high, *_) in OPTIONS.items():
        lines.append(f"  ['{option}'] = {{default = {default}, low = {low}, high = {high}}},")
    lines += ["}", "", "catalogue.option_names = {"]
    lines += [f"  '{option}'," for option in OPTIONS]
    return "\n".join([*lines, "}", ""])


def verbs() -> str:
    """Write the table of dispatch: each operation is the function of its name in the file of its section."""
    lines = ["-- Made by `./dev docs` from qmodel/contract/operations. Change that.", "", "local verbs = {}", ""]
    lines += [f"verbs.{name} = {spec.section}.{name}" for name, spec in CATALOGUE.items()]
    return "\n".join([*lines, ""])
