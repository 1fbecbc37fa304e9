"""The engine's figures, as Prometheus reads them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import qmodel
from qmodel.client import profiles
from qmodel.client.profiles import Profile
from qmodel.client.sync import Client
from qmodel.contract.operations import Recur, RequestOpen
from qmodel.contract.replies import Sample
from qmodel.model.state.stats import BINS, bin_of
from qmodel.telemetry.collector import EngineCollector, _buckets
from qmodel.telemetry.prometheus import page
from tests.cli.conftest import Run, run
from tests.processes import started
from tests.servers import ROOT, Candidate, Server, chosen_servers, running

__all__ = ["run"]

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(params=["memory", "server"])
def client(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    """Open a client of an empty namespace, in memory and on a server."""
    with server.client() as connection:
        connection.flushall()
    with qmodel.connect("memory://" if request.param == "memory" else server.url) as client:
        yield client


def scrape(client: Client, **options: object) -> Values:
    """Parse all samples, by name and labels, as Prometheus does."""
    registry = CollectorRegistry()
    registry.register(EngineCollector(client, **options))  # type: ignore[arg-type]
    text = page(registry)()[1].decode()
    return read(text)


def read(text: str) -> Values:
    families = text_string_to_metric_families(text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def at(values: Values, name: str, **labels: str) -> float:
    return values[name, frozenset(labels.items())]


def test_job_types_are_told_of_the_newest_events(client: Client) -> None:
    for _ in range(2):
        client.queues["q"].put("Send")
    client.queues["q"].pop().complete()
    client.queues["q"].pop().fail("wrong")
    assert not any(name.startswith("qmodel_job_type") for name, _ in scrape(client))
    values = scrape(client, types=True)
    assert at(values, "qmodel_job_type_attempts", klass="Send", outcome="completed") == 1
    assert at(values, "qmodel_job_type_attempts", klass="Send", outcome="failed") == 1
    assert at(values, "qmodel_job_type_per_minute", klass="Send") > 0
    assert 0 <= at(values, "qmodel_job_type_seconds", klass="Send", of="run", percentile="p99") < 60


def test_queues_are_told_by_state(client: Client) -> None:
    mail = client.queues["mail"]
    for _ in range(3):
        mail.put("Send")
    mail.put("Later", delay=600)
    mail.pop()
    client.queues["slow"].pause()
    values = scrape(client)

    assert at(values, "qmodel_up") == 1
    assert at(values, "qmodel_queue_jobs", queue="mail", state="waiting") == 2
    assert at(values, "qmodel_queue_jobs", queue="mail", state="scheduled") == 1
    assert at(values, "qmodel_queue_jobs", queue="mail", state="running") == 1
    assert at(values, "qmodel_worker_jobs", state="running") == 1
    assert at(values, "qmodel_workers") == 1
    assert at(values, "qmodel_queue_next_wait_seconds", queue="mail") >= 0
    assert at(values, "qmodel_events_total") == client.newest()
    assert at(values, "qmodel_queue_paused", queue="mail") == 0


def test_what_became_of_jobs_is_told_with_histograms(client: Client) -> None:
    queue = client.queues["mail"]
    queue.put_many([("Send", n) for n in range(5)])
    for job in queue.pop(3):
        job.complete()
    first, second = queue.pop(2)
    first.fail("Bounced", "no such address")
    second.retry()
    values = scrape(client)

    assert at(values, "qmodel_jobs_popped_total", queue="mail") == 5
    assert at(values, "qmodel_jobs_completed_total", queue="mail") == 3
    assert at(values, "qmodel_jobs_failed_total", queue="mail") == 1
    assert at(values, "qmodel_jobs_retried_total", queue="mail") == 1
    assert at(values, "qmodel_failed_jobs", group="Bounced") == 1
    assert at(values, "qmodel_job_run_seconds_count", queue="mail") == 3
    assert at(values, "qmodel_job_run_seconds_bucket", queue="mail", le="259200.0") == 3
    assert not any("bucket" in name for name, _ in scrape(client, histograms=False))


def test_throttles_are_told_with_what_is_parked(client: Client) -> None:
    client.throttles["stripe"].set(concurrency=1)
    for _ in range(3):
        client.queues["cards"].put("Charge", throttles=["stripe"])
    client.queues["cards"].pop(3)
    values = scrape(client)

    assert at(values, "qmodel_throttle_limit", throttle="stripe") == 1
    assert at(values, "qmodel_throttle_running", throttle="stripe") == 1
    assert at(values, "qmodel_throttle_parked", throttle="stripe") == 2


def test_workers_on_the_list_are_told_with_their_profiles(client: Client) -> None:
    profile = Profile("host", 7, "1.0", "3.12.1", "thread", 4, 200 << 20, 10, 20, 1, ("q",))
    client.queues["q"].pop(worker="w")
    client.execute_many([profiles.written("w", profile), profiles.written("gone", profile)])
    values = scrape(client)
    assert at(values, "qmodel_worker", worker="w", host="host", pid="7", version="1.0", runner="thread") == 1
    assert at(values, "qmodel_worker_slots", worker="w") == 4
    assert at(values, "qmodel_worker_memory_bytes", worker="w") == 200 << 20
    assert not [name for name, labels in values if ("worker", "gone") in labels]


def test_the_namespace_as_a_whole_is_told(client: Client) -> None:
    client.queues["q"].put("K")
    client.queues["q"].pop(1)[0].complete()
    client.execute(RequestOpen("album", "q", 2))
    client.execute(Recur("q", "cron", "K", "", 0, kind="cron", cron="* * * * * UTC"))
    values = scrape(client)

    assert at(values, "qmodel_complete_jobs") == 1
    assert at(values, "qmodel_requests", state="open") == 1
    assert at(values, "qmodel_requests", state="done") == 0
    assert at(values, "qmodel_recurring_unset") == 1


def test_a_pattern_and_a_limit_keep_a_scrape_small_and_say_so(client: Client) -> None:
    for number in range(5):
        client.queues[f"a{number}"].put("K")
    client.queues["b"].put("K")

    named = {dict(labels).get("queue") for _, labels in scrape(client, queues="a*")} - {None}
    assert named == {f"a{number}" for number in range(5)}
    cut = scrape(client, most=2)
    assert at(cut, "qmodel_left_out", what="queues") == 1
    assert {dict(labels).get("queue") for _, labels in cut} == {None, "a0", "a1"}
    assert at(scrape(client, most=6), "qmodel_left_out", what="queues") == 0


def test_every_duration_falls_into_the_bucket_that_it_belongs_to() -> None:
    for seconds in (0, 1, 4, 59, 61, 3599, 3600, 7199, 7200, 86_399, 86_400, 900_000):
        histogram = [0] * BINS
        histogram[bin_of(seconds * 1000)] = 1
        for edge, total in _buckets(Sample(1, seconds * 1000.0, 0.0, tuple(histogram))):
            assert total == (seconds < float(edge)), (seconds, edge)


def test_a_server_that_is_away_is_told_as_down_and_later_as_up() -> None:
    candidates: list[Candidate] = [one for one in chosen_servers() if not one.url]
    if not candidates:
        pytest.skip("needs a server that may be stopped")
    with running(candidates[0]) as server:
        client = qmodel.connect(f"{server.url}?deadline=0.2")
        assert at(scrape(client), "qmodel_up") == 1
    assert scrape(client) == {("qmodel_up", frozenset()): 0}
    client.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder with a short name, for a socket."""
    with tempfile.TemporaryDirectory(prefix="qmodel-") as name:
        yield Path(name)


