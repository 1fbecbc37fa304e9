"""Each short measurement runs, roughly: what a wire or an event has more does not stop it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import server_commands

ROOT = Path(__file__).parents[2]
SHORT = ("commands", "memory", "model", "throughput", "growth", "serve", "app", "pieces", "kills", "server", "nodes")


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize("name", SHORT)
def test_a_measurement_runs(name: str) -> None:
    if not any(one.program for one in server_commands()):
        pytest.skip("no server")
    command = [sys.executable, "-m", "bench", name, "--quick", "--runs", "1"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=False, cwd=ROOT, env=env, capture_output=True, text=True, timeout=290)
    assert f"`python -m bench {name}" in done.stdout, done.stderr[-2000:]
