"""Where the worker's tests find their jobs: the model in this process, and a server."""

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
    """A namespace of its own on a server."""
    return f"{server.url}?prefix=worker-{next(_NAMES)}:"


@pytest.fixture
def client(url: str) -> Client:
    """A client of that namespace."""
    return Client(url)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The file in which jobs note what they do."""
    return tmp_path / "notes"