def test_an_exporter_that_is_there_before_its_server_waits_for_it(folder: Path) -> None:
    candidates = [one for one in chosen_servers() if not one.url]
    if not candidates:
        pytest.skip("needs a server that may be started")
    url = f"unix://{folder}/socket?deadline=0.1"
    command = [sys.executable, "-m", "qmodel", "exporter", "--url", url, "--port", "0"]
    with started(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        where = re.findall(r"http://\S+", process.stdout.readline())[0]
        assert fetched(where) == {("qmodel_up", frozenset()): 0}
        server = [candidates[0].program, "--port", "0", "--unixsocket", f"{folder}/socket", "--save", ""]
        with started([*server, "--dir", str(folder)], stdout=subprocess.DEVNULL) as running:
            until = time.monotonic() + 60
            while at(fetched(where), "qmodel_up") == 0 and time.monotonic() < until:
                time.sleep(0.05)
            assert at(fetched(where), "qmodel_up") == 1
            process.terminate()
            _, err = process.communicate(timeout=60)
            running.terminate()
    assert process.returncode == 0
    assert err.count("\n") == 1 and "Until the server is there, qmodel_up is 0." in err


def fetched(where: str) -> Values:
    with urllib.request.urlopen(where, timeout=60) as answer:
        return read(answer.read().decode())


def test_metrics_of_a_server_that_is_away_are_printed_and_are_a_failure(run: Run, tmp_path: Path) -> None:
    done = run("exporter", "--once", "--url", f"unix://{tmp_path}/none?deadline=0")
    assert (done.code, "qmodel_up 0.0" in done.out, "cannot be reached" in done.err) == (69, True, True)


def test_an_exporter_of_no_url_is_refused(run: Run) -> None:
    assert run("exporter", "--url", "nowhere://").code == 69


def test_the_exporter_serves_metrics_and_probes_and_stops_when_told(server: Server) -> None:
    command = [sys.executable, "-m", "qmodel", "exporter", "--url", server.url, "--port", "0"]
    with started(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        assert at(fetched(found[0]), "qmodel_up") == 1
        with urllib.request.urlopen(found[0].replace("metrics", "ready"), timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
