"""The example of a declarative pipeline runs, and a later run adds new events only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qmodel import connect
from tests.pipeline.sparking import needed, options
from tests.servers import ROOT

pytestmark = pytest.mark.spark
needed()
pytest.importorskip("grpc_status", reason="grpcio-status is not installed; it comes with pyspark[connect]")
pytest.importorskip("yaml", reason="pyyaml is not installed, which spark-pipelines needs")
pq = pytest.importorskip("pyarrow.parquet")


def run(folder: Path, url: str) -> str:
    """Run the pipeline; give its log."""
    import pyspark

    command = [f"{Path(pyspark.__file__).parent}/bin/spark-pipelines", "run", "--spec", f"{folder}/spark-pipeline.yml"]
    for name, value in {**options(folder), "spark.sql.catalogImplementation": "hive"}.items():
        command += ["--conf", f"{name}={value}"]
    path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "QMODEL_URL": url, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    return subprocess.run(
        command, stdout=-1, stderr=-2, text=True, check=False, cwd=folder, env=environment, timeout=250
    ).stdout


@pytest.mark.long
def test_each_run_adds_the_new_events(url: str, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "examples" / "declarative", tmp_path / "pipeline")
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("/tmp/qmodel-pipeline", f"{folder}/storage"))
    with connect(url) as client:
        for _ in range(2):
            client.queues["q"].put_many([("Send", number) for number in range(20)])
            popped = client.queues["q"].pop(10, worker="w")
            log = run(folder, url)
            assert "Run is COMPLETED" in log, log[-2000:]
            (warehouse,) = folder.glob("*warehouse")
            events = pq.read_table(warehouse / "events").column("seq").to_pylist()
            assert sorted(events) == list(range(1, client.newest() + 1))
        waits = pq.read_table(warehouse / "waits").to_pylist()
    assert sum(row["jobs"] for row in waits) == 2 * len(popped)
