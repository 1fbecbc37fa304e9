"""A grid is read or refused, and gives the same result in any number of processes."""

from __future__ import annotations

import csv
import json
import math
import tomllib
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from qmodel import Client, connect
from qmodel.cli import cli, planned
from qmodel.contract import operations as ops
from qmodel.errors import QmodelError
from qmodel.pipeline.events.pages import pages
from qmodel.planning import capacity, grids, observations, plots
from qmodel.planning.confidence import Estimate
from qmodel.planning.distributions import Law
from qmodel.planning.grids import GridError, grid

TEXT = """
jobs = 200
warmup = 50
runs = 3

[streams.emails]
queue = "emails"
arrivals = { law = "exponential", mean_ms = 500 }
service = { law = "lognormal", mean_ms = 900, cv = 1.5 }
throttles = ["smtp"]

[streams.reports]
queue = "reports"
arrivals = { law = "constant", mean_ms = 9000 }
service = { law = "constant", mean_ms = 2000 }
priority = 5

[throttles.smtp]
concurrency = 9

[pools.main]
workers = 3

[grid]
"pools.main.workers" = [1, 4]
"throttles.smtp.concurrency" = [2, 8]
"""


def _given(**changed: Any) -> dict[str, Any]:
    """Make the grid, with values at their paths."""
    return grids._placed(tomllib.loads(TEXT), list(changed.items()))


def test_the_points_are_all_combinations() -> None:
    found = grid(tomllib.loads(TEXT))
    assert [(p.setup.pools[0].workers, dict(p.setup.throttles[0][1])["concurrency"]) for p in found.points] == [
        (1, 2), (1, 8), (4, 2), (4, 8),
    ]  # fmt: skip
    assert found.points[0].offered == pytest.approx(900 / 500 + 2000 / 9000)
    assert found.points[2].offered == pytest.approx(found.points[0].offered / 4)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("jobs", 10, "jobs must be a whole number from 100 to 10,000,000, not 10."),
        ("runs", 1, "runs must be a whole number from 2 to 1,000"),
        ("load", 0, "load must be a number above 0, up to 1e+06, not 0."),
        ("colour", "red", "There is no 'colour': there are jobs, warmup"),
        ("streams", {}, "There is no stream of jobs"),
        ("pools", {}, "There are no workers"),
        ("pools.main.workers", 0, "pools.main.workers must be a whole number from 1 to 100,000, not 0."),
        ("pools.main.queues", ["emails"], "No pool serves the queue 'reports'"),
        ("pools.main.queues", ["emails", "mails"], "pools.main.queues is"),
        ("pools.main.crashes", 1.0, "pools.main.crashes must be a number above 0, up to 0.999"),
        ("streams.emails.queue", "", "streams.emails.queue must be a text, not ''."),
        ("streams.emails.queue", "a b\x00", "streams.emails: the engine refuses it with BAD_ARGUMENT"),
        ("streams.emails.throttles", ["sms"], "streams.emails.throttles has 'sms': add [throttles.sms]"),
        ("streams.emails.arrivals", {}, "streams.emails.arrivals.law must be one of constant, exponential"),
        ("streams.emails.arrivals.mean_ms", None, "streams.emails.arrivals.mean_ms must be a number above 0"),
        ("streams.emails.arrivals", {"law": "observed"}, "has no such jobs"),
        ("streams.emails.renews", 1, "streams.emails.renews must be true or false"),
        ("streams.emails", 7, "streams.emails is a table, and not 7."),
        ("throttles.smtp", {"rate": 5}, "throttles.smtp: the engine refuses it with BAD_ARGUMENT"),
        ("throttles.smtp.colour", 5, "There is no 'throttles.smtp.colour'"),
        ("options", {"grace": 5}, "options.grace: the engine refuses it with UNKNOWN_OPTION grace"),
        ("observed", "nix.json", "there is no file"),
        ("grid", {"workers.x": [1]}, "there is no table [workers]"),
        ("grid", {"load": 1}, "[grid] has paths, each with a list of values"),
        ("grid", {"runs": [2, 3]}, "[grid] has 'runs', which is the same at all points"),
        ("grid", {"load": []}, "[grid] has paths, each with a list of values"),
        ("grid", {"load": list(range(200)), "jobs": list(range(200))}, "The grid has 40,000 points"),
    ],
)
def test_what_cannot_be_is_refused_with_its_path(path: str, value: Any, said: str) -> None:
    with pytest.raises(GridError) as refused:
        grid(_given(**{"grid": {}, path: value}))
    assert said in str(refused.value)


