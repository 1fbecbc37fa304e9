"""Laws of a job's record: each field changes only as an event says, and every event takes effect."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Moment, law, law_of_reads, without_journal
from qmodel.conformance.laws.told import OF_PUT, PENDING
from qmodel.contract.operations import Fail, Retry
from qmodel.contract.replies import Job
from qmodel.contract.settings import DEFAULTS
from qmodel.model import snapshot


def _differ(m: Moment, *fields: str, but: tuple[str, ...] = ()) -> Iterator[str]:
    """The jobs with fields that are not what the events say, but for those from some sources."""
    if m.refused:
        return
    for jid, job in m.after.jobs.items():
        wanted = m.becomes[jid] if jid in m.becomes else m.before.jobs.get(jid)
        if wanted is None:
            yield f"{jid} is there, but no event put it"
            continue
        if wanted.get("source") in but:
            continue
        for name in fields:
            if job[name] != wanted[name]:
                yield f"{jid}: {name} is {job[name]!r}, but the events say {wanted[name]!r}"


@law_of_reads
def a_refused_operation_changes_nothing(m: Moment) -> Iterator[str]:
    """A refused operation has no event and changes nothing; neither does a read."""
    if m.refused or m.op.spec.reads:
        if m.events:
            yield f"{m.events[0]}"
        before, after = without_journal(m.before), without_journal(m.after)
        yield from snapshot.difference(before, after)[:3]


@law
def events_are_a_gapless_sequence_of_now(m: Moment) -> Iterator[str]:
    """The events of a step have the next sequences, the current epoch, and the moment of the operation."""
    epoch = m.before.epoch
    for number, event in enumerate(m.events, m.before.seq + 1):
        if event.event == "epoch_begun":
            epoch = int(event.facts[0])
        if (event.seq, event.at, event.epoch) != (number, m.now, epoch):
            yield f"{event} is not number {number} of epoch {epoch} at {m.now}"
    if m.after.seq != m.before.seq + len(m.events):
        yield f"{len(m.events)} events lead from {m.before.seq} to {m.after.seq}"


@law
def no_job_appears_or_vanishes_without_an_event(m: Moment) -> Iterator[str]:
    """A job exists from the event `put` on, until the event `canceled` or `retired`."""
    for jid in m.before.jobs.keys() - m.after.jobs.keys():
        if m.becomes.get(jid, m.before.jobs[jid]) is not None:
            yield f"{jid} is gone without an event"
    for jid, becomes in m.becomes.items():
        if becomes is None and jid in m.after.jobs:
            yield f"{jid} is there after its end"
        if becomes is not None and jid not in m.after.jobs:
            yield f"{jid} is not there after its events"


@law
def the_state_is_what_the_events_say(m: Moment) -> Iterator[str]:
    """A job is in exactly one place, its state says which, and only an event moves it."""
    yield from _differ(m, "state", "queue", "klass")


@law
def readiness_changes_by_events_alone(m: Moment) -> Iterator[str]:
    """A job becomes ready when it is put, when its delay ends, when its last dependency completes, when it is given
    back, or when it is let through; nothing else changes its readiness, nor when it was put. A new priority does not.
    """
    yield from _differ(m, "ready_at", "put_at", but=("unknown",))


@law
def a_sequence_is_that_of_the_event_that_placed_the_job(m: Moment) -> Iterator[str]:
    """Jobs that became ready at the same moment come in the order of the events that brought them there: a job's
    sequence is that of the last event that placed it. A new priority does not change it.
    """
    if m.refused:
        return
    for jid, job in m.after.jobs.items():
        before = m.before.jobs.get(jid)
        wanted = m.becomes.get(jid, before)
        if wanted is not None and job["seq"] != wanted["seq"] and wanted.get("source") != "unknown":
            yield f"{jid} has sequence {job['seq']}, but was placed by event {wanted['seq']}"


@law
def priority_and_retries_are_those_of_the_put(m: Moment) -> Iterator[str]:
    """Priority and retries are those of the put, or as before if it names none; only `priority` changes the priority,
    and a sub-request has that of its request.
    """
    for jid, job in m.after.jobs.items():
        wanted = m.becomes[jid] if jid in m.becomes else m.before.jobs.get(jid)
        if m.refused or wanted is None or wanted.get("source") == "unknown":
            continue
        if job["retries"] != wanted["retries"]:
            yield f"{jid} has {job['retries']} retries, not {wanted['retries']}"
        options = dict(job["options"])
        if "request" not in options and "request" not in dict(m.before.jobs.get(jid, {}).get("options", ())):
            if job["priority"] != wanted["priority"]:
                yield f"{jid} has priority {job['priority']}, not {wanted['priority']}"
        elif _admitted(m, jid):
            request = m.after.requested[options["request"]]
            if request["state"] in ("open", "closed") and job["priority"] != request["priority"]:
                yield f"{jid} has priority {job['priority']}, its request {request['priority']}"


def _admitted(m: Moment, jid: str) -> bool:
    """Whether a job has got a slot of its concurrency key in this step."""
    before, after = m.before.jobs.get(jid), m.after.jobs[jid]
    slot = dict(after["options"]).get("line")
    return slot is not None and (before is None or dict(before["options"]).get("line") != slot)


@law
def data_are_what_was_given(m: Moment) -> Iterator[str]:
    """Data, result and progress are opaque texts: byte for byte what the last call gave."""
    if m.name == "heartbeat" and not m.refused:
        data = m.op.data if m.op.data is not None else m.before.jobs[m.op.jid]["data"]
        if m.after.jobs[m.op.jid]["data"] != data:
            yield f"{m.op.jid}: the data are not those of the heartbeat"
        return
    yield from _differ(m, "data", "result", "progress", but=("unknown",))


@law
def a_put_states_anew_how_a_job_runs(m: Moment) -> Iterator[str]:
    """Each put states anew how the job is to run (lifo, lease, timeout, time to live, dead queue, retention, throttles,
    keys); nothing changes that until the next put, but that the first claim and a failure end the time to live.
    """
    if m.refused:
        return
    for jid, job in m.after.jobs.items():
        wanted = m.becomes[jid] if jid in m.becomes else m.before.jobs.get(jid)
        if wanted is None or wanted.get("source") == "unknown":
            continue
        has, said = dict(job["options"]), dict(wanted["options"])
        for name in (*OF_PUT, "revoked", "origin", "origin_queue") if wanted.get("source") != "letter" else OF_PUT:
            if has.get(name) != said.get(name):
                yield f"{jid}: {name} is {has.get(name)!r}, but was given as {said.get(name)!r}"


@law
def a_failure_records_group_time_and_worker(m: Moment) -> Iterator[str]:
    """Every failure records its group, its time and its worker; a completed job has none; nothing else changes it."""
    for jid, job in m.after.jobs.items():
        wanted = m.becomes[jid] if jid in m.becomes else m.before.jobs.get(jid)
        if m.refused or wanted is None or wanted.get("source") in ("letter", "unknown"):
            continue
        has, said = job["failure"], wanted["failure"]
        if (has is None) is not (said is None) or (has and said and (has[0], has[2:]) != (said[0], said[2:])):
            yield f"{jid}: the failure is {has}, but the events say {said}"


@law
def a_job_has_ended_when_its_events_say(m: Moment) -> Iterator[str]:
    """A job's end is the moment at which it completed or failed, and it has none before, or when it begins anew."""
    yield from _differ(m, "ended_at")


