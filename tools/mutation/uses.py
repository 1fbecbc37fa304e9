"""Find the lines that a mutant of load-time code may affect: a constant, or a table.

Such a value has a name, and only lines with this name can behave differently. So only the few steps that run one of
these lines need be executed. A value without a name, or with another name that cannot be followed, may affect every
step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tools.mutation.lua import statement, tree

Lines = set[tuple[str, int]]
"""Files, and lines in them from 1."""

FUNCTIONS = ("function_declaration", "function_definition")


def in_function(node: Any) -> bool:
    """Tell whether a node belongs to a function; all other code runs once, while the library loads."""
    while node is not None:
        if node.type in FUNCTIONS:
            return True
        node = node.parent
    return False


def uses(texts: Mapping[str, str], file: str, start: int, end: int) -> Lines | None:
    """List the lines that may behave differently when these bytes of a file's top level change; None means all."""
    return _of(texts, file, tree(texts[file]).named_descendant_for_byte_range(start, end), ())


def _of(texts: Mapping[str, str], file: str, node: Any, met: tuple[str, ...]) -> Lines | None:
    name = name_of(node)
    if name is None or name in met:
        return None
    found: Lines = set()
    for other in texts if "." in name else (file,):
        for one in named(tree(texts[other]), name):
            if in_function(one):
                around = statement(one)
                found.update((other, line) for line in range(around.start_point[0] + 1, around.end_point[0] + 2))
            elif not declares(one):
                further = _of(texts, other, one, (*met, name))
                if further is None:
                    return None
                found |= further
    return found


def top_of(node: Any) -> Any:
    """Find the top-level statement that a node belongs to."""
    while node.parent is not None and node.parent.type != "chunk":
        node = node.parent
    return node


def name_of(node: Any) -> str | None:
    """Give the name that a top-level statement assigns, such as `SWEEP` or `queues.NO_TIME`, or None."""
    top = top_of(node)
    found = re.match(r"(?:local\s+)?(\w+(?:\.\w+)?)\s*=(?!=)", top.text.decode())
    return found[1] if found and top.type in ("variable_declaration", "assignment_statement") else None


def declares(node: Any) -> bool:
    """Whether a node is the assigned name of its top-level statement."""
    return bool(node.start_byte - top_of(node).start_byte <= len("local "))


def named(root: Any, name: str) -> Iterator[Any]:
    """Find the uses of a name in a file; a field matches behind any variable, because tables have several names."""
    last = name.rpartition(".")[2]
    kind = ("dot_index_expression",) if "." in name else ("identifier",)
    walk = [root]
    while walk:
        node = walk.pop()
        if node.type in kind and node.text.decode().rpartition(".")[2] == last:
            yield node
        walk.extend(node.children)
