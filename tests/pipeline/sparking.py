"""Check for Spark, and configure its session for tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def needed() -> None:
    """Skip a module of tests if Spark cannot run."""
    pytest.importorskip("pyspark", reason="pyspark is not installed; it comes with the extra `spark`")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("there is no Java, which Spark needs: apt install default-jre-headless", allow_module_level=True)


def options(folder: Path) -> dict[str, str]:
    """Configure Spark to be small and quiet, on this machine only, and to leave nothing behind."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JVM,
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


class Lasting:
    """A session that commands cannot stop, because later tests need it."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)

    def stop(self) -> None:
        """It goes on."""
