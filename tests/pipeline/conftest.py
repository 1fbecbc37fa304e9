"""Provide one Spark session, one server and object stores for all tests of this folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.cluster import EXECUTOR, cluster
from tests.pipeline.sparking import options
from tests.servers import NOTHING_FOUND, ROOT, Server, chosen_servers, running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start the only session: it takes seconds and half a gigabyte. A task may fail once."""
    from pyspark.sql import SparkSession

    from qmodel.pipeline.spark import session

    folder = tmp_path_factory.mktemp("spark")
    with chosen_master(folder) as (master, given):
        builder = SparkSession.builder.master(master)
        for name, value in (options(folder) | given).items():
            builder = builder.config(name, value)
        with pytest.MonkeyPatch.context() as environment:  # Java keeps it, and gives it to its processes
            environment.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
            environment.setenv("PYSPARK_PYTHON", sys.executable)
            builder.getOrCreate()
            made = session("qmodel")
        yield made
        made.stop()


@contextmanager
def chosen_master(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Choose where Spark runs, with options: in one process, or on a cluster if QMODEL_TEST_SPARK=cluster.

    The cluster's executors get these tests, and nothing else of this checkout.
    """
    if os.environ.get("QMODEL_TEST_SPARK") != "cluster":
        yield "local[2,2]", {}
        return
    (folder / "given").mkdir()
    (folder / "given" / "tests").symlink_to(ROOT / "tests")
    with cluster(folder) as master:
        yield master, {"spark.task.maxFailures": "2", "spark.executorEnv.PYTHONPATH": str(folder / "given")} | EXECUTOR


@pytest.fixture(scope="session")
def spark_server() -> Iterator[Server]:
    """Start the first server that is available: Spark is under test here, not servers."""
    candidates = chosen_servers()
    if not candidates:
        pytest.skip(NOTHING_FOUND)
    with running(candidates[0]) as started:
        yield started


@pytest.fixture
def url(spark_server: Server) -> str:
    """Give a namespace of an empty server."""
    spark_server.client().flushdb()
    return f"{spark_server.url}?prefix=spark:"


@pytest.fixture
def memory() -> Iterator[str]:
    """Give an empty place in the memory of this process."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem.store.clear()
    yield "memory://shop/events"
    MemoryFileSystem.store.clear()


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Start a store that speaks S3, and give an empty bucket. It stays: fsspec keeps connections to it."""
    pytest.importorskip("s3fs", reason="s3fs is not installed; it comes with the extra `test`")
    servers = pytest.importorskip("moto.server", reason="moto is not installed; it comes with the extra `test`")
    import fsspec

    server = servers.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as environment:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        environment.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        fsspec.filesystem("s3").mkdir("bucket")
        yield "s3://bucket"
    server.stop()


@pytest.fixture
def s3(bucket: str, tmp_path: Path) -> str:
    """Give an empty place in a bucket."""
    return f"{bucket}/{tmp_path.name}/events"
