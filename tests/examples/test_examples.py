"""Every example runs: Python examples without a server and with one, HTTP examples against a real one."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest

from qmodel.client.sync import Client
from qmodel.errors import JobFailed
from tests.docs.pages import agrees
from tests.http.conftest import served
from tests.servers import ROOT, Server

EXAMPLES = ROOT / "examples"
LIBRARIES = {"running.py", "run_vectors.py"}
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name not in LIBRARIES)
PATIENCE = 60


def promised(name: str) -> str:
    """Read the output that an example promises in its docstring."""
    head = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))) or ""
    return textwrap.dedent(head.partition("It prints:\n\n")[2]) + "\n"


def run(*command: str, **environment: str) -> str:
    """Run a program in the folder of the examples; give its output."""
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        command, cwd=EXAMPLES, env=known, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_prints_what_it_promises_without_a_server(name: str) -> None:
    assert agrees(run(sys.executable, name), promised(name))


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_prints_the_same_with_one(name: str, server: Server) -> None:
    url = f"{server.url}?prefix={uuid.uuid4().hex}:"
    assert agrees(run(sys.executable, name, QMODEL_URL=url), promised(name))


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_curl_is_a_client_and_a_worker() -> None:
    with served("--writable") as api:
        assert run("bash", "client.sh", API=api) == "sent to ada@example.com\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_a_worker_may_be_written_in_javascript(server: Server) -> None:
    url = f"{server.url}?prefix={uuid.uuid4().hex}:"
    with served("--url", url, "--writable") as api, Client(url) as client:
        queue = client.queues["sums"]
        jobs = [queue.put("sum", {"numbers": [n, 1]}) for n in range(3)]
        broken = queue.put("broken", retries=1)
        run("node", "worker.mjs", api, "5")
        assert client.wait(jobs, timeout=PATIENCE) == [1, 2, 3]
        with pytest.raises(JobFailed) as found:
            broken.wait(timeout=PATIENCE)
        assert found.value.group == "TypeError"


def test_the_list_of_examples_is_whole() -> None:
    listed = set(re.findall(r"\]\(([\w.]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8")))
    there = {path.name for path in EXAMPLES.iterdir() if not path.name.startswith("__")}
    assert there - {"README.md", "running.py"} == listed
    assert all(Path(EXAMPLES / name).exists() for name in listed)
