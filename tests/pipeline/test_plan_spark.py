"""A grid gives the same result on executors as in one process."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

from qmodel.planning import capacity  # noqa: E402
from qmodel.planning.grids import grid  # noqa: E402
from qmodel.planning.spark import measurements, outcomes  # noqa: E402
from tests.pipeline.test_planning import TEXT  # noqa: E402


@pytest.mark.long
def test_executors_simulate_what_one_process_does(spark: Any) -> None:
    found = grid(tomllib.loads(TEXT))
    assert outcomes(found, measurements(spark, found)) == capacity.run(found)
