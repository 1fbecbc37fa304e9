"""Laws of requests: what they count, when they end, and what is listed, forgotten and canceled of them."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories
from qmodel.model.snapshot import Record

ENDED = ("done", "canceled")

ADDS = ("request_add", "request_put")
"""The operations that add sub-requests to a request."""


def _is_canceled(m: Moment, id: str, before: Record) -> bool:
    """Whether a sub-request that fails in a step is counted as canceled: unless another failure has canceled it."""
    told = [event.facts[1:] for event in m.events if event.event == "request_canceled" and event.facts[0] == id]
    return (
        (before["state"] == "canceling" and before["reason"] != "failed")
        or m.name == "request_cancel"
        or ("deadline",) in told
    )


FREE = ("ended", "dependents", "state_at")
"""What may still change of an ended request."""


@law
def a_request_counts_each_sub_request_once(m: Moment) -> Iterator[str]:
    """A sub-request ends as done, failed or canceled, and is counted once, in the step in which it ends; an ended
    request never changes, but for who waits for it and how long it is kept.
    """
    for id, before in m.before.requested.items():
        after = m.after.requested.get(id)
        if after is None:
            continue
        if before["state"] in ENDED:
            if {k: v for k, v in before.items() if k not in FREE} != {k: v for k, v in after.items() if k not in FREE}:
                yield f"{id} has ended, and changed from {before} to {after}"
            continue
        counts = {"done": 0, "failed": 0, "canceled": 0}
        left = set(before["unfinished"])
        for one in m.tale:
            if one.event.event == "put" and one.jid in m.puts and m.name in ADDS and m.op.id == id:
                left.add(one.jid)
            elif one.jid not in left:
                continue
            elif one.event.event == "completed":
                counts["done"] += 1
                left.discard(one.jid)
            elif one.event.event == "failed":
                canceling = _is_canceled(m, id, before)
                counts["canceled" if canceling else "failed"] += 1
                left.discard(one.jid)
            elif one.event.event in ("canceled", "put"):
                counts["canceled"] += 1
                left.discard(one.jid)
        has = {name: after[name] - before[name] for name in counts}
        if has != counts:
            yield f"{id} counts {has}, and the events say {counts}"


@law_of_histories
def a_request_ends_once_and_only_when_it_is_closed(m: Moment, ghost: Ghost) -> Iterator[str]:
    """A request ends once: the step in which the last sub-request ends also produces the event `request_done`, only
    when the request is closed or canceled, with the counts of its sub-requests.
    """
    closed = {str(event.facts[0]) for event in m.events if event.event in ("request_closed", "request_canceled")}
    for event in m.events:
        id = str(event.facts[0])
        if event.event == "request_opened":
            ghost.pop(id, None)
        if event.event != "request_done":
            continue
        if id in ghost:
            yield f"{id} ends a second time"
        ghost[id] = True
        before, after = m.before.requested.get(id), m.after.requested.get(id)
        if (before is None or before["state"] not in ("closed", "canceling")) and id not in closed:
            yield f"{id} ends, and was {before and before['state']}"
        if after is not None:
            counts = tuple(after[name] for name in ("done", "failed", "canceled"))
            state = event.facts[2]
            if (
                event.facts[3:] != counts
                or after["state"] != state
                or after["unfinished"]
                or sum(counts) != after["total"]
            ):
                yield f"{event}, but {id} is {after}"


@law
def a_request_without_work_left_has_ended(m: Moment) -> Iterator[str]:
    """A closed or canceled request without work left has ended, and an end has its event."""
    for id, one in m.after.requested.items():
        ended = any(event.event == "request_done" and event.facts[0] == id for event in m.events)
        if one["state"] in ENDED and m.before.requested.get(id, {}).get("state") not in ENDED and not ended:
            yield f"{id} has ended without an event"
        if (
            one["state"] in ("closed", "canceling")
            and not one["unfinished"]
            and one["total"] == sum(one[name] for name in ("done", "failed", "canceled"))
        ):
            yield f"{id} is {one['state']}, and has no work left"


@law
def a_sub_request_is_added_once(m: Moment) -> Iterator[str]:
    """A sub-request that is added again is skipped, even if its job is no longer kept; the reply says how many are
    new.
    """
    if m.name != "request_add" or m.refused or m.op.id not in m.before.requested:
        return
    request = m.before.requested[m.op.id]
    known = set(request["order"])
    put = {one.jid for one in m.told("put") if one.jid in m.puts}
    if put & known:
        yield f"{sorted(put & known)} were added again"
    if m.events and m.outcome != len(put):
        yield f"{m.outcome} are said to be new, and {len(put)} were put"


@law
def sub_requests_are_listed_as_they_were_added(m: Moment) -> Iterator[str]:
    """`request_jobs` lists the sub-requests in the order in which they were added, from an offset on, each with its
    outcome; its result or failure is that of its job, unless that was deleted, retried or put again. It says where to
    continue.
    """
    if m.name != "request_jobs" or m.refused:
        return
    request = m.before.requested[m.op.id]
    ends = {jid: (outcome, seq) for jid, outcome, seq in request["ended"]}
    unfinished = set(request["unfinished"])
    until = m.outcome.next or min(m.op.offset + m.op.count, len(request["order"]))
    page = request["order"][m.op.offset : until]
    if [one.jid for one in m.outcome.jobs] != [jid for jid in page if jid in ends or jid in unfinished]:
        yield f"{m.outcome.jobs} are listed, in the order {request['order']}"
    if m.outcome.next and not m.op.offset < m.outcome.next < len(request["order"]):
        yield f"the list continues at {m.outcome.next}"
    for one in m.outcome.jobs:
        outcome, seq = ends.get(one.jid, ("", 0))
        job = m.before.jobs.get(one.jid)
        own = job is not None and (not outcome or job["seq"] == seq)
        failure = job["failure"] if job is not None and job["state"] == "failed" else None
        result = job["result"] if job is not None and job["state"] == "complete" else ""
        group, text = (failure[0], failure[1]) if failure else ("", result)
        if one.outcome != outcome or bool(one.state) is not own or (own and (one.group, one.result) != (group, text)):
            yield f"{one} is listed, and has ended as {outcome}, with the job {job}"


@law
def the_order_of_sub_requests_is_that_of_their_addition(m: Moment) -> Iterator[str]:
    """Added sub-requests come after all others, in the order of the call; an outcome never changes."""
    for id, after in m.after.requested.items():
        before = m.before.requested.get(id, {"order": (), "ended": ()})
        if m.name == "request_forget" and m.op.id == id:
            continue
        known = before["order"] if not _opened_anew(m, id) else ()
        added = tuple(one.jid for one in m.told("put") if one.jid in m.puts) if _adds_to(m, id) else ()
        if after["order"] != (*known, *added):
            yield f"{id} had the sub-requests {known}, was given {added}, and orders {after['order']}"
        if known and not set(before["ended"]) <= set(after["ended"]) and not _forgets(m, id):
            yield f"{id} had the outcomes {before['ended']}, and has {after['ended']}"


def _adds_to(m: Moment, id: str) -> bool:
    """Whether an operation adds sub-requests to a request."""
    return m.name in ADDS and not m.refused and m.op.id == id


def _opened_anew(m: Moment, id: str) -> bool:
    """Whether a step opens a request."""
    return any(event.event == "request_opened" and event.facts[0] == id for event in m.events)


def _forgets(m: Moment, id: str) -> bool:
    """Whether a step may forget sub-requests of an ended request."""
    return m.before.requested[id]["state"] in ENDED


@law
def forgetting_a_request_deletes_the_jobs_that_are_as_they_ended(m: Moment) -> Iterator[str]:
    """`request_forget` deletes no job, unless it is asked to; then it deletes those of the forgotten sub-requests that
    are as they ended, and on which none depends. Its reply counts them and those that stay.
    """
    if m.name != "request_forget" or m.refused or m.op.id not in m.before.requested or not m.events:
        return
    gone = {jid for jid in m.before.jobs if jid not in m.after.jobs}
    left = {jid for jid, *_ in m.after.requested.get(m.op.id, {"ended": ()})["ended"]}
    own: set[str] = set()
    others: set[str] = set()
    for jid, outcome, seq in m.before.requested[m.op.id]["ended"]:
        job = m.before.jobs.get(jid)
        if m.op.delete_jobs and job is not None and jid not in left:
            ended = (outcome, job["state"]) in (("done", "complete"), ("failed", "failed"))
            (own if ended and job["seq"] == seq and not job["dependents"] else others).add(jid)
    if gone != own or (m.outcome.deleted, m.outcome.stay) != (len(own), len(others)):
        yield f"{sorted(gone)} were deleted, {sorted(own)} were to be, and the reply is {m.outcome}"


@law
def a_request_ends_by_itself_for_a_reason(m: Moment) -> Iterator[str]:
    """The engine cancels a request at its deadline, or when a sub-request fails and it has `fail_fast`; it closes an
    open request at the end of its lease. From then on a pop of its queue hands out none of the canceled ones.
    """
    for event in m.events:
        id, reason = str(event.facts[0]), event.facts[-1]
        before, after = m.before.requested.get(id), m.after.requested.get(id)
        if (
            event.event == "request_closed"
            and reason == "lapsed"
            and not (before and 0 < before["open_until"] <= m.now)
        ):
            yield f"{id} is closed, and its lease lasts: {before}"
        if event.event != "request_canceled" or len(event.facts) == 1 or after is None:
            continue
        failed = any(one.event.event == "failed" and one.jid not in after["unfinished"] for one in m.tale)
        if not (after["fail_fast"] and failed if reason == "failed" else 0 < after["deadline_at"] <= m.now):
            yield f"{id} is canceled for {reason}: {after}"
    for one in m.told("popped"):
        known = m.before.requested.get(str(one.was and one.was["options"].get("request")), {})
        if 0 < known.get("deadline_at", 0) <= m.now and one.was and one.was["queue"] == known["queue"]:
            yield f"{one.jid} was handed out, and its request is past its deadline"


@law
def a_due_request_is_ended_by_the_next_pop(m: Moment) -> Iterator[str]:
    """A pop of a queue that is not paused, and `fire`, close and cancel its due requests; those that have begun go on
    after a failure. What is canceled because a job expires in this step ends with the next pop.
    """
    queue = getattr(m.op, "queue", None)
    executed = m.events or (m.name == "pop" and not m.outcome)  # a pop that finds nothing is not remembered
    if m.name not in ("pop", "fire") or m.refused or not executed or queue not in m.before.queues or not m.few:
        return
    due = [id for id, moment in m.before.queues[queue]["ends"].items() if moment <= m.now]
    if m.name == "fire" or not m.before.queues[queue]["pauses"]:
        failed = {event.named["request"] for event in m.events if event.event == "request_canceled"}
        for id in due:
            if m.after.queues[queue]["ends"].get(id, m.now + 1) <= m.now and id not in failed:
                yield f"{id} was due, and still is"
        for id, request in m.after.requested.items():
            if request["queue"] == queue and request["state"] == "open" and 0 < request["open_until"] <= m.now:
                yield f"{id} is open, and the lease on that has ended"
    for one in m.tale:
        request = m.before.requested.get(str(one.was and one.was["options"].get("request")), {})
        if (
            one.event.event == "canceled"
            and one.was is not None
            and one.was["token"] > 0
            and request.get("reason") == "failed"
        ):
            late = 0 < request["deadline_at"] <= m.now
            if not late:
                yield f"{one.jid} has begun, and was canceled because another one failed"


@law
def a_sign_of_the_producer_renews_the_lease_on_openness(m: Moment) -> Iterator[str]:
    """Adding to an open request, touching it and opening it again renew the lease on its openness, from now on; nothing
    else changes when that ends.
    """
    signs = m.name in ("request_open", "request_add", "request_touch") and not m.refused
    again = signs and any(request == f"{m.name} {m.op.request}" for request, _ in m.before.requests)
    for id, after in m.after.requested.items():
        if after["state"] != "open" or not after["lease_ms"]:
            continue
        renewed = signs and not again and m.op.id == id
        ends = m.now + after["lease_ms"] if renewed else m.before.requested[id]["open_until"]
        if after["open_until"] != ends:
            yield f"the lease on {id} ends at {after['open_until']}, not at {ends}"


@law
def a_late_request_is_left_with_revoked_jobs(m: Moment) -> Iterator[str]:
    """When the engine has canceled a request at its deadline, each sub-request that is left runs and was revoked, also
    one that was sent on to another queue.
    """
    for id, request in m.after.requested.items():
        if request["state"] != "canceling" or request["reason"] != "deadline" or request["ending"]:
            continue
        for jid in request["unfinished"]:
            job = m.after.jobs[jid]
            if job["state"] != "running" or "revoked" not in dict(job["options"]):
                yield f"{jid} is {job['state']}, and {id} was canceled at its deadline"


@law
def canceling_a_request_hands_out_no_more(m: Moment) -> Iterator[str]:
    """`request_cancel` hands out no more jobs of the request, deletes those that are not running, and revokes the
    running ones.
    """
    for one in m.told("popped"):
        request = one.was and one.was["options"].get("request")
        known = m.before.requested.get(str(request), {})
        begun = known.get("reason") == "failed" and one.was is not None and one.was["token"] > 0
        elsewhere = known.get("reason") in ("deadline", "failed") and one.was and one.was["queue"] != known["queue"]
        if known.get("state") == "canceling" and not begun and not elsewhere:
            yield f"{one.jid} was handed out, and {request} is canceled"
    if m.name != "request_cancel" or m.refused or not m.events or not m.few:
        return
    for jid in m.before.requested[m.op.id]["unfinished"]:
        before, after = m.before.jobs.get(jid), m.after.jobs.get(jid)
        if before is None or after is None:
            continue
        if before["state"] == "running" and "revoked" not in dict(after["options"]) and after["state"] == "running":
            yield f"{jid} runs on, and {m.op.id} was canceled"
        if before["state"] not in ("running", "failed", "complete") and after["state"] not in ("failed", "complete"):
            yield f"{jid} is {after['state']}, and {m.op.id} was canceled"
