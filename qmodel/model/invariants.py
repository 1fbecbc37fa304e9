"""Invariants: claims that hold after every step, each as a named predicate.

They check a snapshot, so they apply to the model and to the keys of a live server. Each predicate yields the
violations; its docstring is the claim. A single snapshot cannot show which changes a step may make: the laws in
tests/property do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from qmodel.contract.arguments import POLICIES, TOKEN_EPOCH, after_request, awaited_request, names_family
from qmodel.contract.lifecycle import STATES
from qmodel.contract.replies import HISTORY
from qmodel.contract.settings import OPTIONS, meant_by
from qmodel.model.snapshot import Record, Snapshot
from qmodel.model.state.aging import APART, LAST, is_by_age
from qmodel.model.state.queues import NO_TIME
from qmodel.model.state.records import NEVER

Predicate = Callable[[Snapshot], Iterator[str]]

DAY_MS = 86_400_000
PLACES = ("ready", "scheduled", "depends", "locks", "throttled", "expires", "recur")
"""The sorted lists of a queue."""
MOST = 1000


class Broken(NamedTuple):
    """An invariant that does not hold, and a detail that shows it."""

    name: str
    detail: str


INVARIANTS: dict[str, Predicate] = {}


def invariant(predicate: Predicate) -> Predicate:
    """Register a predicate under its name."""
    INVARIANTS[predicate.__name__] = predicate
    return predicate


def check(snapshot: Snapshot) -> list[Broken]:
    """List every invariant that a state breaks."""
    return [Broken(name, detail) for name, predicate in INVARIANTS.items() for detail in predicate(snapshot)]


# ---- lists


def _positions(s: Snapshot) -> Iterator[tuple[str, str, str, tuple[Any, ...]]]:
    """Every entry of the sorted lists of jobs: jid, kind, owner, entry."""
    for name, queue in s.queues.items():
        for place in ("ready", "scheduled", "depends", "locks", "throttled"):
            yield from ((entry[-1], place, name, entry) for entry in queue[place])
    yield from ((entry[-1], "completed", "", entry) for entry in s.completed)
    for group, entries in s.groups.items():
        yield from ((entry[-1], "group", group, entry) for entry in entries)


def _where(job: Record, jid: str) -> tuple[str, str, tuple[Any, ...]] | None:
    """The list that a job belongs in by its record: kind, owner, and entry."""
    state, queue, seq = job["state"], job["queue"], job["seq"]
    if state == "waiting":
        turn = dict(job["options"]).get("turn")
        if turn is not None:
            return "ready", queue, (job["priority"], int(turn), seq, jid)
        if ("lifo", "1") in job["options"]:
            return "ready", queue, (job["priority"], -1 - job["ready_at"], -seq, jid)
        return "ready", queue, (job["priority"], job["ready_at"], seq, jid)
    if state == "scheduled":
        return "scheduled", queue, (job["ready_at"], seq, jid)
    if state == "depends":
        return "depends", queue, (job["put_at"], seq, jid)
    if state == "running":
        return "locks", queue, (job["expires_at"], seq, jid)
    if state == "stalled":
        return "locks", queue, (float("-inf"), seq, jid)
    if state == "throttled":
        return "throttled", queue, (job["ready_at"], seq, jid)
    if state == "complete":
        return "completed", "", (job["ended_at"], seq, jid)
    if state == "failed" and job["failure"]:
        return "group", job["failure"][0], (job["ended_at"], seq, jid)
    return None


def _by_priority(s: Snapshot, place: str, entry: tuple[Any, ...]) -> tuple[Any, ...]:
    """The place that a job would have by its priority, if it stands by its age."""
    aged = place == "ready" and is_by_age(entry[0]) and entry[-1] in s.jobs
    return (s.jobs[entry[-1]]["priority"], *entry[1:]) if aged else entry


@invariant
def each_job_is_in_exactly_one_list(s: Snapshot) -> Iterator[str]:
    """A job is in exactly one sorted list."""
    counts = Counter(jid for jid, _, _, _ in _positions(s))
    yield from (f"{jid} is in {counts[jid]} lists" for jid in s.jobs if counts[jid] != 1)


@invariant
def its_state_says_which(s: Snapshot) -> Iterator[str]:
    """A job's state is one of the lifecycle, and determines its list and its position there."""
    found = {jid: (place, whose, _by_priority(s, place, entry)) for jid, place, whose, entry in _positions(s)}
    for jid, job in s.jobs.items():
        if job["state"] not in STATES:
            yield f"{jid} has the state {job['state']!r}"
        elif found.get(jid) != (wanted := _where(job, jid)):
            yield f"{jid} is in {found.get(jid)}, but its record says {wanted}"


@invariant
def lists_hold_only_jobs_that_exist(s: Snapshot) -> Iterator[str]:
    """No list, lease or index names a deleted job; only tracking outlives a job."""
    named = [(jid, place) for jid, place, _, _ in _positions(s)]
    named += [(jid, "tag") for entries in s.tags.values() for _, jid in entries]
    for worker in s.workers.values():
        named += [(jid, "held") for jid in worker["held"]]
        named += [(jid, "grants") for jids in worker["grants"].values() for jid in jids]
    yield from (f"{jid} is in {place}, but deleted" for jid, place in named if jid not in s.jobs)


@invariant
def those_that_keep_the_newest_are_listed_by_type(s: Snapshot) -> Iterator[str]:
    """Complete jobs with `keep_newest` are listed by type, at their end, until they are to be deleted at once."""
    wanted = {
        (job["klass"], (job["ended_at"], job["seq"], jid))
        for jid, job in s.jobs.items()
        if job["state"] == "complete"
        and "keep_newest" in dict(job["options"])
        and ("keep_complete_ms", "0") not in job["options"]
    }
    found = {(klass, place) for klass, places in s.newest.items() for place in places}
    yield from (f"{place} is or is not among the newest" for place in wanted ^ found)


