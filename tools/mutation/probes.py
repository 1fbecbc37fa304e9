"""Find the steps in which a changed expression has another value than the right one: only these can show a mutant.

A mutant of the library executes steps that run its line. Most lines run in thousands of steps, and a change often
matters in a few of them: `x > 1` differs from `x > 2` only where x is 2. So the right library is executed once with
probes: beside an expression they evaluate what mutants make of it, and note the mutants whose value is another one.

A probe stands at the largest expression around a change that calls nothing but pure functions: to evaluate it twice
does no harm. An assignment that is removed differs where the target has another value before it; arguments that are
exchanged differ where their values do; `a and f()` where f is called or not. Changes that have no such expression, as a
call that is removed, have no probe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tools.mutation.loaded import Loaded
from tools.mutation.lua import tree
from tools.mutation.mutants import Mutant
from tools.mutation.replay import Recording
from tools.mutation.uses import declares, in_function, name_of, named, top_of

NAME: Final = "probed"
"""The name of the function in the library that evaluates what mutants make of an expression."""

PURE: Final = {
    "tonumber", "tostring", "type", "select", "unpack", "ipairs", "pairs",
    "math.abs", "math.ceil", "math.floor", "math.huge", "math.max", "math.min",
    "string.byte", "string.char", "string.find", "string.format", "string.gsub", "string.len", "string.lower",
    "string.match", "string.rep", "string.sub", "string.upper", "table.concat",
}  # fmt: skip
"""What of Lua has no effect."""

OPERATIONS: Final = {"binary_expression", "unary_expression", "parenthesized_expression"}
SIMPLE: Final = {"identifier", "number", "string", "true", "false", "nil"}
INDEXED: Final = {"dot_index_expression", "bracket_index_expression"}
TESTS: Final = {"if_statement", "elseif_statement", "while_statement", "repeat_statement"}


class Probe(NamedTuple):
    """What a mutant makes of an expression."""

    span: tuple[int, int]
    """Where the right expression stands."""
    other: str
    """What is evaluated beside it."""
    way: str
    """How the two are compared: `values`; `truth`, for a condition; `when`, if the other one tells by itself."""


class Pure:
    """Tells expressions that can be evaluated twice."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._files = {file.rpartition("/")[2]: file for file in texts}
        self._declared: dict[str, Any] = {}
        for file, text in texts.items():
            for node in _functions(tree(text)):
                name = _text(node.child_by_field_name("name"))
                self._declared[name if "." in name else f"{file} {name}"] = node
        self.functions = set(PURE)
        """The functions without an effect, local ones behind the name of their file."""
        self._effects = {name: set(_effects(node)) for name, node in self._declared.items()}
        self._find()

    def _find(self) -> None:
        """Add functions of the library that assign nothing but locals, and call only functions without an effect."""
        candidates = {name for name, effects in self._effects.items() if None not in effects}
        found = {*candidates}
        while True:
            wrong = {
                name
                for name in found
                if not all(self._calls(name, call, found) for call in self._effects[name] - {None})
            }
            if not wrong:
                break
            found -= wrong
        self.functions |= found

    def _calls(self, name: str, called: Any, found: set[str]) -> bool:
        file = name.split(" ", maxsplit=1)[0] if " " in name else self._files.get(name.partition(".")[0], "")
        return called in PURE or called in found or f"{file} {called}" in found

    def is_pure(self, file: str, node: Any) -> bool:
        """Tell whether an expression, a list of them or their arguments have no effect."""
        if node.type in SIMPLE:
            return True
        children = [child for child in node.children if child.is_named]
        if node.type in OPERATIONS | INDEXED | {"expression_list", "variable_list"}:
            return all(self.is_pure(file, child) for child in children)
        if node.type == "arguments":
            return node.text[:1] == b"(" and all(self.is_pure(file, child) for child in children)
        if node.type == "function_call":
            name = _text(children[0])
            return (name in self.functions or f"{file} {name}" in self.functions) and self.is_pure(file, children[-1])
        return False


def _functions(root: Any) -> Iterator[Any]:
    for node in _walk(root):
        if node.type == "function_declaration":
            yield node


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _walk(child)


def _effects(function: Any) -> Iterator[str | None]:
    """List the functions that a function calls; None stands for another effect."""
    local = {"_"}
    for node in _walk(function):
        if node.type == "parameters" or (node.type == "variable_list" and node.parent.type == "for_generic_clause"):
            local |= {_text(child) for child in node.children}
        elif node.type == "for_numeric_clause":
            local.add(_text(node.children[0]))
        elif node.type == "variable_declaration":
            local |= {_text(one) for one in _walk(node.children[1]) if one.type == "identifier"}
    for node in _walk(function):
        if node.type == "function_call":
            yield _text(node.children[0])
        elif node.type == "assignment_statement" and node.parent.type != "variable_declaration":
            if not {_text(child) for child in node.children[0].children} <= local | {","}:
                yield None
        elif node.type in ("function_definition", "method_index_expression"):
            yield None


