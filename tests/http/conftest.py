"""The HTTP API, in this process and as one of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from qmodel.client.sync import Client
from qmodel.http import create
from tests.processes import started
from tests.servers import ROOT

HERE = "http://localhost"


@pytest.fixture
def jobs(url: str) -> Iterator[Client]:
    """The same jobs, without HTTP."""
    with Client(url) as client:
        yield client


@pytest.fixture
def api(url: str) -> Iterator[TestClient]:
    """The API, in this process."""
    with TestClient(create(url, writable=True), base_url=HERE) as client:
        yield client


@contextmanager
def served(*options: str) -> Iterator[str]:
    """`qmodel http` as a process; gives where it serves."""
    command = [sys.executable, "-m", "qmodel", "http", "--port", "0", *options]
    with started(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"at (http://\S+)$", process.stdout.readline())
            assert found, "it did not begin"
            yield found[1]
        finally:
            process.terminate()
            assert process.wait(60) == 0