def test_a_path_of_the_grid_may_have_names_with_dots() -> None:
    given = _given(grid={"streams.app.jobs.Send.fails": [0.0, 0.5], "streams.app.priority": [1]})
    given["streams"] |= {name: dict(given["streams"]["emails"]) for name in ("app", "app.jobs.Send")}
    found = [dict((one.name, one) for one in point.setup.streams) for point in grid(given).points]
    assert [one["app.jobs.Send"].fails for one in found] == [0.0, 0.5]
    assert {(one["app"].priority, one["app"].fails) for one in found} == {(1, 0.0)}
    given["grid"] = {"streams.app.jobs.Fetch.fails": [0.1]}
    with pytest.raises(GridError, match=r"there is no table \[streams\.app\.jobs\]"):
        grid(given)


def test_in_several_processes_the_same_comes_out() -> None:
    found = grid(tomllib.loads(TEXT))
    assert capacity.run(found, 2) == capacity.run(found, 1)


def test_more_workers_wait_less_and_too_few_are_said_to_be_growing() -> None:
    found = capacity.run(grid(_given(jobs=1000)), 1)
    wait = {one.point.values: one.streams["emails"]["wait_mean"].mean for one in found}
    few, many = ((("pools.main.workers", n), ("throttles.smtp.concurrency", 8)) for n in (1, 4))
    assert wait[few] > 10 * wait[many]
    assert [one.settled for one in found] == [False, False, True, True]
    assert list(found[0].streams) == ["all", "emails", "reports"]


def test_a_difference_is_known_better_than_its_points() -> None:
    three, four = capacity.run(grid(_given(jobs=600, runs=5, grid={"pools.main.workers": [3, 4]})))
    found = capacity.difference(three, four, "emails", "wait_mean")
    mean = [one.streams["emails"]["wait_mean"] for one in (three, four)]
    assert found.mean == pytest.approx(mean[0].mean - mean[1].mean)
    assert found.low > 0 and found.half < mean[0].half


def test_a_row_has_the_values_of_the_grid_and_intervals() -> None:
    found = grid(_given(grid={"load": [0.5]}))
    rows = capacity.table(found, capacity.run(found))
    assert [(row["load"], row["stream"]) for row in rows] == [(0.5, "all"), (0.5, "emails"), (0.5, "reports")]
    assert all(row["wait_p99_low"] <= row["wait_p99"] <= row["wait_p99_high"] for row in rows)


def test_a_stream_with_few_jobs_is_left_out_where_it_has_none(tmp_path: Path) -> None:
    gaps = {"streams.reports.arrivals": {"law": "exponential", "mean_ms": 100}}
    given = _given(**gaps, jobs=100, warmup=0, grid={"streams.reports.arrivals.mean_ms": [500, 1e9, 30_000]}, runs=2)
    many, none, few = found = capacity.run(grid(given), 1)
    assert [list(one.streams) for one in (many, none)] == [["all", "emails", "reports"], ["all", "emails"]]
    assert none.streams["all"] == none.streams["emails"] and math.isfinite(few.streams["all"]["wait_mean"].half)
    one_run = few._replace(streams={**few.streams, "reports": dict.fromkeys(capacity.METRICS, Estimate(7.0, math.inf))})
    rows = capacity.table(grid(given), [many, none, one_run])
    assert (rows[-1]["wait_p99"], rows[-1]["wait_p99_low"], rows[-1]["wait_p99_high"]) == (7.0, None, None)
    drawn = ElementTree.fromstring(plots.picture(grid(given), [many, none, one_run], "wait_p99"))
    assert len(drawn.findall(".//{*}circle")) == 3 + 2 + 3 and found
    assert planned._figure(one_run.streams["reports"]["wait_p99"]) == "7.00 ± ? ms"


# ---- what was seen


