"""Laws of ends: why a job fails and where, time to live, revoking, dead letters, retention."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories
from qmodel.conformance.laws.leases import lapses
from qmodel.conformance.laws.order import is_over
from qmodel.conformance.laws.told import PENDING, Told


def _group(m: Moment, one: Told, revoked: set[str]) -> str | None:
    """The group into which a job fails, by what happened to it; None if the events do not tell."""
    was, queue = one.was, one.facts["queue"]
    assert was is not None
    if "revoked" in was["options"] or one.jid in revoked:
        return f"revoked-{queue}"
    if was["state"] == "taken":
        return f"failed-lapses-{queue}" if "max_lapses" in was["options"] else f"failed-retries-{queue}"
    mine = getattr(m.op, "jid", None) == one.jid and was["state"] == "running"
    if mine and m.name == "fail":
        return str(m.op.group)
    if mine and m.name == "retry":
        return m.op.group or f"failed-retries-{queue}"
    if is_over(was, m.now) and was["state"] in PENDING and m.name in ("pop", "pop_any", "complete_and_pop", "fire"):
        return None if was["state"] == "depends" else f"expired-{queue}"
    return f"failed-dependencies-{queue}"


@law
def a_job_fails_into_the_group_of_its_cause(m: Moment) -> Iterator[str]:
    """A job fails into the group that its worker names; `failed-retries-<queue>` without retries left;
    `failed-lapses-<queue>` after more lapses than `max_lapses`; `expired-<queue>` past its time to live;
    `revoked-<queue>`; or `failed-dependencies-<queue>`.
    """
    revoked = {one.jid for one in m.told("revoked")}
    for one in m.told("failed"):
        wanted = _group(m, one, revoked)
        groups = (f"expired-{one.facts['queue']}", f"failed-dependencies-{one.facts['queue']}")
        if one.facts["group"] not in (groups if wanted is None else (wanted,)):
            yield f"{one.event}, but the group is {wanted}"
        after = m.after.jobs.get(one.jid)
        if after is not None and after["seq"] == one.event.seq:
            places = m.after.groups.get(str(one.facts["group"]), ())
            if one.jid not in [entry[-1] for entry in places]:
                yield f"{one.jid} failed, and is not in the group {one.facts['group']}"


@law
def a_failure_of_its_worker_keeps_the_message(m: Moment) -> Iterator[str]:
    """A failure keeps the message that the worker gives."""
    if m.name not in ("fail", "retry") or m.refused:
        return
    after = m.after.jobs.get(m.op.jid)
    told = [one for one in m.tale if one.jid == m.op.jid and one.event.event in ("failed", "retried")]
    given = m.op.message and (m.name == "fail" or m.op.group is not None)
    if (
        told
        and given
        and after is not None
        and after["seq"] == told[-1].event.seq
        and after["failure"][1] != m.op.message
    ):
        yield f"{m.op.jid} failed with {after['failure'][1]!r}, and {m.op.message!r} was given"


@law
def an_expired_job_is_never_handed_out(m: Moment) -> Iterator[str]:
    """A job with a `ttl` may start until that long after the put, including that moment, and never later: an expired
    job fails at the next pop or fire of its queue, before any job is handed out.
    The half of a pop by the rules of reqless that takes lapsed jobs looks at no others.
    """
    for one in m.told("popped"):
        if one.was is not None and is_over(one.was, m.now):
            yield f"{one.jid} was handed out at {m.now}, after its time to live"
    queues = [queue for queue in m.pops() if not m.is_paused(queue) and m.tries != 0]
    sent_again = m.name == "fire" and any(f"fire {m.op.request}" == one[0] for one in m.before.requests)
    queues += [m.op.queue] if m.name == "fire" and not (m.refused or sent_again) else []
    handed = {str(one.facts["queue"]) for one in m.told("popped")}
    for jid, job in m.before.jobs.items():
        looked = job["queue"] in queues and (job["queue"] in handed or len(queues) == 1)
        if not looked or not m.few or job["state"] not in PENDING or not is_over(job, m.now):
            continue
        if m.pops() and not m.becomes and m.outcome and m.name != "complete_and_pop":
            continue  # the grant of an earlier call
        after = m.after.jobs.get(jid)
        if (after is not None and after["state"] in PENDING and jid not in m.becomes) and (
            m.name != "complete_and_pop" or handed
        ):
            yield f"{jid} has expired, and is {after['state']} after a {m.name}"


@law
def a_job_expires_only_after_its_time(m: Moment) -> Iterator[str]:
    """A job expires only past the last moment of its time to live, and only if it has not been started: a job that was
    started once never expires, however often it is retried.
    """
    for one in m.told("failed"):
        if one.facts["group"] != f"expired-{one.facts['queue']}" or m.name in ("fail", "retry"):
            continue
        assert one.was is not None
        if not is_over(one.was, m.now):
            yield f"{one.jid} expired at {m.now}, put at {one.was['put_at']} with {one.was['options'].get('ttl_ms')}"
        if one.was["begun"]:
            yield f"{one.jid} has begun, and expired"


@law_of_histories
def a_job_that_has_begun_has_no_time_to_live(m: Moment, ghost: Ghost) -> Iterator[str]:
    """The first claim ends the time to live, for good: no retry, release or lapse brings it back."""
    for one in m.tale:
        if one.becomes is None or one.event.event == "put":
            ghost.pop(one.jid, None)
        elif one.event.event == "popped":
            ghost[one.jid] = True
    for jid, job in m.after.jobs.items():
        if jid in ghost and "ttl_ms" in dict(job["options"]):
            yield f"{jid} has begun, and has a time to live"


@law
def a_revoked_job_ends_failed(m: Moment) -> Iterator[str]:
    """However the lease of a revoked job ends (complete, retry, release, fail, timeout, or expiry), the job fails and
    is not retried; `complete` then replies `failed`.
    """
    for jid, before in m.before.jobs.items():
        if "revoked" not in dict(before["options"]) or before["state"] != "running":
            continue
        tale = [one for one in m.tale if one.jid == jid]
        kinds = [one.event.event for one in tale]
        after = m.after.jobs.get(jid)
        if ({"completed", "advanced", "retried", "released", "popped"} & set(kinds) and "put" not in kinds) and (
            "failed" not in kinds
        ):
            yield f"{jid} was revoked, and {kinds}"
        if (after is not None and after["state"] == "running" and "revoked" not in dict(after["options"])) and (
            "put" not in kinds and "unfailed" not in kinds
        ):
            yield f"{jid} was revoked, and goes on"
        if after is not None and after["state"] not in ("running", "failed") and not {"put", "unfailed"} & set(kinds):
            yield f"{jid} was revoked, and is {after['state']}"
        if m.name == "complete" and m.op.jid == jid and "failed" in kinds and m.outcome != "failed":
            yield f"{jid} was revoked, and complete replies {m.outcome!r}"


@law
def revoking_fails_what_is_not_running(m: Moment) -> Iterator[str]:
    """`revoke` fails a job that is not running at once, and ends its dependencies; a running one is marked, and keeps
    its lease. Revoking twice changes nothing; complete and failed jobs stay as they are. It replies the states.
    """
    if m.name != "revoke" or m.refused:
        return
    for jid, state in zip(dict.fromkeys(m.op.jids), m.outcome, strict=False):
        if not m.events:
            break  # sent again, or nothing to do
        before, after = m.before.jobs[jid], m.after.jobs.get(jid)
        told = [one for one in m.told("revoked") if one.jid == jid]
        if before["state"] in ("complete", "failed"):
            wanted = before["state"]
            if told:
                yield f"{jid} was {wanted}, and revoked"
        else:
            wanted = "running" if before["state"] == "running" else "failed"
        if state != wanted:
            yield f"{jid} was {before['state']}, and the reply says {state!r}"
        if (
            told
            and wanted == "running"
            and (after is None or after["token"] != before["token"] or after["state"] != "running")
        ):
            yield f"{jid} was running, and its lease is gone"
        if (
            told
            and wanted == "failed"
            and after is not None
            and (after["state"], after["dependencies"]) != ("failed", ())
        ):
            yield f"{jid} is {after['state']}, and waits for {after['dependencies']}"


@law
def a_dead_letter_is_written_in_the_same_step(m: Moment) -> Iterator[str]:
    """A job with a `dead_queue` leaves a dead letter there when it fails, for any reason, in the same step: an ordinary
    job with its klass, data, priority, retries, tags and failure, that names the job and its queue. A letter has no
    dead queue.
    """
    letters = {one.jid: one for one in m.told("dead_lettered")}
    for one in m.told("failed"):
        assert one.becomes is not None
        to = one.becomes["options"].get("dead_queue")
        wanted = f"{one.jid[:100]}-dead-{one.event.seq}"
        if to is not None and one.jid not in letters and wanted not in m.before.jobs:
            yield f"{one.jid} failed, and has no letter in {to}"
        if to is None and one.jid in letters:
            yield f"{one.jid} has no dead queue, and a letter"
    for jid, one in letters.items():
        letter, failed = m.after.jobs.get(str(one.facts["letter"])), one.was
        if letter is None or failed is None or letter["seq"] < one.event.seq:
            continue
        if str(one.facts["letter"]) != f"{jid[:100]}-dead-{failed['seq']}":
            yield f"the letter of {jid}, failed at {failed['seq']}, is {one.facts['letter']}"
        options = dict(letter["options"])
        if (options.get("origin"), options.get("origin_queue")) != (jid, failed["queue"]) or "dead_queue" in options:
            yield f"the letter of {jid} has {options}"
        if letter["state"] == "waiting" and letter["queue"] != one.facts["to"]:
            yield f"the letter of {jid} is in {letter['queue']}"
        for name in ("klass", "priority", "retries", "data"):
            if letter[name] != failed[name]:
                yield f"the letter of {jid}: {name} is {letter[name]!r}, not {failed[name]!r}"
        known = m.after.jobs.get(jid)
        if known is not None and known["failure"] != letter["failure"]:
            yield f"the letter of {jid} says {letter['failure']}"
        if known is not None and [tag for tag, _ in known["tags"]] != [tag for tag, _ in letter["tags"]]:
            yield f"the letter of {jid} has the tags {letter['tags']}"


@law
def a_replay_puts_the_job_again_from_its_letter(m: Moment) -> Iterator[str]:
    """`replay` puts the job again from its letter, into its queue, with the data of the letter, and deletes the letter,
    in one step.
    """
    if m.name != "replay" or m.refused or not m.events:
        return
    letter = m.before.jobs[m.op.jid]
    options = dict(letter["options"])
    if m.op.jid in m.after.jobs:
        yield f"{m.op.jid} was replayed, and is still there"
    job = m.after.jobs.get(options["origin"])
    if job is None:
        yield f"{options['origin']} was replayed, and does not exist"
        return
    if job["queue"] != options["origin_queue"] or m.outcome != options["origin"]:
        yield f"{options['origin']} was put into {job['queue']}, {m.outcome}"
    for name in ("klass", "data", "priority", "retries"):
        if job[name] != letter[name]:
            yield f"{options['origin']}: {name} is {job[name]!r}, not {letter[name]!r}"
    for name in ("lifo", "lease_ms", "timeout_ms"):
        if dict(job["options"]).get(name) != options.get(name):
            yield f"{options['origin']}: {name} is {dict(job['options']).get(name)}, not {options.get(name)}"
    if dict(job["options"]).get("dead_queue") != options.get("origin_dead_queue"):
        yield f"{options['origin']} has the dead queue {dict(job['options']).get('dead_queue')}"
    if {"ttl_ms", "keep_complete_ms", "keep_failed_ms"} & dict(job["options"]).keys():
        yield f"{options['origin']} keeps {job['options']}"


@law
def only_ended_jobs_are_retired(m: Moment) -> Iterator[str]:
    """Retention deletes only complete and failed jobs: complete ones past `jobs-history` or beyond
    `jobs-history-count`, failed ones past `failed-history` or beyond `failed-history-count`, or either past the job's
    own retention.
    """
    if _deletes_ended(m):
        return
    for one in m.told("retired"):
        was = one.was
        if was is None or was["state"] not in ("complete", "failed"):
            yield f"{one.jid} was {was and was['state']}, and retired"
            continue
        own = was["options"].get(f"keep_{was['state']}_ms".replace("complete_ms", "complete_ms"))
        if own is not None and (own == "0" or was["ended_at"] + int(own) <= m.now):
            continue
        if was["state"] == "complete" and "keep_newest" in was["options"] and was["klass"] in _keeping_newest(m):
            continue
        if was["state"] == "complete":
            old = was["ended_at"] <= m.now - m.option("jobs-history")
            many = sum(job["state"] == "complete" for job in m.before.jobs.values()) + sum(
                1 for _ in m.told("completed")
            )
            allowed = old or many > m.option("jobs-history-count")
        else:
            age, count = m.option("failed-history"), m.option("failed-history-count")
            many = sum(job["state"] == "failed" for job in m.before.jobs.values()) + sum(1 for _ in m.told("failed"))
            allowed = bool(age and was["ended_at"] <= m.now - age) or bool(count and many > count)
        if not allowed:
            yield f"{one.jid} ended at {was['ended_at']}, and was deleted at {m.now}"
        if was["state"] == "failed" and (was["dependents"] or was["dependencies"]) and one.jid in m.before.jobs:
            known = m.before.jobs[one.jid]
            if (known["state"] == "failed" and (known["dependents"] or known["dependencies"])) and (
                one.jid in m.after.jobs
            ):
                yield f"{one.jid} was deleted, and has {known['dependents']}, {known['dependencies']}"


def _deletes_ended(m: Moment) -> bool:
    """Whether an operation deletes ended jobs because it is asked to."""
    by_option = (m.name == "cancel" and m.op.complete) or (m.name == "request_forget" and m.op.delete_jobs)
    return m.name in ("clean", "obliterate") or by_option


def _keeping_newest(m: Moment) -> dict[str, int]:
    """How many complete jobs the completions of a step keep, by type: what the last one says."""
    told = (one.becomes for one in m.told("completed") if one.becomes and "keep_newest" in one.becomes["options"])
    return {job["klass"]: int(job["options"]["keep_newest"]) for job in told}


@law
def a_type_keeps_its_newest(m: Moment) -> Iterator[str]:
    """With `keep_newest`, a completion leaves at most so many complete jobs of its type, among those with this option,
    or one less than there were; those that ended first are deleted.
    """
    if m.name not in ("complete", "complete_and_pop") or not m.few or m.refused:
        return
    for klass, most in _keeping_newest(m).items():
        before, after = (
            {
                jid
                for jid, job in s.jobs.items()
                if (job["klass"], job["state"]) == (klass, "complete") and "keep_newest" in dict(job["options"])
            }
            for s in (m.before, m.after)
        )
        if len(after) > max(most, len(before) - 1):
            yield f"{len(after)} complete jobs of {klass} are kept, and not {most}"
        last = {jid: (m.before.jobs[jid]["ended_at"], m.before.jobs[jid]["seq"]) for jid in before}
        gone = [last[jid] for jid in before - after]
        left = [last[jid] for jid in before & after]
        old = m.now - m.option("jobs-history")
        timed = any("keep_complete_ms" in dict(m.before.jobs[jid]["options"]) for jid in before)
        if gone and left and max(gone) > min(left) and not timed and max(gone)[0] > old:
            yield f"an older job of {klass} is kept than those that are deleted"


@law
def the_longest_ended_are_retired_first(m: Moment) -> Iterator[str]:
    """Of complete jobs, those that ended first are deleted first; after a completion, none past its retention is left,
    up to a hundred, and no more than the count and a sixteenth of it.
    """
    if m.name not in ("complete", "complete_many", "complete_and_pop") or not any(m.told("completed")) or not m.few:
        return
    kept = [(job["ended_at"], job["seq"]) for job in m.after.jobs.values() if job["state"] == "complete"]
    for one in m.told("retired"):
        was = one.was
        own = was is not None and {"keep_complete_ms", "keep_newest"} & was["options"].keys()
        if (
            was is not None
            and was["state"] == "complete"
            and not own
            and kept
            and min(kept) < (was["ended_at"], was["seq"])
        ) and was["ended_at"] > m.now - m.option("jobs-history"):
            yield f"{one.jid} was deleted, and older ones are kept"
    retired = sum(1 for _ in m.told("retired"))
    last = m.now - m.option("jobs-history")
    if retired < 50 and any(ended <= last for ended, _ in kept):
        yield f"a complete job that ended at {min(kept)[0]} is kept at {m.now}"
    count = m.option("jobs-history-count")
    if retired < 50 and len(kept) > count + min(count // 16, 64):
        yield f"{len(kept)} complete jobs are kept"


@law
def what_is_kept_for_nothing_is_deleted_at_once(m: Moment) -> Iterator[str]:
    """With a retention of 0 the job is deleted in the step in which it ends, after all effects of its end; a failed job
    with dependents or dependencies stays.
    """
    for one in m.told("completed", "failed"):
        assert one.becomes is not None
        after = m.after.jobs.get(one.jid)
        name = "keep_complete_ms" if one.event.event == "completed" else "keep_failed_ms"
        if one.becomes["options"].get(name) != "0" or after is None or after["seq"] != one.event.seq:
            continue
        if one.event.event == "failed" and ("kept" in dict(after["options"])):
            continue
        if m.name in ("complete", "complete_many", "complete_and_pop", "fail", "retry") and m.few:
            yield f"{one.jid} {one.event.event}, and is kept although its retention is 0"


@law
def an_unfailed_job_leaves_its_group(m: Moment) -> Iterator[str]:
    """A failed job stays in its group until it is retried, put or canceled, and is then in none; a job that is retried
    is back in its own queue, or in the one that `retry_many` names.
    """
    for group, places in m.after.groups.items():
        for _, _, jid in places:
            job = m.after.jobs.get(jid)
            if m.few and (job is None or job["state"] != "failed" or job["failure"][0] != group):
                yield f"{jid} is in the group {group}"
    for one in m.told("unfailed"):
        assert one.was is not None
        to = getattr(m.op, "to", None)
        if one.facts["queue"] != (one.was["queue"] if to is None else to):
            yield f"{one.jid} was retried in {one.facts['queue']}, not in {to or one.was['queue']}"
        if one.was["state"] != "failed" or one.facts["group"] != one.was["failure"][0]:
            yield f"{one.event}, but it was {one.was['state']}"


@law
def taking_back_is_counted_once(m: Moment) -> Iterator[str]:
    """A lease that has lapsed is taken back once, and the job is handed out again, parked or failed in that step."""
    for one in lapses(m):
        after = m.after.jobs.get(one.jid)
        if after is not None and after["state"] == "running" and after["token"] == one.facts["token"]:
            yield f"{one.jid} was taken back, and is still leased under {after['token']}"
        if after is not None and after["state"] == "taken":
            yield f"{one.jid} was taken back, and is nowhere"
