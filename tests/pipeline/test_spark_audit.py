"""Journals of real runs of the demo, audited on executors: everything is proved, and a planted fault is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.pipeline.sparking import Lasting, needed

pytestmark = pytest.mark.spark
needed()

from qmodel.backends import bundle  # noqa: E402
from qmodel.backends.redis.take_snapshot import taken  # noqa: E402
from qmodel.cli import cli  # noqa: E402
from qmodel.client.sync import Client  # noqa: E402
from qmodel.contract import operations as ops  # noqa: E402
from qmodel.pipeline.audit import findings, replay  # noqa: E402
from qmodel.pipeline.journal import archive  # noqa: E402
from qmodel.pipeline.journal.pages import newest  # noqa: E402
from qmodel.pipeline.spark.audit import audit  # noqa: E402
from tests.pipeline.test_auditing import WRONG, work  # noqa: E402
from tests.servers import Server  # noqa: E402

SEGMENTS = 4
HOUR = 3_600_000


def demo(url: str, folder: Path) -> None:
    done = CliRunner().invoke(cli, ["demo", str(folder), "--url", url, "--json"])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Something for the demo to count; one file is no text."""
    made = tmp_path_factory.mktemp("demo")
    for number in range(120):
        (made / f"{number % 60}").mkdir(exist_ok=True)
        (made / f"{number % 60}" / f"{number}.txt").write_text(f"line {number}\n" * number)
    (made / "0" / "bad.txt").write_bytes(b"\xff\xfe" * 50)
    return made


@pytest.fixture
def skewed(spark_server: Server, folder: Path, tmp_path: Path) -> str:
    """Archive two namespaces, one with nine tenths of the entries, in segments."""
    spark_server.client().flushdb()
    for prefix, runs in (("large:", SEGMENTS), ("small:", 1)):
        url = f"{spark_server.url}?prefix={prefix}"
        with Client(url) as client:
            client.execute(ops.ConfigSet("journal", 1))
            for run in range(runs):
                if run:
                    archive.keep(str(tmp_path), prefix, taken(url))
                demo(url, folder if prefix == "large:" else folder / "0")
                list(archive.archive(url, str(tmp_path)))
    return str(tmp_path)


def test_the_demo_on_a_server_does_what_the_model_says_segment_by_segment(spark: Any, skewed: str) -> None:
    table = audit(spark, skewed)
    rows = [row.asDict() for row in table.collect()]
    assert [(row["kind"], row["expected"]) for row in rows if row["kind"] != "end"] == []
    entries = {
        space: sum(row["entries"] for row in rows if row["namespace"] == space) for space in ("large:", "small:")
    }
    assert entries["large:"] > 9 * entries["small:"] > 0
    cut = {(row["namespace"], row["after"]) for row in rows}
    assert len(cut) == len(rows) == SEGMENTS + 1
    assert max(row["entries"] for row in rows) < entries["large:"] / 2
    here = [row for part in archive.all_segments(skewed) for row in findings.audited(skewed, part)]
    assert [row["entries"] for row in here] == [row["entries"] for row in rows]
    assert table.rdd.getNumPartitions() == len(rows)


def test_a_fault_planted_in_the_library_is_named_with_what_was_before(
    spark: Any, url: str, spark_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, right, wrong = WRONG["a lapse that is not counted"]
    with Client(url) as client, spark_server.client() as server:
        client.execute(ops.ConfigSet("journal", 1))
        work(client, 40)
        now = client.execute(ops.Put("emails", "late", "Send", "", retries=3)) and taken(url).jobs["late"]["put_at"]
        client.execute(ops.Pop("emails", "w1"), now=now)
        try:
            server.function_load(bundle.library({file: bundle.read(file).replace(right, wrong)}), True)
            client.execute(ops.Pop("emails", "w2"), now=now + HOUR)
            first = newest(client)
            work(client, 40, "k")
        finally:
            server.function_load(bundle.library(), True)
        list(archive.archive(url, str(tmp_path)))
        history = list(client.journal())
    rows = [row.asDict() for row in audit(spark, str(tmp_path)).collect()]
    found, end = rows
    assert (found["kind"], found["number"], found["seq"]) == ("reply", first, found["expected_seq"])
    assert found["outcome"] == history[first - 1].outcome
    assert found["before"] == [f"{one.call} {one.outcome}" for one in history[first - 1 - replay.AROUND : first - 1]]
    assert json.loads(found["jobs"][0])["reply"][0] == "late"
    assert (end["kind"], end["entries"]) == ("end", len(history))

    monkeypatch.setattr("qmodel.cli.on.spark_session", lambda *_: Lasting(spark))
    told = CliRunner().invoke(cli, ["audit", str(tmp_path), "--on", "spark"])
    assert told.exit_code == 1
    assert f"Entry {first} of the journal:" in told.output
    assert f"  -> {history[first - 1].call}\n     production: {found['outcome']}" in told.output
    assert f"{len(history)} entries up to {len(history)}, 1 differ" in told.output
