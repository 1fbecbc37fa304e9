"""How long single jobs are kept: the hazards of removal policies, none of which exists here.

Every scene is played on the model, and then on the Lua in this process, where there is one: both must agree.
"""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.contract import operations as ops
from tests.property.test_hazards_life import Played, scene

__all__ = ["scene"]  # the fixture


def ended(scene: Played, jid: str, **arguments: Any) -> str:
    """Put a job, pop it and complete it; give the reply of the completion."""
    return str(scene(ops.Complete(jid, scene.running(jid, **arguments), "done")))


def test_a_job_that_is_not_kept_is_gone_with_its_completion_and_a_resend_is_answered(scene: Played) -> None:
    token = scene.running(keep_complete_ms=0, tags=("t",))
    for _ in range(2):
        assert scene(ops.Complete("a", token, "done")) == "complete"
        assert scene.get() is None
    assert [event.event for event in scene.events("completed", "retired")] == ["completed", "retired"]
    assert not scene.store.keeping and not scene.store.completed and not scene.store.tags


@pytest.mark.parametrize(
    "end", [lambda token: ops.Fail("a", token, "g", "m"), lambda token: ops.Retry("a", token, 0, "g", "m")]
)
def test_a_job_that_is_not_kept_is_gone_with_its_failure_and_a_resend_is_answered(scene: Played, end: Any) -> None:
    token = scene.running(keep_failed_ms=0, retries=0, dead_queue="dead")
    assert scene(end(token)) == scene(end(token)) == ("a" if end(token).spec.name == "fail" else -1)
    assert scene.get() is None
    assert [event.event for event in scene.events("failed", "dead_lettered", "retired")] == [
        "failed", "dead_lettered", "retired",
    ]  # fmt: skip
    assert scene.stats().failed == 0 and not scene.store.groups and not scene.store.failed
    assert scene(ops.Length("dead")) == 1


COMPLETIONS = {
    "complete": lambda token: ops.Complete("a", token),
    "with next": lambda token: ops.Complete("a", token, next="r"),
    "many": lambda token: ops.CompleteMany((ops.Complete("a", token),)),
    "and pop": lambda token: ops.CompleteAndPop("a", token, "q", "w"),
}


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_a_revoked_job_that_is_not_kept_answers_the_resend_of_its_completion(scene: Played, completion: str) -> None:
    op = COMPLETIONS[completion](scene.running(keep_failed_ms=0))
    scene(ops.Revoke(("a",)))
    first = scene(op)
    assert "failed" in (first if isinstance(first, tuple) else (first,))
    assert scene.get() is None
    assert scene(op) == first


def test_a_revocation_among_completions_deletes_no_outcome_of_the_others(scene: Played) -> None:
    one = scene.running("a", keep_complete_ms=0)
    other = scene.running("b")
    scene(ops.Revoke(("b",)))
    op = ops.CompleteMany((ops.Complete("a", one), ops.Complete("b", other)))
    assert scene(op) == scene(op) == ("complete", "failed")
    assert scene.get() is None


def test_completions_that_are_sent_again_delete_no_job(scene: Played) -> None:
    tokens = {jid: scene.running(jid) for jid in ("a", "b")}
    scene(ops.Complete("a", tokens["a"]))
    op = ops.CompleteMany((ops.Complete("b", tokens["b"]),))
    scene(op)
    scene(ops.ConfigSet("jobs-history", 1000))
    assert scene(op, 1000) == ("complete",)
    assert not scene.events("retired")


def test_a_job_is_kept_for_its_own_retention_and_the_next_end_deletes_it(scene: Played) -> None:
    for jid, kept in (("long", 1000), ("short", 10), ("tie", 10)):
        ended(scene, jid, keep_complete_ms=kept)
    scene.now += 9
    ended(scene, "x")
    assert not scene.events("retired")
    scene.now += 1
    ended(scene, "y")
    assert [event.facts for event in scene.events("retired")] == [("short",), ("tie",)]
    assert scene(ops.Completed()).total == 3


def test_fire_deletes_expired_jobs_when_no_job_ends(scene: Played) -> None:
    scene(ops.Fail("a", scene.running(keep_failed_ms=5), "g", "m"))
    scene.now += 5
    assert scene(ops.Failed("g")).total == 1  # no read tells of what no event has told of
    scene(ops.Fire("elsewhere"))
    assert scene(ops.Failed("g")).total == 0


def test_the_general_retention_options_also_apply(scene: Played) -> None:
    scene(ops.ConfigSet("jobs-history-count", 1))
    ended(scene, "a", keep_complete_ms=1_000_000)
    ended(scene, "b")
    assert scene.get("a") is None
    assert not scene.store.keeping


@pytest.mark.parametrize(("count", "slack"), [(0, 0), (15, 0), (16, 1), (40, 2)])
def test_complete_jobs_beyond_the_count_are_deleted_together(scene: Played, count: int, slack: int) -> None:
    scene(ops.ConfigSet("jobs-history-count", count))
    for n in range(count + slack):
        ended(scene, f"a{n}")
    assert not scene.events("retired")
    for again in range(1, 4):
        ended(scene, f"b{again}")
        assert len(scene.events("retired")) == again * (slack + 1)
        assert scene(ops.Completed()).total == count
        for n in range(slack):
            ended(scene, f"c{again}{n}")
    assert scene(ops.Completed()).total == count + slack


