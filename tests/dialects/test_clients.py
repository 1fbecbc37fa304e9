"""The published clients of qless: with our script in place of their own, and with their own script on `qmodel serve`.

Each Python client is installed into a separate environment; its session is skipped if no registry can be reached. The
Ruby clients are searched in the installed gems, and in the folders named by QMODEL_QLESS_RUBY and QMODEL_REQLESS_RUBY
(the `lib` of a copy).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from qmodel.backends import bundle
from tests.serve.support import serving
from tests.servers import Server

HERE = Path(__file__).parent


class Client(NamedTuple):
    """A published client: its version, and the path of its script among its files."""

    package: str
    version: str
    script: str


PYTHON = {
    "qless": Client("qless-py", "0.11.4", "qless/qless-core/qless.lua"),
    "reqless": Client("reqless", "0.13.3", "reqless/lua/qless.lua"),
}
RUBY = {"qless": "qless/lua/qless.lua", "reqless": "reqless/lua/reqless.lua"}


def run(*words: str) -> str:
    """Run a command; give its output."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="session", params=PYTHON)
def python_client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Path]:
    """Install a client; give its name, an interpreter that has it, and the path of its script."""
    client = PYTHON[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    python = str(folder / "bin/python")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    wanted = f"{client.package}=={client.version}"
    words = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wanted]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{wanted} cannot be had here: {(done.stderr.strip().splitlines() or ['pip failed'])[-1]}")
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    return request.param, python, Path(where) / client.script


@contextmanager
def replaced(script: Path) -> Iterator[None]:
    """Replace a client's script by ours."""
    own = script.read_text(encoding="utf-8")
    script.write_text(bundle.qless_script(), encoding="utf-8")
    try:
        yield
    finally:
        script.write_text(own, encoding="utf-8")


def python_session(python: str, *words: str) -> None:
    """Run the session of a Python client."""
    assert run(python, "-W", "ignore", str(HERE / "session_python.py"), *words) == "done\n"


@pytest.mark.slow
def test_a_python_client_works_with_our_script(python_client: tuple[str, str, Path], server: Server) -> None:
    name, python, script = python_client
    server.client().flushdb()
    with replaced(script):
        python_session(python, name, server.url)


@pytest.mark.slow
def test_a_python_client_works_with_its_own_script_on_the_model(python_client: tuple[str, str, Path]) -> None:
    name, python, _ = python_client
    with serving() as served:
        python_session(python, name, served.url)


def ruby_library(name: str) -> Path | None:
    """Find the folder of a Ruby client."""
    if found := os.environ.get(f"QMODEL_{name.upper()}_RUBY"):
        return Path(found)
    words = ["gem", "contents", "--lib-only", name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    files = [Path(line) for line in done.stdout.split() if line.endswith(f"lib/{name}.rb")]
    return files[0].parent if files else None


@pytest.fixture(params=RUBY)
def ruby_client(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, Path]:
    """Find a Ruby client; give its name, its folder, and the path of its script."""
    name = request.param
    if shutil.which("ruby") is None:
        pytest.skip("there is no ruby here")
    library = ruby_library(name)
    if library is None:
        pytest.skip(f"the gem {name} is not installed, and QMODEL_{name.upper()}_RUBY names no copy")
    copied = shutil.copytree(library, tmp_path / "lib")
    return name, copied, copied / RUBY[name]


def ruby_session(library: Path, *words: str) -> None:
    """Run the session of a Ruby client."""
    assert run("ruby", "-W0", "-I", str(library), str(HERE / "session_ruby.rb"), *words).splitlines()[-1] == "done"


@pytest.mark.slow
def test_a_ruby_client_works_with_our_script(ruby_client: tuple[str, Path, Path], server: Server) -> None:
    name, library, script = ruby_client
    server.client().flushdb()
    # The client would load the script itself if Valkey replied NOSCRIPT as Redis does.
    server.client().script_load(bundle.qless_script())
    with replaced(script):
        ruby_session(library, name, server.url)


@pytest.mark.slow
def test_a_ruby_client_works_with_its_own_script_on_the_model(ruby_client: tuple[str, Path, Path]) -> None:
    name, library, _ = ruby_client
    with serving() as served:
        ruby_session(library, name, served.url, "serve")