def _watched(client: Client) -> Client:
    """Make the events of twenty jobs, one each second, of two seconds each; every fourth fails first, one lapses."""
    for number in range(20):
        client.execute(ops.Put("q", str(number), "Send", ""), now=1000 * number)
    now = 100_000
    for number in range(20):
        (job,) = client.execute(ops.Pop("q", "w"), now=now)
        if number % 4 == 0:
            client.execute(ops.Retry(job.jid, job.token), now=now + 500)
        elif number == 5:
            now += 200_000
        else:
            client.execute(ops.Complete(job.jid, job.token), now=now + 2000)
        now += 5000
    return client


def _observed(client: Client) -> list[observations.Observed]:
    observer = observations.Observer()
    for page in pages(client):
        observer.add(page)
    return observer.observed()


def test_what_is_observed_is_when_jobs_came_and_how_long_they_took() -> None:
    (found,) = _observed(_watched(connect("memory://observed")))
    assert (found.queue, found.klass, found.puts, found.attempts) == ("q", "Send", 20, 20)
    assert (found.retried, found.lapsed) == (5, 1)
    assert found.gaps == (1000,) * 19
    assert sorted(found.runs) == [500] * 5 + [2000] * 14
    assert observations.loads(observations.dumps([found])) == {("q", "Send"): found}


def test_a_failure_that_ended_no_attempt_is_none() -> None:
    client = connect("memory://observed-failures")
    client.execute(ops.Put("q", "a", "k", "", retries=0), now=0)
    client.execute(ops.Put("q", "b", "k", "", depends=("a fail",)), now=0)
    client.execute(ops.Pop("q", "w"), now=1000)
    client.execute(ops.Pop("q", "w"), now=10_000_000)
    client.execute(ops.Pop("q", "w"), now=20_000_000)
    assert [one.event for one in client.events()][-3:] == ["lock_lost", "failed", "failed"]
    (found,) = _observed(client)
    assert (found.attempts, found.retried, found.lapsed, found.runs) == (1, 0, 1, ())


def test_jobs_that_were_put_before_the_first_event_are_passed_over() -> None:
    client = _watched(connect("memory://observed-late"))
    observer = observations.Observer()
    for page in pages(client, 30):
        observer.add(page)
    assert observer.observed() == []


@pytest.mark.server
def test_an_archive_tells_what_the_queue_told(url: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from qmodel.pipeline.archive.write import archive

    with connect(url) as client:
        seen = _observed(_watched(client))
    list(archive(url, str(tmp_path), rows=15))
    assert observations.archived(str(tmp_path)) == observations.archived(str(tmp_path), "spark:") == seen
    with pytest.raises(QmodelError, match="has no events of 'other'"):
        observations.archived(str(tmp_path), "other")
    next(tmp_path.rglob("*.parquet")).write_bytes(b"PAR1")
    with pytest.raises(QmodelError, match=r"is damaged: .*archive verify"):
        observations.archived(str(tmp_path))


NOT_WHOLE = observations.dumps([observations.Observed("emails", "emails", 1, 1, 0, 0, (1.5,), ())])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        NOT_WHOLE,
        "[]",
        "{}",
        "x",
        '{"format": "qmodel observations 1"}',
        '{"format": "qmodel observations 1", "observed": [1]}',
    ],
)
def test_a_file_that_has_no_observations_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text(text, encoding="utf-8")
    with pytest.raises(GridError, match=r"o.json has no observations: .* `qmodel plan new` writes them"):
        grid({**tomllib.loads(TEXT), "observed": "o.json"}, tmp_path)


def test_observed_durations_that_become_nothing_are_refused(tmp_path: Path) -> None:
    seen = observations.Observed("emails", "emails", 2, 1, 0, 0, (400,), (90,))
    (tmp_path / "o.json").write_text(observations.dumps([seen]), encoding="utf-8")
    arrivals = {"law": "observed", "times": 0.001}
    given = _given(**{"streams.emails.arrivals": arrivals}) | {"observed": "o.json"}
    with pytest.raises(
        GridError, match=r"streams.emails.arrivals.times is 0.001, and makes all observed durations 0 ms"
    ):
        grid(given, tmp_path)
    with pytest.raises(GridError, match="Is a directory"):
        grid(given | {"observed": "."}, tmp_path)


