"""Run the pipeline on Spark (extra `spark`): a data source, a sink, and programs. See `qmodel.pipeline`."""

from __future__ import annotations

from qmodel.pipeline.spark.session import register, session

__all__ = ["register", "session"]
