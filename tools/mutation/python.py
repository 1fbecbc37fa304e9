"""Make the mutants of a Python file of the model from its syntax tree.

The operators are the same as in `lua`; a removed statement becomes `pass`. Annotations, docstrings, assertions and code
under `TYPE_CHECKING` are not mutated.
"""

from __future__ import annotations

import ast
from functools import cache
from itertools import pairwise
from pathlib import Path

import qmodel
from tools.mutation.mutants import Maker, Mutant

ROOT = Path(qmodel.__file__).parent
MUTATED = (
    "contract/settings",  # the defaults and ranges of options, which only the model applies
    *(
        f"model/{folder}/{path.stem}"
        for folder in ("state", "rules", "ops")
        for path in sorted((ROOT / "model" / folder).glob("[a-z]*.py"))
    ),
)

COMPARISON: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="), ast.LtE: ("<", ">"), ast.Gt: (">=", "<="), ast.GtE: (">", "<"), ast.Eq: ("!=",),
    ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",), ast.NotIn: ("in",),
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",), ast.Sub: ("+",), ast.Mult: ("//",), ast.FloorDiv: ("*",), ast.Div: ("*",), ast.Mod: ("*",),
}  # fmt: skip
SYMMETRIC: dict[str, tuple[int, ...]] = {
    "min": tuple(range(9)), "max": tuple(range(9)),
    "fits": (1,), "budget.fits": (1,),  # (store, units, kept): room - units >= kept
    "_sum": (0,),  # of two claims, part by part
    "aging.first_number": (0,),  # (rate, priority, at): their product counts
}  # fmt: skip
"""Arguments of functions, by name, that mean the same when they are exchanged with the next one."""

FUNCTION = {"min": "max", "max": "min", "popleft": "pop", "append": "appendleft"}


@cache
def read(name: str) -> str:
    """Read the text of a file of the model."""
    return (ROOT / f"{name}.py").read_text(encoding="utf-8")


def mutants(file: str) -> list[Mutant]:
    """Make all mutants of a file of the model."""
    text = read(file)
    return _Finder(file, text).find()


