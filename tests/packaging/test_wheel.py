"""Users install the wheel that is built from the sdist, so these tests look at that wheel.

A wheel without the backends or the Lua library builds and installs without an error; only its users notice. So
everything runs in a clean environment, in a folder that does not see the repository.
"""

import ast
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONSUMER = Path(__file__).with_name("consumer.py")

OPTIONAL = {"hypothesis", "lupa", "numpy", "pyspark", "redis", "tree_sitter", "valkey"}
TOP_LEVEL_TWICE = {"backends", "lua"}


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that does not see this checkout; give its output."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def sources(root: Path) -> set[str]:
    """List the files of a checkout that a wheel must have, by their names there."""
    return {
        "qmodel/py.typed",
        *(str(path.relative_to(root)) for path in (root / "qmodel").glob("*.py")),
        *(f"qmodel/{path.relative_to(root)}" for path in (root / "backends").rglob("*.py")),
        *(f"qmodel/{path.relative_to(root)}" for path in (root / "backends").rglob("*.lua")),
        *(f"qmodel/{path.relative_to(root)}" for path in (root / "lua").rglob("*.lua")),
        *(str(path.relative_to(root)) for path in (root / "qmodel" / "conformance").rglob("*.txt")),
        *(
            str(path.relative_to(root))
            for path in (root / "qmodel" / "web").rglob("*.[!p]*")
            if path.is_file() and "__pycache__" not in path.parts
        ),
    }


def second_copies(source: str) -> Iterator[str]:
    """List the modules that a file imports from the top-level folders instead of from qmodel."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] in TOP_LEVEL_TWICE)


def optional(names: Iterable[str]) -> set[str]:
    """List the distributions or modules among these that plain qmodel must not need."""
    return {name.split(".")[0].replace("-", "_").lower() for name in names} & OPTIONAL


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an sdist, and a wheel from it; give their folder."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def sdist(built: Path) -> set[str]:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def scripts(wheel: Path, elsewhere: Path) -> Path:
    """Install the wheel into a clean environment without extras; give the folder of its scripts."""
    environment = elsewhere / "environment"
    venv.create(environment, with_pip=False)
    scripts = environment / "bin"
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python", "install", "--quiet")
    run(*pip, wheel, cwd=elsewhere)
    return scripts


def test_the_wheel_holds_every_module_and_every_lua_file(files: set[str]) -> None:
    assert sources(ROOT) - files == set()
    assert "qmodel/backends/__init__.py" in files
    assert any(name.startswith("qmodel/lua/") and name.endswith(".lua") for name in files)


def test_a_wheel_without_the_linked_folders_would_be_noticed(files: set[str]) -> None:
    links_only = {name for name in files if not name.startswith(("qmodel/backends", "qmodel/lua"))}
    assert "qmodel/backends/__init__.py" in sources(ROOT) - links_only


def test_the_wheel_holds_nothing_else(files: set[str]) -> None:
    assert {name.split("/")[0].partition("-")[0] for name in files} == {"qmodel"}
    assert {name for name in files if "__pycache__" in name} == set()


def test_the_sdist_holds_what_is_named_and_no_environment(sdist: set[str]) -> None:
    assert {"LICENSE", "pyproject.toml", "tox.ini", "dev", "backends/__init__.py"} <= sdist
    assert {name for name in sdist if "site-packages" in name or name.startswith(".venv")} == set()


def test_every_scheme_names_a_function_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (table,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        entry_points = ConfigParser()
        entry_points.read_string(archive.read(table).decode())
        for target in set(entry_points["qmodel.backends"].values()):
            module, _, function = target.partition(":")
            tree = ast.parse(archive.read(f"{module.replace('.', '/')}.py"))
            assert function in {node.name for node in tree.body if hasattr(node, "name")}, target


def test_plain_qmodel_neither_installs_nor_imports_what_is_optional(scripts: Path, elsewhere: Path) -> None:
    program = (
        "import importlib.metadata, json, sys; import qmodel, qmodel.backends.memory;"
        "qmodel.Client('memory://').queues['emails'].pop();"  # qmodel loads most of itself late
        "names = [d.metadata['Name'] for d in importlib.metadata.distributions()];"
        "print(json.dumps([names, list(sys.modules), qmodel.__file__]))"
    )
    names, modules, where = json.loads(run(scripts / "python", "-c", program, cwd=elsewhere))
    assert optional(names) == set()
    assert optional(modules) == set()
    assert Path(where).is_relative_to(elsewhere)


def test_an_optional_package_would_be_noticed() -> None:
    assert optional(["click", "tree-sitter", "redis.client"]) == {"tree_sitter", "redis"}


def test_the_command_line_runs(scripts: Path, elsewhere: Path) -> None:
    assert "Usage: qmodel" in run(scripts / "qmodel", "--help", cwd=elsewhere)


def test_an_application_in_another_folder_runs(scripts: Path, elsewhere: Path) -> None:
    assert "completed" in run(scripts / "python", CONSUMER, cwd=elsewhere)


def test_an_application_sees_the_types(scripts: Path, elsewhere: Path) -> None:
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=")
    run(*mypy, "--python-executable", scripts / "python", CONSUMER, cwd=elsewhere)


def test_an_application_that_errs_is_told_by_its_types(scripts: Path, elsewhere: Path) -> None:
    wrong = elsewhere / "wrong.py"
    wrong.write_text(CONSUMER.read_text().replace("jid: str", "jid: float"))
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=")
    with pytest.raises(AssertionError, match="assignment"):
        run(*mypy, "--python-executable", scripts / "python", wrong, cwd=elsewhere)


def test_no_file_imports_a_second_copy_of_the_backends_or_the_lua_library() -> None:
    folders = ("qmodel", "backends", "lua", "tests", "bench", "docs")
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        for name in second_copies(path.read_text())
    }
    assert found == set()


def test_a_second_copy_would_be_noticed() -> None:
    wrong = "import backends.redis\nfrom lua import keys"
    right = "from qmodel import backends\nfrom . import lua"
    assert list(second_copies(wrong)) == ["backends.redis", "lua"]
    assert list(second_copies(right)) == []