def test_many_complete_jobs_exceed_their_count_by_at_most_64(scene: Played) -> None:
    scene(ops.ConfigSet("jobs-history-count", 1100))
    most = 0
    for part in range(30):
        scene(ops.PutMany(tuple(ops.Put("q", f"{part}.{n}", "k", "") for n in range(50))))
        scene(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in scene.pop(count=50))))
        most = max(most, scene(ops.Completed()).total)
    assert most == 1150
    assert scene(ops.Completed()).total <= 1164


def test_a_job_with_dependents_is_kept_until_it_has_none(scene: Played) -> None:
    token = scene.running(keep_failed_ms=0)
    scene.put("b", depends=("a",))
    scene(ops.Fail("a", token, "g", "m"))
    assert scene.get().state == "failed"
    assert not scene.store.keeping
    scene(ops.RetryMany(group="g", to="q", count=1))
    scene(ops.Fail("a", scene.pop()[0].token, "g", "m"))
    assert scene.get().state == "failed"
    scene(ops.Cancel(("b",)))
    scene(ops.RetryMany(group="g", to="q", count=1))
    scene(ops.Fail("a", scene.pop()[0].token, "g", "m"))
    assert scene.get() is None


def test_dependents_and_held_resources_are_released_before_a_job_is_deleted(scene: Played) -> None:
    token = scene.running(keep_complete_ms=0, ordered="line", unique="key")
    scene.put("b", depends=("a block name",))
    scene.put("c", ordered="line")
    assert scene(ops.Complete("a", token, "done")) == "complete"
    assert scene.get("a") is None
    assert [(one.name, one.result) for one in scene(ops.Results("b"))] == [("name", "done")]
    assert {job.jid for job in scene.pop(count=3)} == {"b", "c"}
    assert not scene.store.uniques


def test_a_sub_request_that_is_not_kept_ends_its_request(scene: Played) -> None:
    scene(ops.RequestPut("R", "q", 1, (ops.Put("q", "R:1", "k", "", keep_complete_ms=0),)))
    scene(ops.Complete("R:1", scene.pop()[0].token))
    assert (scene.get("R:1"), scene(ops.RequestGet("R")).state) == (None, "done")


def test_hundreds_of_expired_jobs_do_not_delay_the_deletion_of_a_job_without_retention(scene: Played) -> None:
    scene(ops.PutMany(tuple(ops.Put("q", f"j{n}", "k", "", keep_complete_ms=5) for n in range(300))))
    scene(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in scene.pop(count=300))))
    scene.now += 5
    ended(scene, "x", keep_complete_ms=0)
    assert scene.get("x") is None
    assert len(scene.events("retired")) == 100


def test_a_new_put_sets_the_retention_again(scene: Played) -> None:
    ended(scene, "a", keep_complete_ms=1000)
    assert scene.get().keep_complete_ms == 1000
    ended(scene, "a")
    assert (scene.get().state, scene.get().keep_complete_ms, len(scene.store.keeping)) == ("complete", None, 0)


def test_the_newest_complete_jobs_of_a_type_are_kept(scene: Played) -> None:
    for number in range(5):
        scene.now += 1
        ended(scene, f"j{number}", keep_newest=2)
    assert scene(ops.Completed()).jids == ("j4", "j3")
    scene(ops.Put("q", "other", "other", "", keep_newest=1))
    scene(ops.Complete("other", scene.pop()[0].token))
    ended(scene, "plain")
    assert scene(ops.Completed()).total == 4
    assert [event.facts[0] for event in scene.events("retired")] == ["j0", "j1", "j2"]


def test_a_lower_number_is_reached_by_further_completions(scene: Played) -> None:
    for number in range(6):
        ended(scene, f"j{number}", keep_newest=6)
    left = [scene(ops.Completed()).total]
    for number in range(6, 11):
        ended(scene, f"j{number}", keep_newest=1)
        left.append(scene(ops.Completed()).total)
    assert left == [6, 5, 4, 3, 2, 1]
    scene(ops.Put("q", "j10", "k", ""))
    assert not scene.store.newest


def test_the_earlier_end_of_both_retentions_counts(scene: Played) -> None:
    for number in range(3):
        ended(scene, f"j{number}", keep_newest=2, keep_complete_ms=1000)
    assert scene(ops.Completed()).jids == ("j2", "j1")
    scene.now += 1000
    ended(scene, "x")
    assert scene(ops.Completed()).jids == ("x",)


def test_many_that_complete_together_keep_the_newest(scene: Played) -> None:
    scene(ops.PutMany(tuple(ops.Put("q", f"j{n}", "k", "", keep_newest=3) for n in range(40))))
    jobs = scene(ops.Pop("q", "w", 40))
    scene(ops.CompleteMany(tuple(ops.Complete(job.jid, job.token) for job in jobs)))
    assert scene(ops.Completed()).jids == ("j39", "j38", "j37")
