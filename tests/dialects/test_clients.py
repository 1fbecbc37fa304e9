"""Clients of qless as they are published, with our script in the place of theirs.

Each Python client is installed into an environment of its own, and its session skipped where there is no registry. The
Ruby clients are looked for in the installed gems, and in the folders that QMODEL_QLESS_RUBY and QMODEL_REQLESS_RUBY
name (the `lib` of a copy; it is copied again, for its script is replaced).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from qmodel.backends import bundle
from tests.servers import Server

HERE = Path(__file__).parent


class Client(NamedTuple):
    """A published client: its version, and where its script stands among its files."""

    package: str
    version: str
    script: str


PYTHON = {
    "qless": Client("qless-py", "0.11.4", "qless/qless-core/qless.lua"),
    "reqless": Client("reqless", "0.13.3", "reqless/lua/qless.lua"),
}
RUBY = {"qless": "qless/lua/qless.lua", "reqless": "reqless/lua/reqless.lua"}


def run(*words: str) -> str:
    """Run a command; give what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="session", params=PYTHON)
def python_client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A client's name, and an interpreter that has it, with our script."""
    client = PYTHON[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    python = str(folder / "bin/python")
    run(sys.executable, "-m", "venv", str(folder))
    wanted = f"{client.package}=={client.version}"
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{wanted} cannot be had here: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    replace(Path(where) / client.script)
    return request.param, python


def replace(script: Path) -> None:
    """Put our script in the place of a client's."""
    assert script.is_file()
    script.write_text(bundle.qless_script(), encoding="utf-8")


@pytest.mark.slow
def test_a_session_of_a_python_client(python_client: tuple[str, str], server: Server) -> None:
    name, python = python_client
    server.client().flushdb()
    assert run(python, "-W", "ignore", str(HERE / "session_python.py"), name, server.url) == "done\n"


def ruby_library(name: str) -> Path | None:
    """Where a Ruby client is."""
    if found := os.environ.get(f"QMODEL_{name.upper()}_RUBY"):
        return Path(found)
    words = ["gem", "contents", "--lib-only", name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    files = [Path(line) for line in done.stdout.split() if line.endswith(f"lib/{name}.rb")]
    return files[0].parent if files else None


@pytest.mark.slow
@pytest.mark.parametrize("name", RUBY)
def test_a_session_of_a_ruby_client(name: str, server: Server, tmp_path: Path) -> None:
    if shutil.which("ruby") is None:
        pytest.skip("there is no ruby here")
    library = ruby_library(name)
    if library is None:
        pytest.skip(f"the gem {name} is not installed, and QMODEL_{name.upper()}_RUBY names no copy")
    copied = shutil.copytree(library, tmp_path / "lib")
    replace(copied / RUBY[name])
    server.client().flushdb()
    server.client().script_load(bundle.qless_script())  # the client would, if Valkey said NOSCRIPT as Redis does
    found = run("ruby", "-W0", "-I", str(copied), str(HERE / "session_ruby.rb"), name, server.url)
    assert found.splitlines()[-1] == "done"
