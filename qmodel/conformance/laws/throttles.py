"""Laws of throttles: their limits, counted from claims alone, and that no job waits at an open one.

The ghost of a throttle is what the events tell of it: its limits, its claims with their costs, and the tokens of its
bucket, as a fraction. Which jobs hold a place is read from the records in the middle of the step: those that are
running, stalled or being taken back, and name the throttle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories
from qmodel.conformance.laws.told import Told
from qmodel.model.snapshot import Record

HOLDING = ("running", "stalled", "taken")


class Limits(NamedTuple):
    """What the event `limited` says."""

    concurrency: int
    rate: int
    rate_ms: int
    capacity: int
    refill: int
    refill_ms: int


def names(job: Record, own: bool = True) -> list[str]:
    """The throttles that a claim of a job passes."""
    named = dict(job["options"]).get("throttles", "")
    return [*dict.fromkeys(named.split()), *([f"queue/{job['queue']}"] if own else [])]


def cost(job: Record) -> int:
    """The tokens that a claim of a job takes."""
    return int(dict(job["options"]).get("cost", 1))


def _matches(family: str, name: str) -> bool:
    """Whether a family rules a throttle of this name, if that has no limits of its own."""
    return re.fullmatch(".*".join(map(re.escape, family.split("*"))), name, re.DOTALL) is not None


def family_of(limited: Iterable[str], name: str) -> str | None:
    """The family of a throttle, of all throttles with limits: the longest pattern that matches, then the first one."""
    if name in limited or name.startswith("queue/"):
        return None
    found = (one for one in limited if "*" in one and not one.startswith("queue/") and _matches(one, name))
    return min(found, key=lambda one: (-len(one.encode()), one), default=None)


def _follow(ghost: Ghost, name: str, now: int) -> Limits | None:
    """The limits of a throttle: its own, or those of its family. Under a family its window and bucket begin anew."""
    limits: Limits | None = ghost.get(("limits", name))
    family = family_of([key[1] for key in ghost if key[0] == "limits"], name) if limits is None else None
    if family is None:
        return limits
    limits = ghost["limits", family]
    mark = family, ghost["set", family]
    if ghost.get(("follows", name)) != mark:
        ghost["follows", name], ghost["claims", name] = mark, ()
        ghost["bucket", name] = Fraction(limits.capacity), now
    return limits


def _tokens(ghost: Ghost, name: str, now: int) -> Fraction:
    """The tokens in a bucket: they come back steadily, up to the capacity."""
    limits = _follow(ghost, name, now)
    assert limits is not None
    level, at = ghost["bucket", name]
    gained = Fraction(max(now - at, 0) * limits.refill, limits.refill_ms)
    filled: Fraction = level + gained
    return min(filled, Fraction(limits.capacity))


def _limit(m: Moment, ghost: Ghost, facts: dict[str, Any], now: int) -> None:
    """Apply new limits: a new bucket is full, an existing one keeps its tokens up to the new capacity."""
    name = facts["throttle"]
    limits = Limits(*(facts[limit] for limit in Limits._fields))
    old: Limits | None = ghost.get(("limits", name))
    ghost.pop(("follows", name), None)
    if old != limits:
        ghost["set", name] = facts["seq"]
    if limits.capacity:
        level, at = Fraction(limits.capacity), now
        if old is not None and old.capacity:
            units = _tokens(ghost, name, now) * limits.refill_ms
            level, at = min(Fraction(int(units), limits.refill_ms), level), max(now, ghost["bucket", name][1])
        ghost["bucket", name] = level, at
    if old is None or not old.rate or not limits.rate or old.rate_ms != limits.rate_ms:
        ghost["claims", name] = ()
        ghost["since", name] = old is None or not old.rate or not limits.rate  # whether all claims that count are known
    ghost["limits", name] = limits


def _as_of(ghost: Ghost, name: str, now: int) -> int:
    """The time at which a throttle is judged. Under a family what was past its time at the latest claim may be
    forgotten, also if the clock has gone back since.
    """
    return max(now, ghost.get(("latest",), now)) if ("follows", name) in ghost else now


def _charge(ghost: Ghost, name: str, job: Record, now: int) -> None:
    limits = _follow(ghost, name, now)
    if limits is None:
        return
    at, now = now, _as_of(ghost, name, now)
    if ("follows", name) in ghost:
        ghost["since", name], ghost[("latest",)] = at == now, now
    if limits.rate:
        ghost["claims", name] = (*tuple(one for one in ghost["claims", name] if one > now - limits.rate_ms), at)
    if limits.capacity:
        level = _tokens(ghost, name, now) - min(cost(job), limits.capacity)
        ghost["bucket", name] = level, max(at, ghost["bucket", name][1])


def _shut(ghost: Ghost, name: str, price: int, now: int, places: int) -> str:
    """Why a throttle is shut to a claim, by its limits, its claims and its bucket; empty if it is open."""
    limits = _follow(ghost, name, now)
    if limits is None:
        return ""
    now = _as_of(ghost, name, now)
    if limits.concurrency and places >= limits.concurrency:
        return f"{places} of {limits.concurrency} places are taken"
    if limits.rate:
        claims = sum(at > now - limits.rate_ms for at in ghost["claims", name])
        if claims >= limits.rate:
            return f"{claims} of {limits.rate} claims are in the window"
    if limits.capacity and _tokens(ghost, name, now) < min(price, limits.capacity):
        return f"{_tokens(ghost, name, now)} tokens are left of {limits.capacity}"
    return ""


def _places(records: dict[str, Record], name: str, but: str) -> int:
    """How many jobs count against the concurrency of a throttle: those that are leased or stalled, name it, and were
    not let out of it by the rules of reqless.
    """
    own = name.removeprefix("queue/") if name.startswith("queue/") else None
    return sum(
        job["state"] in HOLDING
        and jid != but
        and (job["queue"] == own if own is not None else name in names(job, False))
        and name not in dict(job["options"]).get("released", "").split()
        for jid, job in records.items()
    )


@law_of_histories
def no_claim_passes_a_closed_throttle(m: Moment, ghost: Ghost) -> Iterator[str]:
    """At most `concurrency` jobs of a throttle are leased at a time, at most `rate` claims are in any window of its
    length, also at its edges, and a claim takes the job's cost from the bucket, which never goes below 0. The queue's
    own throttle holds for all its jobs, and the limits of a family hold for each throttle of it that has no limits of
    its own, by itself. A job that is handed out again after an expired lease already has its place.
    """
    if m.refused or not (m.before.throttles or m.after.throttles or ghost):
        return
    records = {jid: dict(job) for jid, job in m.before.jobs.items()}
    tale = {one.event.seq: one for one in m.tale}
    for event in m.events:
        if event.event == "limited":
            _limit(m, ghost, {**event.named, "seq": event.seq}, m.now)
        elif event.event == "unlimited":
            for kind in ("limits", "claims", "bucket", "since", "follows"):
                ghost.pop((kind, event.facts[0]), None)
        one = tale.get(event.seq)
        if one is None:
            continue
        if event.event == "popped" and one.was is not None:
            again = one.was["state"] in HOLDING
            for name in names(one.was):
                places = 0 if again else _places(records, name, one.jid)
                reason = _shut(ghost, name, cost(one.was), m.now, places)
                if reason:
                    yield f"{one.jid} was claimed, but at {name} {reason}"
                _charge(ghost, name, one.was, m.now)
        if one.becomes is None:
            records.pop(one.jid, None)
        else:
            records[one.jid] = one.becomes
    for queue in m.pops():
        yield from _open_gates(m, ghost, queue)


def _open_gates(m: Moment, ghost: Ghost, queue: str) -> Iterator[str]:
    """The jobs that are parked at an open throttle after a pop that gave less than was asked for; by the rules of
    reqless, at one that may open although no job leaves it, and that the pop found open.
    """
    if m.tries == 0:
        return
    jobs = m.outcome.jobs if m.name == "complete_and_pop" else m.outcome
    claims = sum(1 for _ in m.told("popped"))
    held = len(jobs) > claims or claims >= m.op.count
    if held or not m.few or m.is_paused(queue) or f"queue/{queue}" in m.before.throttles:
        return
    for name, gate in m.queue(queue, before=False)["gates"].items():
        if not gate["parked"] or not ghost.get(("since", name), True) or m.now < _as_of(ghost, name, m.now):
            continue
        if _freed_for_another_queue(m, name, queue):
            continue
        limits = _follow(ghost, name, m.now)
        is_left = limits is not None and limits.concurrency and not (limits.rate or limits.capacity)
        if m.tries is not None and is_left and _places(m.before.jobs, name, ""):
            continue
        if m.tries is not None and _was_parked_elsewhere(m, name):
            continue
        jid = gate["parked"][0][-1]
        job = m.after.jobs[jid]
        after = [one for one in m.tale if one.jid == jid and one.event.event not in ("throttled", "unthrottled")]
        last = max((one.event.seq for one in m.told("popped")), default=0)
        if after and after[-1].event.seq > last:
            continue
        reason = _shut(ghost, name, cost(job), m.now, _places(m.after.jobs, name, jid))
        if not reason and ("unknown" not in ghost or ("limits", name) in ghost) and not _just_parked(m, jid):
            yield f"{jid} is parked at {name}, which is open"


def _freed_for_another_queue(m: Moment, name: str, queue: str) -> bool:
    """Whether a lapsed job of a queue that the pop looked at later gave its place at a throttle back."""
    later = m.pops()[m.pops().index(queue) + 1 :]
    return any(
        one.was is not None and one.was["queue"] in later and one.was["state"] in HOLDING and name in names(one.was)
        for one in m.tale
    )


def _was_parked_elsewhere(m: Moment, name: str) -> bool:
    """Whether a job that had been let through at a throttle met another closed one, and so gave its turn to the next
    pop.
    """
    return any(
        one.was is not None and one.was["options"].get("gate") == name and one.facts["throttle"] != name
        for one in m.told("throttled")
    )


def _just_parked(m: Moment, jid: str) -> bool:
    return any(one.jid == jid for one in m.told("throttled"))


@law
def only_a_throttle_that_a_job_names_parks_it(m: Moment) -> Iterator[str]:
    """A job that meets a closed throttle is parked there, and only at one that it names, or at its concurrency key; a
    queue's own throttle parks none. A parked job holds no lease, and costs no retry.
    """
    for one in m.told("throttled", "unthrottled"):
        job = one.becomes
        assert job is not None
        keys = [f"ordered:{job['options'].get('ordered')}"]
        after = dict(m.after.jobs.get(one.jid, {"options": ()})["options"])
        before = dict(m.before.jobs.get(one.jid, {"options": ()})["options"])
        keys += [f"request:{options['request']}" for options in (after, before) if "request" in options]
        keys += [f"request:{m.op.id}"] if m.name.startswith("request_") else []
        if one.facts["throttle"] not in (*names(job, own=False), *keys):
            yield f"{one.event}, but it names {names(job, own=False)} and {keys}"
        if one.event.event == "throttled" and m.pops() and one.was is not None and one.was["state"] == "running":
            yield f"{one.jid} was parked while it was leased"


@law
def parked_jobs_are_let_through_in_their_turn(m: Moment) -> Iterator[str]:
    """Parked jobs are let through by priority, then in the order of arrival; later jobs of the same queue and priority
    do not overtake a parked one. The `delay` of reqless lets the job through that has waited longest.
    """
    if m.name == "delay":
        return
    turns: dict[tuple[str, str], tuple[int, int]] = {}
    for one in m.told("unthrottled"):
        before = m.before.jobs.get(one.jid)
        options = dict(before["options"]) if before is not None else {}
        if before is None or before["state"] != "throttled" or "parked" not in options or "gate" not in options:
            continue
        if any(e.jid == one.jid and e.event.seq < one.event.seq for e in m.tale):
            continue
        place = str(one.facts["queue"]), str(one.facts["throttle"])
        turn = before["priority"], int(options["parked"])
        for jid, other in m.before.jobs.items():
            if other["queue"] != place[0] or other["state"] != "throttled" or jid in m.becomes:
                continue
            also = dict(other["options"])
            if (also.get("gate") == place[1] and m.after.jobs.get(jid, {}).get("state") == "throttled") and (
                (other["priority"], int(also["parked"])) < turn
            ):
                yield f"{one.jid} was let through at {place[1]}, and {jid} waits there before it"
        if place in turns and turns[place] > turn:
            yield f"{one.jid} was let through at {place[1]} out of its turn"
        turns[place] = turn


@law
def nobody_overtakes_a_parked_job(m: Moment) -> Iterator[str]:
    """Later jobs of the same queue and priority do not overtake a parked job, even if the throttle closes again before
    its claim. Once it was admitted, one that was ready before may go first, if the throttle has room for both. A pop by
    the rules of reqless looks at no parked job.
    """
    if m.tries is not None:
        return
    for one in m.told("popped"):
        was = one.was
        if was is None or was["state"] != "waiting" or "throttles" not in was["options"]:
            continue
        for jid, job in m.before.jobs.items():
            options = dict(job["options"])
            gate = options.get("gate")
            if jid == one.jid or gate is None or job["queue"] != was["queue"] or job["priority"] != was["priority"]:
                continue
            mine = dict(m.before.jobs[one.jid]["options"]) if one.jid in m.before.jobs else {}
            late = gate in names(was, own=False) and "gate" not in mine and _is_limited(m, gate)
            admitted = job["state"] == "waiting" and _has_room(m, gate, cost(job))
            if (
                late
                and job["state"] in ("throttled", "waiting")
                and not admitted
                and jid not in m.becomes
                and not m.after.jobs[jid]["worker"]
            ):
                yield f"{one.jid} was claimed, and {jid} came to {gate} before it"


@law
def limits_are_set_all_at_once(m: Moment) -> Iterator[str]:
    """The limits of a throttle are set all at once, change only by `throttle_set` and `throttle_unset`, and take no
    running job back.
    """
    limits = {name: tuple(one[limit] for limit in Limits._fields) for name, one in m.before.throttles.items()}
    for event in m.events:
        if event.event == "limited":
            limits[str(event.facts[0])] = tuple(event.facts[1:])
        elif event.event == "unlimited":
            limits[str(event.facts[0])] = (0,) * len(Limits._fields)
    for name, one in m.after.throttles.items():
        has = tuple(one[limit] for limit in Limits._fields)
        if has != limits.get(name, (0,) * len(Limits._fields)):
            yield f"{name} has the limits {has}, and the events say {limits.get(name)}"
    if m.name == "throttle_set" and not m.refused and m.events:
        given = tuple(getattr(m.op, limit) or 0 for limit in Limits._fields)
        if limits[m.op.throttle] != given:
            yield f"{m.op.throttle} was set to {given}, and is {limits[m.op.throttle]}"
    if m.name in ("throttle_set", "throttle_unset") and any(m.told("lock_lost", "popped")):
        yield f"{m.name} ended a lease, or began one"


def rule_of(throttles: dict[str, Record], name: str) -> str:
    """The name of the throttle that limits this one: itself, or its family."""
    limited = [one for one, record in throttles.items() if any(record[limit] for limit in Limits._fields)]
    return family_of(limited, name) or name


def _is_limited(m: Moment, name: str) -> bool:
    """Whether a throttle has limits, of its own or of its family."""
    return any(m.before.throttles.get(rule_of(m.before.throttles, name), {}).get(limit) for limit in Limits._fields)


def _has_room(m: Moment, name: str, price: int) -> bool:
    """Whether a throttle has room for one more claim after a step that claimed a job of it."""
    rule, one = m.after.throttles[rule_of(m.after.throttles, name)], m.after.throttles[name]
    claims = sum(at > m.now - rule["rate_ms"] for at, _ in one["claims"])
    return (
        (not rule["concurrency"] or len(one["held"]) < rule["concurrency"])
        and (not rule["rate"] or claims < rule["rate"])
        and (not rule["capacity"] or one["level"] >= min(price, rule["capacity"]) * rule["refill_ms"])
    )


@law
def a_throttle_is_shown_with_the_limits_that_hold_for_it(m: Moment) -> Iterator[str]:
    """`throttle_get` and `throttles` show a throttle's own limits, or those of its family and which that is."""
    if m.refused or m.name not in ("throttle_get", "throttles"):
        return
    for shown in (m.outcome,) if m.name == "throttle_get" else m.outcome:
        rule = rule_of(m.before.throttles, shown.name)
        record = m.before.throttles.get(rule, {})
        limits = tuple(record.get(limit, 0) for limit in Limits._fields)
        if tuple(shown[1:7]) != limits or shown.family != ("" if rule == shown.name else rule):
            yield f"{shown}, but {rule} rules it with {limits}"


@law
def a_cost_above_the_capacity_is_refused(m: Moment) -> Iterator[str]:
    """`put` refuses a cost above the capacity of one of its throttles."""
    if m.refused:
        return
    for jid, put in m.puts.items():
        for name in (*(put.throttles or ()), f"queue/{put.queue}"):
            capacity = m.before.throttles.get(rule_of(m.before.throttles, name), {"capacity": 0})["capacity"]
            was_put = any(one.jid == jid for one in m.told("put"))
            if was_put and put.cost is not None and capacity and put.cost > capacity:
                yield f"{jid} costs {put.cost}, and {name} has {capacity}"


def told_at(m: Moment, name: str) -> Iterator[Told]:
    """The events that park a job at a throttle or key, or let it through."""
    return (one for one in m.told("throttled", "unthrottled") if one.facts["throttle"] == name)