def _text(node: Any) -> str:
    return str(node.text.decode())


def probes_of(pure: Pure, mutant: Mutant, texts: Mapping[str, str]) -> dict[str, list[Probe]]:
    """Give the probes of a mutant by file, if it can have any: one, or one for each use of a constant."""
    node = tree(texts[mutant.file]).named_descendant_for_byte_range(mutant.start, mutant.end)
    if in_function(node):
        one = _probe(pure, mutant, node)
        found = {} if one is None else {mutant.file: [one]}
    else:
        found = _uses(pure, mutant, texts, node)
    wrong = any("--" in one.other or "..." in one.other for of in found.values() for one in of)
    return {} if wrong else found


def _uses(pure: Pure, mutant: Mutant, texts: Mapping[str, str], node: Any) -> dict[str, list[Probe]]:
    """Give a probe for each use of a constant, a name that is assigned once; none if one use cannot have one."""
    name = name_of(node)
    value = top_of(node).children[-1]
    value = value.children[-1] if value.type == "assignment_statement" else value
    if name is None or value.type != "expression_list" or not pure.is_pure(mutant.file, value):
        return {}
    if not value.start_byte <= mutant.start <= mutant.end <= value.end_byte:
        return {}
    is_local = "." not in name
    if not is_local and any(one.type == "identifier" for one in _walk(value)):
        return {}
    other, found = f"({_changed(mutant, value)})", dict[str, list[Probe]]()
    for file in [mutant.file] if is_local else texts:
        for use in named(tree(texts[file]), name):
            if declares(use) or (not is_local and _text(use) != name and _is_of_module(use, texts)):
                continue
            around = _largest(pure, file, use) if in_function(use) and _text(use) == name else None
            if around is None:
                return {}
            start = around.start_byte
            text = around.text[: use.start_byte - start] + other.encode() + around.text[use.end_byte - start :]
            way = "truth" if _is_test(around) else "values"
            span = around.start_byte, around.end_byte
            found.setdefault(file, []).append(Probe(span, " ".join(text.decode().split("\n")), way))
    return found


def _is_of_module(use: Any, texts: Mapping[str, str]) -> bool:
    """Tell whether a field is one of a file's table: each has one name."""
    base = _text(use).rpartition(".")[0]
    return any(file.endswith(f"/{base}") for file in texts)


def _probe(pure: Pure, mutant: Mutant, node: Any) -> Probe | None:
    spanned = (node.start_byte, node.end_byte) == (mutant.start, mutant.end)
    if mutant.operator == "statement":
        return _assigned(pure, mutant, node) if spanned else None
    if mutant.operator == "condition":
        return _test(pure, mutant, node) if spanned else None
    if node.type == "arguments":
        return _arguments(pure, mutant, node)
    around = _largest(pure, mutant.file, node)
    if around is not None:
        way = "truth" if _is_test(around) else "values"
        return Probe((around.start_byte, around.end_byte), _changed(mutant, around), way)
    return _reached(pure, mutant, node) if spanned or node.type == "binary_expression" else None


def _largest(pure: Pure, file: str, node: Any) -> Any:
    """Find the largest expression around a node that has no effect."""
    found = None
    while _is_value(node) and pure.is_pure(file, node):
        found, node = node, node.parent
        if node.type == "arguments":
            node = node.parent
    return found


def _is_value(node: Any) -> bool:
    """Tell whether an expression is evaluated: it is no target, and not the name of a field or a function."""
    parent = node.parent
    if node.type not in OPERATIONS | SIMPLE | INDEXED | {"function_call"}:
        return False
    if parent.type in INDEXED:
        is_index = parent.type == "bracket_index_expression" and node != parent.children[0]
        return is_index or (node == parent.children[0] and _is_value(parent))
    if parent.type in TESTS:
        return bool(parent.child_by_field_name("condition") == node)
    if parent.type == "for_numeric_clause":
        return bool(node != parent.children[0])
    if parent.type == "field":
        return bool(node == parent.children[-1])
    return parent.type in OPERATIONS | {"expression_list"} or (parent.type == "arguments" and parent.text[:1] == b"(")


def _is_test(node: Any) -> bool:
    return node.parent.type in TESTS


def _changed(mutant: Mutant, node: Any) -> str:
    """Give the text of a node around a change, with the change, on one line."""
    start = node.start_byte
    text = node.text[: mutant.start - start] + mutant.new.encode() + node.text[mutant.end - start :]
    return " ".join(text.decode().split("\n"))


