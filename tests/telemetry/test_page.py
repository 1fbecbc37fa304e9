"""The page on operating tells of every metric there is, and of no other."""

from __future__ import annotations

import re

import qmodel
from qmodel.telemetry.collecting import EngineCollector
from tests.servers import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def test_every_metric_is_in_the_table_with_its_labels() -> None:
    client = qmodel.connect("memory://")
    client.queues["q"].put("K", throttles=["t"])
    client.throttles["t"].set(concurrency=1)
    client.queues["f"].put("K")
    if job := client.queues["f"].pop():
        job.fail("G")
    told = {}
    for family in EngineCollector(client).collect():
        total = "_total" if family.type == "counter" else ""
        labels = {label for sample in family.samples for label in sample.labels}
        told[family.name + total] = labels
    table = dict(re.findall(r"^\| `(qmodel_\w+)` \| (.*?) \|", PAGE, re.M))

    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in table.items()} == told


def test_alerts_use_metrics_that_there_are() -> None:
    told = set(re.findall(r"^\| `(qmodel_\w+)`", PAGE, re.M))
    used = set(re.findall(r"\bqmodel_[a-z_]+", PAGE.split("### Alerts")[1].split("## Probes")[0]))
    assert {name.removesuffix("_bucket") for name in used} - told == set()
