"""Faults of other systems with recurring jobs; each test claims that qmodel does not have one.

The systems are those of the documents: a periodic run that is made twice or never again, a schedule that drifts, one
that waits for ever for a run that ended out of sight, one that a deployment resets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.contract.operations import Operation
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store

START = 1_700_000_000_000
HOUR = 3_600_000


class Queue:
    """A model with a clock."""

    def __init__(self) -> None:
        self.store = Store()
        self.now = START

    def do(self, op: Operation, after: int = 0) -> Any:
        """Execute an operation some milliseconds after the previous one; it must not be refused."""
        self.now += after
        found = engine.step(self.store, self.now, op)
        assert not isinstance(found, Refusal), found
        return found

    def recur(self, interval_ms: int = HOUR, **more: Any) -> None:
        """Make the recurring job `r`."""
        self.do(ops.Recur("q", "r", "K", "", interval_ms, **more))

    def run(self, after: int = 0) -> Any:
        """Lease the one run that is due."""
        (job,) = self.do(ops.Pop("q", "w", 10), after)
        return job

    @property
    def next_at(self) -> int:
        """Give the moment at which the next run is due, or 0."""
        return int(self.do(ops.RecurGet("r")).next_at)

    def told(self, event: str) -> list[tuple[Any, ...]]:
        """Give the facts of all events of a kind."""
        return [one.facts for one in self.do(ops.Events(0, 1000)) if one.event == event]


@pytest.fixture
def queue() -> Queue:
    return Queue()


def test_two_concurrent_fires_make_one_run_for_each_due_time(queue: Queue) -> None:
    queue.recur()
    for _ in range(50):
        queue.do(ops.Fire("q", request="a"), HOUR // 2)
        queue.do(ops.Fire("q", request="b"))
        queue.do(ops.Pop("q", "w", 100))
    due = [facts[3] for facts in queue.told("fired")]
    assert due == [START + n * HOUR for n in range(26)]


def test_runs_that_are_made_late_do_not_drift(queue: Queue) -> None:
    queue.recur(1000)
    for _ in range(20):
        queue.do(ops.Fire("q"), 1007)
    assert [facts[3] % 1000 for facts in queue.told("fired")] == [START % 1000] * 21


@pytest.mark.parametrize("kind", ["interval", "after"])
@pytest.mark.parametrize(
    "end",
    [
        lambda job: [ops.Complete(job.jid, job.token)],
        lambda job: [ops.Fail(job.jid, job.token, "g", "")],
        lambda job: [ops.Retry(job.jid, job.token)],
        lambda job: [ops.Cancel((job.jid,))],
        lambda job: [ops.Put("other", job.jid, "K", "")],
        lambda job: [ops.Revoke((job.jid,)), ops.Release(job.jid, job.token)],
        lambda job: [ops.Release(job.jid, job.token), ops.Drain("q")],
        lambda job: [ops.Complete(job.jid, job.token, next="s"), ops.Cancel((job.jid,))],
    ],
    ids=["complete", "fail", "retries gone", "cancel", "put", "revoke", "drain", "next queue"],
)
def test_a_run_that_ends_in_any_way_lets_the_next_one_be_due(
    queue: Queue, end: Callable[[Any], list[Operation]], kind: str
) -> None:
    queue.recur(kind=kind, overlap="skip", retries=0)
    job = queue.run()
    assert queue.next_at == 0
    for op in end(job):
        queue.do(op, 1000)
    wanted = START + HOUR if kind == "interval" else queue.now + HOUR
    assert queue.next_at == wanted
    assert queue.run(2 * HOUR).jid == "r-2"


def test_a_worker_that_dies_in_a_run_does_not_stop_the_schedule(queue: Queue) -> None:
    queue.recur(overlap="skip", retries=0)
    queue.run()
    assert queue.do(ops.Pop("q", "v", 10), HOUR) != () or queue.next_at == START + 2 * HOUR
    assert queue.do(ops.Pop("q", "v", 10), HOUR) != ()


def test_a_failed_run_that_is_tried_anew_is_counted_once(queue: Queue) -> None:
    queue.recur(overlap="skip", retries=0)
    job = queue.run()
    queue.do(ops.Fail(job.jid, job.token, "g", ""))
    queue.do(ops.RetryMany(group="g", to="q"))
    again = queue.run()
    queue.do(ops.Complete(again.jid, again.token))
    assert queue.do(ops.RecurGet("r")).open == 0
    assert queue.run(HOUR).jid == "r-2"


def test_overlap_does_not_depend_on_how_long_runs_take(queue: Queue) -> None:
    queue.recur(overlap="skip")
    job = queue.run()
    for _ in range(60):  # for an hour and more it is at work, and says so
        queue.do(ops.Heartbeat(job.jid, job.token), 59_000)
        queue.do(ops.Heartbeat(job.jid, job.token), 59_000)
    assert queue.do(ops.Fire("q")) == 0
    queue.do(ops.Complete(job.jid, job.token))
    assert queue.told("skipped") == [("r", "q", 1, START + 2 * HOUR)]
    assert queue.run(HOUR).jid == "r-2"


def test_a_deployment_does_not_reset_unchanged_schedules(queue: Queue) -> None:
    queue.recur(limit=3)
    queue.run()
    queue.now += HOUR // 2
    for _ in range(5):
        queue.do(ops.Recur("q", "r", "L", "new data", HOUR, limit=3))
    assert queue.next_at == START + HOUR
    assert queue.do(ops.RecurGet("r")).made == 1
    queue.do(ops.Recur("q", "r", "L", "", HOUR // 2, limit=3))
    assert queue.next_at == queue.now


def test_a_deployment_during_a_run_makes_no_second_run(queue: Queue) -> None:
    queue.recur(kind="after")
    job = queue.run()
    for interval in (HOUR, 2 * HOUR):
        queue.recur(interval, kind="after")
        assert queue.do(ops.Pop("q", "w", 10), 5000) == ()
    queue.do(ops.Complete(job.jid, job.token))
    assert queue.next_at == queue.now


def test_the_end_is_the_last_moment_and_no_run_is_due_after_it(queue: Queue) -> None:
    queue.recur(end_at=START + 2 * HOUR)
    assert queue.do(ops.Fire("q"), 10 * HOUR) == 3
    assert queue.do(ops.RecurGet("r")) is None
    assert queue.told("unrecurred") == [("r", "q", "end")]


def test_an_ended_schedule_leaves_nothing_behind(queue: Queue) -> None:
    queue.recur(overlap="skip", limit=1)
    queue.do(ops.Recur("q", "l", "K", "", 0, kind="cron", cron="x", due_at=(START,), end_at=START))
    for job in queue.do(ops.Pop("q", "w", 10)):
        queue.do(ops.Complete(job.jid, job.token))
    assert not queue.store.schedules and not queue.store.crons
    assert queue.do(ops.Forget(("q",))) == 1


def test_a_pause_makes_no_crowd_when_it_ends(queue: Queue) -> None:
    queue.recur(1000)
    queue.run()
    queue.do(ops.RecurPause("r"))
    counts = queue.do(ops.Queue("q"), HOUR)
    assert (counts.recurring, counts.due, counts.next_at) == (1, 0, 0)
    queue.do(ops.RecurUnpause("r"))
    assert queue.told("missed") == [("r", "q", 3600, START + HOUR + 1000)]
    assert queue.do(ops.Fire("q"), 1000) == 1


def test_moments_are_taken_from_the_last_one_known_and_from_no_other(queue: Queue) -> None:
    queue.do(ops.Recur("q", "r", "K", "", 0, kind="cron", cron="x", due_at=(START + 10, START + 20)))
    slow, quick = (START + 15, START + 30), (START + 25, START + 35)
    assert queue.do(ops.RecurAdvance("r", START + 20, quick)) == START + 35
    assert queue.do(ops.RecurAdvance("r", START + 20, slow)) == START + 35
    assert queue.do(ops.RecurAdvance("r", START + 10, slow)) == START + 35
    queue.do(ops.Fire("q"), 100)
    assert [facts[3] - START for facts in queue.told("fired")] == [10, 20, 25, 35]


def test_no_run_is_due_at_a_moment_that_was_not_given(queue: Queue) -> None:
    queue.do(ops.Recur("q", "r", "K", "", 0, kind="cron", cron="x", due_at=(START,)))
    queue.run()
    counts = queue.do(ops.Queue("q"), 10 * HOUR)
    assert (counts.recurring, counts.due, queue.next_at) == (1, 0, 0)
    (found,) = queue.do(ops.RecurringUnset())
    assert (found.jid, found.last_at, found.due_at) == ("r", START, ())


@pytest.mark.parametrize(("missed", "made"), [("all", 6), ("one", 1), ("none", 1)])
def test_missed_runs_follow_the_policy_and_are_never_made_twice(queue: Queue, missed: str, made: int) -> None:
    queue.recur(1000, missed=missed, catchup_ms=500)
    assert queue.do(ops.Peek("q", 10), 5400)[0].jid == "r-1"
    assert len(queue.do(ops.Peek("q", 10))) == made
    assert queue.do(ops.Fire("q")) == made
    assert queue.do(ops.Fire("q")) == 0
    assert sum(facts[2] for facts in queue.told("missed")) == 6 - made


def test_an_extra_run_does_not_move_the_due_time(queue: Queue) -> None:
    queue.recur(offset_ms=HOUR)
    queue.do(ops.RecurPause("r"))
    assert queue.do(ops.RecurNow("r", request="n")) == queue.do(ops.RecurNow("r", request="n")) == "r-1"
    queue.do(ops.RecurUnpause("r"))
    assert queue.next_at == START + HOUR
    assert queue.run().jid == "r-1"


def test_a_plain_run_stores_no_option(queue: Queue) -> None:
    queue.recur()
    assert queue.run().options == ()


def test_a_run_that_ends_passes_over_nothing_of_one_that_did_not_stand_still(queue: Queue) -> None:
    queue.recur(overlap="skip", retries=0)
    job = queue.run()
    queue.recur(1000, overlap="allow", missed="all")
    queue.do(ops.Complete(job.jid, job.token), 5000)
    assert not queue.told("skipped")
    queue.do(ops.Pop("q", "w", 10))
    assert [facts[3] - START for facts in queue.told("fired")] == [0, 0, 1000, 2000, 3000, 4000, 5000]
