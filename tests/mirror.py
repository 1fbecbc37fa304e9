"""What the mirror test compares: the functions of a Python module and of its Lua twin, read from their texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from qmodel.contract.events import EVENTS
from qmodel.contract.lifecycle import STATES
from qmodel.contract.refusals import REASONS
from qmodel.contract.replies import HISTORY

ROOT = Path(__file__).parents[1]
WORDS = frozenset({*EVENTS, *REASONS, *STATES, *HISTORY})
"""What both sides must say alike: events, refusals, states, stages."""

MODULES = {path.stem for folder in ("ops", "rules", "state") for path in (ROOT / "qmodel/model" / folder).glob("*.py")}


class Function(NamedTuple):
    """A function as the comparison sees it. Calls are `module.name`, or `name` within the same module."""

    name: str
    public: bool
    arguments: tuple[str, ...]
    words: frozenset[str]
    calls: frozenset[str]

    @property
    def key(self) -> tuple[str, bool]:
        """What it has in common with its twin."""
        return self.name, self.public


def text_of(folder: str, name: str, language: str) -> str:
    """The text of a module on one side."""
    path = ROOT / ("lua" if language == "lua" else "qmodel/model") / folder / f"{name}.{language}"
    return path.read_text(encoding="utf-8")


# ---- Python


def python_functions(text: str) -> list[Function]:
    """The functions at the top of a Python module."""
    tree = ast.parse(text)
    defined = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    known = {**_imported(tree), **{node.name: node.name.strip("_") for node in defined}}
    return [
        Function(
            node.name.strip("_"),
            not node.name.startswith("_"),
            tuple(argument.arg for argument in node.args.args if argument.arg != "store"),
            frozenset(_strings(node)) & WORDS,
            frozenset(_python_calls(node, known)),
        )
        for node in defined
    ]


def _imported(tree: ast.Module) -> dict[str, str]:
    """The functions that a module has imported from another one, as `module.name`."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = node.module.rpartition(".")[2]
            if module in MODULES:
                found |= {alias.name: f"{module}.{alias.name}" for alias in node.names if alias.name.islower()}
    return found


def _strings(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


def _python_calls(node: ast.AST, known: dict[str, str]) -> Iterator[str]:
    for one in ast.walk(node):
        match one:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if module in MODULES:
                yield f"{module}.{name}"
            case ast.Call(func=ast.Name(id=name)) if name in known:
                yield known[name]


# ---- Lua

_FUNCTION = re.compile(r"^(local )?function ([\w.]+)\((.*?)\)\n(.*?)^end$", re.M | re.S)


def lua_functions(text: str) -> list[Function]:
    """The functions at the top of a Lua module; the local ones stand for Python's with an underscore."""
    found = _FUNCTION.findall(text)
    own = text_of_own_table(text)
    local = {name for is_local, name, _, _ in found if is_local}
    return [
        Function(
            name.removeprefix(f"{own}.").strip("_"),
            not is_local,
            tuple(argument.strip() for argument in arguments.split(",") if argument.strip()),
            frozenset(re.findall(r"'([^']*)'", without_comments(body))) & WORDS,
            frozenset(_lua_calls(without_comments(body), own, local)),
        )
        for is_local, name, arguments, body in found
    ]


def text_of_own_table(text: str) -> str:
    """The name of the table that a Lua module makes."""
    made = re.search(r"^local (\w+) = \{\}$", text, re.M)
    assert made, text[:80]
    return made[1]


def without_comments(text: str) -> str:
    """Lua without its comments; no string of ours holds two hyphens."""
    return re.sub(r"--.*", "", text)


def _lua_calls(body: str, own: str, local: set[str]) -> Iterator[str]:
    for module, name in re.findall(r"\b(\w+)\.(\w+)\(", body):
        if module == own:
            yield name.strip("_")
        elif module in MODULES | {"records"}:
            yield f"{module}.{name.strip('_')}"
    yield from (name.strip("_") for name in re.findall(r"(?<![.\w])(\w+)\(", body) if name in local)
