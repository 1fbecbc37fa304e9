"""Figures of any number of events, by SQL: the same text for DuckDB and for Spark.

- `cells`: how durations are counted so that counts of parts can be added, and percentiles told.
- `sql`: from events to cells, and what has to be known of the events before.
- `figures`: from cells to figures: count, mean, variance, histogram, percentiles, failures, retries, throughput.
- `runs`: what was counted before, so that a run counts only what is new.
- `tables`: the figures for other tools, written anew for the days to which a run added.
- `local`: on one machine, with DuckDB (extra `duckdb`).
"""
