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
from typing import Any

import pytest

from qmodel.backends.redis.url import options_of
from tests.clusters import Node, wait_until
from tests.processes import started
from tests.servers import NOTHING_FOUND, ROOT, Server, chosen_servers
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


# ---- six nodes

NODES = (ROOT / "docs/operations/six-nodes.md").read_text(encoding="utf-8")


def of_nodes(title: str) -> list[Any]:
    """Return the documents of a file that the page about six nodes shows."""
    found = re.search(rf'^```yaml title="{re.escape(title)}"\n(.*?)^```', NODES, re.M | re.S)
    assert found is not None
    yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")
    return list(yaml.safe_load_all(found[1]))


def servers() -> dict[str, list[str]]:
    """Return the command of a node in each file."""
    (compose,), manifest = of_nodes("compose.yaml"), of_nodes("queue.yaml")
    (container,) = manifest[2]["spec"]["template"]["spec"]["containers"]
    return {"compose": compose["services"]["node-1"]["command"], "kubernetes": container["command"]}


@pytest.mark.server
@pytest.mark.parametrize("file", ["compose", "kubernetes"])
def test_a_server_accepts_the_options_of_a_node(file: str, tmp_path: Path) -> None:
    program = next((one.program for one in chosen_servers() if one.program), None)
    if program is None:
        pytest.skip(NOTHING_FOUND)
    words = [word.replace("$(POD)", "queue-0").replace("$(IP)", "127.0.0.1") for word in servers()[file]]
    given = dict(zip(words[1::2], words[2::2], strict=True)) | {"--port": "0", "--dir": str(tmp_path)}
    node = Node(program, tmp_path, *(word for name, value in given.items() for word in (name, value)))
    try:
        node.start()
        wrong = qmodel_findings(node)
    finally:
        node.kill()
    assert not [line for line in wrong if "appendonly" in line or "maxmemory" in line]


def qmodel_findings(node: Node) -> list[str]:
    """Return what the doctor says against the settings of a server."""
    node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    wait_until(lambda: node.ask("CLUSTER INFO")["cluster_state"] == "ok")
    command = [sys.executable, "-m", "qmodel", "--url", f"redis://{node.address}/0?prefix={{a}}:", "doctor"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, cwd=ROOT)
    return [line for line in done.stdout.splitlines() if line.lstrip().startswith(("WARN", "FAIL"))]


@pytest.mark.server
def test_a_snapshot_is_restored_as_the_page_says(tmp_path: Path) -> None:
    program = next((one.program for one in chosen_servers() if one.program), None)
    if program is None:
        pytest.skip(NOTHING_FOUND)
    found = re.search(r"```sh\n(.*?)```", NODES.partition("## Backup and restore")[2], re.S)
    assert found is not None
    node = Node(program, tmp_path, "--appendonly", "yes", "--save", "")
    try:
        node.start()
        node.ask("SET", "job", "1")
        node.ask("SAVE")
        node.kill()
        shutil.rmtree(node.folder / "appendonlydir")
        subprocess.run(["sh", "-ec", found[1]], cwd=node.folder, check=True, timeout=60)
        node.start()
        assert node.ask("GET", "job") == "1"
    finally:
        node.kill()


def test_the_two_files_run_the_same_nodes_and_the_urls_lead_to_them() -> None:
    announced = {"--cluster-announce-hostname", "--cluster-announce-ip", "--cluster-preferred-endpoint-type"}
    found = [dict(zip(words[1::2], words[2::2], strict=True)) for words in servers().values()]
    alike = [{name: value for name, value in one.items() if name not in announced} for one in found]
    assert alike[0] == alike[1]
    (compose,), manifest = of_nodes("compose.yaml"), of_nodes("queue.yaml")
    services = compose["services"]
    hosts = [services[f"node-{n}"]["networks"]["queue"]["ipv4_address"] for n in range(1, 7)]
    url = services["worker"]["environment"]["QMODEL_URL"]
    assert [one.host for one in options_of(url).seeds] == hosts[:3]
    assert all(f"{host}:6379" in services["create"]["command"][2] for host in hosts)
    name = manifest[2]["metadata"]["name"]
    assert manifest[2]["spec"]["replicas"] == len(hosts)
    assert f"redis+cluster://{name}-0.{name},{name}-1.{name},{name}-2.{name}/0?name=shop" in NODES
