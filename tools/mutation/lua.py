"""Make the mutants of a Lua file from its syntax tree.

    comparison   replace < <= > >= == ~= by a neighbour or the opposite
    arithmetic   replace + - * / % by another operator; remove a sign
    logic        and <-> or; keep one operand only; remove a `not`
    constant     replace a number by its neighbours, a text by the empty text; true <-> false
    condition    always true, or always false
    statement    remove a call, an assignment, a loop or a `break`; return nothing
    argument     swap two adjacent arguments; remove the last one
    function     min <-> max, ZRANGE <-> ZREVRANGE

Mutants with the same meaning are not made: swapped arguments of min and max, `return` without a value for false or nil,
position 0 instead of 1 for the first character of a text.

Generated files are not mutated: their generator has its own tests. Nor are the lists of the fields of
records, which only the bundle reads, when it makes the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

from qmodel.backends.bundle import FILES, read
from tools.mutation.mutants import Maker, Mutant

MADE = "-- Made by `./dev docs` "
"""The beginning of a generated file."""

_FIELDS = re.compile(r"\w+\.fields = \{")
"""How the list of the fields of a record begins."""

MUTATED = tuple(name for name in FILES if not read(name).startswith(MADE))

COMPARISON = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"), "==": ("~=",), "~=": ("==",),
}  # fmt: skip
ARITHMETIC = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("*",)}
LOGIC = {"and": "or", "or": "and"}
FUNCTION = {"min": "max", "max": "min"}
TEXT = {"ZRANGE": "ZREVRANGE", "ZREVRANGE": "ZRANGE", "1": "0", "0": "1"}
STATEMENTS = {
    "assignment_statement", "variable_declaration", "function_call", "return_statement", "break_statement",
    "for_numeric_clause", "for_generic_clause",
}  # fmt: skip


@cache
def _parser() -> Any:
    import tree_sitter
    import tree_sitter_lua

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_lua.language()))


@lru_cache(maxsize=256)
def tree(text: str) -> Any:
    """Give the root of a file's syntax tree."""
    return _parser().parse(text.encode()).root_node


def mutants(file: str, text: str | None = None) -> list[Mutant]:
    """Make all mutants of a file of the library."""
    text = read(file) if text is None else text
    maker = Maker("lua", file, text)
    for node in _nodes(tree(text)):
        _mutate(maker, node)
    return maker.mutants


def _nodes(node: Any) -> Iterator[Any]:
    if node.type == "assignment_statement" and _FIELDS.match(node.text.decode()):
        return
    yield node
    for child in node.children:
        yield from _nodes(child)


def statement(node: Any) -> Any:
    """Find the smallest statement or condition around a node."""
    while node.parent is not None:
        parent = node.parent
        if parent.type in ("if_statement", "elseif_statement", "while_statement", "repeat_statement"):
            return node
        if parent.type in ("block", "chunk") or node.type in ("for_numeric_clause", "for_generic_clause"):
            return node
        node = parent
    return node


def _mutate(maker: Maker, node: Any) -> None:
    rule = _RULES.get(node.type)
    if rule is not None and node.is_named:
        around = statement(node)
        lines = around.start_point[0] + 1, around.end_point[0] + 1
        for operator, span, new in rule(node):
            maker.add(operator, span, new, lines)
    if node.type in ("if_statement", "elseif_statement", "while_statement"):
        _conditions(maker, node)


Change = tuple[str, tuple[int, int], str]


def _span(node: Any) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _text(node: Any) -> str:
    return str(node.text.decode())


def _binary(node: Any) -> Iterator[Change]:
    left, sign, right = node.children
    for other in COMPARISON.get(sign.type, ()):
        yield "comparison", _span(sign), other
    for other in ARITHMETIC.get(sign.type, ()):
        yield "arithmetic", _span(sign), other
    if sign.type in LOGIC:
        yield "logic", _span(sign), LOGIC[sign.type]
        yield "logic", _span(node), _text(left)
        yield "logic", _span(node), _text(right)


def _unary(node: Any) -> Iterator[Change]:
    sign, operand = node.children
    if sign.type == "not":
        yield "logic", _span(node), _text(operand)
    elif sign.type == "-":
        yield "arithmetic", _span(node), _text(operand)


def _number(node: Any) -> Iterator[Change]:
    value = int(_text(node))
    if value == 1 and _is_first_character(node):
        yield "constant", _span(node), "2"
        return
    for other in {value + 1, value - 1} - {-1}:
        yield "constant", _span(node), str(other)
    if value == 0:
        yield "constant", _span(node), "(-1)"


def _is_first_character(node: Any) -> bool:
    call = node.parent.parent
    return call.type == "function_call" and _text(call.children[0]) in ("string.sub", "string.find", "string.byte")


def _string(node: Any) -> Iterator[Change]:
    text = _text(node)
    inner = text[1:-1]
    yield "constant", _span(node), "'x'" if inner == "" else "''"
    if inner in TEXT:
        yield "function" if inner[0] == "Z" else "constant", _span(node), f"'{TEXT[inner]}'"


def _flip(node: Any) -> Iterator[Change]:
    yield "constant", _span(node), "false" if node.type == "true" else "true"


def _call(node: Any) -> Iterator[Change]:
    if node.parent.type in ("block", "chunk"):
        yield "statement", _span(node), ""
    arguments = [child for child in node.children[-1].children if child.is_named]
    swapped = arguments if _text(node.children[0]) not in ("math.min", "math.max") else []
    for one, other in pairwise(swapped):
        span = one.start_byte, other.end_byte
        between = node.text[one.end_byte - node.start_byte : other.start_byte - node.start_byte].decode()
        yield "argument", span, _text(other) + between + _text(one)
    if len(arguments) > 1:
        yield "argument", (arguments[-2].end_byte, arguments[-1].end_byte), ""


def _assignment(node: Any) -> Iterator[Change]:
    if node.parent.type in ("block", "chunk"):
        yield "statement", _span(node), ""


def _loop(node: Any) -> Iterator[Change]:
    yield "statement", _span(node), ""


def _return(node: Any) -> Iterator[Change]:
    if len(node.children) > 1 and _text(node) not in ("return nil", "return false"):
        yield "statement", _span(node), "return"


def _name(node: Any) -> Iterator[Change]:
    if node.children[0].type == "identifier" and _text(node.children[0]) == "math":
        other = FUNCTION.get(_text(node.children[-1]))
        if other is not None:
            yield "function", _span(node.children[-1]), other


def _conditions(maker: Maker, node: Any) -> None:
    condition = node.children[1]
    lines = condition.start_point[0] + 1, condition.end_point[0] + 1
    maker.add("condition", _span(condition), "false", lines)
    if node.type != "while_statement":
        maker.add("condition", _span(condition), "true", lines)


_RULES = {
    "binary_expression": _binary,
    "unary_expression": _unary,
    "number": _number,
    "string": _string,
    "true": _flip,
    "false": _flip,
    "function_call": _call,
    "assignment_statement": _assignment,
    "for_statement": _loop,
    "break_statement": _loop,
    "return_statement": _return,
    "dot_index_expression": _name,
}
