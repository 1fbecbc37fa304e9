"""Ordinary workers perform the pieces of a frame once each, and their answers are a frame."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qmodel import Client, connect
from qmodel.errors import RequestNotFound
from tests.pipeline.sparking import Lasting, needed
from tests.processes import started
from tests.servers import ROOT

pytestmark = pytest.mark.spark
needed()

from pyspark.sql import functions as F  # noqa: E402

from qmodel.cli import cli  # noqa: E402
from qmodel.pipeline.jobs.answers import AnswersWouldBeLost  # noqa: E402
from qmodel.pipeline.spark import requests  # noqa: E402
from tests.pipeline.test_spark_writing import fails, to  # noqa: E402

WORKER = """
from qmodel import App

app = App()


@app.job(name="Fit", queue="models", retries=0)
def fit(store: str, sales: list[int]) -> dict:
    if not sales:
        raise ValueError("There is nothing to fit.")
    return {"mean": sum(sales) / len(sales)}
"""

MODELS: dict[str, Any] = {"queue": "models", "klass": "Fit", "key": "store"}
ONCE: dict[str, Any] = {**MODELS, "retries": 0}


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with connect(url) as client:
        yield client


@pytest.fixture
def worker(url: str, tmp_path: Path) -> Iterator[None]:
    """Start a worker in a process of its own."""
    (tmp_path / "jobs.py").write_text(WORKER, encoding="utf-8")
    path = f"{ROOT}{os.pathsep}{tmp_path}"
    with started(
        [sys.executable, "-m", "qmodel", "worker", "jobs:app", "--url", url],
        env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        yield
        process.terminate()
        process.wait(30)


def pieces(spark: Any, count: int = 8) -> Any:
    rows = [(f"s{number}", list(range(number))) for number in range(count)]
    return spark.createDataFrame(rows[::-1], "store string, sales array<int>").repartition(2)


def test_a_request_that_was_broken_off_is_ended_and_its_answers_are_a_frame(
    spark: Any, client: Client, url: str, worker: None
) -> None:
    frame = pieces(spark)
    with pytest.raises(Exception, match="the worker died"):
        half = fails(frame.select("store", F.lit(0).alias("retries"), F.struct("*").alias("data")), 9)
        to(half, url, queue="models", klass="Fit", idColumns="store", request="fit").save()
    assert client.requests["fit"].get().state == "open"

    for _ in range(2):
        answers = requests.perform(frame, "fit", **ONCE, url=url, timeout=60).collect()
    assert [row.store for row in answers] == [f"s{number}" for number in range(8)]
    assert [(row.state, row.result) for row in answers[1:3]] == [
        ("complete", '{"mean":0.0}'),
        ("complete", '{"mean":0.5}'),
    ]
    assert (answers[0].state, answers[0].result, answers[0].message.splitlines()[-1]) == (
        "failed", None, "ValueError: There is nothing to fit.",
    )  # fmt: skip
    known = client.requests["fit"].get()
    assert (known.state, known.total, known.done, known.failed) == ("done", 8, 7, 1)
    assert Counter(event.event for event in client.events())["put"] == 8


def test_the_command_tells_what_became_of_the_pieces(
    spark: Any, client: Client, url: str, worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmodel.cli.on.spark_session", lambda *_: Lasting(spark))
    (tmp_path / "in.json").write_text("".join(
        json.dumps({"store": f"s{number}", "sales": [number] * number}) + "\n" for number in range(3)
    ), encoding="utf-8")  # fmt: skip
    out = tmp_path / "out"
    line = ["requests", str(tmp_path / "in.json"), "--format", "json", "--id", "fit", "--key", "store"]
    line += ["--queue", "models", "--klass", "Fit", "--timeout", "60", "--retries", "0"]
    line += ["--out", str(out), "--url", url]
    told = CliRunner().invoke(cli, line)
    assert (told.output, told.exit_code) == (
        f"Request fit: 2 complete, 1 failed; the answers are in {out}\n", 1,
    )  # fmt: skip
    assert sorted(row.store for row in spark.read.parquet(str(out)).collect()) == ["s0", "s1", "s2"]


def test_pieces_that_cannot_be_are_refused(spark: Any, client: Client, url: str) -> None:
    frame = spark.createDataFrame([("a", 1), ("a", 2)], "store string, sales int")
    with pytest.raises(ValueError, match="2 pieces have store = 'a' and would be one job"):
        requests.submit(frame, "fit", **MODELS, url=url)
    with pytest.raises(ValueError, match="columns that identify a piece"):
        requests.gather(frame, "fit", key=(), url=url)
    with pytest.raises(ValueError, match=r"a column 'state' of their own: .*'piece_state'"):
        requests.perform(frame.withColumnRenamed("store", "state"), "fit", **{**MODELS, "key": "state"}, url=url)
    with pytest.raises(RequestNotFound):
        requests.wait("fit", url=url)


def test_answers_that_would_be_lost_are_told_before(client: Client, url: str) -> None:
    client.config.set("jobs-history-count", 1)
    queue = client.queues["models"]
    client.requests.put("fit", "models", [queue.new("Fit", jid=f"fit:{number}") for number in range(2)], limit=1)
    with pytest.raises(AnswersWouldBeLost, match="has 2 jobs, and 1 complete ones are kept"):
        requests.wait("fit", url=url)