@invariant
def lists_are_in_order(s: Snapshot) -> Iterator[str]:
    """Every sorted list is sorted."""
    lists: list[tuple[str, tuple[Any, ...]]] = [("completed", s.completed), ("failed", s.failed)]
    lists.append(("keeping", s.keeping))
    lists += s.groups.items()
    lists += s.newest.items()
    lists += s.tags.items()
    for name, queue in s.queues.items():
        lists += ((f"{name}.{p}", queue[p]) for p in PLACES)
    yield from (f"{name} is not sorted" for name, found in lists if list(found) != sorted(found))


@invariant
def a_queue_with_jobs_is_on_the_list(s: Snapshot) -> Iterator[str]:
    """A queue with a job in any of its lists, or with a recurring job, has a first-seen time."""
    for name, queue in s.queues.items():
        if queue["first_seen"] is None and any(queue[place] for place in PLACES):
            yield f"{name} has jobs and is not on the list"


@invariant
def pauses_are_bounded(s: Snapshot) -> Iterator[str]:
    """A queue has at most ten pauses, and none has a negative end."""
    for name, queue in s.queues.items():
        if len(queue["pauses"]) > 10 or min(queue["pauses"].values(), default=0) < 0:
            yield f"{name} is paused for {queue['pauses']}"


@invariant
def nothing_is_kept_empty(s: Snapshot) -> Iterator[str]:
    """No empty group, tag, worker, queue or metadata is kept."""
    yield from (f"group {name} is empty" for name, entries in s.groups.items() if not entries)
    yield from (f"tag {name} is empty" for name, entries in s.tags.items() if not entries)
    yield from (f"klass {name} has no metadata" for name, notes in s.metadata.items() if not notes)
    for name, worker in s.workers.items():
        if worker["seen_at"] is None and not worker["held"]:
            yield f"worker {name} is not on the list and holds nothing"
    for name, queue in s.queues.items():
        if queue["first_seen"] is None and not any(v for k, v in queue.items() if k != "first_seen"):
            yield f"queue {name} has nothing"


@invariant
def places_by_age_are_those_of_some_rate(s: Snapshot) -> Iterator[str]:
    """A ready job that stands by its age stands at its ready time, or turn, and its priority times a rate."""
    for name, queue in s.queues.items():
        for first, at, _, jid in queue["ready"]:
            job = s.jobs.get(jid)
            if job is None or not is_by_age(first) or abs(first + APART) == LAST:
                continue
            later, priority = first + APART - (at if at >= 0 else -1 - at), job["priority"]
            rate = later // priority if priority else 1
            if later != priority * rate or not 0 < rate <= OPTIONS["aging"].high:
                yield f"{jid} of priority {priority} stands in {name} {later} ms later than it became ready"


@invariant
def turns_are_kept_for_those_that_wait(s: Snapshot) -> Iterator[str]:
    """The next turns of a priority are kept while jobs with a turn wait there, and no other job has one."""
    counts: dict[str, Counter[int]] = {}
    for jid, job in s.jobs.items():
        if "turn" in dict(job["options"]):
            counts.setdefault(job["queue"], Counter())[job["priority"]] += 1
            if job["state"] != "waiting":
                yield f"{jid} is {job['state']} and has a turn"
    for name, queue in s.queues.items():
        kept = {priority: one["jobs"] for priority, one in queue["turns"].items()}
        if kept != counts.get(name, {}):
            yield f"{name} keeps turns for {kept} jobs, and {counts.get(name, {})} wait"
        for priority, one in queue["turns"].items():
            if not one["next"] or not all(0 <= turn < NEVER + 1 for turn in one["next"].values()):
                yield f"{name} has the next turns {one['next']} at priority {priority}"


# ---- sequences


@invariant
def sequences_are_unique_and_past(s: Snapshot) -> Iterator[str]:
    """No two jobs, recurring or not, have the same sequence, and none is later than the last event."""
    counts = Counter(job["seq"] for job in s.jobs.values())
    for jid, job in s.jobs.items():
        if counts[job["seq"]] > 1 or not 0 < job["seq"] <= s.seq:
            yield f"{jid} has sequence {job['seq']} of {s.seq}"
    schedules = Counter(one["seq"] for one in s.schedules.values())
    yield from (f"recurs from sequence {n}" for n, c in schedules.items() if c > 1 or not 0 < n <= s.seq or n in counts)
    tracked = Counter(s.tracked.values())
    yield from (f"tracked {n} twice" for n, c in tracked.items() if c > 1 or not 0 < n <= s.seq)


@invariant
def tokens_are_unique_and_past(s: Snapshot) -> Iterator[str]:
    """Every token is the epoch and the sequence of a claim: no two jobs share one, and none is in the future."""
    counts = Counter(job["token"] for job in s.jobs.values() if job["token"])
    for jid, job in s.jobs.items():
        if counts[job["token"]] > 1 or not (
            0 <= job["token"] % TOKEN_EPOCH <= s.seq and job["token"] // TOKEN_EPOCH <= s.epoch
        ):
            yield f"{jid} has token {job['token']} of {s.seq} in epoch {s.epoch}"
        if job["state"] == "running" and job["token"] % TOKEN_EPOCH != job["seq"]:
            yield f"{jid} runs under token {job['token']} from sequence {job['seq']}"


@invariant
def epochs_grow_with_the_events(s: Snapshot) -> Iterator[str]:
    """The epochs of the kept events grow, up to the current one; each begins within the kept events."""
    spans = [*s.epochs, (s.seq + 1, s.epoch + 1)]
    if s.events and s.epochs and (s.epochs[0][0] != s.seq - s.events + 1 or s.epochs[-1][1] != s.epoch):
        yield f"the epochs are {s.epochs}, of {s.events} events up to {s.seq} in epoch {s.epoch}"
    for (before, previous), (first, epoch) in pairwise(spans):
        if first <= before or epoch <= previous:
            yield f"epoch {epoch} from {first} on does not follow epoch {previous} from {before} on"


