"""qmodel/client/sync.py is qmodel/client/aio.py without its `await`s, and was not edited by hand; so is results.py."""

from __future__ import annotations

import ast

import pytest

from tests.client.derive_sync import PACKAGE, PAIRS, derived

made_files = pytest.mark.parametrize(("source", "target"), PAIRS.items())


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


@made_files
def test_the_client_is_the_asynchronous_one_without_its_awaits(source: str, target: str) -> None:
    assert shape((PACKAGE / target).read_text()) == shape(derived(source)), "run: python tests/client/derive_sync.py"


def test_a_client_edited_by_hand_would_be_noticed() -> None:
    made = derived("aio.py")

    assert shape(made) != shape(made.replace("found[0]", "found[1]", 1))


@made_files
def test_nothing_asynchronous_is_left_in_it(source: str, target: str) -> None:
    nodes = ast.walk(ast.parse((PACKAGE / target).read_text()))

    assert not [
        node
        for node in nodes
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
        or (isinstance(node, ast.Name) and node.id.startswith("Async"))
    ]
