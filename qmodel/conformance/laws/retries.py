"""Laws of retries: a budget for each job."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories
from qmodel.conformance.laws.leases import lapses
from qmodel.conformance.laws.told import is_spent

RESET = ("put", "completed", "advanced", "unfailed")
"""The events after which a job has all its retries again."""


@law_of_histories
def retries_are_a_budget(m: Moment, ghost: Ghost) -> Iterator[str]:
    """Each `retry` and each expired lease takes one retry away, but a lease of a job with `max_lapses` does not; a job
    has all of them again when it is put, completed, sent on, or retried after a failure. Nothing else changes them: not
    `release`, `timeout` or a move.
    """
    taken = {one.event.seq for one in lapses(m)}
    for one in m.tale:
        if one.was is not None and one.jid not in ghost:
            ghost[one.jid] = m.before.jobs[one.jid]["remaining"] if one.jid in m.before.jobs else one.was["remaining"]
        if one.becomes is None:
            ghost.pop(one.jid, None)
        elif one.event.event in RESET:
            ghost[one.jid] = one.becomes["retries"]
        elif one.event.event == "retried" or (
            one.event.seq in taken and ghost[one.jid] and not _keeps_retries(one.was)
        ):
            ghost[one.jid] -= 1
        if one.event.event == "retried" and one.facts["remaining"] != ghost[one.jid]:
            yield f"{one.event}, but {ghost[one.jid]} remain"
    for jid, job in m.after.jobs.items():
        if jid in ghost and ghost[jid] != job["remaining"]:
            yield f"{jid} has {job['remaining']} of {job['retries']} retries, and should have {ghost[jid]}"
            ghost[jid] = job["remaining"]


def _keeps_retries(job: dict[str, object] | None) -> bool:
    options = job["options"] if job is not None else {}
    return isinstance(options, dict) and not options.keys().isdisjoint(("revoked", "max_lapses"))


@law
def a_job_is_buried_exactly_at_zero(m: Moment) -> Iterator[str]:
    """A job without retries left fails when it is retried or its lease expires, into `failed-retries-<queue>` or the
    group that `retry` names; a job with retries left does not. With `max_lapses`, expired leases count by themselves.
    """
    for one in lapses(m):
        assert one.was is not None
        fails = [e for e in m.told("failed") if e.jid == one.jid and e.event.seq > one.event.seq]
        if is_spent(one.was) and not fails:
            yield f"{one.jid} had no retries left, and did not fail"
        if not is_spent(one.was) and "revoked" not in one.was["options"] and fails:
            yield f"{one.jid} had {one.was['remaining']} retries left, and failed"
    if m.name != "retry" or m.refused:
        return
    for one in m.told("failed", "retried"):
        if one.jid == m.op.jid and one.was is not None and one.was["state"] == "running":
            exhausted = one.was["remaining"] == 0 or "revoked" in one.was["options"]
            if exhausted is not (one.event.event == "failed"):
                yield f"{one.event}, and {one.was['remaining']} retries were left"


@law_of_histories
def a_job_starts_once_more_than_it_has_retries(m: Moment, ghost: Ghost) -> Iterator[str]:
    """A job starts at most 1 + retries times for each put, and `max_lapses` times more, not counting releases, manual
    timeouts and moves.
    """
    for one in m.tale:
        if one.becomes is None or one.event.event in RESET:
            ghost[one.jid] = 0
        elif one.event.event == "popped" and one.jid in ghost:
            ghost[one.jid] += 1
            if ghost[one.jid] > 1 + one.becomes["retries"] + int(one.becomes["options"].get("max_lapses", 0)):
                yield f"{one.jid} starts for the {ghost[one.jid]}. time, with {one.becomes['retries']} retries"
        elif one.jid in ghost and (
            one.event.event == "released" or (m.name == "timeout" and one.event.event == "lock_lost")
        ):
            ghost[one.jid] = max(ghost[one.jid] - 1, 0)
        elif one.event.event == "throttled" and one.was is not None and one.was["state"] == "taken":
            ghost.pop(one.jid, None)  # a lapse that did not lead to a claim; counted when it is claimed
        if one.becomes is None:
            ghost.pop(one.jid, None)


@law
def lapses_are_counted_by_themselves(m: Moment) -> Iterator[str]:
    """Each expired lease of a job with `max_lapses` is counted by itself; a put, a move to a next queue and a retry
    after a failure begin the count anew.
    """
    for jid, becomes in m.becomes.items():
        after = m.after.jobs.get(jid)
        if becomes is None or after is None:
            continue
        counted, wanted = (dict(job["options"]).get("lapses", "0") for job in (after, becomes))
        if counted != wanted:
            yield f"{jid} has {counted} lapses, and its events say {wanted}"
