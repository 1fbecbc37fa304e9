"""Laws of order: in which order a pop hands jobs out, and that it leaves none behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from qmodel.conformance.laws.law import Moment, law
from qmodel.conformance.laws.told import Told
from qmodel.model.snapshot import Record

Key = tuple[int, int, int]


def key(job: Record, rate: int = 0) -> Key:
    """The place of a ready job in the order: priority; lifo jobs first, newest first; then its turn in a fair queue, or
    its readiness; then sequence. If the jobs of its queue age at a rate, the moment is first at which it has the
    priority 0, all of these before every priority.
    """
    turn = dict(job["options"]).get("turn")
    at = int(turn) if turn is not None else job["ready_at"]
    first = _even(at + job["priority"] * rate) if rate else job["priority"]
    if turn is None and dict(job["options"]).get("lifo"):
        return first, -1 - at, -job["seq"]
    return first, at, job["seq"]


def _even(moment: int) -> int:
    """A moment at which a job has the priority 0, within the bounds of moments, as the first number of a place."""
    return max(1 - 10**14, min(moment, 10**14 - 1)) - 5 * 10**14


def places(queue: Record, jobs: Mapping[str, Record], rate: int) -> dict[str, Key]:
    """Where the ready jobs of a queue stand: by the first number of each, and otherwise by the jobs themselves. A job
    that is not ready yet would stand by the rate.
    """
    firsts = {entry[-1]: entry[0] for entry in queue["ready"]}
    return {jid: (firsts.get(jid, key(job, rate)[0]), *key(job, rate)[1:]) for jid, job in jobs.items()}


def is_over(job: Record, now: int) -> bool:
    """Whether a job's time to live has passed."""
    ttl = dict(job["options"]).get("ttl_ms")
    return ttl is not None and job["put_at"] + int(ttl) < now


def _granted(m: Moment, queue: str) -> tuple[list[Told], list[Told]]:
    """The claims of a pop from one queue: of jobs that had been claimed before, and of ready ones."""
    claims = [one for one in m.told("popped") if one.facts["queue"] == queue]
    first = [one for one in claims if one.was is not None and one.was["state"] in ("stalled", "taken")]
    return first, [one for one in claims if one not in first]


def _lease_order(m: Moment, jid: str) -> tuple[int, int]:
    """Leases ended by `timeout` come in the order of these calls; then the longest ended first."""
    job = m.before.jobs[jid]
    return (-1, job["seq"]) if job["state"] == "stalled" else (job["expires_at"], job["seq"])


@law
def jobs_with_an_ended_lease_come_first(m: Moment) -> Iterator[str]:
    """A pop returns first the jobs with a lease that `timeout` ended, in the order of these calls, then those with an
    ended lease and grace period, the longest ended first; then ready jobs.
    """
    for queue in m.pops():
        first, ready = _granted(m, queue)
        if first and ready and first[-1].event.seq > ready[0].event.seq:
            yield f"{ready[0].jid} was handed out before {first[-1].jid}, whose lease had ended"
        for one, other in pairwise(first):
            if _lease_order(m, one.jid) > _lease_order(m, other.jid):
                yield f"{one.jid} was handed out before {other.jid}, whose lease ended earlier"
        if m.few and f"queue/{queue}" not in m.before.throttles and (ready or first):
            last = max((_lease_order(m, one.jid) for one in first), default=None)
            for jid in _ended(m, queue):
                if jid in m.becomes and any(one.jid == jid for one in m.tale if one.event.event != "put"):
                    continue
                if ready or (last is not None and _lease_order(m, jid) < last):
                    yield f"{jid}, whose lease had ended, was left behind"


def _ended(m: Moment, queue: str) -> Iterator[str]:
    """The jobs of a queue with an ended lease and grace period."""
    grace = m.option("grace-period")
    for jid, job in m.before.jobs.items():
        ended = job["state"] == "stalled" or (job["state"] == "running" and job["expires_at"] + grace <= m.now)
        if job["queue"] == queue and ended:
            yield jid


@law
def ready_jobs_come_by_priority_readiness_and_sequence(m: Moment) -> Iterator[str]:
    """Ready jobs are handed out by priority (lower runs sooner); within a priority `lifo` jobs first, newest first;
    then by the moment when they became ready, or their turn in a fair queue, then by sequence. No job that stays in the
    order stands before one that was handed out.
    """
    for queue in m.pops():
        _, ready = _granted(m, queue)
        if m.is_fair(queue):  # the events do not tell the turns of jobs that become ready in the step
            ready = [one for one in ready if one.was is not None and "turn" in one.was["options"]]
        stood = places(m.queue(queue), {one.jid: one.was for one in ready if one.was is not None}, m.aging(queue))
        keys = [stood[one.jid] for one in ready if one.was is not None]
        through = {one.jid for one in m.told("unthrottled")}  # perhaps after others were taken
        for (one, other), (left, right) in zip(pairwise(ready), pairwise(keys), strict=True):
            if left > right and other.jid not in through:
                yield f"{one.jid} at {left} was handed out before {other.jid} at {right}"
        if not keys or not m.few:
            continue
        last = ready[-1].event.seq
        stay = places(m.queue(queue), m.after.jobs, m.aging(queue))
        for jid, job in m.after.jobs.items():
            if job["queue"] != queue or job["state"] != "waiting" or job["seq"] > last or is_over(job, m.now):
                continue
            if stay[jid] < keys[-1]:
                yield f"{jid} at {stay[jid]} stays behind {ready[-1].jid} at {keys[-1]}"


