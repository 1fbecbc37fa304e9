"""Start a Spark cluster on this machine: a master and workers, each a process of its own.

Their Python does not see this checkout: executors get qmodel from the driver.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.pipeline.sparking import JVM
from tests.processes import started

PORTS = ("--port", "0", "--webui-port", "0")
EXECUTOR = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.network.timeout": "900s",
    "spark.executor.heartbeatInterval": "30s",
}
"""Options for small executors that are not taken for dead on a slow machine."""

DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """Start workers of one core each; give the URL of their master. All their output is in a folder.

    Each has an address of its own, because Spark never runs a task twice at once on one host.
    """
    with ExitStack() as stack:
        master = stack.enter_context(
            _daemon(folder, "master", f"{DEPLOY}.master.Master", "--host", "127.0.0.1", *PORTS)
        )
        url = _said(master, r"Starting Spark master at (spark://\S+)")
        each = ("-c", "1", "-m", "1g", "-d", str(folder / "work"), *PORTS)
        for number in range(workers):
            at = ("--host", f"127.0.0.{number + 1}", *each, url)
            stack.enter_context(_daemon(folder, f"worker-{number}", f"{DEPLOY}.worker.Worker", *at))
        for number in range(workers):
            _said(folder / f"worker-{number}.log", "(Successfully registered with master)")
        yield url


@contextmanager
def _daemon(folder: Path, name: str, *arguments: str) -> Iterator[Path]:
    import pyspark

    home = Path(pyspark.__file__).parent
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    spark = {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JVM}
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        command = [str(home / "bin" / "spark-class"), *arguments]
        environment = {**others, **spark, "SPARK_LOCAL_DIRS": str(folder / "local")}
        with started(command, cwd=folder, stdout=out, stderr=out, env=environment) as process:
            try:
                yield log
            finally:
                process.terminate()


def _said(log: Path, pattern: str) -> str:
    """Wait until a log has a line; give the first group of it."""
    until = time.monotonic() + 300
    while not (found := re.search(pattern, log.read_text())):
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)
    return found[1]
