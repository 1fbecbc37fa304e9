"""What can be learnt from the events: tables of them, statistics, and whether the engine counted the same.

Plain functions, over iterators and batches of Arrow: what runs them may be a script, a pool of processes, or Spark.

- `reading` and `gaps`: the events, and the proof that none is missing.
- `folding` and `tallies`: figures by day and queue, klass, worker or tag; parts can be folded apart and merged.
- `reconciling`: the engine's own statistics beside the folded ones, to the last bit.
- `schema` and `decoding`: events as Arrow tables (extra `arrow`).
- `spark`: the same at any size (extra `spark`): a source of data, and jobs.
"""