def test_recorded_durations_keep_their_order_and_observed_ones_do_not() -> None:
    values = tuple(range(1, 101))
    recorded = list(islice(Law("recorded", values=values).draws(Random(1)), 150))
    assert {b - a for a, b in pairwise(recorded)} == {1, -99}
    observed = list(islice(Law("observed", values=values).draws(Random(1), 2.0), 1000))
    assert set(observed) <= {2.0 * one for one in values} and len(set(observed)) > 90


# ---- the command


def _run(*arguments: str, url: str = "memory://planning-cli") -> Any:
    return CliRunner().invoke(cli, ["--url", url, "plan", *arguments], prog_name="qmodel")


def test_from_nothing_to_a_table_and_a_picture(tmp_path: Path) -> None:
    file, out, picture = tmp_path / "grid.toml", tmp_path / "plan.csv", tmp_path / "plan.svg"
    assert f"Next: qmodel plan run {file}" in _run("new", str(file)).output
    assert "is not overwritten" in _run("new", str(file)).output
    text = file.read_text(encoding="utf-8").replace("jobs = 3000", "jobs = 200\nwarmup = 50")
    file.write_text(text.replace("runs = 8", "runs = 2"), encoding="utf-8")
    done = _run("run", str(file), "--processes", "1", "--out", str(out), "--picture", str(picture))
    assert done.exit_code == 0, done.output
    assert "8 points, 2 runs each" in done.output and "growing" in done.output
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert len(rows) == 8 * 3 and float(rows[0]["wait_p99"]) > 0
    pq = pytest.importorskip("pyarrow.parquet")
    assert _run("run", str(file), "--processes", "1", "--out", str(out.with_suffix(".parquet"))).exit_code == 0
    kept = pq.read_table(out.with_suffix(".parquet")).to_pylist()
    assert [str(row["wait_p99"]) for row in kept] == [row["wait_p99"] for row in rows]
    drawn = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert len(drawn.findall(".//{*}circle")) == 8 * 3
    assert len(drawn.findall(".//{*}polyline")) == 2 * 3


def test_from_what_happened_to_a_table(tmp_path: Path) -> None:
    client = connect("memory://planning-seen")
    _watched(client)
    client.queues["q"].put("Once")
    file = tmp_path / "grid.toml"
    done = _run("new", str(file), "--observe", url="memory://planning-seen")
    assert done.exit_code == 0 and "grid.observed.json" in done.output
    assert "Left out: Once in q, with no two moments of puts" in done.output
    text = file.read_text(encoding="utf-8").replace("jobs = 3000", "jobs = 100\nwarmup = 0")
    file.write_text(text.replace("runs = 8", "runs = 2"), encoding="utf-8")
    found = json.loads(_run("run", str(file), "--processes", "1", "--json").output)
    assert found["rows"][0]["stream"] == "q Send" and found["rows"][0]["wait_p50"] >= 0
    assert (
        "nothing to observe" in _run("new", str(tmp_path / "b.toml"), "--observe", url="memory://planning-not").output
    )


def test_a_name_in_any_script_is_written_as_toml_has_it(tmp_path: Path) -> None:
    with connect("memory://planning-script") as client:
        for number in range(3):
            client.execute(ops.Put("\U0001f4e7", str(number), 'é"', ""), now=1000 * number)
            (job,) = client.execute(ops.Pop("\U0001f4e7", "w"), now=1000 * number)
            client.execute(ops.Complete(job.jid, job.token), now=1000 * number + 500)
    file = tmp_path / "grid.toml"
    assert _run("new", str(file), "--observe", url="memory://planning-script").exit_code == 0
    assert [one.queue for one in grids.read(file).points[0].setup.streams] == ["\U0001f4e7"]


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    assert f"`qmodel plan new {file}` writes a first one" in _run("run", str(file)).output
    file.write_text("jobs = = 3", encoding="utf-8")
    assert "is not TOML" in _run("run", str(file)).output
    file.write_text(TEXT, encoding="utf-8")
    assert "--metric is one of wait_mean" in _run("run", str(file), "--metric", "wait").output
    assert "--out is a name that ends in .csv or .parquet" in _run("run", str(file), "--out", "x.txt").output
