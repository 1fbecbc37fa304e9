"""Measurements of qmodel: `python -m bench [name...]`, or `./dev bench`.

Each measurement is a file with one `run`, which gives a report: tables of medians, printed and written to
`results/<name>.md`. What does not depend on the machine (commands and bytes per job) is also a check in `tests/cost`;
CPU and throughput are only ever compared with something else that ran beside it, in turns, in the same run.

Three traps on small machines, and what is done about them. Figures at one call a round trip are mostly wake-ups, unless
client and server share a CPU: `server` pins both to one. `nice` does nothing across autogroups: where speed is
measured and not CPU time, the autogroup's is lowered too. And a client in Python is slower than the server it
measures: `raw` writes RESP by hand and is left out of the figure, for the CPU clock read is the server's own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How to measure: how many runs, on which servers, and whether a rough answer will do."""

    runs: int = 5
    server: str = "all"
    quick: bool = False
    peers: str = ""
