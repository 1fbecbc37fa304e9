"""Fixtures of the worker's tests: a namespace on a server, a client, and a file for notes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from qmodel.client.sync import Client
from tests.backends.conftest import private  # noqa: F401 (a fixture)
from tests.servers import Server

_NAMES = itertools.count()


@pytest.fixture
def url(server: Server) -> str:
    """Give each test its own namespace on a server."""
    return f"{server.url}?prefix=worker-{next(_NAMES)}:"


@pytest.fixture
def client(url: str) -> Client:
    """Open a client of that namespace."""
    return Client(url)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Name the file to which jobs write notes."""
    return tmp_path / "notes"
