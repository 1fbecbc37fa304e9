"""Measure qmodel: `python -m bench [name...]`, or `./dev bench`.

Each measurement is a file with a function `run`, which gives a report: tables of medians, printed and written to
`results/<name>.md`. Figures that do not depend on the machine (commands and bytes per job) are also checked in
`tests/cost`. CPU time and throughput are only compared with something else that ran in turns in the same run.

Small machines have three traps. First, figures with one call per round trip are mostly wake-ups, unless client and
server share a CPU: `server` pins both to one. Second, `nice` has no effect across autogroups: where speed is measured,
not CPU time, the priority of the autogroup is raised too. Third, a Python client is slower than the server that it
measures: `raw` writes RESP by hand, and its time is not in the figure, because the server's own CPU clock is read.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """The options of a measurement: the number of runs, the servers, and whether a rough answer is enough.

    `jobs`, `faults`, `kinds` and `seed` are those of a storm; 0 and an empty text stand for its defaults.
    """

    runs: int = 5
    server: str = "all"
    quick: bool = False
    peers: str = ""
    jobs: int = 0
    faults: int = 0
    kinds: str = ""
    seed: int | None = None
