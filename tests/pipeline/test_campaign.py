"""A campaign on Spark is the campaign of one process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.sparking import needed

pytestmark = pytest.mark.spark
needed()

from qmodel.conformance.campaign.parts import Campaign, Total  # noqa: E402
from qmodel.conformance.campaign.processes import perform  # noqa: E402
from qmodel.conformance.campaign.reached import Reached  # noqa: E402
from qmodel.pipeline.spark import campaign  # noqa: E402
from tests.conformance.planted import Planted  # noqa: E402


@pytest.mark.long
def test_a_campaign_on_executors_finds_what_one_process_finds(spark: Any) -> None:
    what = Campaign("spark", Planted(0), steps=30)
    found = campaign.campaign(spark, what, 45, size=10).persist()
    here, there = Total(perform(what, 45, 1, 10)), campaign.total(found)
    assert (there.histories, there.steps, there.reached) == (here.histories, here.steps, here.reached)
    assert sorted(there.failures) == sorted(here.failures) != []
    rows = campaign.coverage(found).collect()
    assert {Reached(*row[:3]): row[3] for row in rows} == here.reached
    assert {row.history for row in campaign.failures(found).collect()} == {one.history for one in here.failures}
    assert sum(row.histories for row in campaign.throughput(found).collect()) == 45
    found.unpersist()
