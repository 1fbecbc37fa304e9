"""Laws by the rules of qless: which laws do not hold for the calls that follow them, and what holds instead.

A call follows them if it says so (`pop`, `retry` and `fire` with `qless`, `priority` with `first`). So does a pop of a
queue with a job that such a call has told its holder is about to lose. All other laws hold there too.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Moment, differs_by_qless, law
from qmodel.conformance.laws.told import is_spent
from qmodel.model.snapshot import Record

TOLD = "the holder of an ended lease is told, and keeps the job for another grace-period"
NOTICED = "a due job is ready from the pop that notices it, and a pop notices as many as it wants"
QUIET = "a retry is counted where a holder is told, and not by `retry`"

differs_by_qless(TOLD, (
    "a_lease_ends_when_settings_job_and_claim_say", "a_lease_is_taken_back_after_its_grace_period",
    "a_lost_lease_names_its_holder_and_cause", "a_job_is_buried_exactly_at_zero", "a_pop_gives_as_many_as_there_are",
    "a_job_fails_into_the_group_of_its_cause", "a_running_job_is_handed_out_only_after_its_lease_ended",
    "only_a_throttle_that_a_job_names_parks_it",
    "jobs_with_an_ended_lease_come_first", "retries_are_a_budget", "taking_back_is_counted_once",
    "lapses_are_counted_by_themselves", "the_state_is_what_the_events_say",
))  # fmt: skip
differs_by_qless(NOTICED, (
    "a_claim_has_waited_since_it_was_ready", "a_run_is_made_for_each_due_time_once",
    "a_sequence_is_that_of_the_event_that_placed_the_job", "due_jobs_are_in_the_order_of_a_pop",
    "readiness_changes_by_events_alone", "ready_jobs_come_by_priority_readiness_and_sequence",
))  # fmt: skip
differs_by_qless(QUIET, ("failures_and_retries_are_counted", "minutes_are_counted"))


def _is_told(job: Record) -> bool:
    return "told" in dict(job["options"])


def _pops(m: Moment) -> bool:
    """Whether the step is a pop by the rules of qless, which does not repeat an earlier one."""
    return m.name == "pop" and m.op.qless and not m.refused and bool(m.events)


@law
def by_qless_a_holder_is_told_before_the_job_is_given_away(m: Moment) -> Iterator[str]:
    """A pop by the rules of qless tells the holder of an ended lease, once for each lease. With a grace-period the job
    stays with it until the grace-period has passed again, and only then may another pop take it.
    """
    if not _pops(m):
        return
    grace = m.option("grace-period")
    claimed = {one.jid for one in m.told("popped")}
    for one in m.told("lock_lost"):
        before, after = m.before.jobs[one.jid], m.after.jobs.get(one.jid)
        if before["state"] != "running" or before["expires_at"] > m.now or (grace > 0 and _is_told(before)):
            yield f"{one.event}, but it is {before['state']} until {before['expires_at']}"
        if grace <= 0 or after is None:
            continue
        kept = after["state"], after["worker"], after["token"], after["expires_at"]
        if one.jid in claimed or kept != ("running", before["worker"], before["token"], m.now + grace):
            yield f"{one.jid} was told at {m.now}, and is {kept}"
    for jid in claimed & m.before.jobs.keys():
        before = m.before.jobs[jid]
        if before["state"] == "running" and (before["expires_at"] > m.now or (grace > 0 and not _is_told(before))):
            yield f"{jid} was given away, and its lease lasts until {before['expires_at']}, told: {_is_told(before)}"


@law
def by_qless_a_job_that_was_given_away_has_lost_a_retry(m: Moment) -> Iterator[str]:
    """A job that a pop by the rules of qless takes from its holder loses a retry then, and fails if none remains."""
    if not _pops(m):
        return
    for one in m.told("popped", "failed"):
        before, after = m.before.jobs.get(one.jid), m.after.jobs.get(one.jid)
        if before is None or after is None or before["state"] != "running" or "revoked" in dict(before["options"]):
            continue
        if (one.event.event == "failed") is not is_spent(before):
            yield f"{one.event}, and {before['remaining']} retries were left"
        taken = 0 if "max_lapses" in dict(before["options"]) else 1
        if one.event.event == "popped" and after["remaining"] != before["remaining"] - taken:
            yield f"{one.jid} has {after['remaining']} retries, and had {before['remaining']}"


@law
def by_qless_a_due_job_is_ready_from_when_it_is_noticed(m: Moment) -> Iterator[str]:
    """A pop by the rules of qless makes due jobs ready from now, up to as many as it wants."""
    if not _pops(m):
        return
    noticed = [one for one in m.told("promoted") if m.before.jobs.get(one.jid, {}).get("state") == "scheduled"]
    if len(noticed) > m.op.count:
        yield f"{len(noticed)} due jobs were noticed, and {m.op.count} wanted"
    for one in noticed:
        after = m.after.jobs.get(one.jid)
        if after is not None and after["state"] in ("waiting", "running") and after["ready_at"] != m.now:
            yield f"{one.jid} was noticed at {m.now}, and is ready as of {after['ready_at']}"


@law
def by_qless_a_claim_has_waited_since_its_put_or_last_claim(m: Moment) -> Iterator[str]:
    """By the rules of qless a claim has waited since the job was put, or claimed before, whichever was later."""
    if not _pops(m):
        return
    for one in m.told("popped"):
        before = m.before.jobs.get(one.jid)
        put_again = any(other.jid == one.jid for other in m.told("put"))
        if before is None or put_again:
            continue
        wanted = max(m.now - max(before["put_at"], before["popped_at"]), 0)
        if one.facts["wait_ms"] != wanted:
            yield f"{one.event}, but it has waited {wanted} ms"


@law
def by_qless_retries_are_counted_where_holders_are_told(m: Moment) -> Iterator[str]:
    """By the rules of qless the statistics count a retry when a holder is told, and none for `retry`."""
    if m.refused or not getattr(m.op, "qless", False) or m.name not in ("pop", "retry"):
        return
    told = {one.jid for one in m.told("lock_lost")} if m.name == "pop" else set()
    before = sum(day["retries"] for day in m.before.days.values())
    kept = {at: day for at, day in m.after.days.items() if at in m.before.days or day["retries"]}
    after = sum(day["retries"] for day in kept.values())
    if m.before.days.keys() <= m.after.days.keys() and after - before != len(told):
        yield f"{after - before} retries were counted, and {len(told)} holders told"


@law
def by_qless_a_new_priority_may_put_a_job_first(m: Moment) -> Iterator[str]:
    """`priority` with `first` makes a waiting or stalled job ready since 0, before all others of its priority."""
    if m.name != "priority" or m.refused or not m.op.first or not any(m.told("prioritized")):
        return
    before, after = m.before.jobs[m.op.jid], m.after.jobs[m.op.jid]
    if after["ready_at"] != (0 if before["state"] in ("waiting", "stalled") else before["ready_at"]):
        yield f"{m.op.jid} was {before['state']}, and is ready as of {after['ready_at']}"