@invariant
def events_are_kept_within_bounds(s: Snapshot) -> Iterator[str]:
    """All events are kept, up to max-events."""
    most = s.config.get("max-events", OPTIONS["max-events"].default)
    if s.events > min(most, s.seq) or (s.seq and not s.events):
        yield f"{s.events} events are kept of {s.seq}, and max-events is {most}"


# ---- leases


@invariant
def a_lease_is_what_a_running_job_has(s: Snapshot) -> Iterator[str]:
    """Only a running job has a worker and an expiry."""
    for jid, job in s.jobs.items():
        running = job["state"] == "running"
        if running is not bool(job["worker"]) or running is not (job["expires_at"] > 0):
            yield f"{jid} is {job['state']}: worker {job['worker']!r}, expires {job['expires_at']}"
        if job["grant"] and not running:
            yield f"{jid} is {job['state']} and was granted under {job['grant']}"


@invariant
def a_leased_job_is_held_by_its_worker_alone(s: Snapshot) -> Iterator[str]:
    """The jobs that workers hold are the running ones, each held by the worker it names."""
    held = [(jid, name, n) for name, w in s.workers.items() for jid, n in w["held"].items()]
    wanted = [(j, job["worker"], job["seq"]) for j, job in s.jobs.items() if job["state"] == "running"]
    yield from (f"{jid} is held by {name} as of {n}" for jid, name, n in set(held) - set(wanted))
    yield from (f"{jid} is not held by {name}" for jid, name, n in set(wanted) - set(held))
    yield from (f"{jid} is held twice" for jid, c in Counter(j for j, _, _ in held).items() if c > 1)


@invariant
def grants_are_held(s: Snapshot) -> Iterator[str]:
    """A worker still holds every job of a remembered grant, under the same request."""
    for name, worker in s.workers.items():
        for request, jids in worker["grants"].items():
            if not jids or len(set(jids)) != len(jids):
                yield f"{name} was granted {jids} under {request}"
            for jid in jids:
                grant = s.jobs[jid]["grant"] if jid in s.jobs else None
                if jid not in worker["held"] or grant != request:
                    yield f"{name} does not hold {jid} under {request}"


# ---- dependencies


@invariant
def edges_stand_on_both_sides(s: Snapshot) -> Iterator[str]:
    """A job names the jobs and the requests that it waits for, and they name it."""
    waited_for = {jid: job["dependents"] for jid, job in _awaited(s).items()}
    for jid, job in s.jobs.items():
        for far in job["dependencies"]:
            if jid not in waited_for.get(far, ()):
                yield f"{jid} names {far} among its dependencies, which does not name it"
    for jid, dependents in waited_for.items():
        for far in dependents:
            if far not in s.jobs or jid not in s.jobs[far]["dependencies"]:
                yield f"{jid} names {far} among its dependents, which does not name it"


def _awaited(s: Snapshot) -> dict[str, Record]:
    """What a job may wait for: the jobs and the requests, as edges call them."""
    return {**s.jobs, **{after_request(id): one for id, one in s.requested.items()}}


@invariant
def edges_lead_to_unfinished_jobs(s: Snapshot) -> Iterator[str]:
    """No job waits for a complete job."""
    for jid, job in s.jobs.items():
        if job["state"] == "complete" and (job["dependents"] or job["dependencies"]):
            yield f"{jid} is complete, and still has dependencies or dependents"


@invariant
def a_job_waits_for_others_iff_it_has_dependencies(s: Snapshot) -> Iterator[str]:
    """A job with dependencies is in the state `depends`, or failed; a job in `depends` has dependencies."""
    for jid, job in s.jobs.items():
        if job["state"] != "failed" and (job["state"] == "depends") is not bool(job["dependencies"]):
            yield f"{jid} is {job['state']} and waits for {job['dependencies']}"


def in_a_cycle(s: Snapshot) -> list[str]:
    """The jobs and requests that wait for themselves, directly or not, and those that wait for such."""
    left = {jid: set(job["dependencies"]) for jid, job in s.jobs.items() if job["dependencies"]}
    left |= {after_request(id): set(one["unfinished"]) for id, one in s.requested.items() if one["unfinished"]}
    while free := [jid for jid, others in left.items() if not others & left.keys()]:
        for jid in free:
            del left[jid]
    return sorted(left)


@invariant
def no_job_waits_for_itself(s: Snapshot) -> Iterator[str]:
    """The dependencies have no cycle, also none through the sub-requests of a request that a job waits for."""
    if left := in_a_cycle(s):
        yield f"{left} wait for each other"


