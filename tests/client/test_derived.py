"""The synchronous client is the asynchronous one without its `await`s, and nobody edited it by hand."""

from __future__ import annotations

import ast

import pytest

from tools.sync_client import FOLDER, ROOT, TITLES, target, unformatted

generated = pytest.mark.parametrize("source", TITLES)


class Sorted(ast.NodeTransformer):
    """Imports in the order of their names: a formatter's matter."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        imports = [one for one in node.body if isinstance(one, ast.ImportFrom)]
        node.body = [one for one in node.body if not isinstance(one, ast.ImportFrom)]
        node.body[:0] = sorted(imports, key=lambda one: str(one.module))
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        node.names.sort(key=lambda alias: alias.name)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if isinstance(node.value, ast.List):  # __all__
            node.value.elts.sort(key=ast.dump)
        return node


def shape(source: str) -> str:
    return ast.dump(Sorted().visit(ast.parse(source)))


@generated
def test_the_client_is_the_asynchronous_one_without_its_awaits(source: str) -> None:
    made = (ROOT / FOLDER / target(source)).read_text()

    assert shape(made) == shape(unformatted(source)), "run: ./dev docs"


def test_a_client_edited_by_hand_would_be_noticed() -> None:
    made = unformatted("aio.py")

    assert shape(made) != shape(made.replace("found[0]", "found[1]", 1))


@generated
def test_nothing_asynchronous_is_left_in_it(source: str) -> None:
    nodes = ast.walk(ast.parse((ROOT / FOLDER / target(source)).read_text()))

    assert not [
        node
        for node in nodes
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (isinstance(node, ast.Name) and node.id.startswith("Async"))
    ]
