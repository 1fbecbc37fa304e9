"""The page on operating lists every metric, and no other."""

from __future__ import annotations

import json
import re
from typing import Any

import qmodel
from qmodel import App, Context
from qmodel.app import perform
from qmodel.client.profiles import Profile, written
from qmodel.contract import replies
from qmodel.telemetry.prometheus import EngineCollector, metrics
from tests.servers import ROOT

BOARD = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


def test_every_metric_is_in_the_table_with_its_labels() -> None:
    client = qmodel.connect("memory://")
    client.queues["q"].put("K", throttles=["t"])
    client.throttles["t"].set(concurrency=1)
    client.subscriptions.add("s", "orders.*", "q", "K")
    client.queues["f"].put("K")
    if job := client.queues["f"].pop():
        client.execute(written(job.worker, Profile("host", 7, "1.0", "3.12.1", "thread", 4, 4096, 10, 20, 1, ("f",))))
        job.fail("G")
    app = App("memory://")

    @app.job
    def send(context: Context) -> None:
        app.hooks.fire("lost_lock", context, None)

    registry = metrics(app)
    send.put()
    assert perform(app, app.client.queues["default"].pop(1)[0]).word == "completed"
    told = {}
    for family in (*EngineCollector(client, types=True).collect(), *registry.collect()):
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


def test_autoscalers_ask_for_what_there_is() -> None:
    page = (ROOT / "docs" / "operations" / "autoscaling.md").read_text(encoding="utf-8")
    assert unknown(re.findall(r"qmodel_\w+(?:\{.*?\})?", page)) == []
    assert set(re.findall(r"valueLocation: (\w+)", page)) < set(replies.QueueCounts._fields)


# ---- the dashboard


def asked(board: dict[str, Any]) -> list[str]:
    """List the queries of a dashboard."""
    targets = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    return targets + [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]


def unknown(expressions: list[str]) -> list[str]:
    """List the metrics, and the labels of metrics, that are not in the table."""
    table = {
        name: re.findall(r"`(\w+)`", labels) for name, labels in re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE, re.M)
    }
    found = []
    for metric, labels in re.findall(r"\b(qmodel_\w+)(?:\{(.*?)\})?", " ".join(expressions)):
        name = metric if metric in table else re.sub(r"_(bucket|sum|count)$", "", metric)
        known = {*table.get(name, ()), "instance"}
        found += [metric] if name not in table else []
        found += [f"{metric} {label}" for label in re.findall(r"(\w+)=", labels) if label not in known]
    return found


def test_the_dashboard_shows_metrics_that_there_are_and_all_of_them() -> None:
    assert unknown(asked(BOARD)) == []
    told = set(re.findall(r"^\| `(qmodel_\w+)`", PAGE, re.M)) - {"qmodel_info"}
    shown = " ".join(asked(BOARD))
    assert [name for name in told if name not in shown] == []


def test_a_metric_or_a_label_that_there_is_not_would_be_found() -> None:
    assert unknown(["sum(qmodel_jobs)"]) == ["qmodel_jobs"]
    assert unknown(['qmodel_workers{queue="q"}']) == ["qmodel_workers queue"]


def test_no_panel_of_the_dashboard_lies_on_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        here = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not here & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= here
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
