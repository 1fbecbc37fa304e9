"""A seed that is run and timed: other processes do it, which import this module and not the command."""

from __future__ import annotations

import time
from typing import NamedTuple

from qmodel.simulator.settings import drawn
from qmodel.simulator.world import Result, run


class Timed(NamedTuple):
    """A run, and the processor time that it took."""

    result: Result
    cpu: float


def timed(seconds: float, seed: str) -> Timed:
    """Run a seed."""
    began = time.process_time()
    return Timed(run(seed, drawn(seed, seconds)), time.process_time() - began)
