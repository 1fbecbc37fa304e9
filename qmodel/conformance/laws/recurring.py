"""Laws of recurring jobs: one run for each due time, computed from the schedule before the step."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from qmodel.conformance.laws.law import Moment, law

NEVER = 99_999_999_999_998
"""The due time of a recurring job that has none."""

MAKES = ("pop", "pop_any", "complete_and_pop", "fire")


def _pauses(one: dict[str, Any]) -> bool:
    return bool(one["paused"] or (one["overlap"] == "skip" and one["open"]))


def due(one: dict[str, Any], now: int) -> Sequence[int]:
    """The due times of the runs that a recurring job must make, by `missed`, `backlog`, `overlap`, and its bounds."""
    if _pauses(one):
        return ()
    last = min(now, one["end_at"] or now)
    moments: Sequence[int] = range(one["next_at"], last + 1, one["interval_ms"] or 1)
    if one["kind"] == "cron":
        moments = [moment for moment in (one["next_at"], *one["later"]) if moment <= last]
    elif one["kind"] == "after":
        return moments[:1]
    first = 0
    if one["missed"] == "one":
        first = max(len(moments) - 1, 0)
    elif one["missed"] == "none":
        first = bisect_left(moments, now - one["catchup_ms"])
    if one["backlog"] and one["kind"] == "cron":
        first = max(first, bisect_left(moments, now) - one["backlog"])
    elif one["backlog"]:
        first = max(first, bisect_left(moments, now - one["backlog"] * one["interval_ms"]))
    found = moments[first:][: one["limit"] - one["made"] if one["limit"] else None]
    return found[:1] if one["overlap"] == "skip" else found


@law
def a_run_is_made_for_each_due_time_once(m: Moment) -> Iterator[str]:
    """Due times are anchored, and there is one run for each, in order, whoever creates it and however late: a pop or a
    fire makes all that are due, by the rules of missed runs, overlap and bounds.
    """
    if m.name not in MAKES or m.refused:
        return
    made: dict[str, list[int]] = {}
    for event in m.events:
        if event.event == "fired":
            made.setdefault(str(event.facts[0]), []).append(int(event.facts[3]))
    for schedule, moments in made.items():
        one = m.before.schedules[schedule]
        wanted = list(due(one, m.now)[: len(moments) + 1])
        resumed = any(event.event == "skipped" and event.facts[0] == schedule for event in m.events)
        if moments != wanted[: len(moments)] and not resumed and not _has_ended(m, schedule):
            yield f"{schedule} has runs of {moments}, and {wanted} are due"
    queues = [queue for queue in m.pops() if not m.is_paused(queue)] or ([m.op.queue] if m.name == "fire" else [])
    looked = m.events and (m.name != "fire" or m.op.count == 1000) and len(queues) == 1 and m.name != "complete_and_pop"
    for schedule, one in m.before.schedules.items() if m.few and looked else ():
        taken = sum(1 for _ in m.told("popped"))
        if one["queue"] != queues[0] or _has_ended(m, schedule) or (m.pops() and not taken and m.outcome):
            continue
        wanted = list(due(one, m.now)[:100])
        if len(wanted) < 100 and len(made.get(schedule, [])) < len(wanted) < 50:
            yield f"{schedule} has runs of {made.get(schedule, [])}, and {wanted} are due"


def _has_ended(m: Moment, schedule: str) -> bool:
    """Whether a run of a recurring job has ended in this step: its next times may then be others."""
    return any(
        one.event.event in ("completed", "failed", "canceled", "put")
        and one.was is not None
        and dict(m.before.jobs.get(one.jid, {"options": ()})["options"]).get("schedule", " ").split(" ")[0] == schedule
        for one in m.tale
    )


@law
def only_pops_and_fire_make_runs(m: Moment) -> Iterator[str]:
    """Runs are made by `fire`, and by pops of the queue unless it is paused; `recur_now` makes one at once."""
    for event in m.events:
        if event.event != "fired":
            continue
        schedule, queue, run, _ = event.facts
        if m.name == "recur_now":
            if schedule != m.op.jid or m.outcome != run:
                yield f"{event}, and {m.outcome} is replied"
        elif m.name not in MAKES:
            yield f"{m.name} made {run}"
        elif m.pops() and (queue not in m.pops() or m.is_paused(str(queue))):
            yield f"{m.name} of {m.pops()} made {run} of {queue}"
        elif m.before.schedules[str(schedule)]["paused"]:
            yield f"{schedule} is paused, and made {run}"


@law
def a_run_is_the_job_that_its_schedule_says(m: Moment) -> Iterator[str]:
    """A run is an ordinary job, named `<jid>-<number>` with the next number, with klass, data, priority, retries and
    tags of its recurring job, put and ready as of its due time; its history begins with `spawned`. No job is
    overwritten: if the id is taken, the run gets the next number.
    """
    numbers: dict[str, int] = {}
    for event in m.events:
        if event.event not in ("fired", "renumbered"):
            continue
        schedule, run = str(event.facts[0]), str(event.facts[2])
        one = m.before.schedules[schedule]
        numbers[schedule] = numbers.get(schedule, int(one["runs"])) + 1
        if run != f"{schedule}-{numbers[schedule]}":
            yield f"the run {numbers[schedule]} of {schedule} is {run}"
        gone = any(e.jid == run and e.becomes is None and e.event.seq < event.seq for e in m.tale)
        there = run in m.before.jobs and not gone
        if there is not (event.event == "renumbered"):
            yield f"{event}, and {run} {'exists' if there else 'does not exist'}"
        job = m.after.jobs.get(run)
        if event.event != "fired" or job is None or job["history"][0][0] != "spawned":
            if event.event == "fired" and job is not None:
                yield f"the history of {run} begins with {job['history'][0]}"
            continue
        for name in ("klass", "data", "priority", "retries"):
            if job[name] != one[name]:
                yield f"{run}: {name} is {job[name]!r}, not {one[name]!r}"
        if [tag for tag, _ in job["tags"]] != list(one["tags"]) or job["queue"] != one["queue"]:
            yield f"{run} is in {job['queue']} with the tags {job['tags']}"
        due_at = int(event.facts[3])
        if (job["history"][0][1], job["put_at"]) != (due_at, due_at):
            yield f"{run} is due at {due_at}, and was put at {job['put_at']}"
    for schedule, number in numbers.items():
        after = m.after.schedules.get(schedule)
        if after is not None and after["runs"] != number:
            yield f"{schedule} has made {number} runs, and counts {after['runs']}"


@law
def due_times_do_not_drift(m: Moment) -> Iterator[str]:
    """Every interval after the first due time there is one: only runs and skipped runs move the next due time, by whole
    intervals; for a list, to its next moment; the kind `after`, to an interval after the end of its run.
    """
    for schedule, before in m.before.schedules.items():
        after = m.after.schedules.get(schedule)
        changed = ("recurred", "recur_updated", "recur_advanced")
        if after is None or any(e.event in changed and e.facts[0] == schedule for e in m.events):
            continue
        runs = sum(e.event == "fired" and e.facts[0] == schedule and m.name != "recur_now" for e in m.events)
        skipped = sum(int(e.facts[2]) for e in m.events if e.event in ("missed", "skipped") and e.facts[0] == schedule)
        if (
            before["kind"] == "interval"
            and after["next_at"] != before["next_at"] + (runs + skipped) * before["interval_ms"]
        ):
            yield f"{schedule} was due at {before['next_at']}, made {runs}, skipped {skipped}, now {after['next_at']}"
        if before["kind"] == "cron":
            known = [moment for moment in (before["next_at"], *before["later"]) if moment != NEVER][runs + skipped :]
            if [moment for moment in (after["next_at"], *after["later"]) if moment != NEVER] != known:
                yield f"{schedule} has the times {after['next_at']}, {after['later']}, not {known}"
        if before["kind"] == "after" and after["next_at"] != before["next_at"]:
            ended = _has_ended(m, schedule)
            moments = {NEVER} if runs else set()
            moments |= {m.now + before["interval_ms"]} if ended else set()
            moments |= {max(before["next_at"], m.now)}
            if after["next_at"] not in moments:
                yield f"{schedule} is due at {after['next_at']}, not at {sorted(moments)}"


@law
def no_run_is_due_while_another_is_unfinished(m: Moment) -> Iterator[str]:
    """With `overlap` set to `skip`, no run is due while another run is unfinished, and those missed meanwhile are
    skipped when it ends. Unfinished runs are counted: a failed run has ended.
    """
    for schedule, after in m.after.schedules.items():
        before = m.before.schedules.get(schedule)
        if after["overlap"] != "skip":
            continue
        since = f"{schedule} {after['since']}"
        unfinished = [job for job in m.after.jobs.values() if job["state"] not in ("complete", "failed")]
        open_ = sum(dict(job["options"]).get("schedule") == since for job in unfinished) if m.few else after["open"]
        if after["open"] != open_:
            yield f"{schedule} counts {after['open']} unfinished runs, and {open_} are"
        made = sum(event.event == "fired" and event.facts[0] == schedule for event in m.events)
        if before is not None and before["open"] and made and m.name != "recur_now" and not _has_ended(m, schedule):
            yield f"{schedule} made {made} runs, and {before['open']} were unfinished"


@law
def a_recurring_job_keeps_to_its_bounds(m: Moment) -> Iterator[str]:
    """No run is due before `start_at` or after `end_at`, and at most `limit` runs are made; a recurring job without
    further runs is deleted, with the cause.
    """
    for event in m.events:
        if event.event == "fired" and m.name != "recur_now":
            one = m.before.schedules[str(event.facts[0])]
            at = int(event.facts[3])
            early = (
                at < one["start_at"] and one["kind"] != "after"
            )  # which counts from an end, by a clock that may go back
            if early or (one["end_at"] and at > one["end_at"]):
                yield f"{event}, but its bounds are {one['start_at']} and {one['end_at']}"
        if event.event == "unrecurred":
            one = m.before.schedules.get(str(event.facts[0]), {"limit": 0, "end_at": 0, "made": 0})
            cause = event.facts[2]
            asked = {"unrecur": "unrecur", "obliterate": "obliterate"}.get(m.name, "")
            if cause != asked and (cause not in ("limit", "end") or m.name == "unrecur"):
                yield f"{event}, by {m.name}"
            if str(event.facts[0]) in m.after.schedules:
                yield f"{event}, and it is still there"
    for schedule in m.before.schedules.keys() - m.after.schedules.keys():
        if not any(event.event == "unrecurred" and event.facts[0] == schedule for event in m.events):
            yield f"{schedule} is gone without an event"
    for schedule, one in m.after.schedules.items():
        if one["limit"] and one["made"] >= one["limit"]:
            yield f"{schedule} has made {one['made']} of {one['limit']} runs, and goes on"


FIELDS = (
    "queue", "klass", "data", "priority", "retries", "tags", "backlog", "interval_ms", "paused", "kind", "limit",
)  # fmt: skip
"""The fields of a recurring job that a client sets."""


@law
def schedules_change_as_they_are_told(m: Moment) -> Iterator[str]:
    """`recur`, `recur_update`, `recur_tag` and `recur_untag` change what they name, and keep the number of the last
    run; `recur_pause` and `recur_unpause` pause. Nothing else changes a recurring job, and existing runs stay.
    """
    for schedule, after in m.after.schedules.items():
        before = m.before.schedules.get(schedule)
        mine = getattr(m.op, "jid", None) == schedule and m.name.startswith(("recur", "unrecur")) and not m.refused
        if before is not None and not mine:
            for name in FIELDS:
                if after[name] != before[name]:
                    yield f"{m.name} changed {name} of {schedule} from {before[name]!r} to {after[name]!r}"
        if mine and m.name in ("recur", "recur_update") and m.events:
            yield from _not_set(m, schedule, before, after)
        if (
            mine
            and m.name in ("recur_pause", "recur_unpause")
            and m.events
            and after["paused"] is not (m.name == "recur_pause")
        ):
            yield f"{schedule} is paused: {after['paused']}, after {m.name}"
    if m.name in ("recur", "recur_update", "recur_tag", "recur_untag", "unrecur", "recur_pause") and m.tale:
        yield f"{m.name} changed jobs: {m.tale[0].event}"


def _not_set(m: Moment, schedule: str, before: dict[str, Any] | None, after: dict[str, Any]) -> Iterator[str]:
    """The fields of a recurring job that are not what `recur` or `recur_update` gives."""
    for name in FIELDS:
        given = getattr(m.op, name, None)
        wanted = before[name] if given is None and before is not None else given
        wanted = tuple(dict.fromkeys(wanted)) if name == "tags" and wanted is not None else wanted
        if name != "paused" and wanted is not None and after[name] != wanted:
            yield f"{schedule}: {name} is {after[name]!r}, not {wanted!r}"
    runs = getattr(m.op, "runs", 0) if before is None else before["runs"]
    if after["runs"] != runs:
        yield f"{schedule} has counted {after['runs']} runs, and {runs} before"


@law
def further_moments_are_accepted_once(m: Moment) -> Iterator[str]:
    """`recur_advance` names the last known moment; a call that names another one changes nothing."""
    if m.name != "recur_advance" or m.refused:
        return
    before = m.before.schedules.get(m.op.jid)
    if before is not None and before["last_at"] != m.op.after and m.events:
        yield f"{m.op.jid} knew the times up to {before['last_at']}, and accepted those after {m.op.after}"
