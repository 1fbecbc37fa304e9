"""Clients of other authors: redis-cli, and two for Node, which the test installs if the registry can be reached."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.support import Serving, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the clients for Node in a folder."""
    folder = tmp_path_factory.mktemp("node")
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("there is no Node here")
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "redis@5", "ioredis@5"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=90)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"the clients for Node cannot be installed: {error}")
    return folder


@pytest.mark.slow
def test_clients_for_node_have_a_session(modules: Path) -> None:
    with serving_by_port() as url:
        command = ["node", str(Path(__file__).parent / "clients.mjs"), url, str(modules)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "well\n", done.stdout + done.stderr


class serving_by_port:
    """Start a server on a free TCP port, which it prints."""

    def __enter__(self) -> str:
        import sys

        from tests.serve.support import ROOT

        command = [sys.executable, "-m", "qmodel", "serve", "--port", "0"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        return self.process.stdout.readline().rpartition(" at ")[2].strip()

    def __exit__(self, *exc: object) -> None:
        self.process.terminate()
        self.process.communicate()


CLI = shutil.which("redis-cli") or shutil.which("valkey-cli")


@pytest.mark.skipif(CLI is None, reason="there is no redis-cli here")
def test_redis_cli_shows_what_the_page_about_the_wire_shows(served: Serving) -> None:
    def ask(*words: str) -> str:
        done = subprocess.run(
            [str(CLI), "--no-raw", "-s", served.socket, *words], capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout

    put = ("FCALL", "qmodel_v1_put", "1", PREFIX, "", "", "emails", "j1", "SendEmail", "{}", "tags", "a")
    assert ask(*put) == '"j1"\n'
    assert ask("FCALL", "qmodel_v1_length", "1", PREFIX, "", "", "emails") == "(integer) 1\n"
    assert ask("-3", "CONFIG", "GET", "save") == '1# "save" => ""\n'


PREFIX = "ql:"
