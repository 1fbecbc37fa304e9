"""Let the shards of a deployment move and its masters die under load: a storm with 200 moves and 40 failovers.

Half of them strike a deployment whose clients and workers ask for confirmation and whose dependencies cross its shards,
and half one without confirmation, whose dependencies stay within a shard.
"""

from __future__ import annotations

from dataclasses import replace

from bench import Options, storm
from bench.report import Report

JOBS, FAULTS = 20_000, 240
KINDS = ",".join(["shard-moved"] * 5 + ["master-killed"])
"""Five moves for each failover."""


def run(options: Options) -> Report:
    """Play the rounds."""
    jobs, faults = options.jobs or JOBS, options.faults or FAULTS
    return storm.run(replace(options, jobs=jobs, faults=faults, kinds=options.kinds or KINDS), "storm-nodes")