class _Finder:
    def __init__(self, file: str, text: str) -> None:
        self.maker = Maker("model", file, text)
        self.raw = text.encode()
        self.tree = ast.parse(text)
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def find(self) -> list[Mutant]:
        for node in self.tree.body:
            self.statement(node)
        return self.maker.mutants

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.raw[start:end].decode()

    def add(self, operator: str, span: tuple[int, int], new: str) -> None:
        self.maker.add(operator, span, new, self.lines)

    # ---- statements

    def statement(self, node: ast.stmt) -> None:
        self.lines = node.lineno, node.end_lineno or node.lineno
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Assert) or _is_docstring(node) or _is_typing(node):
            return
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for inner in node.body:
                self.statement(inner)
            return
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Delete | ast.Raise | ast.Continue | ast.Break):
            if not isinstance(node, ast.Assign) or not all(isinstance(one, ast.Name) for one in node.targets):
                self.add("statement", self.span(node), "pass")
        elif isinstance(node, ast.Return) and node.value is not None and self.text(node.value) not in ("None", "False"):
            self.add("statement", self.span(node), "return None")
        if isinstance(node, ast.AugAssign):
            self.operator(node.op, self.span(node.target)[1], self.span(node.value)[0])
        self.inside(node)

    def inside(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If | ast.While):
            self.lines = node.test.lineno, node.test.end_lineno or node.test.lineno
            self.add("condition", self.span(node.test), "False")
            if isinstance(node, ast.If):
                self.add("condition", self.span(node.test), "True")
            self.expression(node.test)
        elif isinstance(node, ast.For):
            self.lines = node.iter.lineno, node.iter.end_lineno or node.iter.lineno
            self.add("statement", self.span(node.iter), "()")
            self.expression(node.iter)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.expression(node.value)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expression(child)
        for body in ("body", "orelse"):
            for inner in getattr(node, body, ()):
                self.statement(inner)

    # ---- expressions

    def expression(self, root: ast.expr) -> None:
        self.prose = any(map(_is_prose, ast.walk(root)))
        for node in ast.walk(root):
            if isinstance(node, ast.comprehension):
                for test in node.ifs:
                    self.add("condition", self.span(test), "True")
            rule = getattr(self, f"on_{type(node).__name__}", None)
            if rule is not None:
                rule(node)

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Find the operator between two operands, without blanks and parentheses."""
        raw = self.raw[start:end]
        word = raw.replace(b"(", b" ").replace(b")", b" ").strip()
        at = start + raw.index(word)
        return at, at + len(word)

    def operator(self, op: ast.operator, start: int, end: int) -> None:
        for other in ARITHMETIC.get(type(op), ()):
            at, stop = self.between(start, end)
            augmented = self.raw[at:stop].endswith(b"=")
            self.add("arithmetic", (at, stop), other + "=" * augmented)

    def on_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            span = self.between(self.span(left)[1], self.span(right)[0])
            for other in COMPARISON.get(type(op), ()):
                self.add("comparison", span, other)
            left = right

    def on_BinOp(self, node: ast.BinOp) -> None:
        self.operator(node.op, self.span(node.left)[1], self.span(node.right)[0])

    def on_BoolOp(self, node: ast.BoolOp) -> None:
        word = "or" if isinstance(node.op, ast.And) else "and"
        for one, other in zip(node.values, node.values[1:], strict=False):
            self.add("logic", self.between(self.span(one)[1], self.span(other)[0]), word)
        for value in node.values:
            self.add("logic", self.span(node), self.text(value))

    def on_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self.add("logic", self.span(node), self.text(node.operand))
        elif isinstance(node.op, ast.USub):
            self.add("arithmetic", self.span(node), self.text(node.operand))

    def on_IfExp(self, node: ast.IfExp) -> None:
        self.add("condition", self.span(node.test), "True")
        self.add("condition", self.span(node.test), "False")

    def on_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if value is True or value is False:
            self.add("constant", self.span(node), str(not value))
        elif type(value) is int:
            self.add("constant", self.span(node), str(value + 1))
            self.add("constant", self.span(node), str(value - 1) if value else "(-1)")
        elif type(value) is str and not self.prose and self.raw[self.span(node)[0]] in b"\"'":
            self.add("constant", self.span(node), '"x"' if value == "" else '""')

    def on_Call(self, node: ast.Call) -> None:
        arguments = [] if _is_prose(node) else node.args
        if any(isinstance(one, ast.Starred | ast.GeneratorExp) for one in arguments):
            return
        symmetric = SYMMETRIC.get(ast.unparse(node.func), ())
        for one, other in [pair for at, pair in enumerate(pairwise(arguments)) if at not in symmetric]:
            start, end = self.span(one)[0], self.span(other)[1]
            between = self.raw[self.span(one)[1] : self.span(other)[0]].decode()
            self.add("argument", (start, end), self.text(other) + between + self.text(one))
        if len(arguments) > 1:
            self.add("argument", (self.span(arguments[-2])[1], self.span(arguments[-1])[1]), "")
        name = node.func
        if isinstance(name, ast.Name | ast.Attribute):
            word = name.id if isinstance(name, ast.Name) else name.attr
            if word in FUNCTION:
                end = self.span(name)[1]
                self.add("function", (end - len(word), end), FUNCTION[word])
            if word in ("sorted", "reversed") and len(arguments) == 1 and not node.keywords:
                self.add("function", self.span(node), f"list({self.text(arguments[0])})")


def _is_prose(node: ast.AST) -> bool:
    """Whether a node is a call that makes an option: its texts are for people and are not mutated."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Option"


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_typing(node: ast.stmt) -> bool:
    """Whether a statement is for the type checker only: an alias or variable of types, or imports for annotations."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
        return True
    if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar("):
        return True
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Subscript | ast.BinOp):
        return False
    text = ast.unparse(node.value)
    return isinstance(node.targets[0], ast.Name) and text.startswith(("tuple[", "dict[", "list["))
