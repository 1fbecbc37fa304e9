"""Learn from the events: archive them, compute statistics, and audit what the engine did.

All of it is plain functions over iterators and Arrow batches. A script, a pool of processes or Spark can run them.

- `events`: read the events page by page and prove that none is missing; events as Arrow tables (extra `arrow`).
- `archive`: keep events as Parquet files.
- `journal`: read and archive the journal; `audit` executes it again on the model.
- `statistics`: figures by day and queue, job type, worker or tag; compare them with the engine's own statistics.
- `jobs`: turn rows into jobs, and the results of jobs into rows; `tables` shows the jobs that exist now.
- `spark`: the same on Spark (extra `spark`): a data source, a sink, and programs for a cluster.
"""