@law_of_reads
def a_reply_shows_the_job_as_it_is_now(m: Moment) -> Iterator[str]:
    """Every read and every pop shows jobs as they are stored, and their state as it is true at this moment: a due job
    counts as waiting, and an expired lease as stalled.
    """
    if m.refused or m.name not in ("get", "multiget", "search", "pop", "pop_any", "complete_and_pop"):
        return
    outcome = m.outcome if m.name not in ("search", "complete_and_pop") else m.outcome.jobs
    for shown in outcome if isinstance(outcome, tuple) and not isinstance(outcome, Job) else (outcome,):
        if shown is None:
            continue
        job = m.after.jobs[shown.jid]
        state = job["state"]
        if state == "scheduled" and job["ready_at"] <= m.now:
            state = "waiting"
        if state == "running" and job["expires_at"] <= m.now:
            state = "stalled"
        if shown.state != state:
            yield f"{shown.jid} is shown as {shown.state}, and is {state}"
        if shown.tracked is not (shown.jid in m.after.tracked):
            yield f"{shown.jid} is shown as tracked: {shown.tracked}"
        for name in (
            "klass", "queue", "data", "priority", "retries", "remaining", "worker", "token", "expires_at", "put_at",
            "ready_at", "popped_at", "ended_at", "result", "progress", "failure", "options",
        ):  # fmt: skip
            if getattr(shown, name) != job[name]:
                yield f"{shown.jid}: {name} is shown as {getattr(shown, name)!r}, and is {job[name]!r}"
        if shown.tags != tuple(tag for tag, _ in job["tags"]):
            yield f"{shown.jid} is shown with the tags {shown.tags}"
        if sorted(shown.dependencies) != list(job["dependencies"])[:1000]:
            yield f"{shown.jid} is shown with the dependencies {shown.dependencies}"


@law
def only_the_holder_of_the_lease_finishes_a_job(m: Moment) -> Iterator[str]:
    """Complete, fail, retry, release, heartbeat and progress name the token of the current lease; otherwise they change
    nothing of the job.
    """
    if m.name not in ("complete", "fail", "retry", "release", "heartbeat", "progress", "complete_and_pop"):
        return
    job = m.before.jobs.get(m.op.jid)
    ends = ("completed", "advanced", "retried", "released", "progressed")
    if job is None or job["state"] != "running" or job["token"] != m.op.token:
        yield from (f"{one.event}" for one in m.told(*ends) if one.jid == m.op.jid)
        if m.name != "complete_and_pop" and not m.refused and m.before.jobs.get(m.op.jid) != m.after.jobs.get(m.op.jid):
            yield f"{m.op.jid} was changed under the token {m.op.token}"


