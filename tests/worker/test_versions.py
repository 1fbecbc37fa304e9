"""Two versions of an app work at the same time, as during a deployment: the claims of docs/operations/upgrading.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qmodel.app import App
from qmodel.client.sync import Client
from tests.worker.support import PATIENCE, until, working


def older(url: str) -> App:
    """The program before the deployment."""
    app = App(url)
    app.job(name="send")(lambda to: f"older {to}")
    return app


def newer(url: str) -> App:
    """The program after it: one more argument, a renamed argument, and a new job type."""
    app = App(url)

    @app.job
    def send(address: str, subject: str = "") -> str:
        return f"newer {address}"

    app.job(name="text")(lambda: "newer")
    return app


@pytest.mark.parametrize(
    ("made", "data"),
    [(older, {"address": "ada"}), (older, {"address": "ada", "subject": "x"}), (newer, {"to": "ada"})],
    ids=["renamed", "added", "of-before"],
)
def test_a_job_whose_arguments_do_not_fit_fails_unbegun_and_is_performed_by_the_version_that_knows_it(
    made: Callable[[str], App], data: dict[str, str], url: str, client: Client
) -> None:
    other = {older: newer, newer: older}[made]
    with working(made(url)):
        job = client.queues["default"].put("send", data)
        until(lambda: job.refresh().state == "failed")
    assert job.failure is not None and job.failure.group == "BadArguments"
    assert client.failed.retry(group="BadArguments") == 1
    with working(other(url)):
        assert job.wait(timeout=PATIENCE) == f"{other.__name__} ada"


def test_a_job_type_that_only_the_newer_knows_waits_for_it(
    url: str, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with working(older(url)):
        job = client.queues["default"].put("text")
        until(lambda: "This worker has no job type 'text'" in caplog.text and job.refresh().state == "scheduled")
        assert job.remaining == job.retries
    job.promote()
    with working(newer(url)):
        assert job.wait(timeout=PATIENCE) == "newer"
