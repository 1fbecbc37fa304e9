"""Remote control of workers: quiet, resume, stop."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from qmodel.app import App
from qmodel.cli import cli
from qmodel.client import remote
from qmodel.client.sync import Client
from qmodel.errors import WorkerNotSeen
from qmodel.worker import Worker, remote_control
from qmodel.worker.connection import GivenUp
from tests.worker.support import PATIENCE, Process, until, working


class Jobs:
    """An app with a quick job, and a job that runs until the test lets it end."""

    def __init__(self, url: str) -> None:
        self.app = App(url)
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.quick = self.app.job(name="quick")(lambda: "done")
        self.held = self.app.job(name="held")(self._held)

    def _held(self) -> str:
        self.begun.set()
        assert self.let_go.wait(PATIENCE)
        return "done"


@pytest.fixture
def jobs(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Make jobs for workers in threads of the test, and let those poll often."""
    monkeypatch.setattr(remote_control, "POLL_SECONDS", 0.05)
    made = Jobs(url)
    yield made
    made.let_go.set()


def state(client: Client, name: str) -> str:
    """Read the state that a worker reported after its last signal."""
    return client.workers.signals()[name].state


def listed(client: Client, *names: str) -> None:
    """Wait until workers are listed."""
    until(lambda: {one.name for one in client.workers.counts()} >= set(names), f"{names} on the list")


def test_a_quiet_worker_takes_no_more_jobs_until_it_is_to_resume(jobs: Jobs, client: Client) -> None:
    with working(jobs.app, name="w", concurrency=2):
        held = jobs.held.put()
        assert jobs.begun.wait(PATIENCE)
        client.workers.quiet("w")
        until(lambda: state(client, "w") == "quiet")
        assert held.refresh().state == "running"
        later = jobs.quick.put()
        jobs.let_go.set()
        assert held.wait(PATIENCE) == "done"
        until(lambda: later.refresh().state == "waiting")  # its wake-up is passed on: taken, and given back
        client.workers.resume("w")
        assert later.wait(PATIENCE) == "done"
        until(lambda: state(client, "w") == "at work")


def test_jobs_go_to_the_other_worker_when_one_is_quiet(jobs: Jobs, client: Client) -> None:
    with working(jobs.app, name="quiet-one"), working(jobs.app, name="other"):
        listed(client, "quiet-one", "other")
        client.workers.quiet("quiet-one")
        until(lambda: state(client, "quiet-one") == "quiet")
        put = [jobs.quick.put() for _ in range(5)]
        assert [job.wait(PATIENCE) for job in put] == ["done"] * 5
        last = [[stage for stage in job.refresh().history if stage.what == "popped"][-1] for job in put]
        assert {dict(stage.facts)["worker"] for stage in last} == {"other"}


def test_a_worker_that_is_to_stop_finishes_what_is_at_hand(jobs: Jobs, client: Client) -> None:
    with working(jobs.app, name="w"):
        job = jobs.held.put()
        assert jobs.begun.wait(PATIENCE)
        client.workers.stop("w")
        until(lambda: state(client, "w") == "stopping")
        jobs.let_go.set()
        assert job.wait(PATIENCE) == "done"
        until(lambda: client.workers.signals() == {} and client.workers.counts() == [])


def test_a_worker_that_is_to_stop_now_gives_its_jobs_back(jobs: Jobs, client: Client) -> None:
    with working(jobs.app, name="w"):
        job = jobs.held.put()
        assert jobs.begun.wait(PATIENCE)
        client.workers.stop("w", now=True)
        until(lambda: client.workers.counts() == [])
    job.refresh()
    assert (job.state, job.remaining) == ("waiting", job.retries)


def test_a_signal_is_not_for_one_of_the_same_name_that_begins_later(jobs: Jobs, client: Client) -> None:
    client.queues["default"].pop(worker="w")
    client.workers.stop("w")
    with working(jobs.app, name="w"):
        until(lambda: client.workers.signals() == {})
        assert jobs.quick.put().wait(PATIENCE) == "done"


def test_a_worker_that_is_stopped_before_it_has_begun_leaves_no_thread(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given_up(operations: object) -> None:
        raise GivenUp

    worker, before = Worker(jobs.app), set(threading.enumerate())
    monkeypatch.setattr(worker.connection, "execute_many", given_up)
    worker.run()
    assert [one for one in set(threading.enumerate()) - before if one.name.startswith("qmodel-")] == []


def test_of_several_processes_the_one_that_is_to_stop_is_not_replaced(url: str, client: Client) -> None:
    with Process(url, "--name", "w", "--processes", "2") as worker:
        listed(client, "w-1", "w-2")
        client.workers.stop("w-1")
        until(lambda: {one.name for one in client.workers.counts()} == {"w-2"})
        assert client.queues["default"].put("add", {"x": 1}).wait(PATIENCE) == 1
        assert "another one starts" not in worker.output
        client.workers.stop("w-2")
        assert worker.wait() == 0


def test_an_unknown_worker_is_told_nothing_and_nobody_else_either(client: Client) -> None:
    client.queues["default"].pop(worker="known")
    with pytest.raises(WorkerNotSeen, match="'unknown'"):
        client.workers.quiet("known", "unknown")
    assert client.workers.signals() == {}


def test_what_was_told_to_workers_that_are_gone_is_forgotten(client: Client) -> None:
    for name in ("gone", "here"):
        client.queues["default"].pop(worker=name)
        client.workers.quiet(name)
    client.workers.deregister("gone")
    client.workers.resume("here")
    assert client.workers.signals() == {"here": remote.Signalled("resume", "")}


def test_the_command_sends_waits_and_shows(url: str, client: Client) -> None:
    def said(*words: str) -> str:
        result = CliRunner().invoke(cli, ["--url", url, "signal", *words])
        return f"{result.exit_code} {result.output}"

    assert said() == "0 No worker has a signal.\n"
    assert "2 " in said("quiet") and "--all" in said("quiet")
    assert "--give-back goes with stop" in said("quiet", "--all", "--give-back")
    assert said("quiet", "--all") == "0 Told 0 workers to be quiet.\n"
    assert said("stop", "nobody").startswith("1 Error: There is no worker 'nobody'")
    client.queues["default"].pop(worker="loop")
    assert said("quiet", "loop", "--wait", "0.3").startswith("1 Error: No answer within 300 ms: loop.")
    assert "told: quiet" in CliRunner().invoke(cli, ["--url", url, "workers"]).output
    client.workers.deregister("loop")
    with Process(url, "--name", "w") as worker:
        listed(client, "w")
        assert said("quiet", "--all", "--wait", "60") == "0 Told 1 worker to be quiet.\n"
        assert json.loads(said("--json")[2:]) == {"w": {"signal": "quiet", "state": "quiet"}}
        assert said("stop", "w", "--give-back", "--wait", "60") == "0 Told 1 worker to stop.\n"
        assert worker.wait() == 0