@law
def due_jobs_are_in_the_order_of_a_pop(m: Moment) -> Iterator[str]:
    """A job put with a delay until 12:00 is ready at 12:00, whether or not anybody looked: a pop that hands out ready
    jobs has moved all due ones into the order.
    """
    for queue in m.pops():
        _, ready = _granted(m, queue)
        if not ready or not m.few or ready[0].event.seq == 0:
            continue
        for jid, job in m.after.jobs.items():
            due = job["state"] == "scheduled" and job["ready_at"] <= m.now and job["queue"] == queue
            if due and job["seq"] < ready[0].event.seq and not is_over(job, m.now):
                yield f"{jid} was due at {job['ready_at']}, and is still scheduled"


@law
def a_pop_gives_as_many_as_there_are(m: Moment) -> Iterator[str]:
    """A pop gives as many jobs as were asked for, if there are so many: if it gives fewer, none is left that is ready,
    due, or has an ended lease, unless its queue is paused or has a throttle of its own.
    """
    given = sum(1 for _ in m.told("popped"))
    jobs = (m.outcome.jobs if m.name == "complete_and_pop" else m.outcome) if m.pops() else ()
    if not m.pops() or given >= m.op.count or len(jobs) > given or not m.few:
        if m.pops() and given > m.op.count:
            yield f"{given} jobs were claimed, and {m.op.count} asked for"
        return
    for queue in m.pops():
        if m.is_paused(queue) or f"queue/{queue}" in m.before.throttles:
            continue
        last = max((one.event.seq for one in m.told("popped")), default=m.before.seq)
        for jid, job in m.before.jobs.items():
            if job["queue"] != queue or jid in m.becomes or jid not in m.after.jobs or is_over(job, m.now):
                continue
            ready = job["state"] == "waiting" or (job["state"] == "scheduled" and job["ready_at"] <= m.now)
            if (ready or jid in _ended(m, queue)) and m.after.jobs[jid]["seq"] <= last:
                yield f"{jid} is {job['state']}, and was not handed out: {given} of {m.op.count}"


@law
def the_first_queue_is_taken_from_first(m: Moment) -> Iterator[str]:
    """A pop from several queues takes the jobs of the first queue, then of the second, in the order that the caller
    gives, and nothing of the next one while the first has more.
    """
    if m.name != "pop_any":
        return
    places = {queue: place for place, queue in enumerate(m.pops())}
    claims = list(m.told("popped"))
    for one, other in pairwise(claims):
        if places[one.facts["queue"]] > places[other.facts["queue"]]:
            yield f"{one.jid} of {one.facts['queue']} comes before {other.jid} of {other.facts['queue']}"
    if not claims or not m.few:
        return
    last = max(places[one.facts["queue"]] for one in claims)
    for queue in m.pops()[:last]:
        if m.is_paused(queue) or f"queue/{queue}" in m.before.throttles:
            continue
        for jid, job in m.before.jobs.items():
            if job["queue"] == queue and job["state"] == "waiting" and jid not in m.becomes and not is_over(job, m.now):
                yield f"{jid} of {queue} was left, and a job of {m.pops()[last]} taken"


@law
def what_is_let_through_is_last_of_its_priority(m: Moment) -> Iterator[str]:
    """A job that is let through, by a throttle or a concurrency key, goes to the end of its priority: it is ready as of
    now, after all that are ready. In a fair queue it gets a new turn.
    """
    for one in m.told("unthrottled"):
        after = m.after.jobs.get(one.jid)
        if after is None or after["state"] != "waiting" or after["seq"] != one.event.seq:
            continue
        if after["ready_at"] != m.now:
            yield f"{one.jid} was let through at {m.now}, and is ready as of {after['ready_at']}"
        if not {"lifo", "turn"}.isdisjoint(dict(after["options"])):
            continue
        rate = m.aging(after["queue"])
        stand = places(m.queue(after["queue"], before=False), m.after.jobs, rate)
        for jid, job in m.after.jobs.items():
            before = m.before.jobs.get(jid)
            if before is None or job["seq"] >= one.event.seq or job["ready_at"] > m.now:
                continue
            same = job["queue"] == after["queue"] and job["state"] == "waiting" and job["priority"] == after["priority"]
            if same and (stand[jid][0] < 0) == (rate > 0) and stand[jid] > stand[one.jid]:
                yield f"{one.jid} was let through, and stands before {jid}"
        ready = m.after.queues[after["queue"]]["ready"]
        if not any(entry[-1] == one.jid and entry[:3] == key(after, rate) for entry in ready):
            yield f"{one.jid} was let through, and stands elsewhere in the order"


