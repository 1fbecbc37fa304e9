"""Deduplication: faults of other queues; each test claims that qmodel does not have one.

Every scene is played on the model and, if lupa is installed, on the Lua library in this process; both must agree.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

import qmodel
from qmodel.conformance.compare.agree import agree
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.contract import operations as ops
from qmodel.model import snapshot
from tests.property.test_hazards_life import Played
from tests.property.test_quirks import DAY


@pytest.fixture
def scene() -> Iterator[Played]:
    played = Played()
    yield played
    if importlib.util.find_spec("lupa") is not None:
        agree(open_subject("embedded://"), played.steps)


def put(scene: Played, jid: str, mode: str | None = None, **arguments: Any) -> Any:
    return scene.put(jid, unique="u", unique_mode=mode, **arguments)


def holder(scene: Played, key: str = "u") -> Any:
    found = scene(ops.UniqueGet(key))
    return found and found.jid


# ---- pending


def test_while_a_job_holds_the_key_nothing_is_put_and_the_reply_names_the_holder(scene: Played) -> None:
    assert put(scene, "a") == "a"
    assert put(scene, "b") == "a"
    assert scene.get("b") is None
    assert [event.facts for event in scene.events("deduplicated")] == [("a", "q", "u", "pending", "waiting")]
    assert scene(ops.Length("q")) == 1


@pytest.mark.parametrize("end", ["complete", "fail", "retry", "cancel", "drain", "revoke", "lapse", "expire", "put"])
def test_a_key_is_free_after_every_end(scene: Played, end: str) -> None:
    arguments = {"retries": 0} | ({"ttl_ms": 5} if end == "expire" else {})
    put(scene, "a", **arguments)
    if end in ("complete", "fail", "retry", "lapse"):
        token = scene.pop()[0].token
    ends = {
        "complete": lambda: ops.Complete("a", token), "fail": lambda: ops.Fail("a", token, "g", ""),
        "retry": lambda: ops.Retry("a", token), "cancel": lambda: ops.Cancel(("a",)), "drain": lambda: ops.Drain("q"),
        "revoke": lambda: ops.Revoke(("a",)), "lapse": lambda: ops.Pop("q", "w"), "expire": lambda: ops.Pop("q", "w"),
        "put": lambda: ops.Put("q", "a", "k", ""),
    }  # fmt: skip
    scene(ends[end](), after=DAY)
    assert holder(scene) is None
    assert scene.store.uniques == {}
    assert put(scene, "b") == "b"


@pytest.mark.parametrize("way", ["retry", "release", "next"])
def test_a_job_that_has_not_ended_keeps_its_key(scene: Played, way: str) -> None:
    put(scene, "a")
    token = scene.pop()[0].token
    if way == "next":
        scene(ops.Complete("a", token, next="r"))
    else:
        scene(ops.Retry("a", token, 1000) if way == "retry" else ops.Release("a", token, 1000))
    assert put(scene, "b") == "a"


def test_a_retried_failed_job_does_not_take_the_key_from_another_job(scene: Played) -> None:
    put(scene, "a", retries=0)
    scene(ops.Fail("a", scene.pop()[0].token, "g", ""))
    assert put(scene, "b") == "b"
    scene(ops.RetryMany(group="g", to="q"))
    assert holder(scene) == "b"
    scene(ops.Cancel(("a",)))
    assert holder(scene) == "b"


def test_a_pending_key_may_end_before_its_job(scene: Played) -> None:
    put(scene, "a", unique_ms=1000)
    scene.now += 999
    assert put(scene, "b") == "a"
    scene.now += 1
    assert put(scene, "b") == "b"
    scene(ops.Cancel(("a",)))
    assert holder(scene) == "b"


# ---- windows


def test_a_window_holds_after_the_job_ended_and_expires_at_its_exact_millisecond(scene: Played) -> None:
    put(scene, "a", "window", unique_ms=1000)
    scene(ops.Cancel(("a",)))
    scene.now += 999
    assert put(scene, "b", "window", unique_ms=1000) == "a"
    assert scene.events("deduplicated")[0].facts == ("a", "", "u", "window", "")
    scene.now += 1
    assert put(scene, "b", "window", unique_ms=1000) == "b"


def test_a_dropped_put_does_not_extend_a_window(scene: Played) -> None:
    put(scene, "a", "window", unique_ms=1000)
    for _ in range(3):
        scene.now += 300
        assert put(scene, "b", "window", unique_ms=1000) == "a"
    scene.now += 100
    assert put(scene, "b", "window", unique_ms=1000) == "b"


@pytest.mark.parametrize(
    "between", [None, ops.Complete("a", 2), ops.Cancel(("a",))], ids=["put over", "complete", "gone"]
)
def test_a_job_that_is_put_again_under_its_window_has_not_begun(scene: Played, between: Any) -> None:
    put(scene, "a", "window", unique_ms=1000)
    scene(ops.Pop("q", "w"))
    if between is not None:
        scene(between)
    scene(ops.Put("q", "a", "k", "", delay_ms=5))
    assert scene(ops.Get("a")).token == 0
    scene(ops.Put("q", "b", "k", "new", delay_ms=9, unique="u", unique_mode="debounce"))
    assert (scene(ops.Get("a")).data, scene(ops.Get("a")).ready_at) == ("new", scene.now + 9)


def test_expired_windows_do_not_pile_up(scene: Played) -> None:
    for number in range(50):
        scene.put(f"j{number}", unique=f"k{number}", unique_mode="window", unique_ms=10)
        scene.now += 20
    assert len(scene.store.uniques) <= 2


# ---- debounce


def test_the_data_become_the_last_ones_and_the_delay_starts_again(scene: Played) -> None:
    put(scene, "a", "debounce", delay_ms=1000)
    scene.now += 900
    scene(ops.Put("q", "b", "k", "new", delay_ms=1000, unique="u", unique_mode="debounce"))
    job = scene.get("a")
    assert (job.data, job.state, job.ready_at) == ("new", "scheduled", scene.now + 1000)
    assert scene.get("b") is None


def test_a_debounced_job_is_not_delayed_forever(scene: Played) -> None:
    begun = scene.now
    for number in range(10):
        put(scene, f"j{number}", "debounce", delay_ms=1000, unique_max_ms=2500)
        scene.now += 800
    assert scene.get("j0").ready_at == begun + 2500
    assert [job.jid for job in scene.pop()] == ["j0"]


def test_a_job_in_backoff_is_neither_thrown_away_nor_changed(scene: Played) -> None:
    put(scene, "a", "debounce", delay_ms=0)
    scene(ops.Retry("a", scene.pop()[0].token, 60_000))
    before = scene.get("a")
    assert scene(ops.Put("q", "b", "k", "new", unique="u", unique_mode="debounce")) == "a"
    assert scene.get("a") == before


# ---- again: one more run after the current one


def test_puts_during_the_holders_run_make_one_further_job_with_the_last_data(scene: Played) -> None:
    put(scene, "a", "again")
    token = scene.pop()[0].token
    assert put(scene, "b", "again") == "b"
    assert scene(ops.Put("q", "c", "k", "last", unique="u", unique_mode="again")) == "b"
    assert (scene.get("b").state, scene.get("b").data, scene.get("b").holder) == ("depends", "last", "a")
    assert scene.pop() == ()
    scene(ops.Complete("a", token))
    assert holder(scene) == "b"
    assert [job.jid for job in scene.pop(count=9)] == ["b"]


def test_a_holder_that_has_not_begun_takes_the_last_data_and_nothing_is_put(scene: Played) -> None:
    put(scene, "a", "again")
    assert scene(ops.Put("q", "b", "k", "last", unique="u", unique_mode="again")) == "a"
    assert scene.get("a").data == "last"


@pytest.mark.parametrize("end", ["fail", "cancel", "put", "revoke", "lapse", "release"])
def test_every_end_of_the_holder_admits_its_successor(scene: Played, end: str) -> None:
    put(scene, "a", "again", retries=0)
    token = scene.pop()[0].token
    put(scene, "b", "again")
    if end == "fail":
        scene(ops.Fail("a", token, "g", ""))
    elif end == "cancel":
        assert scene(ops.Cancel(("a",))) == ("a",)
    elif end == "put":
        scene.put("a", queue="r")
    elif end == "revoke":
        scene(ops.Revoke(("a",)))
        scene(ops.Release("a", token))
    elif end == "lapse":
        scene(ops.Pop("r", "w"), after=DAY)
        scene.pop()
    else:
        assert scene(ops.UniqueRelease("u")) == 1
    assert scene.get("b").state in ("waiting", "running")
    assert scene.get("b").dependencies == ()
    assert holder(scene) == (None if end == "release" else "b")


def test_a_holder_and_its_successor_are_canceled_in_one_step(scene: Played) -> None:
    put(scene, "a", "again")
    scene.pop()
    put(scene, "b", "again")
    assert scene(ops.Cancel(("a", "b"))) == ("a", "b")
    assert scene(ops.Queue("q")).waiting == 0
    assert scene.store.uniques == {}


def test_a_successor_may_be_canceled_and_another_one_put(scene: Played) -> None:
    put(scene, "a", "again")
    scene.pop()
    put(scene, "b", "again")
    scene(ops.Cancel(("b",)))
    assert scene(ops.UniqueGet("u")).next == ""
    assert put(scene, "c", "again") == "c"


def test_jobs_never_wait_for_each_other_by_a_key(scene: Played) -> None:
    put(scene, "a", "again")
    token = scene.pop()[0].token
    scene.put("b")
    scene(ops.Complete("a", token, next="r", depends=("b",)))
    assert put(scene, "b", "again").code == "DEPENDENCY_CYCLE"


# ---- resends and batches


def test_a_resent_put_is_never_a_second_put(scene: Played) -> None:
    put(scene, "a")
    assert put(scene, "b", request="r") == "a"
    scene(ops.Cancel(("a",)))
    assert put(scene, "b", request="r") == "a"
    assert scene.get("b") is None
    assert put(scene, "c", request="s") == "c"
    before = snapshot.of(scene.store)
    assert put(scene, "c", request="s") == "c"
    assert snapshot.of(scene.store) == before


def test_a_batch_deduplicates_itself_and_dependents_of_a_dropped_job_depend_on_the_holder(
    scene: Played,
) -> None:
    jobs = (
        ops.Put("q", "a", "k", "", unique="u"),
        ops.Put("q", "b", "k", "", unique="u"),
        ops.Put("q", "c", "k", "", depends=("b fail x",)),
    )
    assert scene(ops.PutMany(jobs, "r")) == ("a", "a", "c")
    assert scene.get("c").dependencies == ("a",)
    assert scene(ops.PutMany(jobs, "r")) == ("a", "a", "c")
    assert scene.events("put")[-1].facts[0] == "c"


def test_a_cycle_through_the_holder_is_refused(scene: Played) -> None:
    jobs = (
        ops.Put("q", "a", "k", "", unique="u", depends=("c",)),
        ops.Put("q", "b", "k", "", unique="u"),
        ops.Put("q", "c", "k", "", depends=("b",)),
    )
    assert scene(ops.PutMany(jobs)).code == "DEPENDENCY_CYCLE"


def test_a_holder_and_another_job_with_its_key_are_not_put_in_one_step(scene: Played) -> None:
    put(scene, "a")
    both = (ops.Put("q", "a", "k", ""), ops.Put("q", "b", "k", "", unique="u"))
    assert scene(ops.PutMany(both)).facts == ("a", "u")


# ---- arguments


@pytest.mark.parametrize(
    ("arguments", "bad"),
    [
        ({"unique_mode": "again"}, "unique_mode"),
        ({"unique_ms": 5}, "unique_ms"),
        ({"unique_max_ms": 5}, "unique_max_ms"),
        ({"unique": "u", "unique_mode": "window"}, "unique_ms"),
        ({"unique": "u", "unique_mode": "again", "unique_ms": 5}, "unique_ms"),
        ({"unique": "u", "unique_max_ms": 5}, "unique_max_ms"),
        ({"unique": "no blanks"}, "unique"),
    ],
)
def test_meaningless_arguments_are_refused_by_name(scene: Played, arguments: dict[str, Any], bad: str) -> None:
    assert scene.put("a", **arguments).facts == ("put", bad)
    assert scene.store.jobs == {}


def test_a_fingerprint_separates_its_parts() -> None:
    pairs: list[tuple[str, object]] = [
        ("k", {"a": "x:b=y", "b": "z"}), ("k", {"a": "x", "b": "y:b=z"}), ("k", ["1", "2"]), ("k", "12"),
        ("k1", 2), ("k", 12), ("k", None), ("k", "null"), ("", {"k": 1}),
    ]  # fmt: skip
    assert len({qmodel.fingerprint(*pair) for pair in pairs}) == len(pairs)
    assert qmodel.fingerprint("k", {"a": 1, "b": 2}) == qmodel.fingerprint("k", {"b": 2, "a": 1})


def test_the_client_says_whether_a_job_was_put() -> None:
    client = qmodel.connect()
    queue = client.queues["q"]
    first = queue.put("K", 1, unique="u")
    second = queue.put("K", 2, unique="u")
    many = queue.put_many([queue.new("K", 3, unique="u"), queue.new("K", 4, unique="v")])
    assert (first.deduplicated, second.deduplicated, second == first) == (False, True, True)
    assert [job.deduplicated for job in many] == [True, False]
    held = client.uniques.get("u")
    assert held is not None and held.jid == first.jid
    assert client.uniques.release("u") and not client.uniques.release("u")
