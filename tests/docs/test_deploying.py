"""The unit, the image and the deployment on the page about deploying run, and agree with each other."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.processes import started
from tests.servers import ROOT, Server
from tests.worker.support import free_port, until

PAGE = (ROOT / "docs/operations/deploying.md").read_text(encoding="utf-8")
JOBS = "from qmodel import App\napp = App()\n\n@app.job(queue='mails')\ndef add(x: int) -> int:\n    return x + 1\n"


def part(title: str) -> str:
    """Return a file that the page shows."""
    found = re.search(rf'^```\w+ title="[^"]*{re.escape(title)}"\n(.*?)^```', PAGE, re.M | re.S)
    assert found is not None
    return found[1]


def unit() -> configparser.SectionProxy:
    """Parse the service section of the systemd unit."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(part("shop-worker@.service"))
    return parser["Service"]


def image() -> list[str]:
    """Parse the command of the image."""
    found = re.search(r"^CMD (\[.*?\])$", part("Dockerfile").replace("\\\n", " "), re.M | re.S)
    assert found is not None
    words: list[str] = json.loads(found[1])
    return words


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
@pytest.mark.parametrize("key", ["", "Restat"], ids=["as-it-is", "misspelt"])
def test_systemd_accepts_every_key_of_the_unit(key: str, tmp_path: Path) -> None:
    text = part("shop-worker@.service").replace("/srv/shop/.venv/bin/qmodel", sys.executable)
    text = text.replace("/srv/shop", str(tmp_path)).replace("Restart=", f"{key}=" if key else "Restart=")
    (tmp_path / "shop-worker@1.service").write_text(text)
    command = ["systemd-analyze", "verify", str(tmp_path / "shop-worker@1.service")]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    unknown = [line for line in done.stdout.splitlines() if "Unknown" in line]
    assert [key in line for line in unknown] == [True] * bool(key), done.stdout


def test_the_stop_timeout_is_longer_than_the_grace_period() -> None:
    grace = int(option(shlex.split(unit()["ExecStart"]), "--grace"))
    assert int(unit()["TimeoutStopSec"]) > grace
    found = re.search(r"terminationGracePeriodSeconds: (\d+)", part("deployment.yaml"))
    assert found is not None and int(found[1]) > 30 and "--grace" not in image()


def test_the_probes_use_the_port_of_the_image() -> None:
    port = option(image(), "--health-port")
    assert f"{{name: health, containerPort: {port}}}" in part("deployment.yaml")
    assert re.findall(r"path: (\S+), port: (\w+)", part("deployment.yaml")) == [
        ("/live", "health"),
        ("/ready", "health"),
    ]
    assert option(image(), "--health-host") == "0.0.0.0"


@pytest.mark.parametrize("kind", ["unit", "image"])
def test_the_command_line_runs_becomes_ready_and_ends_at_the_signal(kind: str, server: Server, tmp_path: Path) -> None:
    words = shlex.split(unit()["ExecStart"]) if kind == "unit" else image()
    assert Path(words[0]).name == "qmodel"
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/jobs.py").write_text(JOBS)
    port = free_port()
    words = [
        str(port) if before == "--health-port" else word for before, word in zip(["", *words], words, strict=False)
    ]
    extra = [] if "--health-port" in words else ["--health-port", str(port)]
    environment = {**os.environ, "QMODEL_URL": f"{server.url}?prefix={kind}:", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "qmodel", *words[1:], *extra]
    with started(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
        until(lambda: process.poll() is not None or answers(f"http://127.0.0.1:{port}/ready"))
        process.terminate()
        assert process.wait(60) == 0


def answers(where: str) -> bool:
    try:
        with urllib.request.urlopen(where, timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
