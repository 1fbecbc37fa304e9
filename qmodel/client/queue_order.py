"""The order in which a pop looks at several queues."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from qmodel import runtime


def shuffled(names: Iterable[str], weights: Mapping[str, float]) -> list[str]:
    """Draw an order of names by their weights, one after the other without putting back (Efraimidis and Spirakis,
    Information Processing Letters 97, 2006). A name without a weight has 1; each weight must be above 0.
    """
    unknown = sorted(weights.keys() - set(names))
    if unknown or not all(weight > 0 for weight in weights.values()):
        raise ValueError(f"weights are numbers above 0 of queues that are named; {unknown or weights} is not")
    return sorted(names, key=lambda name: math.log(1 - runtime.random()) / weights.get(name, 1), reverse=True)
