"""All works with Spark Connect, in which the program has no Java."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmodel import connect
from qmodel.contract import operations as ops
from tests.pipeline.sparking import needed, options
from tests.servers import ROOT

pytestmark = pytest.mark.spark
needed()
pytest.importorskip("grpc_status", reason="grpcio-status is not installed; it comes with pyspark[connect]")


PATIENCE = 250.0
"""Seconds after which the test gives up waiting."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int) -> Iterator[None]:
    """Run a server of Spark Connect until the end."""
    import pyspark

    command = [f"{Path(pyspark.__file__).parent}/bin/spark-submit", "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in {**options(folder), "spark.connect.grpc.binding.port": str(port)}.items():
        command += ["--conf", f"{name}={value}"]
    log = folder / "server.log"
    with log.open("w") as out, subprocess.Popen([*command, "spark-internal"], stdout=out, stderr=out) as server:
        until = time.monotonic() + PATIENCE
        while "Spark Connect server started" not in log.read_text():
            assert server.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
            time.sleep(0.1)
        try:
            yield
        finally:
            server.terminate()


@pytest.mark.long
def test_a_program_without_java_reads_writes_and_counts(url: str, tmp_path: Path) -> None:
    port = free_port()
    with connect(url) as client, serving(tmp_path, port):
        client.execute(ops.ConfigSet("journal", 1))
        client.queues["q"].put_many([("Send", number) for number in range(40)])
        for job in client.queues["q"].pop(15, worker="w"):
            job.complete()
        before = client.newest()
        program = [sys.executable, "-m", "tests.pipeline.connect_driver", url, str(tmp_path), str(port)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(program, stdout=-1, text=True, check=True, cwd=ROOT, env=environment, timeout=PATIENCE)
        assert client.newest() == before + 30
        found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("kind").startswith("pyspark.sql.connect")
    assert found == {
        "events": before, "journal": 18, "jobs": 40, "archive": before, "windows": 1, "stream": before + 30,
        "statistics": 15,
    }  # fmt: skip
