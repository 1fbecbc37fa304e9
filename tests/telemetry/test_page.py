"""The page on operating tells of every metric there is, and of no other."""

from __future__ import annotations

import re

import qmodel
from qmodel import App, Context
from qmodel.app import perform
from qmodel.telemetry.prometheus import EngineCollector, metrics
from tests.servers import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def test_every_metric_is_in_the_table_with_its_labels() -> None:
    client = qmodel.connect("memory://")
    client.queues["q"].put("K", throttles=["t"])
    client.throttles["t"].set(concurrency=1)
    client.subscriptions.add("s", "orders.*", "q", "K")
    client.queues["f"].put("K")
    if job := client.queues["f"].pop():
        job.fail("G")
    app = App("memory://")

    @app.job
    def send(context: Context) -> None:
        app.hooks.fire("lost_lock", context, None)

    registry = metrics(app)
    send.put()
    assert perform(app, app.client.queues["default"].pop(1)[0]).word == "completed"
    told = {}
    for family in (*EngineCollector(client).collect(), *registry.collect()):
        total = "_total" if family.type == "counter" else ""
        samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
        labels = {label for sample in samples for label in sample.labels}
        told[family.name + total] = labels
    table = dict(re.findall(r"^\| `(qmodel_\w+)` \| (.*?) \|", PAGE, re.M))

    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in table.items()} == told


def test_alerts_use_metrics_that_there_are() -> None:
    told = set(re.findall(r"^\| `(qmodel_\w+)`", PAGE, re.M))
    used = set(re.findall(r"\bqmodel_[a-z_]+", PAGE.split("### Alerts")[1].split("## Probes")[0]))
    assert {name.removesuffix("_bucket") for name in used} - told == set()
