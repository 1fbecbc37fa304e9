"""Laws of concurrency keys: one after the other, or up to the limit of a request at a time."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories


@law_of_histories
def ordered_jobs_run_one_after_the_other(m: Moment, ghost: Ghost) -> Iterator[str]:
    """Jobs with the same `ordered` key run one after the other, whatever their queues and priorities: none is claimed
    between the claim and the end of another. A job holds the key until it ends, through retries, releases, expired
    leases and a move to a next queue; only one that is sent on, or released, to wait for others gives it up.
    """
    for one in m.tale:
        held = ghost.get(one.jid)
        if one.event.event == "popped" and one.becomes is not None and "ordered" in one.becomes["options"]:
            key = one.becomes["options"]["ordered"]
            others = [jid for jid, name in ghost.items() if name == key and jid != one.jid]
            if others:
                yield f"{one.jid} was claimed under {key!r}, which {others[0]} holds"
            ghost[one.jid] = key
        elif held is None:
            continue
        elif (
            one.becomes is None
            or one.event.event in ("completed", "failed", "put")
            or (one.event.event in ("advanced", "released") and one.facts["state"] == "depends")
        ):
            del ghost[one.jid]


@law
def a_key_that_is_free_goes_on_in_the_same_step(m: Moment) -> Iterator[str]:
    """When the job that holds an ordered key ends in any way, the next one proceeds in the same step: no job is parked
    at a key that nobody holds, and a key without jobs leaves nothing behind.
    """
    for name, key in m.after.lines.items():
        holders = [jid for jid in key["active"] if jid in m.after.jobs]
        if name.startswith("ordered:") and key["parked"] and not holders:
            yield f"{key['parked'][0][-1]} is parked at {name}, which nobody holds"
        if name.startswith("ordered:") and len(holders) > 1:
            yield f"{holders} hold {name}"
        if not key["active"] and not key["parked"]:
            yield f"{name} is kept without jobs"
        for jid in key["active"]:
            job = m.after.jobs.get(jid)
            if job is None or job["state"] in ("complete", "failed", "depends"):
                yield f"{jid} holds {name}, and is {job and job['state']}"


@law
def keys_are_joined_in_the_order_of_readiness(m: Moment) -> Iterator[str]:
    """A job joins the line of its key when it is first ready: due, and without open dependencies. It is parked only if
    another holds the key, and proceeds in the order of joining: so no job waits for one behind it.
    """
    for name in {str(one.facts["throttle"]) for one in m.told("unthrottled")}:
        through = [one for one in m.told("unthrottled") if one.facts["throttle"] == name]
        if not name.startswith(("ordered:", "request:")):
            continue
        parked = [entry[-1] for entry in m.before.lines.get(name, {"parked": ()})["parked"]]
        left = [jid for jid in parked if jid not in m.becomes]
        for one in through:
            if one.jid in parked and left and parked.index(left[0]) < parked.index(one.jid):
                yield f"{one.jid} proceeds at {name}, and {left[0]} joined before it"
    for one in m.told("throttled"):
        name = str(one.facts["throttle"])
        if name.startswith("ordered:") and name not in m.before.lines and name not in m.after.lines:
            yield f"{one.jid} was parked at {name}, which nobody holds"
    for name, key in m.after.lines.items():
        for _, _, jid in key["parked"]:
            job = m.after.jobs[jid]
            if job["state"] != "throttled" or job["dependencies"]:
                yield f"{jid} is parked at {name}, and is {job['state']}"


@law
def only_as_many_as_the_limit_are_in_the_order(m: Moment) -> Iterator[str]:
    """Only as many sub-requests as the limit of their request are in the queue's order or leased; the others are
    `throttled`.
    """
    for name, key in m.after.lines.items():
        if not name.startswith("request:"):
            continue
        request = m.after.requested.get(name.removeprefix("request:"))
        before = m.before.lines.get(name, {"active": ()})["active"]
        limit = request["limit"] if request is not None and request["state"] in ("open", "closed") else 0
        if request is not None and request["reason"] == "failed":
            limit = request["limit"]  # those that have begun go on; a slot may have become free before the failure
        if len(key["active"]) > max(limit, len(before)) or (
            set(key["active"]) - set(before) and len(key["active"]) > limit
        ):
            yield f"{len(key['active'])} sub-requests of {name} go on, and its limit is {limit}"
        if key["parked"] and len(key["active"]) < limit and request is not None and not request["ending"]:
            yield f"{key['parked'][0][-1]} is parked, and only {len(key['active'])} of {limit} of {name} go on"


def _places(m: Moment, side: str) -> dict[str, str]:
    """The sub-requests with a slot before or after a step, each with its request."""
    lines = m.before.lines if side == "before" else m.after.lines
    found = {jid: name for name, key in lines.items() for jid in key["active"]}
    return {jid: name.removeprefix("request:") for jid, name in found.items() if name.startswith("request:")}


@law
def a_sub_request_that_waits_for_its_time_has_no_place(m: Moment) -> Iterator[str]:
    """A sub-request that becomes `scheduled` gives up its place under the limit, and another one gets it in the same
    step; with `keep_places`, one that has begun keeps it. It gets none before it is due.
    """
    had, has = _places(m, "before"), _places(m, "after")
    for jid, after in m.after.jobs.items():
        id = dict(after["options"]).get("request")
        if id is None or after["state"] != "scheduled":
            continue
        before, keeps = m.before.jobs.get(jid), m.after.requested[id]["keep_places"]
        if jid in has and not keeps:
            yield f"{jid} is scheduled for {after['ready_at']}, and has a place of {id}"
        if jid in has and jid not in had:
            yield f"{jid} is scheduled for {after['ready_at']}, and was given a place of {id}"
        if keeps and jid in had and jid not in has and before and before["state"] in ("running", "stalled"):
            yield f"{jid} was {before['state']}, and lost its place of {id}, which keeps places"


@law
def a_sub_request_that_has_begun_holds_its_place(m: Moment) -> Iterator[str]:
    """A sub-request holds its place under the limit until it ends, or begins to wait for other jobs or for its time:
    also through a retry or a release without a delay.
    """
    has = _places(m, "after")
    for jid, id in _places(m, "before").items():
        request, job = m.after.requested.get(id), m.after.jobs.get(jid)
        if m.name == "delay" or request is None or job is None or jid in has or jid not in request["unfinished"]:
            continue
        if m.before.jobs[jid]["token"] > 0 and job["state"] not in ("scheduled", "depends"):
            yield f"{jid} had a place of {id}, and is {job['state']} without one"


@law
def a_request_notes_who_gave_up_a_place(m: Moment) -> Iterator[str]:
    """A sub-request that has begun and gives up its place is noted, so that a failure that cancels the others finds
    them.
    """
    has = _places(m, "after")
    for jid, id in _places(m, "before").items():
        request, job = m.after.requested.get(id), m.after.jobs.get(jid)
        if request is None or job is None or jid in has or jid not in request["unfinished"]:
            continue
        if (jid in request["yielded"]) is not (job["token"] > 0):
            yield f"{jid} gave up its place of {id}, which notes {request['yielded']}"


@law
def a_failure_does_not_stop_those_that_have_begun(m: Moment) -> Iterator[str]:
    """After `fail_fast` has canceled a request, each sub-request that is left has begun, and is parked only while the
    limit is reached.
    """
    for id, request in m.after.requested.items():
        if request["state"] != "canceling" or request["reason"] != "failed" or request["ending"]:
            continue
        key = m.after.lines.get(f"request:{id}", {"active": (), "parked": ()})
        if key["parked"] and len(key["active"]) < request["limit"]:
            yield f"{key['parked'][0][-1]} has begun and is parked, and only {len(key['active'])} go on"
        for jid in request["unfinished"] if m.few else ():
            if m.after.jobs[jid]["token"] == 0:
                yield f"{jid} of {id} has not begun, and is not canceled"