def _assigned(pure: Pure, mutant: Mutant, node: Any) -> Probe | None:
    """Compare what is assigned with what was there before, and what is returned with nothing."""
    if node.type == "return_statement":
        values = node.children[-1]
        if not values.is_named or not pure.is_pure(mutant.file, values):
            return None
        return Probe((values.start_byte, values.end_byte), "nil", "values")
    if node.type != "assignment_statement":
        return None
    targets, values = node.children[0], node.children[-1]
    if not pure.is_pure(mutant.file, targets) or not pure.is_pure(mutant.file, values):
        return None
    return Probe((values.start_byte, values.end_byte), _text(targets).replace("\n", " "), "values")


def _test(pure: Pure, mutant: Mutant, node: Any) -> Probe | None:
    if pure.is_pure(mutant.file, node):
        return Probe((node.start_byte, node.end_byte), mutant.new, "truth")
    left = node.children[0]
    sign = node.children[1].type if node.type == "binary_expression" else ""
    if (sign, mutant.new) in (("and", "false"), ("or", "true")) and pure.is_pure(mutant.file, left):
        when = "true" if sign == "and" else "false"
        return Probe((left.start_byte, left.end_byte), when, "when")
    return None


def _arguments(pure: Pure, mutant: Mutant, node: Any) -> Probe | None:
    """Compare all arguments of a call, or the value of a call without an effect."""
    if not pure.is_pure(mutant.file, node):
        return None
    around = _largest(pure, mutant.file, node.parent)
    if around is not None:
        way = "truth" if _is_test(around) else "values"
        return Probe((around.start_byte, around.end_byte), _changed(mutant, around), way)
    start, end = node.start_byte + 1, node.end_byte - 1
    inner = node.text[1:-1]
    other = inner[: mutant.start - start] + mutant.new.encode() + inner[mutant.end - start :]
    return Probe((start, end), " ".join(other.decode().split("\n")), "values")


def _reached(pure: Pure, mutant: Mutant, node: Any) -> Probe | None:
    """For `a and f()` and `a or f()`: where one side alone, or the other operator, reaches another side."""
    if node.type != "binary_expression" or node.children[1].type not in ("and", "or"):
        return None
    left, sign, right = node.children
    if not pure.is_pure(mutant.file, left) or not _is_value(left):
        return None
    is_and = sign.type == "and"
    if mutant.new == _text(left):
        when = "true" if is_and else "false"
    elif mutant.new == _text(right):
        when = "false" if is_and else "true"
    else:
        return None
    return Probe((left.start_byte, left.end_byte), when, "when")


def with_probes(text: str, probes: Iterable[tuple[int, Probe]]) -> str:
    """Give the text of a file with probes, which have the numbers of mutants; lines stay where they are."""
    spans: dict[tuple[int, int], list[tuple[int, Probe]]] = {}
    for number, one in probes:
        spans.setdefault(one.span, []).append((number, one))
    before: dict[int, list[tuple[int, str]]] = {}
    behind: dict[int, int] = {}
    for (start, end), of in spans.items():
        others = ", ".join(f"{number}, '{one.way}', function() return {one.other} end" for number, one in of)
        before.setdefault(start, []).append((-end, f"{NAME}({3 * len(of)}, {others}, "))
        behind[end] = behind.get(end, 0) + 1
    raw, parts, last = text.encode(), list[str](), 0
    for at in sorted({*before, *behind}):
        parts += [raw[last:at].decode(), ")" * behind.get(at, 0), *(head for _, head in sorted(before.get(at, ())))]
        last = at
    return "".join([*parts, raw[last:].decode()])


def probed(texts: Mapping[str, str], mutants: Iterable[Mutant]) -> tuple[dict[str, str], dict[int, Mutant]]:
    """Give the changed texts of files with probes, and the mutants by the numbers that the probes note."""
    pure, numbered, by_file = Pure(texts), dict[int, Mutant](), dict[str, list[tuple[int, Probe]]]()
    for number, mutant in enumerate(mutants, 1):
        for file, of in probes_of(pure, mutant, texts).items():
            numbered[number] = mutant
            by_file.setdefault(file, []).extend((number, one) for one in of)
    return {file: with_probes(texts[file], of) for file, of in by_file.items()}, numbered


def differing(recorded: Recording, mutants: Iterable[Mutant]) -> dict[Mutant, list[int]]:
    """Give the steps in which a mutant can differ, for the mutants that have a probe."""
    texts, numbered = probed(recorded.texts, mutants)
    found: dict[Mutant, list[int]] = {mutant: [] for mutant in numbered.values()}
    loaded = Loaded({**recorded.texts, **texts})
    for index in recorded.executed(loaded, sorted({step for one in found for step in recorded.steps_of(one)})):
        for number in loaded.parts.others():
            found[numbered[number]].append(index)
    return found
