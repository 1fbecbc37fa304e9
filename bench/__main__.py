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
    "features",
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
    "worst",
)


def main() -> int:
    """Run the named measurements, or all; give 1 if a target is missed."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure qmodel.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to measure: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of which the median is shown (default: 5)")
    parser.add_argument("--server", choices=("all", "redis", "valkey"), default="all", help="on which servers")
    parser.add_argument("--quick", action="store_true", help="a rough answer; nothing is kept")
    parser.add_argument(
        "--peers", default="", help="Pythons with the other queue libraries, by commas (throughput, worker)"
    )
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    options = Options(given.runs, given.server, given.quick, given.peers)
    met, cpus = True, os.sched_getaffinity(0)
    for name in given.names or NAMES:
        os.sched_setaffinity(0, cpus)  # the one before may have kept to one of them
        module = importlib.import_module(f"bench.{name.replace('-', '_')}")
        report: Report = module.run(options)
        print(report.markdown())
        met = met and all(verdict.met for verdict in report.verdicts)
        if not options.quick:
            print(f"kept in {report.keep()}\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
