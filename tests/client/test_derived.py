"""qmodel/client.py is qmodel/aio.py without its `await`s, and was not edited by hand."""

from __future__ import annotations

import ast

from tests.client.derive_sync import PACKAGE, derived


class Sorted(ast.NodeTransformer):
    """Imports in the order of their names: a formatter's matter."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        node.names.sort(key=lambda alias: alias.name)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if isinstance(node.value, ast.List):  # __all__
            node.value.elts.sort(key=ast.dump)
        return node


def shape(source: str) -> str:
    return ast.dump(Sorted().visit(ast.parse(source)))


def test_the_client_is_the_asynchronous_one_without_its_awaits() -> None:
    made = derived((PACKAGE / "aio.py").read_text())

    assert shape((PACKAGE / "client.py").read_text()) == shape(made), "run: python tests/client/derive_sync.py"


def test_a_client_edited_by_hand_would_be_noticed() -> None:
    made = derived((PACKAGE / "aio.py").read_text())

    assert shape(made) != shape(made.replace("found[0]", "found[1]", 1))


def test_nothing_asynchronous_is_left_in_it() -> None:
    nodes = ast.walk(ast.parse((PACKAGE / "client.py").read_text()))

    assert not [
        node
        for node in nodes
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (isinstance(node, ast.Name) and node.id.startswith("Async"))
    ]