@invariant
def edges_that_follow_a_failure_have_followed(s: Snapshot) -> Iterator[str]:
    """No job waits for a failed one by an `ignore` edge, unless the cascade has yet to process it."""
    left = {jid for _, jid, _ in s.cascade}
    for jid, job in s.jobs.items():
        for other, mark in job["marks"]:
            if not 0 < mark < 2 * len(POLICIES) or other not in job["dependencies"]:
                yield f"{jid} has an edge to {other} with the mark {mark}"
            elif awaited_request(other) or other in left:
                continue
            elif POLICIES[mark // 2] == "ignore" and s.jobs[other]["state"] == "failed":
                yield f"{jid} waits for {other}, which failed, and was to be ignored"


@invariant
def only_blocked_jobs_wait_for_an_ended_request(s: Snapshot) -> Iterator[str]:
    """No job waits for a request that ended with each sub-request done. For one that ended otherwise only edges that
    say `block` are left, unless the cascade has yet to process it.
    """
    left = {jid for _, jid, _ in s.cascade}
    for id, one in s.requested.items():
        name = after_request(id)
        if one["state"] not in ("done", "canceled") or name in left:
            continue
        for jid in one["dependents"]:
            if one["state"] == "done" and one["done"] == one["total"]:
                yield f"{jid} waits for {id}, which is done"
            elif dict(s.jobs[jid]["marks"]).get(name, 0) // 2 != POLICIES.index("block"):
                yield f"{jid} waits for {id}, which is {one['state']}, and was to follow"


@invariant
def a_request_knows_its_jobs_with_dependencies(s: Snapshot) -> Iterator[str]:
    """The sub-requests that wait for others are among those that were given dependencies, which are unfinished."""
    for id, one in s.requested.items():
        waiting = {jid for jid in one["unfinished"] if jid in s.jobs and s.jobs[jid]["dependencies"]}
        if not waiting <= set(one["given"]) <= set(one["unfinished"]):
            yield f"{sorted(waiting)} of {id} wait for others, and {one['given']} were given dependencies"


@invariant
def a_request_knows_the_jobs_that_have_begun(s: Snapshot) -> Iterator[str]:
    """The sub-requests that are noted to have yielded a slot are unfinished, and have begun."""
    for id, one in s.requested.items():
        for jid in one["yielded"]:
            if jid not in one["unfinished"] or jid not in s.jobs or s.jobs[jid]["token"] == 0:
                yield f"{jid} of {id} has yielded a slot, and {s.jobs.get(jid)}"


@invariant
def results_are_those_of_named_edges(s: Snapshot) -> Iterator[str]:
    """A job keeps or expects a result for each of its named edges, and counts the names that it was given."""
    for jid, kept in s.results.items():
        named = {other for other, mark in s.jobs[jid]["marks"] if mark % 2} if jid in s.jobs else set()
        expected = {other for other, _, state, _ in kept if not state}
        given = int(dict(s.jobs[jid]["options"]).get("results", 0)) if jid in s.jobs else 0
        if expected != named or len(kept) > given or given > MOST:
            yield f"{jid} expects {sorted(expected)} of {sorted(named)}, and keeps {len(kept)} of {given}"
    for jid, job in s.jobs.items():
        if jid not in s.results and any(mark % 2 for _, mark in job["marks"]):
            yield f"{jid} expects nothing of {job['marks']}"


@invariant
def the_cascade_is_of_the_past(s: Snapshot) -> Iterator[str]:
    """The sequences in the cascade are those of past events."""
    for seq, jid, _ in s.cascade:
        if not 0 < seq <= s.seq:
            yield f"{jid} failed at {seq} of {s.seq}"


@invariant
def dependents_are_bounded(s: Snapshot) -> Iterator[str]:
    """A job or a request has at most 1000 dependents, so that its end is bounded."""
    for jid, job in _awaited(s).items():
        if len(job["dependents"]) > MOST:
            yield f"{jid} has {len(job['dependents'])} dependents"


# ---- a job's own fields


@invariant
def retries_remain_within_bounds(s: Snapshot) -> Iterator[str]:
    """Between 0 and all of a job's retries remain."""
    for jid, job in s.jobs.items():
        if not 0 <= job["remaining"] <= job["retries"]:
            yield f"{jid} has {job['remaining']} of {job['retries']} retries"


@invariant
def an_ended_job_says_when(s: Snapshot) -> Iterator[str]:
    """Only a complete or failed job has ended; a failed one ended at the time of its failure."""
    for jid, job in s.jobs.items():
        if job["ended_at"] and job["state"] not in ("complete", "failed"):
            yield f"{jid} is {job['state']} and ended at {job['ended_at']}"
        if job["state"] == "failed" and (not job["failure"] or job["failure"][2] != job["ended_at"]):
            yield f"{jid} failed at {job['ended_at']}, and its failure is {job['failure']}"
        if job["state"] == "complete" and job["failure"]:
            yield f"{jid} is complete, and keeps the failure {job['failure']}"


@invariant
def every_job_was_put(s: Snapshot) -> Iterator[str]:
    """Every job has a put time, a queue and a klass."""
    for jid, job in s.jobs.items():
        if not job["queue"] or not job["klass"] or job["put_at"] < 0 or job["ready_at"] < 0:
            yield f"{jid}: {job['queue']!r} {job['klass']!r} {job['put_at']} {job['ready_at']}"


@invariant
def history_is_bounded_and_well_formed(s: Snapshot) -> Iterator[str]:
    """A history begins with the first put, or with the schedule of a run; stages have the facts of their kind."""
    most = max(o.high for name, o in OPTIONS.items() if name == "max-job-history")
    for jid, job in s.jobs.items():
        stages = job["history"]
        begins = stages[1:] if stages[:1] and stages[0][0] == "spawned" else stages
        if not stages or (begins == stages and stages[0][0] != "put") or len(stages) > most:
            yield f"{jid} has {len(stages)} stages, the first {stages[:1]}"
        for what, _, facts in stages:
            if what not in HISTORY or len(facts) != len(HISTORY[what]):
                yield f"{jid} has the stage {what} {facts}"


@invariant
def a_lease_ends_once(s: Snapshot) -> Iterator[str]:
    """No token is in two stages that end a lease, except `retried` and the failure that it caused."""
    ends = {"completed": 0, "retried": 0, "released": 0, "failed": 0, "lapsed": 1, "timed_out": 1}
    for jid, job in s.jobs.items():
        tokens = [facts[ends[what]] for what, _, facts in job["history"] if what in ends]
        if len(tokens) > len(set(tokens)):
            yield from (f"{jid}: {t} ended {c} times" for t, c in Counter(tokens).items() if c > 1 and t)


@invariant
def failed_jobs_may_be_deleted_unless_they_are_kept(s: Snapshot) -> Iterator[str]:
    """The list of failed jobs has each at the time of its failure, except those marked as kept."""
    wanted = set()
    for jid, job in s.jobs.items():
        kept = ("kept", "1") in job["options"]
        if kept and job["state"] != "failed":
            yield f"{jid} is {job['state']}, and marked as kept"
        if job["state"] == "failed" and not kept:
            wanted.add((job["ended_at"], job["seq"], jid))
    yield from (f"{place} is listed as failed, or should be" for place in sorted(wanted ^ set(s.failed)))


@invariant
def only_a_running_job_is_marked_as_revoked(s: Snapshot) -> Iterator[str]:
    """Only running jobs are marked as revoked; any other job fails at once when it is revoked."""
    for jid, job in s.jobs.items():
        if job["state"] != "running" and any(name == "revoked" for name, _ in job["options"]):
            yield f"{jid} is {job['state']}, and marked as revoked"


@invariant
def jobs_that_may_expire_are_listed(s: Snapshot) -> Iterator[str]:
    """Jobs with a time to live have not started, and are in their queue's list at the last time to start."""
    found = Counter((name, place) for name, queue in s.queues.items() for place in queue["expires"])
    wanted: Counter[tuple[str, Any]] = Counter()
    for jid, job in s.jobs.items():
        for ttl in (int(value) for name, value in job["options"] if name == "ttl_ms"):
            wanted[job["queue"], (job["put_at"] + ttl, job["seq"], jid)] += 1
            if job["state"] not in ("scheduled", "depends", "waiting", "throttled"):
                yield f"{jid} is {job['state']}, and may still expire"
    yield from (f"{place} is in {name}, wrongly" for name, place in found - wanted)
    yield from (f"{place} is not in {name}" for name, place in wanted - found)


@invariant
def jobs_with_their_own_retention_are_listed(s: Snapshot) -> Iterator[str]:
    """Ended jobs with their own retention are listed at its end, except those marked as kept."""
    wanted = set()
    for jid, job in s.jobs.items():
        said = dict(job["options"]).get(
            {"complete": "keep_complete_ms", "failed": "keep_failed_ms"}.get(job["state"], "")
        )
        if said is not None and ("kept", "1") not in job["options"]:
            wanted.add((job["ended_at"] + int(said) if said != "0" else 0, job["seq"], jid))
    yield from (f"{place} is or is not to be kept" for place in wanted ^ set(s.keeping))


# ---- throttles


@invariant
def leased_jobs_hold_their_throttles(s: Snapshot) -> Iterator[str]:
    """The holders of a throttle are the running and stalled jobs that name it, and were not released, by claim."""
    wanted: dict[str, list[tuple[int, str]]] = {}
    for jid, job in s.jobs.items():
        if job["state"] in ("running", "stalled"):
            said = dict(job["options"])
            for name in set(said.get("throttles", "").split()) - set(said.get("released", "").split()):
                wanted.setdefault(name, []).append((job["token"] % TOKEN_EPOCH, jid))
    for name in wanted.keys() | s.throttles.keys():
        held = s.throttles[name]["held"] if name in s.throttles else ()
        if list(held) != sorted(wanted.get(name, [])):
            yield f"{name} is held by {held}, and {sorted(wanted.get(name, []))} run"


@invariant
def each_throttle_knows_its_parked_jobs(s: Snapshot) -> Iterator[str]:
    """A job is parked at the throttle that its option names, or was admitted by it and waits."""
    wanted: Counter[tuple[str, str, str, tuple[Any, ...]]] = Counter()
    for jid, job in s.jobs.items():
        options = dict(job["options"])
        if ("gate" in options) is not ("parked" in options):
            yield f"{jid} has the options {options}"
        if "gate" in options:
            throttled = job["state"] == "throttled"
            if not throttled and job["state"] != "waiting":
                yield f"{jid} is {job['state']}, and at the throttle {options['gate']}"
            spent = () if throttled else (int(options.get("cost", 1)),)
            place = (job["priority"], int(options["parked"]), *spent, jid)
            wanted[job["queue"], options["gate"], "parked" if throttled else "let", place] += 1
    found = Counter(
        (queue, name, which, place)
        for queue, record in s.queues.items()
        for name, gate in record["gates"].items()
        for which in ("parked", "let")
        for place in gate[which]
    )
    yield from (f"{entry} is parked or admitted, wrongly" for entry in found - wanted)
    yield from (f"{entry} is neither parked nor admitted" for entry in wanted - found)


@invariant
def parked_jobs_are_in_order(s: Snapshot) -> Iterator[str]:
    """No empty entry is kept; a throttle without parked jobs is not checked; it knows the queues with parked jobs."""
    queues: dict[str, set[str]] = {}
    for name, queue in s.queues.items():
        for throttle, gate in queue["gates"].items():
            if not gate["parked"] and not gate["let"]:
                yield f"{name} keeps an empty entry for {throttle}"
            if not gate["parked"] and gate["moment"] != NEVER:
                yield f"{name} checks {throttle} from {gate['moment']} on, without parked jobs"
            if list(gate["parked"]) != sorted(gate["parked"]) or list(gate["let"]) != sorted(gate["let"]):
                yield f"the jobs of {name} at {throttle} are not sorted"
            if gate["parked"]:
                queues.setdefault(throttle, set()).add(name)
    for name in queues.keys() | s.throttles.keys():
        known = s.throttles[name]["queues"] if name in s.throttles else ()
        if list(known) != sorted(queues.get(name, ())):
            yield f"{name} knows of {known}, and jobs of {sorted(queues.get(name, ()))} are parked"


@invariant
def throttles_are_within_bounds(s: Snapshot) -> Iterator[str]:
    """A bucket holds between 0 and its capacity, a window at most as many claims as allowed; no throttle is empty."""
    families = {one["generation"]: one for name, one in s.throttles.items() if names_family(name) and _is_limited(one)}
    for name, one in s.throttles.items():
        rule = families.get(one["generation"]) if one["cools_at"] else one
        full = rule["capacity"] * rule["refill_ms"] if rule else one["level"]
        if not 0 <= one["level"] <= full or len(one["claims"]) > 10_000:
            yield f"{name}: {one['level']} in the bucket, {len(one['claims'])} claims"
        if (one["claims"] and rule and not rule["rate"]) or list(one["claims"]) != sorted(one["claims"]):
            yield f"{name} has the claims {one['claims']}"
        if not (_is_limited(one) or one["held"] or one["queues"] or one["cools_at"]):
            yield f"{name} is kept without limits, holders and queues"


def _is_limited(throttle: Record) -> bool:
    return bool(throttle["concurrency"] or throttle["rate"] or throttle["capacity"])


@invariant
def families_have_a_generation(s: Snapshot) -> Iterator[str]:
    """Families are few, and each has a generation of its own. Beside them only a throttle without limits has one, until
    it is empty and full again.
    """
    families = [one["generation"] for name, one in s.throttles.items() if names_family(name) and _is_limited(one)]
    if len(families) > 25 or len(set(families)) < len(families) or not all(families):
        yield f"the generations of the families are {families}"
    for name, one in s.throttles.items():
        follows = one["generation"] and not (names_family(name) and _is_limited(one))
        if bool(follows) != bool(one["cools_at"]) or (follows and _is_limited(one)) or one["generation"] > s.seq:
            yield f"{name} has the generation {one['generation']}, and cools at {one['cools_at']}"
        latest = max((at for at, _ in one["claims"]), default=0)
        if one["cools_at"] and latest > one["cools_at"]:
            yield f"{name} cools at {one['cools_at']}, before its claim at {latest}"


# ---- concurrency keys


def _concurrency_key(job: Record) -> str | None:
    """The concurrency key that a job needs a slot of."""
    options = dict(job["options"])
    key, request = options.get("ordered"), options.get("request")
    return f"ordered:{key}" if key is not None else f"request:{request}" if request is not None else None


@invariant
def concurrency_keys_hold_their_jobs(s: Snapshot) -> Iterator[str]:
    """A job with a slot is listed at its key, and so is one that is parked for want of a slot."""
    found = {(name, jid) for name, line in s.lines.items() for jid in line["active"]}
    parked = {(name, place) for name, line in s.lines.items() for place in line["parked"]}
    for jid, job in s.jobs.items():
        name = _concurrency_key(job)
        if "line" in dict(job["options"]):
            if (name, jid) not in found:
                yield f"{jid} has no slot of {name}, but says so"
            found.discard((name, jid))
        elif name is not None and job["state"] == "throttled":
            place = (name, (job["ready_at"], job["seq"], jid))
            if place not in parked:
                yield f"{jid} is not parked at {name}"
            parked.discard(place)
    yield from (f"{jid} has a slot of {name}, wrongly" for name, jid in found)
    yield from (f"{place} is parked at {name}, wrongly" for name, place in parked)


@invariant
def no_job_starts_without_a_slot(s: Snapshot) -> Iterator[str]:
    """A job with a key has a slot when it is ready or leased, and none when it has ended or waits for others."""
    for jid, job in s.jobs.items():
        had = "line" in dict(job["options"])
        if (job["state"] in ("waiting", "running", "stalled") and _concurrency_key(job) and not had) or (
            job["state"] in ("depends", "complete", "failed") and had
        ):
            yield f"{jid} is {job['state']}, with the options {job['options']}"


@invariant
def no_job_is_parked_while_a_slot_is_free(s: Snapshot) -> Iterator[str]:
    """No job is parked at a key while a slot is free; no key without jobs is kept."""
    for name, line in s.lines.items():
        kind, _, id = name.partition(":")
        limit = 1
        if kind == "request":
            request = s.requested[id]
            goes_on = request["reason"] == "failed" and not request["ending"]
            limit = request["limit"] if request["state"] in ("open", "closed") or goes_on else 0
        size = len(line["active"])
        if (line["parked"] and size < limit) or (kind == "ordered" and size != 1) or not (size or line["parked"]):
            yield f"{name}: {line}"


# ---- requests


@invariant
def requests_count_their_jobs(s: Snapshot) -> Iterator[str]:
    """Each unfinished sub-request is a job that names its request; ended ones are counted once."""
    named = {(dict(job["options"]).get("request"), jid) for jid, job in s.jobs.items()}
    for id, one in s.requested.items():
        counted = one["done"] + one["failed"] + one["canceled"]
        known_to = [*one["unfinished"], *(jid for jid, *_ in one["ended"])]
        if one["total"] != counted + len(one["unfinished"]) or len(set(known_to)) != len(known_to):
            yield f"{id}: {one}"
        if len(set(one["order"])) != one["total"] or not set(known_to) <= set(one["order"]):
            yield f"{id} was given {one['total']} sub-requests, and orders {one['order']}"
        outcomes = Counter(outcome for _, outcome, _ in one["ended"])
        if any(number > one[outcome] for outcome, number in outcomes.items()):
            yield f"{id} has counted otherwise than its sub-requests have ended: {one}"
        if len(one["ended"]) > counted or (len(one["ended"]) < counted and not one["ended_at"]):
            yield f"{id} has counted {counted}, and knows {one['ended']}"
        yield from (f"{jid} is no sub-request of {id}" for jid in one["unfinished"] if (id, jid) not in named)
    known = {(id, jid) for id, one in s.requested.items() for jid in one["unfinished"]}
    yield from (f"{jid} is not known to {id}" for id, jid in named - known if id is not None)


@invariant
def each_request_stands_in_the_list_of_its_state(s: Snapshot) -> Iterator[str]:
    """A request is in the list of its state, at the time since when, and in no other."""
    found = Counter((state, place) for state, places in s.request_states.items() for place in places)
    wanted = Counter((one["state"], (one["state_at"], one["seq"], id)) for id, one in s.requested.items())
    yield from (f"{place} is {state}, wrongly" for state, place in found - wanted)
    yield from (f"{place} is not {state}" for state, place in wanted - found)


@invariant
def a_request_ends_with_its_last_job(s: Snapshot) -> Iterator[str]:
    """A request has ended exactly when it has no work left, and keeps the time."""
    for id, one in s.requested.items():
        ended = one["state"] in ("done", "canceled")
        if ended is not (one["state"] != "open" and not one["unfinished"]) or (one["ended_at"] and not ended):
            yield f"{id}: {one}"
        if not 1 <= one["limit"] <= MOST:
            yield f"{id} has the limit {one['limit']}"


# ---- recurring jobs


@invariant
def each_recurring_job_stands_in_its_queue(s: Snapshot) -> Iterator[str]:
    """A schedule is in the list of its queue only, at its due time, or at none while it is suspended."""
    found = Counter((name, place) for name, queue in s.queues.items() for place in queue["recur"])
    wanted = Counter(
        (one["queue"], (NO_TIME if _stands_still(one) else one["next_at"], one["seq"], jid))
        for jid, one in s.schedules.items()
    )
    yield from (f"{place} is in {name}, wrongly" for name, place in found - wanted)
    yield from (f"{place} is not in {name}" for name, place in wanted - found)


@invariant
def moments_are_wanted_where_a_list_goes_on(s: Snapshot) -> Iterator[str]:
    """Due times are wanted for exactly the cron schedules that continue and are not suspended."""
    wanted = sorted(
        (one["last_at"], one["seq"], jid)
        for jid, one in s.schedules.items()
        if one["kind"] == "cron" and not _stands_still(one) and not 0 < one["end_at"] <= one["last_at"]
    )
    if list(s.crons) != wanted:
        yield f"due times are wanted for {s.crons}, and should be for {wanted}"


def _stands_still(one: Record) -> bool:
    return bool(one["paused"] or (one["overlap"] == "skip" and one["open"]))


@invariant
def open_runs_are_counted(s: Snapshot) -> Iterator[str]:
    """A recurring job counts the runs that it waits for; each of them is unfinished."""
    said = {jid: dict(job["options"]).get("schedule") for jid, job in s.jobs.items()}
    found = Counter(whose for whose in said.values() if whose is not None)
    for jid, one in s.schedules.items():
        unfinished = found[f"{jid} {one['since']}"]
        if one["open"] != unfinished:
            yield f"{jid} waits for {one['open']} runs, and {unfinished} are unfinished"
    for jid, whose in said.items():
        if whose is not None and s.jobs[jid]["state"] in ("complete", "failed"):
            yield f"{jid} is {s.jobs[jid]['state']}, and {whose} waits for it"


@invariant
def recurring_jobs_are_within_bounds(s: Snapshot) -> Iterator[str]:
    """A schedule has an interval or ordered due times, no negative number, and more runs to come."""
    for jid, one in s.schedules.items():
        fields = ("backlog", "runs", "made", "open", "next_at", "last_at", "retries", "limit", "catchup_ms")
        times = [one["next_at"], *one["later"]]
        listed = one["kind"] == "cron" and times == sorted(set(times)) and len(times) <= 100
        if (
            min(one[name] for name in fields) < 0
            or (one["interval_ms"] > 0) is (one["kind"] == "cron")
            or len(set(one["tags"])) != len(one["tags"])
            or not one["klass"]
            or (one["later"] and not listed)
            or 0 < one["limit"] <= one["made"]
        ):
            yield f"{jid}: {one}"


@invariant
def runs_name_their_schedule(s: Snapshot) -> Iterator[str]:
    """The id of a run is that of its recurring job, with a number."""
    for jid, job in s.jobs.items():
        for _, _, (schedule,) in (stage for stage in job["history"] if stage[0] == "spawned"):
            if not (jid.startswith(f"{schedule}-") and jid[len(schedule) + 1 :].isdigit()):
                yield f"{jid} is a run of {schedule}"


# ---- keys


@invariant
def a_key_is_held_by_a_job_that_has_not_ended(s: Snapshot) -> Iterator[str]:
    """The holder of a key exists and has not ended; only a window is kept to its end in any case."""
    for key, one in s.uniques.items():
        job = s.jobs.get(one["jid"])
        ended = job is None or job["state"] in ("complete", "failed") or ("unique", key) not in job["options"]
        if one["mode"] == "window" and not one["ends"]:
            yield f"{key} is a window without an end"
        if one["mode"] != "window" and (ended or (one["ends"] and one["mode"] != "pending")):
            yield f"{key} is held by {one}"


@invariant
def the_next_job_of_a_key_names_the_holder(s: Snapshot) -> Iterator[str]:
    """The job that waits for the holder of a key names it, and no other job does."""
    wanted = {one["next"]: (key, one["jid"]) for key, one in s.uniques.items() if one["next"]}
    for jid, job in s.jobs.items():
        options = dict(job["options"])
        said = (options.get("unique"), options["holder"]) if "holder" in options else None
        if said != wanted.get(jid):
            yield f"{jid} says {said}, and is kept for {wanted.get(jid)}"
    yield from (f"{jid} is kept for {wanted[jid]}, and gone" for jid in wanted.keys() - s.jobs.keys())


# ---- messages, and who subscribes to them


@invariant
def messages_are_in_order(s: Snapshot) -> Iterator[str]:
    """Each message has a greater number than the one before it, and is not older."""
    before = (0, 0)
    for seq, at, due_at, subject, _ in s.messages:
        if not before[0] < seq <= s.seq or at < before[1] or due_at < 0 or not subject:
            yield f"message {seq} of {at}, due at {due_at}, about {subject!r}, stands behind {before}"
        before = (seq, at)


@invariant
def subscriptions_are_within_bounds(s: Snapshot) -> Iterator[str]:
    """There are at most 100 subscriptions, each with its own sequence and one to ten patterns."""
    if len(s.subscriptions) > 100:
        yield f"there are {len(s.subscriptions)} subscriptions"
    counts = Counter(one["seq"] for one in s.subscriptions.values())
    for name, one in s.subscriptions.items():
        least = min(one["seq"] - 1, one["retries"], one["delay_ms"])
        if counts[one["seq"]] > 1 or one["seq"] > s.seq or least < 0 or not (one["queue"] and one["klass"]):
            yield f"{name}: {one}"
        if not 1 <= len(one["patterns"]) <= 10 or len(set(one["patterns"])) != len(one["patterns"]):
            yield f"{name} has the patterns {one['patterns']}"


@invariant
def subscriptions_behind_have_messages_to_get(s: Snapshot) -> Iterator[str]:
    """A subscription has a position only while there is a message after it."""
    last = s.messages[-1][0] if s.messages else 0
    for name, one in s.subscriptions.items():
        if one["position"] is not None and not 0 <= one["position"] < last:
            yield f"{name} is at {one['position']}, and the last message is {last}"


# ---- tags, tracking, statistics, options


@invariant
def the_index_of_tags_is_the_tags_of_jobs(s: Snapshot) -> Iterator[str]:
    """A tag lists the jobs that have it, with the same sequences."""
    listed = {(t, jid, seq) for t, entries in s.tags.items() for seq, jid in entries}
    had = {(tag, jid, seq) for jid, job in s.jobs.items() for tag, seq in job["tags"]}
    yield from (f"{tag} lists {jid} since {n}, wrongly" for tag, jid, n in sorted(listed - had))
    yield from (f"{tag} does not list {jid} since {n}" for tag, jid, n in sorted(had - listed))


@invariant
def samples_add_up(s: Snapshot) -> Iterator[str]:
    """A sample's count is the sum of its bins, and none of its numbers is negative."""
    for key, day in s.days.items():
        for of in (day, *day["tags"].values(), *day["workers"].values()):
            for what in ("wait", "run"):
                sample = of[what]
                if sample["count"] != sum(sample["bins"].values()):
                    yield f"{key} {what}: {sample['count']} counted, {sample['bins']}"
                if sample["mean"] < 0 or sample["squares"] < 0 or min(sample["bins"].values(), default=1) < 1:
                    yield f"{key} {what}: {sample}"
        if key[0] % DAY_MS:
            yield f"{key} does not begin a day"


@invariant
def tags_and_workers_are_part_of_their_day(s: Snapshot) -> Iterator[str]:
    """What is counted by a tag or a worker is part of the day's counts, and the tags and workers are bounded."""
    for key, day in s.days.items():
        for by in ("tags", "workers"):
            if len(day[by]) > OPTIONS["stats-" + by].high:
                yield f"{key} is counted by {len(day[by])} {by}"
            for name, part in day[by].items():
                counts = part["wait"]["count"], part["run"]["count"]
                if not any(counts) or counts[0] > day["wait"]["count"] or counts[1] > day["run"]["count"]:
                    yield f"{key} counts {counts} by {name}"
        one = [sum(part[what]["count"] for part in day["workers"].values()) for what in ("wait", "run")]
        if one[0] > day["wait"]["count"] or one[1] > day["run"]["count"]:
            yield f"{key} counts {one} by its workers"


@invariant
def failures_add_up(s: Snapshot) -> Iterator[str]:
    """The failures of a day that still stand are at most the failed jobs of that day and queue.

    They are fewer if a clock went back to a day whose statistics had been deleted: that day began again from 0.
    """
    failed = Counter(
        (job["ended_at"] // DAY_MS * DAY_MS, job["queue"]) for job in s.jobs.values() if job["state"] == "failed"
    )
    for key, day in s.days.items():
        if not day["failed"] <= min(failed[key], day["failures"]) or day["retries"] < 0:
            yield f"{key}: {day['failed']} of {day['failures']}, and {failed[key]} jobs are failed"


@invariant
def minutes_are_part_of_their_day(s: Snapshot) -> Iterator[str]:
    """The counts of minutes are part of the day's counts; an empty minute is not kept."""
    for key, day in s.days.items():
        if any(not 0 <= minute < 1440 or not any(counts) for minute, counts in day["minutes"].items()):
            yield f"{key} has the minutes {day['minutes']}"
        completed, failed, retried, run_ms = map(sum, zip((0, 0, 0, 0), *day["minutes"].values(), strict=True))
        if completed > day["run"]["count"] or failed > day["failures"] or retried > day["retries"] or run_ms < 0:
            yield f"{key}: {completed}, {failed}, {retried} by the minute, which is more than of the day"


@invariant
def options_are_in_their_range(s: Snapshot) -> Iterator[str]:
    """Every option that is set exists, and its value is in range."""
    for name, value in s.config.items():
        known = OPTIONS.get(meant_by(name) or "")
        if known is None or not known.low <= value <= known.high:
            yield f"{name} is {value}"


@invariant
def the_journal_has_no_gaps(s: Snapshot) -> Iterator[str]:
    """The kept entries are the last ones, without a gap, and at most max-journal."""
    most = s.config.get("max-journal", OPTIONS["max-journal"].default)
    numbers = [number for number, *_ in s.journal]
    if len(numbers) > most or numbers != list(range(s.journaled - len(numbers) + 1, s.journaled + 1)):
        yield f"the entries {numbers[:3]}... are kept of {s.journaled}, and max-journal is {most}"
    if any(seq > s.seq for _, seq, *_ in s.journal):
        yield f"an entry was recorded after an event that has not been: the last is {s.seq}"


@invariant
def metadata_are_bounded(s: Snapshot) -> Iterator[str]:
    """A klass has at most 1000 keys."""
    yield from (f"klass {name} has {len(notes)} keys" for name, notes in s.metadata.items() if len(notes) > MOST)


@invariant
def memories_are_bounded(s: Snapshot) -> Iterator[str]:
    """At most 1000 requests are remembered, and at most 1000 idle workers of a queue are counted."""
    if len(s.requests) > MOST or len({request for request, _ in s.requests}) != len(s.requests):
        yield f"{len(s.requests)} requests are remembered"
    for name, queue in s.queues.items():
        if min(queue["idle"], queue["wakes"]) < 0 or queue["idle"] + queue["wakes"] > MOST:
            yield f"{name}: {queue['idle']} idle, {queue['wakes']} woken"
