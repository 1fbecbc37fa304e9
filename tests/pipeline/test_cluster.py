"""On a cluster whose executors have no qmodel, and one of them dies: each row becomes one job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from qmodel import connect
from tests.pipeline.sparking import needed, options
from tests.processes import started
from tests.servers import ROOT

pytestmark = pytest.mark.spark
needed()

from qmodel.backends.bundle import library  # noqa: E402
from qmodel.cli.on import reason  # noqa: E402
from qmodel.pipeline.archive.verify import verify  # noqa: E402
from qmodel.pipeline.spark.package import packed  # noqa: E402
from tests.pipeline import cluster_driver  # noqa: E402
from tests.pipeline.cluster import EXECUTOR, cluster  # noqa: E402

PATIENCE = 900.0
"""Seconds after which a test gives up waiting: a cluster is slow on a machine with other work."""

SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    **EXECUTOR,
}


def awaited(path: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait for the text that a driver's task writes to a file."""
    until = time.monotonic() + PATIENCE
    while not (path.exists() and path.read_text()):
        assert process.poll() is None and time.monotonic() < until, f"no {path.name}"
        time.sleep(0.05)
    return path.read_text()


def test_what_goes_along_is_all_of_qmodel(tmp_path: Path) -> None:
    import qmodel

    path = packed(Path(qmodel.__file__).parent)
    told = "import qmodel; from qmodel.backends.bundle import library; print(qmodel.__file__, len(library()))"
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run([sys.executable, "-c", told], env=environment, cwd=tmp_path, stdout=-1, text=True, check=True)
    assert done.stdout.split() == [f"{path}/qmodel/__init__.py", str(len(library()))]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("Traceback ...\nModuleNotFoundError: No module named 'pyarrow'", "The executors' Python has no pyarrow."),
        ('java.io.IOException: Cannot run program "/env/python": error=2', "Executors have no program /env/python"),
        ("... [PYTHON_VERSION_MISMATCH] 3.11 is not 3.12.\n at ...", "another Python: 3.11 is not 3.12."),
    ],
)
def test_what_a_cluster_lacks_is_said_in_a_sentence(error: str, said: str) -> None:
    assert said in reason(error)
    assert "docs/pipeline/cluster.md" in reason(error)


@pytest.mark.long
@pytest.mark.timeout(2 * PATIENCE)
def test_executors_die_and_stragglers_are_done_twice_and_each_row_is_one_job(url: str, tmp_path: Path) -> None:
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = {**options(tmp_path / "local"), **SPECULATIVE}
    confs = [word for name, value in given.items() for word in ("--conf", f"{name}={value}")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "QMODEL_URL": url}
    with cluster(tmp_path) as master, (tmp_path / "driver.log").open("wb") as log:
        command = [str(submit), "--master", master, *confs, cluster_driver.__file__, str(tmp_path)]
        with started(command, env=environment, stdout=log, stderr=log) as driver:
            executor = int(awaited(tmp_path / "killed-executor", driver))
            with connect(url) as client:
                while client.queues["killed"].counts.waiting < cluster_driver.ROWS // 2 + 500:
                    assert driver.poll() is None
                    time.sleep(0.05)
            os.kill(executor, signal.SIGKILL)
            (tmp_path / "killed-go").touch()
            assert driver.wait(PATIENCE) == 0, (tmp_path / "driver.log").read_text()[-3000:]
    assert (tmp_path / "twice-beside").exists(), "the two attempts did not run at one time"
    assert "ExecutorLostFailure" in (tmp_path / "driver.log").read_text()
    with connect(url) as client:
        puts = Counter(event.named["queue"] for event in client.events() if event.event == "put")
    assert puts == {"twice": cluster_driver.ROWS, "killed": cluster_driver.ROWS}
    (verdict,) = verify(str(tmp_path / "events"))
    assert verdict.whole and verdict.rows == 1 + sum(puts.values())  # the first event begins an epoch
