"""`python -m bench [name...]`: measure, print, and write the pages in `bench/results`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from bench import Options
from bench.report import Report

NAMES = (
    "commands",
    "memory",
    "server",
    "rivals",
    "instructions",
    "features",
    "fair",
    "model",
    "throughput",
    "worker",
    "growth",
    "serve",
    "app",
    "spark-read",
    "statistics",
    "spark-write",
    "pieces",
    "kills",
    "runners",
    "audit",
    "live",
    "storm",
    "storm-nodes",
    "worst",
    "shards",
    "nodes",
    "nodes-instructions",
    "million",
)


def main() -> int:
    """Run the named measurements, or all; give 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure qmodel.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of which the median is shown (default: 5)")
    parser.add_argument("--server", choices=("all", "redis", "valkey"), default="all", help="on which servers")
    parser.add_argument("--quick", action="store_true", help="a rough answer; nothing is kept")
    parser.add_argument(
        "--peers",
        default="",
        help="Pythons or folders with the other queue libraries, by commas (throughput, worker, rivals)",
    )
    storm = parser.add_argument_group("storm")
    storm.add_argument("--jobs", type=int, default=0, help="how many jobs (default: 100,000)")
    storm.add_argument("--faults", type=int, default=0, help="how many faults (default: 1,000)")
    storm.add_argument("--kinds", default="", help="which faults, by commas, or `all` (default: those that must hold)")
    storm.add_argument("--seed", type=int, help="draws the faults and the jobs (default: another one each time)")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    storms = {"jobs": given.jobs, "faults": given.faults, "kinds": given.kinds, "seed": given.seed}
    options = Options(given.runs, given.server, given.quick, given.peers, **storms)
    met, cpus = True, os.sched_getaffinity(0)
    for name in given.names or NAMES:
        os.sched_setaffinity(0, cpus)  # the measurement before may have pinned this process to one CPU
        module = importlib.import_module(f"bench.{name.replace('-', '_')}")
        report: Report = module.run(options)
        print(report.markdown())
        met = met and all(verdict.met for verdict in report.verdicts)
        if not options.quick:
            print(f"kept in {report.keep()}\n")
        if report.last:
            print(report.last)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
