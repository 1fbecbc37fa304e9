"""Find the lines of the model that read the value of a top-level assignment: a constant, or a table.

Such a value is made while modules load, so no history runs its line. Only lines with its name can behave differently,
and lines with the name of a value that is made from it. (`uses` does the same for the Lua.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tools.mutation import python

Lines = set[tuple[str, int]]
"""Files, and lines in them from 1."""

MODEL = tuple(file for file in python.MUTATED if file.startswith("model/"))


def lines(file: str, line: int) -> Lines | None:
    """List the lines that may behave differently when this top-level line of a file changes; None means all."""
    top = next((one for one in _tree(file).body if one.lineno <= line <= (one.end_lineno or 0)), None)
    waiting, met, found = list(_names(top)), set[str](), Lines()
    if file not in MODEL or not waiting:
        return None
    while waiting:
        name = waiting.pop()
        if name in met:
            continue
        met.add(name)
        for other in MODEL:
            for at, further in _reads(other).get(name, ()):
                found.add((other, at))
                waiting += further
    return found


def assigned(target: ast.expr) -> list[str]:
    """List the names that the target of an assignment assigns: one, or several."""
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    return [one.id for one in targets if isinstance(one, ast.Name)]


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(python.read(file))


def _names(top: ast.stmt | None) -> Iterator[str]:
    """List the names that a statement assigns."""
    if isinstance(top, ast.Assign | ast.AnnAssign):
        for target in top.targets if isinstance(top, ast.Assign) else [top.target]:
            yield from assigned(target)


@cache
def _reads(file: str) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    """Find where a file reads each name: the line, and at the top level the names that its statement assigns."""
    found: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for top in _tree(file).body:
        made = tuple(_names(top))
        for node in ast.walk(top):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name and isinstance(getattr(node, "ctx", None), ast.Load):
                found.setdefault(name, []).append((node.lineno, made))  # type: ignore[attr-defined]
    return found
