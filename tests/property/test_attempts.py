"""A job keeps what became of its attempts, also of those that were retried before it succeeded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from qmodel import App, Client
from qmodel.app import perform
from qmodel.backends.embedded.backend import EmbeddedBackend
from qmodel.backends.memory import MemoryBackend
from qmodel.client.values import Attempt
from qmodel.contract import operations as ops

NOW = 1_800_000_000_000


class Moments:
    """A client whose time the test sets."""

    def __init__(self, backend: MemoryBackend | EmbeddedBackend) -> None:
        self.client, self.now = Client(backend), NOW

    def do(self, op: ops.Operation, after: int = 0) -> object:
        self.now += after
        return self.client.execute(op, now=self.now)

    def pop(self, worker: str = "w") -> int:
        (job,) = self.do(ops.Pop("q", worker))  # type: ignore[misc]
        return int(job.token)

    @property
    def attempts(self) -> list[tuple[str, str, int, str, str]]:
        (job,) = self.client.execute(ops.Multiget(("a",)), now=self.now)
        return [(one.outcome, one.worker, one.ended_at - one.began_at, one.group, one.message) for one in job.attempts]


@pytest.fixture(params=[MemoryBackend, EmbeddedBackend])
def at(request: pytest.FixtureRequest) -> Moments:
    at = Moments(request.param())
    at.do(ops.Put("q", "a", "k", "", retries=1))
    return at


def test_a_completed_job_has_the_reasons_of_its_retries(at: Moments) -> None:
    at.do(ops.Retry("a", at.pop(), 0, "ValueError", "no\n\tsuch \\n address"), 5)
    at.do(ops.Complete("a", at.pop("v")), 7)
    assert at.attempts == [("retried", "w", 5, "ValueError", "no\n\tsuch \\n address"), ("completed", "v", 7, "", "")]


def test_an_attempt_without_retries_has_failed(at: Moments) -> None:
    at.do(ops.Retry("a", at.pop(), 0, "ValueError", "one"), 1)
    at.do(ops.Retry("a", at.pop(), 0, "KeyError", "two"), 1)
    at.do(ops.RetryMany(jids=("a",)))
    at.do(ops.Fail("a", at.pop(), "mine", "three"), 1)
    assert [(one[0], *one[3:]) for one in at.attempts] == [
        ("retried", "ValueError", "one"), ("failed", "KeyError", "two"), ("failed", "mine", "three"),
    ]  # fmt: skip


def test_attempts_end_without_a_word_too(at: Moments) -> None:
    at.do(ops.Release("a", at.pop()), 1)
    at.pop("gone")
    at.now += 10**8
    at.pop("slow")
    at.do(ops.Timeout(("a",)), 2)
    at.pop("moved")
    at.do(ops.Put("q", "a", "k", "", retries=1), 3)
    at.pop("now")
    assert [one[:2] for one in at.attempts] == [
        ("released", "w"), ("lapsed", "gone"), ("timed_out", "slow"), ("lost", "moved"), ("running", "now"),
    ]  # fmt: skip
    assert all(one[3:] == ("", "") for one in at.attempts)


def test_the_end_of_a_long_message_is_kept_in_whole_characters(at: Moments) -> None:
    at.do(ops.Retry("a", at.pop(), 0, "g", "x" + "é" * 600 + "!"))
    assert at.attempts[0][4] == "é" * 511 + "!"


def test_a_plain_job_writes_no_more_than_before(at: Moments) -> None:
    at.do(ops.Complete("a", at.pop()))
    (job,) = at.client.execute(ops.Multiget(("a",)), now=at.now)
    assert [stage.what for stage in job.history] == ["put", "popped", "completed"]


def test_a_program_reads_attempts_with_times() -> None:
    with Client("memory://") as client:
        client.execute(ops.Put("q", "a", "k", ""), now=NOW)
        (job,) = client.execute(ops.Pop("q", "w"), now=NOW)
        client.execute(ops.Retry("a", job.token, 0, "ValueError", "no"), now=NOW + 1500)
        began = datetime.fromtimestamp(NOW / 1000, UTC)
        took = timedelta(seconds=1.5)
        assert client.jobs["a"].attempts == [Attempt("retried", "w", began, began + took, took, "ValueError", "no")]


def test_the_traceback_of_each_attempt_is_there() -> None:
    app = App("memory://attempts-traceback")
    tries = []

    @app.job(retries=2, backoff=0)
    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError(f"try {len(tries)}")
        return "done"

    job = flaky.put()
    while held := app.client.queues["default"].pop(worker="w"):
        app.client.execute(perform(app, held).operation(held))
    found = app.client.jobs[job.jid].attempts
    assert [one.outcome for one in found] == ["retried", "retried", "completed"]
    assert found[1].group == "OSError"
    assert "in flaky" in found[1].message and found[1].message.rstrip().endswith("OSError: try 2")


def test_the_event_of_a_retry_names_its_group(at: Moments) -> None:
    at.do(ops.Retry("a", at.pop(), 0, "ValueError", "no"))
    (event,) = (one for one in at.client.execute(ops.Events(), now=at.now) if one.event == "retried")
    assert event.named["group"] == "ValueError"