@law
def a_ready_job_of_a_fair_queue_gets_the_next_turn_of_its_key(m: Moment) -> Iterator[str]:
    """In a fair queue, a job that becomes ready gets the turn of the first ready job of its priority and half a step,
    or the next turn of its fair key, whichever is later; its key's next turn is a step later. A step is 1000 divided by
    the job's weight.
    """
    for name, queue in m.after.queues.items():
        before = m.queue(name)
        new = set(queue["ready"]) - set(before["ready"])
        if len(new) != 1 or set(before["ready"]) - set(queue["ready"]) or len(m.events) > 1:
            continue
        priority, turn, _, jid = new.pop()
        job = m.after.jobs[jid]
        if not m.is_fair(name) or job["ready_at"] == 0:
            if "turn" in dict(job["options"]):
                yield f"{jid} has a turn in {name}, which is not fair"
            continue
        clock = next((entry[1] for entry in before["ready"] if entry[0] == priority), 0)
        known = before["turns"].get(priority, {"next": {}})["next"].get(_fair_key(job), 0)
        step = 1000 // int(dict(job["options"]).get("fair_weight", 1))
        wanted = max((clock if clock > 0 else job["ready_at"]) + step // 2, known)
        if turn != wanted:
            yield f"{jid} has the turn {turn} of {_fair_key(job)!r} in {name}, not {wanted}"
        following = queue["turns"][priority]["next"][_fair_key(job)]
        if following - turn != step:
            yield f"{jid} has the turn {turn}, and the next one of its key is {following}"


@law
def a_canceled_job_gives_its_turn_back(m: Moment) -> Iterator[str]:
    """In a fair queue, a job that is canceled before it is taken gives its turn back: the next turn of its key is a
    step earlier.
    """
    if m.name != "cancel" or m.refused or any(event.event != "canceled" for event in m.events):
        return
    steps: dict[tuple[str, int, str], int] = {}
    for one in m.told("canceled"):
        options = dict(one.was["options"]) if one.was is not None and one.was["state"] == "waiting" else {}
        if one.was is not None and "turn" in options:
            at = one.was["queue"], one.was["priority"], _fair_key(one.was)
            steps[at] = steps.get(at, 0) + 1000 // int(options.get("fair_weight", 1))
    for name, queue in m.after.queues.items():
        for priority, turns in queue["turns"].items():
            before = m.queue(name)["turns"][priority]["next"]
            wanted = {key: max(at - steps.get((name, priority, key), 0), 0) for key, at in before.items()}
            if turns["next"] != wanted:
                yield f"the next turns of {name} are {turns['next']} at {priority}, not {wanted}"


def _fair_key(job: Record) -> str:
    """The fair key of a job, or else its first throttle."""
    options = dict(job["options"])
    return str(options.get("fair_key", options.get("throttles", "").split(" ")[0]))


@law
def the_order_is_that_of_priority_readiness_and_sequence(m: Moment) -> Iterator[str]:
    """The order of a queue is total: by priority, then readiness or turn, then sequence, lifo jobs of a priority first
    and newest first; never by id, never by chance.
    """
    for name, queue in m.after.queues.items():
        if m.few and queue["ready"] != m.queue(name)["ready"]:
            ready = [entry[-1] for entry in queue["ready"]]
            stand = places(queue, m.after.jobs, 0)
            wanted = sorted(ready, key=lambda jid: stand[jid])
            if ready != wanted:
                yield f"{name} has the order {ready}, not {wanted}"


@law
def a_ready_job_stands_by_its_priority_or_by_its_age(m: Moment) -> Iterator[str]:
    """In a queue with the option `aging`, a job that becomes ready, or gets another priority, stands by the moment at
    which it has the priority 0: later than its ready time by the option for each level above 0, earlier for each below.
    In any other queue it stands by its priority. A pop moves the first of the waiting jobs that still stand by their
    priority; nothing else moves a job that waits.
    """
    for name, queue in m.after.queues.items():
        before, rate = {entry[-1]: entry for entry in m.queue(name)["ready"]}, m.aging(name)
        for entry in queue["ready"]:
            jid, job = entry[-1], m.after.jobs[entry[-1]]
            if before.get(jid) == entry:
                continue
            if entry[0] != key(job, rate)[0]:
                yield f"{jid} stands in {name} at {entry[0]}, not at {key(job, rate)[0]}"
            moved = jid in before and before[jid][1:] == entry[1:] and job["priority"] == m.before.jobs[jid]["priority"]
            if moved and m.name != "priority" and name not in m.pops():
                yield f"{jid} was moved in {name} from {before[jid][0]} to {entry[0]}"
