"""The command line as a user would run it: in this process with click's runner, and a few times for real."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from qmodel.cli import cli


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """Run a command on a store that all commands of a test share."""
    from qmodel.backends import memory

    name = f"cli-{abs(hash(request.node.nodeid))}"
    monkeypatch.setenv("QMODEL_URL", f"memory://{name}")
    memory._NAMED.pop(name, None)

    def invoke(*arguments: str, input: str | None = None) -> Done:
        done = CliRunner().invoke(cli, arguments, input=input, prog_name="qmodel")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr)

    return invoke
