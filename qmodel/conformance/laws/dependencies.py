"""Laws of dependencies: when an edge ends, and what a failure does along it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qmodel.conformance.laws.law import Moment, law
from qmodel.contract.arguments import POLICIES, Edge, after_request, awaited_request
from qmodel.model.invariants import in_a_cycle
from qmodel.model.state.requests import ENDED

Edges = dict[str, tuple[str, bool]]
"""Dependency -> (policy, whether it has a name)."""


def _edges(job: dict[str, Any]) -> Edges:
    marks = dict(job["marks"])
    return {jid: (POLICIES[marks.get(jid, 0) // 2], bool(marks.get(jid, 0) % 2)) for jid in job["dependencies"]}


def _named(m: Moment, jid: str) -> dict[str, Edge] | None:
    """The edges that the operation gives to a job, or None if it gives none."""
    if jid in m.puts:
        given = m.puts[jid].depends if any(one.jid == jid for one in m.told("put")) else None
    elif getattr(m.op, "jid", None) == jid and any(m.told("blocked", "released", "advanced")):
        given = getattr(m.op, "depends", None) or getattr(m.op, "dependencies", None)
    else:
        given = None
    if given is None:
        return None
    found: dict[str, Edge] = {}
    for text in given:
        found.setdefault(Edge.parse(text).jid, Edge.parse(text))
    return found


def _has_ended(m: Moment, other: str) -> bool:
    """Whether a dependency is on a request that has ended."""
    return m.after.requested.get(awaited_request(other), {}).get("state") in ENDED


def _went_well(m: Moment, id: str) -> bool:
    """Whether a request has ended with each of its sub-requests done."""
    one = m.after.requested[id]
    return bool(one["state"] == "done" and one["done"] == one["total"])


def _ended_in_any_way(m: Moment, jid: str) -> bool:
    return jid not in m.after.jobs or any(
        one.jid == jid and one.event.event in ("completed", "failed", "canceled", "put", "retired") for one in m.tale
    )


@law
def an_edge_ends_only_for_a_reason(m: Moment) -> Iterator[str]:
    """A job waits until each of its dependencies is complete; a dependency that is retried or sent on is not complete.
    It waits for a request until that has ended. Otherwise an edge ends only when it is removed, ignored after a
    failure, or replaced by a put, or when the waiting job itself ends, or when the dependency is canceled.
    """
    if m.refused:
        return
    completed = {one.jid for one in m.told("completed")}
    failed = {jid for jid, job in m.before.jobs.items() if job["state"] == "failed"} | {e.jid for e in m.told("failed")}
    canceled = {one.jid for one in m.told("canceled")}
    for jid, before in m.before.jobs.items():
        after = m.after.jobs.get(jid)
        if after is None or not before["dependencies"]:
            continue
        was_put = any(one.jid == jid and one.event.event == "put" for one in m.tale)
        ended = after["state"] == "failed" or any(one.jid == jid for one in m.told("failed"))
        edges = _edges(before)
        for other in before["dependencies"]:
            policy = edges[other][0]
            if other in after["dependencies"] or other in completed or was_put or ended or other in canceled:
                continue
            if m.name == "depends_off" and m.op.jid == jid and (m.op.all or other in m.op.dependencies):
                continue
            given = (_named(m, jid) or {}).get(other)
            policies = {policy, given.on_failure if given else policy}
            if _has_ended(m, other) and (policies != {"block"} or _went_well(m, awaited_request(other))):
                continue
            if other in failed and "ignore" in policies:
                continue
            released = m.name == "unique_release" or _ended_in_any_way(m, other)
            if dict(before["options"]).get("holder") == other and released:
                continue
            if is_expiring(m, before):
                continue
            yield f"{jid} waits for {other} ({policy}) no longer, which has not completed"


def is_expiring(m: Moment, job: dict[str, Any]) -> bool:
    """Whether a job has expired, and loses its edges before it fails."""
    ttl = dict(job["options"]).get("ttl_ms")
    return ttl is not None and job["put_at"] + int(ttl) < m.now


@law
def nobody_waits_for_a_complete_job(m: Moment) -> Iterator[str]:
    """When a job completes, all that wait for it go on in the same step, across queues; a job that is only sent on
    keeps them waiting.
    """
    for one in m.told("completed"):
        if one.was is None:
            continue
        for jid in m.before.jobs.get(one.jid, {}).get("dependents", ()):
            after = m.after.jobs.get(jid)
            put = jid in m.puts or one.jid in m.puts
            if after is not None and one.jid in after["dependencies"] and not put:
                yield f"{jid} still waits for {one.jid}, which is complete"
    for one in m.told("advanced", "retried", "released"):
        for jid in m.before.jobs[one.jid]["dependents"]:
            after = m.after.jobs.get(jid)
            failed = any(e.jid in (one.jid, jid) for e in m.told("failed", "put"))
            if after is not None and one.jid not in after["dependencies"] and not failed:
                yield f"{jid} goes on, but {one.jid} was only {one.event.event}"


@law
def a_job_is_unblocked_after_its_last_edge(m: Moment) -> Iterator[str]:
    """A job goes on when its last dependency is met, in that step and once, and not before: it is then waiting, or
    scheduled if it is not due, or throttled.
    """
    for one in m.told("unblocked"):
        after = m.after.jobs.get(one.jid)
        if one.was is None or one.was["state"] != "depends":
            yield f"{one.jid} was unblocked, and was {one.was and one.was['state']}"
        if after is not None and after["seq"] == one.event.seq and after["dependencies"]:
            yield f"{one.jid} was unblocked, and waits for {after['dependencies']}"
        assert one.becomes is not None
        due = one.becomes["ready_at"] <= m.now
        if (one.facts["state"] == "scheduled") is due or one.facts["state"] == "depends":
            yield f"{one.jid} was unblocked as {one.facts['state']}, and is ready at {one.becomes['ready_at']}"
    for jid, job in m.after.jobs.items():
        if job["state"] == "depends" and not job["dependencies"]:
            yield f"{jid} waits for others, and names none"


@law
def no_job_that_waits_for_others_is_handed_out(m: Moment) -> Iterator[str]:
    """A job with open dependencies is never handed out, and neither ready nor scheduled."""
    for jid, job in m.after.jobs.items():
        if job["dependencies"] and job["state"] not in ("depends", "failed"):
            yield f"{jid} is {job['state']}, and waits for {job['dependencies']}"


@law
def edges_are_those_that_were_given(m: Moment) -> Iterator[str]:
    """The edges of a job are those that were given, with their policies and names; dependencies on complete jobs count
    as met. An edge that says `cancel`, to a job that has already failed, or to a request that has ended, fails the job
    instead.
    """
    if m.refused:
        return
    for jid, after in m.after.jobs.items():
        before = m.before.jobs.get(jid)
        has, had = _edges(after), _edges(before) if before is not None else {}
        given = _named(m, jid)
        for other, (policy, name) in has.items():
            if had.get(other) == (policy, name) and given is None:
                continue
            if dict(after["options"]).get("holder") == other:
                continue
            edge = (given or {}).get(other)
            if edge is None:
                if other not in had and not _redirects(m, jid):
                    yield f"{jid} waits for {other}, and nobody said so"
                continue
            again = any(one.jid == other for one in m.told("put"))
            failed = (m.before.jobs.get(other, {}).get("state") == "failed" and not again) or _has_ended(m, other)
            wanted = "fail" if failed and edge.on_failure == "cancel" else edge.on_failure
            if (policy, name) != (wanted, bool(edge.name)) and not _redirects(m, jid):
                yield f"{jid} waits for {other} by {policy}, {name}, and was given {edge}"


def _redirects(m: Moment, jid: str) -> bool:
    """Whether the operation may redirect edges, to the jobs that hold keys."""
    return any(put.unique is not None for put in m.puts.values())


@law
def an_edge_that_is_given_is_kept_until_it_is_met(m: Moment) -> Iterator[str]:
    """A job that is given dependencies waits for all of them that are not complete, and for all requests that have not
    ended.
    """
    if m.refused or not m.few:
        return
    for jid in [*m.puts, *([m.op.jid] if m.name in ("depends_on", "release", "complete") else [])]:
        given, after = _named(m, jid), m.after.jobs.get(jid)
        began = {"put", "blocked", "released", "advanced"}
        placed = [one for one in m.tale if one.jid == jid and one.event.event in began]
        if not given or not placed or after is None or _redirects(m, jid) or after["state"] == "failed":
            continue
        for other, edge in given.items():
            known = m.before.jobs.get(other)
            new = other in m.puts and any(one.jid == other for one in m.told("put"))
            awaited = m.before.requested.get(awaited_request(other)) and not _has_ended(m, other)
            open_ = new or awaited or (known is not None and known["state"] != "complete")
            ignored = edge.on_failure == "ignore" and known is not None and known["state"] == "failed" and not new
            if open_ and not ignored and other not in after["dependencies"] and not _ended_in_any_way(m, other):
                yield f"{jid} was given {edge}, and does not wait for it"


@law
def a_failure_is_followed_by_the_policy_of_each_edge(m: Moment) -> Iterator[str]:
    """When a dependency fails, for any reason: `block` keeps the job waiting; `fail` fails it, in the group
    `failed-dependencies-<queue>`, with a message that names the dependency; `ignore` counts the edge as met; `cancel`
    cancels the job, or fails it if one of its own dependents blocks.
    """
    if m.after.cascade or not m.few or m.refused:
        return
    for one in m.told("failed"):
        if m.after.jobs.get(one.jid, {"state": ""})["state"] != "failed" or one.jid not in m.before.jobs:
            continue
        for jid in m.before.jobs[one.jid]["dependents"]:
            before, after = m.before.jobs[jid], m.after.jobs.get(jid)
            policy = _edges(before).get(one.jid, ("", False))[0]
            if dict(before["options"]).get("holder") == one.jid or jid in m.puts:
                continue  # it waits for the key alone, or is put anew in this step
            if before["state"] != "depends" or is_expiring(m, before) or any(e.jid == jid for e in m.told("revoked")):
                continue
            if after is not None:
                yield from _not_followed(m, one.jid, jid, policy)


def _not_followed(m: Moment, failed: str, jid: str, policy: str) -> Iterator[str]:
    """How a job that is still there has not followed the policy of its edge to a failed one."""
    before, after = m.before.jobs[jid], m.after.jobs[jid]
    ends = {one.event.event for one in m.tale if one.jid == jid}
    if policy == "fail" and not {"failed", "canceled"} & ends:
        yield f"{jid} is {after['state']}, but its dependency {failed} failed"
    if policy == "ignore" and failed in after["dependencies"]:
        yield f"{jid} still waits for {failed}, which failed and is to be ignored"
    if policy == "cancel" and after["state"] != "failed":
        yield f"{jid} is {after['state']}, and was to be canceled with {failed}"
    blocks = any(_edges(m.after.jobs[other]).get(jid, ("", False))[0] == "block" for other in after["dependents"])
    fails = any(policy == "fail" for policy, _ in _edges(before).values())
    if policy == "cancel" and not blocks and not fails:
        yield f"{jid} was kept, and none of its dependents blocks"
    if policy == "block" and len(before["dependencies"]) == 1 and jid not in m.puts:
        revoked = m.name in ("revoke", "request_cancel", "cancel")
        if (after["state"] != "depends" or failed not in after["dependencies"]) and not revoked:
            yield f"{jid} is {after['state']}, and was to wait for {failed}"


@law
def the_end_of_a_request_is_followed_by_the_policy_of_each_edge(m: Moment) -> Iterator[str]:
    """When a request ends with each of its sub-requests done, the jobs that wait for it go on in the same step. When it
    ends otherwise, `block` keeps a job waiting, `fail` fails it, `ignore` lets it go on, and `cancel` cancels it, or
    fails it if a dependent of its own blocks; only the edges that say `block` stay.
    """
    if m.after.cascade or not m.few or m.refused:
        return
    for event in m.events:
        id = str(event.facts[0])
        if event.event != "request_done" or id not in m.before.requested:
            continue
        for jid in m.before.requested[id]["dependents"]:
            before, after = m.before.jobs[jid], m.after.jobs.get(jid)
            revoked = is_expiring(m, before) or any(e.jid == jid for e in m.told("revoked", "put", "canceled"))
            if after is not None and not revoked:
                yield from _not_ended(m, id, jid, _edges(before)[after_request(id)][0])


def _not_ended(m: Moment, id: str, jid: str, policy: str) -> Iterator[str]:
    """How a job that is still there has not followed the policy of its edge to a request that has ended."""
    before, after = m.before.jobs[jid], m.after.jobs[jid]
    waits, fails = after_request(id) in after["dependencies"], any(e.jid == jid for e in m.told("failed"))
    removed = m.name == "depends_off" and m.op.jid == jid
    if waits is not (policy == "block" and not _went_well(m, id)) and not removed:
        yield f"{jid} waits for {after['dependencies']}, and {id} has ended; its edge says {policy}"
    if before["state"] != "depends" or _went_well(m, id):
        return
    if policy in ("fail", "cancel") and not fails:
        yield f"{jid} is {after['state']}, and its edge to {id} says {policy}"


@law
def a_job_that_fails_with_a_dependency_names_it(m: Moment) -> Iterator[str]:
    """The message of a job that failed because of a dependency names the dependency, which failed or was canceled, or
    the request, which ended.
    """
    for one in m.told("failed"):
        after = m.after.jobs.get(one.jid)
        if after is None or not str(one.facts["group"]).startswith("failed-dependencies-") or not after["failure"]:
            continue
        if one.was is None or one.was["state"] == "running":
            continue  # its worker gave the group, and the message
        message = after["failure"][1]
        ended = {e.jid for e in m.told("failed", "canceled")} | {
            jid for jid, job in m.before.jobs.items() if job["state"] == "failed"
        }
        ended |= {id for id, request in m.after.requested.items() if request["state"] in ENDED}
        if (after["failure"][0] == one.facts["group"] and not any(f" {jid} " in message for jid in ended)) and (
            "about to be canceled" not in message
        ):
            yield f"{one.jid} failed with the message {message!r}"


@law
def results_of_named_edges_are_kept(m: Moment) -> Iterator[str]:
    """The result of a named dependency is kept with the dependent job when the dependency completes, in the order of
    naming; for a failed dependency that is ignored, its message. They stay until the job is complete or deleted.
    """
    results = {one.jid: one.becomes["result"] for one in m.told("completed") if one.becomes is not None}
    for jid, kept in m.before.results.items():
        after = m.after.jobs.get(jid)
        if after is None or m.refused or jid in m.puts:
            continue
        now = {other: (name, state, text) for other, name, state, text in m.after.results.get(jid, ())}
        done = any(one.jid == jid and one.event.event in ("completed", "put") for one in m.tale)
        for other, name, state, text in kept:
            if state and not done and now.get(other) != (name, state, text):
                named = _named(m, jid) or {}
                if other not in named:
                    yield f"{jid} has lost the result of {other}"
            if not state and other in results and not done and now.get(other) != (name, "complete", results[other]):
                yield f"{jid} keeps {now.get(other)} of {other}, which completed with {results[other]!r}"
        if done and after["state"] == "complete" and now:
            yield f"{jid} is complete, and keeps {now}"


@law
def a_cycle_or_an_unknown_dependency_is_refused(m: Moment) -> Iterator[str]:
    """Dependencies on unknown jobs and requests are refused, and so are cycles: no job waits for itself, directly or
    not, and no sub-request waits for its own request.
    """
    if m.refused or (
        m.before.jobs.keys() == m.after.jobs.keys() and not any(m.told("blocked", "put", "released", "advanced"))
    ):
        return
    if not m.few:
        return
    for jid, job in m.after.jobs.items():
        if unknown := sorted(
            set(job["dependencies"]) - m.after.jobs.keys() - set(map(after_request, m.after.requested))
        ):
            yield f"{jid} waits for {unknown}, which do not exist"
    if left := in_a_cycle(m.after):
        yield f"{left} wait for each other"


@law
def a_job_with_dependents_is_canceled_only_with_them(m: Moment) -> Iterator[str]:
    """A job with dependents is canceled only together with them, or with `cascade`: no job waits for a deleted one."""
    if m.name != "cancel" or m.refused:
        return
    gone = {one.jid for one in m.told("canceled")}
    named = set(m.op.jids)
    for jid in gone & m.before.jobs.keys():
        holds = dict(m.before.jobs[jid]["options"])
        for other in m.before.jobs[jid]["dependents"]:
            if other not in gone and dict(m.before.jobs[other]["options"]).get("holder") != jid and holds is not None:
                yield f"{jid} was canceled, and {other} waits for it"
    if not m.op.cascade and gone - named - m.follow:
        yield f"{sorted(gone - named - m.follow)} were canceled, and not named"
