"""Every invariant can be broken, and says so by its name; a healthy state breaks none."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from qmodel.contract import operations as ops
from qmodel.model import engine, snapshot
from qmodel.model.invariants import INVARIANTS, check
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.aging import APART
from qmodel.model.state.store import Store


def healthy() -> Snapshot:
    """A state with a job in each place: w waiting, s scheduled, d depends (on r), r running, t
    stalled, c complete, f failed, n, which waits for r by name, m parked behind l, i at a throttle that h
    holds, and e-1, a run of e; o waits for its run o-1, and l has moments to come; with tags, tracking, a
    grant and statistics.
    """
    store = Store()
    for op in (
        *(ops.Put("q", jid, "k", "", tags=("x",)) for jid in "rtcf"),
        ops.Pop("q", "u", 4, request="n"),
        ops.Put("q", "w", "k", ""),
        ops.Put("q", "s", "k", "", delay_ms=1000),
        ops.Put("o", "l", "k", "", ordered="z"),
        ops.Put("o", "m", "k", "", ordered="z"),
        ops.RequestOpen("R", "o", 1),
        ops.RequestAdd("R", (ops.Put("o", "R:1", "k", ""), ops.Put("o", "R:2", "k", ""))),
        ops.RequestOpen("W", "o", 1),
        ops.Put("q", "v", "k", "", depends=("W request fail",)),
        ops.Put("q", "d", "k", "", depends=("r",)),
        ops.Put("q", "n", "k", "", depends=("r ignore name",)),
        ops.Track("w"),
        ops.Timeout(("t",)),
    ):
        engine.step(store, 1, op)
    engine.step(store, 1, ops.Complete("c", store.jobs["c"].token))
    engine.step(store, 1, ops.Fail("f", store.jobs["f"].token, "g", ""))
    engine.step(store, 1, ops.Put("z", "p", "k", ""))
    engine.step(store, 1, ops.Pop("z", "u", request="m"))
    engine.step(store, 1, ops.Put("q", "w", "k", ""))
    engine.step(store, 1, ops.Update("w", "", request="o"))
    engine.step(store, 1, ops.ThrottleSet("limit", concurrency=1))
    for jid in ("h", "i"):
        engine.step(store, 1, ops.Put("x", jid, "k", "", throttles=("limit",)))
    engine.step(store, 1, ops.Pop("x", "u", 2))
    for jid, mode in (("k", None), ("n", "again")):
        engine.step(store, 1, ops.Put("k", jid, "k", "", unique="u", unique_mode=mode))
        engine.step(store, 1, ops.Pop("k", "u", request="k"))
    engine.step(store, 1, ops.Recur("y", "e", "k", "", 1))
    engine.step(store, 1, ops.Fire("y"))
    engine.step(store, 1, ops.Recur("y", "l", "k", "", 0, kind="cron", cron="* * * * * UTC", due_at=(60_000, 120_000)))
    engine.step(store, 1, ops.Recur("y", "o", "k", "", 1000, kind="after"))
    engine.step(store, 1, ops.Fire("y"))
    for seq in range(2):
        engine.step(store, 1, ops.Publish("m.n", str(seq)))
    engine.step(store, 1, ops.Subscribe("sub", ("m.>",), "x", "k", after=0, count=1))
    return snapshot.of(store)


def _swap(s: Snapshot, name: str, place: str) -> None:
    s.queues[name][place] = tuple(reversed(s.queues[name][place]))


def _stand(s: Snapshot, name: str, later: int) -> None:
    """Let the first ready job of a queue, which has the priority 0, stand by its age, but later than its ready time."""
    (_, at, *others), *rest = s.queues[name]["ready"]
    s.queues[name]["ready"] = ((at + later - APART, at, *others), *rest)


def _set(*path: Any) -> Callable[[Snapshot], None]:
    """Sets the last of a path to a value: `_set("jobs", "w", "seq", 3)`."""

    def change(s: Snapshot) -> None:
        at: Any = getattr(s, path[0])
        for key in path[1:-2]:
            at = at[key]
        if len(path) == 2:
            setattr(s, path[0], path[1])
        else:
            at[path[-2]] = path[-1]

    return change


_EMPTY = {"count": 0, "mean": 0.0, "squares": 0.0, "bins": {}}

WRONG: dict[str, Callable[[Snapshot], None]] = {
    "each_job_is_in_exactly_one_list": _set("queues", "q", "ready", ()),
    "its_state_says_which": _set("jobs", "w", "state", "scheduled"),
    "lists_hold_only_jobs_that_exist": lambda s: s.jobs.pop("w"),  # type: ignore[dict-item, return-value]
    "lists_are_in_order": lambda s: _swap(s, "q", "locks"),
    "a_queue_with_jobs_is_on_the_list": _set("queues", "q", "first_seen", None),
    "pauses_are_bounded": _set("queues", "q", "pauses", {"x": -1}),
    "nothing_is_kept_empty": _set("tags", "y", ()),
    "places_by_age_are_those_of_some_rate": lambda s: _stand(s, "q", 7),
    "turns_are_kept_for_those_that_wait": _set("jobs", "w", "options", (("turn", "5"),)),
    "sequences_are_unique_and_past": _set("jobs", "w", "seq", 10**6),
    "tokens_are_unique_and_past": _set("jobs", "w", "token", 10**6),
    "epochs_grow_with_the_events": _set("epochs", ((1, 7),)),
    "events_are_kept_within_bounds": _set("events", 10**6),
    "a_lease_is_what_a_running_job_has": _set("jobs", "w", "worker", "u"),
    "a_leased_job_is_held_by_its_worker_alone": _set("workers", "v", {"seen_at": 1, "held": {"r": 5}, "grants": {}}),
    "grants_are_held": _set("workers", "u", "grants", {"n": ("r", "t")}),
    "edges_stand_on_both_sides": _set("jobs", "r", "dependents", ()),
    "edges_lead_to_unfinished_jobs": _set("jobs", "c", "dependents", ("d",)),
    "a_job_waits_for_others_iff_it_has_dependencies": _set("jobs", "d", "dependencies", ()),
    "no_job_waits_for_itself": _set("jobs", "r", "dependencies", ("d",)),
    "edges_that_follow_a_failure_have_followed": _set("jobs", "r", "state", "failed"),
    "only_blocked_jobs_wait_for_an_ended_request": _set("requested", "W", "state", "done"),
    "a_request_knows_its_jobs_with_dependencies": _set("requested", "W", "given", ("w",)),
    "a_request_knows_the_jobs_that_have_begun": _set("requested", "W", "yielded", ("gone",)),
    "results_are_those_of_named_edges": _set("results", "n", (("r", "name", "complete", ""),)),
    "the_cascade_is_of_the_past": _set("cascade", ((10**6, "f", False),)),
    "dependents_are_bounded": _set("jobs", "r", "dependents", tuple(f"j{n}" for n in range(1001))),
    "retries_remain_within_bounds": _set("jobs", "w", "remaining", -1),
    "an_ended_job_says_when": _set("jobs", "w", "ended_at", 1),
    "every_job_was_put": _set("jobs", "w", "queue", ""),
    "history_is_bounded_and_well_formed": _set("jobs", "w", "history", ()),
    "a_lease_ends_once": lambda s: _set("jobs", "c", "history", s.jobs["c"]["history"] * 2)(s),
    "failed_jobs_may_be_deleted_unless_they_are_kept": _set("failed", ()),
    "only_a_running_job_is_marked_as_revoked": _set("jobs", "w", "options", (("revoked", "1"),)),
    "jobs_that_may_expire_are_listed": _set("jobs", "w", "options", (("ttl_ms", "5"),)),
    "those_that_keep_the_newest_are_listed_by_type": _set("jobs", "c", "options", (("keep_newest", "5"),)),
    "jobs_with_their_own_retention_are_listed": _set("jobs", "c", "options", (("keep_complete_ms", "5"),)),
    "leased_jobs_hold_their_throttles": _set("throttles", "limit", "held", ()),
    "each_throttle_knows_its_parked_jobs": _set("queues", "x", "gates", {}),
    "parked_jobs_are_in_order": _set("throttles", "limit", "queues", ()),
    "throttles_are_within_bounds": _set("throttles", "limit", "level", 1),
    "families_have_a_generation": _set("throttles", "limit", "generation", 1),
    "concurrency_keys_hold_their_jobs": _set("lines", "ordered:z", "active", ()),
    "no_job_starts_without_a_slot": _set("jobs", "l", "options", (("ordered", "z"),)),
    "no_job_is_parked_while_a_slot_is_free": _set("lines", "ordered:y", {"active": (), "parked": ()}),
    "requests_count_their_jobs": _set("requested", "R", "total", 5),
    "each_request_stands_in_the_list_of_its_state": _set("request_states", {}),
    "a_request_ends_with_its_last_job": _set("requested", "R", "state", "done"),
    "each_recurring_job_stands_in_its_queue": _set("queues", "y", "recur", ()),
    "moments_are_wanted_where_a_list_goes_on": _set("crons", ()),
    "open_runs_are_counted": _set("schedules", "o", "open", 0),
    "recurring_jobs_are_within_bounds": _set("schedules", "e", "interval_ms", 0),
    "runs_name_their_schedule": _set("jobs", "e-1", "history", (("spawned", 1, ("f",)),)),
    "messages_are_in_order": lambda s: setattr(s, "messages", s.messages[::-1]),
    "subscriptions_are_within_bounds": _set("subscriptions", "sub", "patterns", ()),
    "subscriptions_behind_have_messages_to_get": _set("subscriptions", "sub", "position", 10**6),
    "the_index_of_tags_is_the_tags_of_jobs": _set("jobs", "w", "tags", (("x", 1),)),
    "samples_add_up": _set("days", (0, "q"), "wait", "count", 100),
    "tags_and_workers_are_part_of_their_day": _set("days", (0, "q"), "workers", {"w": {"wait": _EMPTY, "run": _EMPTY}}),
    "failures_add_up": _set("days", (0, "q"), "failed", 2),
    "a_key_is_held_by_a_job_that_has_not_ended": _set("uniques", "u", "jid", "c"),
    "the_next_job_of_a_key_names_the_holder": _set("jobs", "n", "options", (("unique", "u"),)),
    "minutes_are_part_of_their_day": _set("days", (0, "q"), "minutes", {0: (2, 0, 0, 0)}),
    "options_are_in_their_range": _set("config", "heartbeat", -1),
    "the_journal_has_no_gaps": _set("journal", ((5, 1, "{}", "{}"),)),
    "metadata_are_bounded": _set("metadata", "k", {str(n): "" for n in range(1001)}),
    "memories_are_bounded": _set("requests", (("r", "x"),) * 2),
}  # fmt: skip


def test_a_healthy_state_breaks_no_invariant() -> None:
    found = healthy()
    assert {job["state"] for job in found.jobs.values()} == {
        "waiting", "scheduled", "depends", "throttled", "running", "stalled", "complete", "failed",
    }  # fmt: skip
    assert check(found) == []


@pytest.mark.parametrize("name", INVARIANTS)
def test_every_invariant_can_be_broken(name: str) -> None:
    found = deepcopy(healthy())
    WRONG[name](found)
    assert name in {broken.name for broken in check(found)}


def test_every_invariant_has_a_sentence() -> None:
    assert all((predicate.__doc__ or "").strip().endswith(".") for predicate in INVARIANTS.values())