@law_of_reads
def a_late_worker_is_told_who_holds_the_job(m: Moment) -> Iterator[str]:
    """A call under the token of the current lease is not refused for its lease; otherwise `LOCK_LOST` names the state
    of the job and its holder.
    """
    if not m.refused or m.outcome.code != "LOCK_LOST":
        return
    jid, token, state, worker = m.outcome.facts
    job = m.before.jobs[jid]
    if job["state"] == "running" and str(job["token"]) == str(token):
        yield f"{jid} is leased under {token}"
    if (job["state"], job["worker"]) != (state, worker):
        yield f"{jid} is {job['state']} with {job['worker']!r}, not {state} with {worker!r}"


@law
def tags_change_as_the_events_say(m: Moment) -> Iterator[str]:
    """The tags of a job are those of its put, in order, and those added since; a removed one is gone."""
    for jid, job in m.after.jobs.items():
        before = m.before.jobs.get(jid)
        tags = [tag for tag, _ in job["tags"]]
        events = [one for one in m.tale if one.jid == jid]
        if any(one.event.event == "put" for one in events):
            put = m.puts.get(jid)
            if put is not None and put.tags is not None and tags != list(dict.fromkeys(put.tags)):
                yield f"{jid} has the tags {tags}, and was put with {put.tags}"
            continue
        wanted = [tag for tag, _ in before["tags"]] if before is not None else []
        for one in events:
            if one.event.event == "tagged":
                wanted.append(one.facts["tag"])
            elif one.event.event == "untagged" and one.facts["tag"] in wanted:
                wanted.remove(one.facts["tag"])
        if tags != wanted:
            yield f"{jid} has the tags {tags}, and the events say {wanted}"


@law
def tracking_changes_as_the_events_say(m: Moment) -> Iterator[str]:
    """A tracked job is tracked until it is untracked, also when it is deleted."""
    wanted = set(m.before.tracked)
    for event in m.events:
        if event.event == "tracked":
            wanted.add(str(event.facts[0]))
        elif event.event == "untracked":
            wanted.discard(str(event.facts[0]))
    if wanted != set(m.after.tracked):
        yield f"{sorted(m.after.tracked)} are tracked, and the events say {sorted(wanted)}"


def _is_reason(op: Retry | Fail, group: str, message: str) -> bool:
    """Whether a stage has the group of a call, and the end of its message: all, or as much as 1024 bytes hold."""
    size, whole = len(message.encode()), len(op.message.encode())
    return group == op.group and op.message.endswith(message) and (size == whole or 1021 <= size <= 1024)


@law
def a_history_gains_the_stages_of_its_events(m: Moment) -> Iterator[str]:
    """A history has a stage for each put, claim, end of a lease, failure and line of log; it keeps its first stage and
    its newest ones, at most `max-job-history`. A job that was deleted and put within the step begins anew.
    """
    most = m.after.config.get("max-job-history", DEFAULTS["max-job-history"])
    stages = {
        "put": "put", "popped": "popped", "logged": "log", "unfailed": "put", "failed": "failed", "retried": "retried",
        "released": "released", "completed": "completed",
    }  # fmt: skip
    for jid in m.becomes:
        before, after = m.before.jobs.get(jid), m.after.jobs.get(jid)
        if after is None or m.refused:
            continue
        history = after["history"]
        if len(history) > most and before is not None and len(history) > len(before["history"]):
            yield f"{jid} has {len(history)} stages of {most}"
        wanted = [stages[one.event.event] for one in m.tale if one.jid == jid and one.event.event in stages]
        wanted = wanted[1:] if len(history) > 1 and history[0][0] == "spawned" and before is None else wanted
        newest = [stage[0] for stage in history]
        if (wanted and newest[-1] not in ("lapsed", "timed_out") and newest[-1] != wanted[-1]) and (
            not (wanted[-1] == "completed" or any(e.event.event == "advanced" for e in m.tale if e.jid == jid))
        ):
            yield f"{jid} ends in the stage {newest[-1]}, after {wanted[-1]}"
        deleted = any(one.jid == jid and one.event.event in ("canceled", "retired") for one in m.tale)
        if before is not None and before["history"][:1] != history[:1] and before["state"] in PENDING and not deleted:
            yield f"{jid} has lost its first stage"
        tells = m.name in ("retry", "fail") and jid == m.op.jid and m.op.group is not None and not m.op.qless
        said = [facts for what, _, facts in history[-3:] if what == "raised"]
        if tells and m.events and not any(_is_reason(m.op, *facts) for facts in said):
            yield f"{jid} does not keep why its attempt ended"


__all__: list[str] = []
