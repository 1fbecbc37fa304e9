"""Read which module imports which, from the source: imports for types and inside functions count too."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

Graph = dict[str, set[str]]
"""For each module, the modules that it imports."""


def sources(root: Path = ROOT) -> dict[str, Path]:
    """Find the Python files that are shipped, by the name of their module. Each is found once: links are skipped."""
    found = {}
    for folder in ("qmodel", "backends"):
        for path in sorted((root / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                found[module_of(path.relative_to(root))] = path
    return found


def module_of(path: Path) -> str:
    """Name the module of a file: `backends/memory.py` is imported as `qmodel.backends.memory`."""
    parts = path.with_suffix("").parts
    inside = parts if parts[0] == "qmodel" else ("qmodel", *parts)
    return ".".join(inside).removesuffix(".__init__")


def imported(text: str, modules: Collection[str]) -> Iterator[str]:
    """Yield the names that a module imports: a module where it is one of `modules`, else what the statement says."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, "qmodel has no relative imports"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in modules else node.module for name in names)


def graph(root: Path = ROOT) -> Graph:
    """Read the imports of every shipped module, as far as they are modules of qmodel."""
    files = sources(root)
    texts = {module: path.read_text(encoding="utf-8") for module, path in files.items()}
    return {module: {name for name in imported(text, files) if name in files} for module, text in texts.items()}


def circles(of: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Find the modules that import each other, directly or through others: each circle as a sorted list.

    Two modules are on one circle if each can be reached from the other.
    """
    reached = {one: _reached(of, one) for one in of}
    found = {tuple(sorted(two for two in reached[one] if one in reached[two])) for one in of if one in reached[one]}
    return [list(circle) for circle in sorted(found)]


def _reached(of: Mapping[str, Collection[str]], start: str) -> set[str]:
    found: set[str] = set()
    ahead = [start]
    while ahead:
        fresh = set(of[ahead.pop()]) - found
        found |= fresh
        ahead += fresh
    return found


def room_of(module: str) -> str:
    """Name the room of a module: the first-level package, or the loose file, that it belongs to."""
    _, _, inner = module.partition(".")
    return "qmodel" if inner in ("", "__main__") else inner.split(".")[0]


def arrows(of: Graph) -> Counter[tuple[str, str]]:
    """Count the imports from one room to another."""
    pairs = ((room_of(module), room_of(name)) for module, names in of.items() for name in names)
    return Counter((user, used) for user, used in pairs if user != used)
