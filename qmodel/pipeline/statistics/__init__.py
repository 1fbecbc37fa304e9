"""Compute figures of any number of events with SQL: one text for DuckDB and for Spark.

- `cells`: count durations so that counts of parts can be added, and percentiles read from them.
- `sql`: from events to cells, and the earlier events that a later run needs.
- `figures`: from cells to count, mean, variance, histogram, percentiles, failures, retries, throughput.
- `runs`: what was counted before, so that a run counts only new events.
- `tables`: the figures as files for other tools, updated for the days that a run added to.
- `local`: on one machine, with DuckDB (extra `duckdb`).
"""
