"""Laws of leases: who gets one, until when, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Moment, law
from qmodel.conformance.laws.told import PENDING, Told
from qmodel.contract.arguments import TOKEN_EPOCH

ENDS = ("completed", "advanced", "failed", "retried", "released", "lock_lost", "canceled", "put")
"""The events that end a lease, or follow its end."""


def lapses(m: Moment) -> Iterator[Told]:
    """The leases that a pop has taken back."""
    return (one for one in m.told("lock_lost") if one.facts["cause"] in ("lapsed", "timeout") and m.name != "timeout")


@law
def a_claim_leases_the_job_under_a_new_token(m: Moment) -> Iterator[str]:
    """A pop leases a job to its worker under a new token, the epoch and the sequence of the claim: no token is issued
    twice. The claim is at this moment.
    """
    for jid, job in m.after.jobs.items():
        wanted = m.becomes[jid] if jid in m.becomes else m.before.jobs.get(jid)
        if m.refused or wanted is None:
            continue
        for name in ("token", "worker", "popped_at"):
            if job[name] != wanted[name]:
                yield f"{jid}: {name} is {job[name]!r}, but the events say {wanted[name]!r}"
    for one in m.told("popped"):
        if one.facts["worker"] != m.op.worker:
            yield f"{one.jid} was leased to {one.facts['worker']!r}, not to {m.op.worker!r}"


@law
def a_lease_ends_when_settings_job_and_claim_say(m: Moment) -> Iterator[str]:
    """A lease lasts as long as the job's `lease`, or else the queue's heartbeat, from its claim or its last renewal,
    and never beyond the job's `timeout` after the claim; nothing else moves its end.
    """
    for jid, job in m.after.jobs.items():
        wanted = m.becomes[jid] if jid in m.becomes else m.before.jobs.get(jid)
        if m.refused or wanted is None:
            continue
        ends = wanted["expires_at"]
        if m.name == "heartbeat" and jid == m.op.jid:
            ends = _renewed(m, jid)
        if job["expires_at"] != ends:
            yield f"{jid}: its lease ends at {job['expires_at']}, not at {ends}"


def _renewed(m: Moment, jid: str) -> int:
    job = m.before.jobs[jid]
    options = dict(job["options"])
    ends = m.now + int(options.get("lease_ms", m.heartbeat(job["queue"])))
    return min(ends, job["popped_at"] + int(options["timeout_ms"])) if "timeout_ms" in options else ends


@law
def a_heartbeat_replies_the_end_of_the_lease(m: Moment) -> Iterator[str]:
    """A heartbeat replies the moment at which the renewed lease ends, and whether the job was revoked."""
    if m.name != "heartbeat" or m.refused:
        return
    revoked = "revoked" in dict(m.before.jobs[m.op.jid]["options"])
    if (m.outcome.expires_at, m.outcome.revoked) != (_renewed(m, m.op.jid), revoked):
        yield f"{m.outcome}, but the lease ends at {_renewed(m, m.op.jid)}, revoked: {revoked}"


@law
def a_lease_is_taken_back_after_its_grace_period(m: Moment) -> Iterator[str]:
    """During the grace period nobody else gets the job: a pop takes it back only when lease and grace period have
    ended, and only a pop does.
    """
    grace = m.option("grace-period")
    for one in lapses(m):
        if m.name not in ("pop", "pop_any", "complete_and_pop"):
            yield f"{m.name} took {one.jid} back"
        assert one.was is not None
        if one.was["state"] != "running" or one.was["expires_at"] + grace > m.now:
            yield f"{one.jid} was taken back at {m.now}; its lease ends at {one.was['expires_at']}, and {grace} later"


@law
def a_lost_lease_names_its_holder_and_cause(m: Moment) -> Iterator[str]:
    """`lock_lost` names the worker and the token of the lease that ended, and its cause: `timeout` if the lease could
    not have been renewed, `lapsed` otherwise; `timeout`, `cancel` or `put` after these operations.
    """
    for one in m.told("lock_lost"):
        facts, was = one.facts, one.was
        assert was is not None
        if was["state"] != "running" or (facts["worker"], facts["token"]) != (was["worker"], was["token"]):
            yield f"{one.event}, but it is {was['state']}, leased to {was['worker']!r} under {was['token']}"
        longest = was["options"].get("timeout_ms")
        if m.name == "timeout":
            wanted = "revoke" if "revoked" in was["options"] else "timeout"
        elif facts["cause"] in ("put", "cancel"):
            follows = [e.event.event for e in m.tale if e.jid == one.jid and e.event.seq > one.event.seq]
            wanted = {"put": "put", "canceled": "cancel"}.get(next(iter(follows), ""), "")
        else:
            too_long = longest is not None and was["expires_at"] >= was["popped_at"] + int(longest)
            wanted = "timeout" if too_long else "lapsed"
        if facts["cause"] != wanted:
            yield f"{one.event}, but its cause is {wanted!r}"


@law
def the_end_of_a_lease_names_it(m: Moment) -> Iterator[str]:
    """Completed, sent on, retried and released jobs name the worker and the token of their lease, and how long they
    ran: from the claim, and never below 0.
    """
    for one in m.told("completed", "advanced", "retried", "released"):
        was, facts = one.was, one.facts
        assert was is not None
        if was["state"] != "running" or (facts["worker"], facts["token"]) != (was["worker"], was["token"]):
            yield f"{one.event}, but it is {was['state']}, leased to {was['worker']!r} under {was['token']}"
        if "run_ms" in facts and facts["run_ms"] != max(m.now - was["popped_at"], 0):
            yield f"{one.event}, but it was claimed at {was['popped_at']}"
        if facts["queue"] != was["queue"]:
            yield f"{one.event}, but it was in {was['queue']}"


@law
def a_running_job_is_handed_out_only_after_its_lease_ended(m: Moment) -> Iterator[str]:
    """Nobody gets a job while another holds it: a claim is of a job that waits, or was taken back."""
    for one in m.told("popped"):
        assert one.was is not None
        if one.was["state"] not in ("waiting", "stalled", "taken"):
            yield f"{one.jid} was {one.was['state']} when it was claimed"
        if one.was["state"] == "taken" and "revoked" in one.was["options"]:
            yield f"{one.jid} was revoked, and handed out again"


@law
def a_timeout_makes_the_jobs_the_next_to_be_handed_out(m: Moment) -> Iterator[str]:
    """`timeout` ends leases at once: the jobs are stalled, keep their retries, and belong to nobody; a revoked one
    fails.
    """
    if m.name != "timeout" or m.refused:
        return
    for jid in m.outcome:
        if not any(one.jid == jid for one in m.told("lock_lost")):
            continue  # a resend
        before, after = m.before.jobs[jid], m.after.jobs.get(jid)
        wanted = "failed" if "revoked" in dict(before["options"]) else "stalled"
        if after is not None and after["state"] not in (wanted, "waiting", "depends"):
            yield f"{jid} is {after['state']}, not {wanted}"


@law
def a_job_that_is_given_back_has_no_worker(m: Moment) -> Iterator[str]:
    """A job that is given back has no worker, no end of a lease, and no grant; only a running job has these."""
    for jid in m.becomes:
        job = m.after.jobs.get(jid)
        if (job is not None and job["state"] in (*PENDING, "stalled", "complete", "failed")) and (
            job["worker"] or job["expires_at"] or job["grant"]
        ):
            yield f"{jid} is {job['state']}: worker {job['worker']!r}, until {job['expires_at']}, {job['grant']!r}"


@law
def a_claim_has_waited_since_it_was_ready(m: Moment) -> Iterator[str]:
    """A claim tells how long the job has waited: since it was ready, or, if it was taken back, since the end of its
    lease; never below 0.
    """
    for one in m.told("popped"):
        assert one.was is not None
        if one.facts["wait_ms"] != max(m.now - one.was["ready_at"], 0):
            yield f"{one.event}, but it was ready at {one.was['ready_at']}"


@law
def a_grant_is_given_again_while_all_of_it_is_held(m: Moment) -> Iterator[str]:
    """A pop that is sent again under its request gets the same jobs, and claims no others, while all their leases
    last.
    """
    for queue in m.pops():
        request = m.op.request
        held = m.before.workers.get(m.op.worker, {"grants": {}})["grants"].get(request, ()) if request else ()
        claims = [one.jid for one in m.told("popped")]
        jobs = m.outcome.jobs if m.name == "complete_and_pop" else m.outcome
        if m.name == "complete_and_pop" and any(
            one.jid == m.op.jid for one in m.told("completed", "advanced", "failed")
        ):
            continue
        if held and ([job.jid for job in jobs] != list(held) or claims):
            yield f"{queue}: {held} were granted under {request}, and now {[job.jid for job in jobs]}, {claims}"
        if not held and [job.jid for job in jobs] != claims:
            yield f"{queue}: {[job.jid for job in jobs]} are given, and {claims} claimed"
        if claims and request:
            granted = m.after.workers[m.op.worker]["grants"].get(request, ())
            if list(granted) != claims:
                yield f"{queue}: {claims} were claimed, and {granted} are remembered under {request}"
        break


@law
def the_second_end_of_a_lease_replies_the_same(m: Moment) -> Iterator[str]:
    """Complete, fail, retry and release under a token that has ended reply what they replied then, and change nothing:
    the history holds the outcome of each token.
    """
    kinds = {"complete": "completed", "fail": "failed", "retry": "retried", "release": "released"}
    if m.name not in kinds or m.refused:
        return
    job = m.before.jobs.get(m.op.jid)
    if job is None or (job["state"] == "running" and job["token"] == m.op.token):
        return
    said = [facts[1] for what, _, facts in job["history"] if what == kinds[m.name] and facts[0] == m.op.token]
    wanted = m.op.jid if m.name == "fail" else said[-1] if said else m.outcome
    if str(m.outcome) != str(wanted):
        yield f"{m.outcome!r} is replied, and the history says {wanted!r}"
    if m.events and not m.before.cascade:
        yield f"{m.events[0]} after a resend"


@law
def a_finished_call_replies_what_became_of_the_job(m: Moment) -> Iterator[str]:
    """Complete and release reply the state of the job after it, retry the retries that remain or -1, fail the job."""
    ends = [one for one in m.tale if one.jid == getattr(m.op, "jid", None)]
    kinds = {"complete": ("completed", "advanced", "failed"), "release": ("released", "failed"), "fail": ("failed",)}
    for one in ends:
        if one.event.event in kinds.get(m.name, ()) and one.was is not None and one.was["state"] == "running":
            assert one.becomes is not None
            wanted = m.op.jid if m.name == "fail" else one.becomes["state"]
            if one.event.event == "completed":
                wanted = "complete"
            if m.outcome != wanted:
                yield f"{m.outcome!r} is replied, and {one.jid} is {wanted!r}"
        if m.name == "retry" and one.event.event in ("retried", "failed"):
            assert one.becomes is not None
            wanted = -1 if one.event.event == "failed" else one.becomes["remaining"]
            if m.outcome != wanted:
                yield f"{m.outcome} is replied, and {wanted} retries of {one.jid} remain"
            break


@law
def tokens_grow_within_a_history(m: Moment) -> Iterator[str]:
    """Tokens are whole numbers that grow, and an epoch stands before the sequence."""
    known = max((job["token"] for job in m.before.jobs.values()), default=0)
    for one in m.told("popped"):
        if one.jid in m.after.jobs:
            token = m.after.jobs[one.jid]["token"]
            if token <= known:
                yield f"{one.jid} has the token {token}, and {known} was issued before"
            if token // TOKEN_EPOCH > m.after.epoch:
                yield f"{one.jid} has the token {token} in epoch {m.after.epoch}"
