"""The jobs on Spark, and the events as its source of data (extra `spark`). What is computed is in `qmodel.pipeline`."""

from __future__ import annotations

from qmodel.pipeline.spark.session import register, session

__all__ = ["register", "session"]
