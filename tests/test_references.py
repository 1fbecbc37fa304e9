"""Every path and every dotted name that a docstring, a comment or a page mentions leads somewhere.

- `qmodel/client/aio.py`, `docs/` or any other path from the root of the repository: in all texts.
- `ops/put.lua` or `aio.py`, the end of a path: in docstrings, comments and Lua. Pages name the reader's files so.
- `qmodel.client.aio`, with the names in a module and in its classes: in all texts, where it stands in backquotes.

CHANGELOG.md is left out: it tells of files that are gone.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.architecture import imports

ROOT = imports.ROOT
FOLDERS = ("backends", "bench", "docs", "examples", "lua", "qmodel", "tests", "tools")
FILES = ("README.md", "dev", "mkdocs.yml", "mutants.toml", "pyproject.toml", "tox.ini", ".ci/run")

ROOTED = re.compile(rf"(?<![\w/.:~-])((?:{'|'.join(FOLDERS)}|references)/(?:[\w./-]*\w)?)(?![\w/]*[*<{{])")
ENDING = re.compile(r"(?<![\w/.:~*<>{}-])((?:[\w.-]+/)*\w[\w-]*\.(?:py|lua|md))\b(?![\w/*{])")
DOTTED = re.compile(r"`(qmodel(?:\.\w+)+)")

NOT_OURS = {
    "asyncio/threads.py": "of Python",
    "concurrent/futures/thread.py": "of Python",
    "contextlib.py": "of Python",
    "manage.py": "of Django",
    "reqless.lua": "of qless",
    "test_jobs.py": "written by `qmodel init`",
    "source/CHANGELOG.md": "of the site",
    "qmodel.lua": "a module's name",
}
"""Files of others that our comments mention."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield the name of each file, and what people read in it."""
    inner = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.is_file())
    for path in (*inner, *(ROOT / name for name in FILES)):
        linked = any(parent.is_symlink() for parent in path.parents)
        if path.suffix in (".py", ".lua", ".md", ".toml", ".yml", ".ini", "") and not linked:
            text = path.read_text(encoding="utf-8")
            yield str(path.relative_to(ROOT)), prose(text) if path.suffix == ".py" else text


def prose(source: str) -> str:
    """Give the docstrings and comments of a Python file."""
    told = [node.value.value for node in ast.walk(ast.parse(source)) if _is_text(node)]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    told += [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join(told)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def endings() -> set[str]:
    """Give every path of the repository, and every end of one."""
    inner = (path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    found = [path.parts for path in (*inner, *map(Path, FILES), Path("CHANGELOG.md"))]
    return {"/".join(parts[start:]) for parts in found for start in range(len(parts))}


sources = cache(imports.sources)


@cache
def is_defined(name: str) -> bool:
    """Say whether a dotted name is a module, a name in a module, or a member of a class in a module."""
    files = sources()
    module, inner = name, []
    while module not in files:
        module, _, last = module.rpartition(".")
        if not module:
            return False
        inner.insert(0, last)
    scope: ast.AST | None = ast.parse(files[module].read_text(encoding="utf-8"))
    for part in inner:
        scope = _find(scope, part) if scope else None
    return scope is not None


def _find(scope: ast.AST, name: str) -> ast.AST | None:
    """Find what defines a name. A member of a class with a base may be the base's: then the class itself is given."""
    for node in ast.walk(scope):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if node.name == name:
                return node
            case ast.Name(id) if id == name and isinstance(node.ctx, ast.Store):
                return node
            case ast.alias() if (node.asname or node.name) == name:
                return node
    return scope if isinstance(scope, ast.ClassDef) and scope.bases else None


def dead(name: str, text: str) -> set[str]:
    """Give what a text mentions and what is nowhere."""
    paths = {found.rstrip(".") for found in ROOTED.findall(text)}
    if not name.endswith(".md"):
        paths |= set(ENDING.findall(text))
    missing = {path for path in paths if path not in endings() and not (ROOT / path).exists()}
    return missing - NOT_OURS.keys() | {found for found in DOTTED.findall(text) if not is_defined(found)}


def test_what_texts_mention_is_there() -> None:
    found = {name: dead(name, text) for name, text in texts()}
    assert {name: sorted(names) for name, names in found.items() if names} == {}


def test_a_dead_reference_is_noticed() -> None:
    gone = ["qmodel/gone.py", "docs/gone.md", "lua/ops/gone", "references/qless.md", "ops/gone.lua", "gone.py"]
    gone += ["qmodel.gone", "qmodel.model.engine.gone", "qmodel.model.state.store.Store.gone"]
    there = ["qmodel/errors.py", "docs/", "lua/ops/put.lua", "ops/put.lua", "aio.py", "backends/*/gone.py"]
    there += ["qmodel.client", "qmodel.Client", "qmodel.model.engine.step", "qmodel.client.sync.Client.close"]
    text = "\n".join(f"See `{name}`." for name in (*gone, *there))
    assert dead("a.py", text) == set(gone)
    assert dead("a.md", text) == set(gone) - {"ops/gone.lua", "gone.py"}


def test_only_prose_is_followed() -> None:
    assert prose('"""One."""\nx = "two"  # three\n"""Four."""\n').split("\n") == ["One.", "Four.", "# three"]
