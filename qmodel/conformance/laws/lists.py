"""Laws of lists: every listed page is in its documented order, complete, and true at this moment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from qmodel.conformance.laws.law import Moment, law_of_reads
from qmodel.conformance.laws.order import is_over, places
from qmodel.conformance.laws.told import backoff, is_spent
from qmodel.contract.settings import OPTIONS, meant_by


def _of(m: Moment, *states: str) -> list[str]:
    """The jobs of a queue that are in some states now: a due job counts as waiting, an expired lease as stalled."""
    return [jid for jid, job in m.before.jobs.items() if job["queue"] == m.op.queue and _state(m, job) in states]


def _state(m: Moment, job: dict[str, Any]) -> str:
    if job["state"] == "scheduled" and job["ready_at"] <= m.now:
        return "waiting"
    if job["state"] == "running" and job["expires_at"] <= m.now:
        return "stalled"
    return str(job["state"])


def _page(m: Moment, found: list[str]) -> tuple[int, tuple[str, ...]]:
    return len(found), tuple(found[m.op.offset : m.op.offset + m.op.count])


def _shows(m: Moment, wanted: Any, shown: Any) -> Iterator[str]:
    if wanted != shown:
        yield f"{m.name} shows {str(shown)[:200]}, not {str(wanted)[:200]}"


@law_of_reads
def the_jobs_of_a_queue_are_listed_in_order(m: Moment) -> Iterator[str]:
    """Waiting jobs are listed in their order, then those that have become due; scheduled ones soonest first; those that
    wait for others longest waiting first; throttled ones longest ready first; running ones soonest to expire first;
    stalled ones longest first.
    """
    if m.refused or m.name not in ("waiting", "scheduled", "depending", "throttled", "running", "stalled"):
        return
    jobs = m.before.jobs
    if m.name == "waiting":
        stand = places(m.queue(m.op.queue), jobs, 0)
        order = sorted((j for j in _of(m, "waiting") if jobs[j]["state"] == "waiting"), key=lambda j: stand[j])
        due = [j for j in _of(m, "waiting") if jobs[j]["state"] == "scheduled"]
        found = order + sorted(due, key=lambda j: (jobs[j]["ready_at"], jobs[j]["seq"]))
    elif m.name == "stalled":
        found = sorted(
            _of(m, "stalled"), key=lambda j: (jobs[j]["expires_at"] if jobs[j]["worker"] else -1, jobs[j]["seq"])
        )
    else:
        field = {"scheduled": "ready_at", "depending": "put_at", "throttled": "ready_at", "running": "expires_at"}[
            m.name
        ]
        state = "depends" if m.name == "depending" else m.name
        found = sorted(_of(m, state), key=lambda j: (jobs[j][field], jobs[j]["seq"]))
    yield from _shows(m, _page(m, found), tuple(m.outcome))


@law_of_reads
def ended_jobs_are_listed_latest_first(m: Moment) -> Iterator[str]:
    """Complete jobs, and the failed jobs of a group, are listed latest first; groups by name, with their sizes."""
    if m.refused:
        return
    ends = {
        jid: (job["ended_at"], job["seq"])
        for jid, job in m.before.jobs.items()
        if job["state"] in ("complete", "failed")
    }
    if m.name == "completed":
        found = [jid for jid in ends if m.before.jobs[jid]["state"] == "complete"]
    elif m.name == "failed":
        found = [
            jid for jid in ends
            if m.before.jobs[jid]["state"] == "failed" and m.before.jobs[jid]["failure"][0] == m.op.group
        ]  # fmt: skip
    elif m.name == "failed_groups":
        sizes: dict[str, int] = {}
        for jid in ends:
            if m.before.jobs[jid]["state"] == "failed":
                sizes[m.before.jobs[jid]["failure"][0]] = sizes.get(m.before.jobs[jid]["failure"][0], 0) + 1
        groups = sorted(sizes.items(), key=lambda one: one[0].encode())[m.op.offset : m.op.offset + m.op.count]
        yield from _shows(m, groups, [tuple(one) for one in m.outcome])
        return
    else:
        return
    yield from _shows(m, _page(m, sorted(found, key=lambda jid: ends[jid], reverse=True)), tuple(m.outcome))


@law_of_reads
def tags_are_listed_in_order(m: Moment) -> Iterator[str]:
    """The jobs of a tag are listed in the order in which they were tagged; the tags of at least two jobs most used
    first, then by name.
    """
    if m.refused:
        return
    if m.name == "tagged":
        tagged = [(seq, jid) for jid, job in m.before.jobs.items() for tag, seq in job["tags"] if tag == m.op.tag]
        yield from _shows(m, _page(m, [jid for _, jid in sorted(tagged)]), tuple(m.outcome))
    if m.name == "top_tags":
        sizes: dict[str, int] = {}
        for job in m.before.jobs.values():
            for tag, _ in job["tags"]:
                sizes[tag] = sizes.get(tag, 0) + 1
        used = sorted(((-size, tag.encode()), (tag, size)) for tag, size in sizes.items() if size > 1)
        wanted = [one for _, one in used][m.op.offset : m.op.offset + m.op.count]
        yield from _shows(m, wanted, [tuple(one) for one in m.outcome])


@law_of_reads
def workers_are_listed_latest_seen_first(m: Moment) -> Iterator[str]:
    """Workers are listed latest seen first, with the number of their valid and lapsed leases; those that are silent for
    `max-worker-age` and hold nothing are left out. A worker's jobs are listed oldest claim first.
    """
    if m.refused or m.name not in ("workers", "worker"):
        return
    if m.name == "worker":
        yield from _shows(m, _leases(m, m.op.worker), tuple(map(tuple, m.outcome)))
        return
    since = m.now - m.option("max-worker-age")
    known = [(one["seen_at"], name) for name, one in m.before.workers.items() if one["seen_at"] is not None]
    lively = [one for one in known if one[0] > since or m.before.workers[one[1]]["held"]]
    lively.sort(key=lambda one: (one[0], one[1].encode()), reverse=True)
    wanted = [(name, seen, *map(len, _leases(m, name))) for seen, name in lively]
    yield from _shows(m, wanted[m.op.offset : m.op.offset + m.op.count], [tuple(one) for one in m.outcome])


def _leases(m: Moment, worker: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    held = sorted((job["seq"], jid) for jid, job in m.before.jobs.items() if job["worker"] == worker)
    valid = tuple(jid for _, jid in held if m.before.jobs[jid]["expires_at"] > m.now)
    return valid, tuple(jid for _, jid in held if jid not in valid)


@law_of_reads
def queues_are_listed_by_their_first_use(m: Moment) -> Iterator[str]:
    """Queues are listed in the order of their first use, and counts are true at this moment: a due job counts as
    waiting, an expired lease as stalled, an ended pause as none.
    """
    if m.refused or m.name not in ("queues", "queue", "length"):
        return
    if m.name == "length":
        ended = ("complete", "failed")
        count = sum(job["queue"] == m.op.queue and job["state"] not in ended for job in m.before.jobs.values())
        yield from _shows(m, count, m.outcome)
        return
    if m.name == "queues":
        listed = [
            (q["first_seen"], name.encode(), name) for name, q in m.before.queues.items() if q["first_seen"] is not None
        ]
        names = [name for _, _, name in sorted(listed)][m.op.offset : m.op.offset + m.op.count]
        yield from _shows(m, names, [one.name for one in m.outcome])
    for one in m.outcome if m.name == "queues" else (m.outcome,):
        counts = dict.fromkeys(("waiting", "scheduled", "depends", "running", "stalled", "throttled"), 0)
        for job in m.before.jobs.values():
            if job["queue"] == one.name and _state(m, job) in counts:
                counts[_state(m, job)] += 1
        yield from _shows(m, counts, {name: getattr(one, name) for name in counts})
        pauses = {r: until for r, until in m.queue(one.name)["pauses"].items() if until == 0 or until > m.now}
        yield from _shows(m, (bool(pauses), sorted(pauses.items())), (one.paused, [tuple(p) for p in one.pauses]))
        recurring = [s for s in m.before.schedules.values() if s["queue"] == one.name]
        yield from _shows(m, len(recurring), one.recurring)
        yield from _next(m, one)


def _next(m: Moment, shown: Any) -> Iterator[str]:
    """The counts tell the next moment at which something becomes due by itself; idle workers sleep until then."""
    grace, moments = m.option("grace-period"), []
    for job in m.before.jobs.values():
        if job["queue"] == shown.name and job["state"] == "scheduled" and job["ready_at"] > m.now:
            moments.append(job["ready_at"])
        if job["queue"] == shown.name and job["state"] == "running" and job["expires_at"] + grace > m.now:
            moments.append(job["expires_at"] + grace)
    if moments and (shown.next_at == 0 or shown.next_at > min(moments)):
        yield f"{shown.name}: something is due at {min(moments)}, and {shown.next_at} is shown"


@law_of_reads
def tracked_jobs_are_listed_in_order(m: Moment) -> Iterator[str]:
    """Tracked jobs are listed in the order of tracking; ids without a job are listed as expired."""
    if m.refused or m.name != "tracked":
        return
    order = sorted(m.before.tracked, key=lambda jid: m.before.tracked[jid])[m.op.offset : m.op.offset + m.op.count]
    wanted = [jid for jid in order if jid in m.before.jobs], [jid for jid in order if jid not in m.before.jobs]
    yield from _shows(m, wanted, ([job.jid for job in m.outcome[0]], list(m.outcome[1])))


@law_of_reads
def options_are_listed_with_their_values(m: Moment) -> Iterator[str]:
    """The options are listed with their values and whether they are set, then those of single queues by name."""
    if m.refused:
        return
    if m.name == "config_get":
        default = OPTIONS[meant_by(m.op.option) or m.op.option].default
        yield from _shows(m, m.before.config.get(m.op.option, default), m.outcome)
    if m.name == "config":
        names = [*OPTIONS, *sorted((name for name in m.before.config if name not in OPTIONS), key=str.encode)]
        wanted = [
            (
                name,
                m.before.config.get(name, OPTIONS[meant_by(name) or name].default),
                name in m.before.config,
            )
            for name in names
        ]
        yield from _shows(m, wanted, [tuple(one) for one in m.outcome])


def _like(wildcard: str, name: str) -> bool:
    """Whether a name matches a text with wildcards, by a regular expression."""
    return re.fullmatch(".*".join(map(re.escape, wildcard.split("*"))), name, re.DOTALL) is not None


@law_of_reads
def a_search_finds_what_matches(m: Moment) -> Iterator[str]:
    """A search shows only jobs that match all its filters, each once; without a cursor in call or reply, all."""
    if m.refused or m.name != "search":
        return
    op, shown = m.op, [job.jid for job in m.outcome.jobs]

    def fits(jid: str, job: dict[str, Any]) -> bool:
        group = job["failure"][0] if job["state"] == "failed" else None
        return (
            (op.queue is None or job["queue"] == op.queue) and (op.state is None or _state(m, job) == op.state)
            and (op.klass is None or job["klass"] == op.klass) and (op.group is None or group == op.group)
            and (op.tag is None or op.tag in [tag for tag, _ in job["tags"]])
            and (op.worker is None or job["worker"] == op.worker)
            and (op.klass_like is None or _like(op.klass_like, job["klass"]))
            and (op.jid_like is None or _like(op.jid_like, jid)) and (op.text is None or op.text in job["data"])
        )  # fmt: skip

    wanted = {jid for jid, job in m.before.jobs.items() if fits(jid, job)}
    if len(set(shown)) != len(shown) or set(shown) - wanted:
        yield f"{shown} are found, and {sorted(wanted)} match"
    if not op.cursor and not m.outcome.cursor and set(shown) != wanted:
        yield f"{shown} are found, and {sorted(wanted)} match"
    if len(shown) > op.count:
        yield f"{len(shown)} are found, and {op.count} were asked for"


@law_of_reads
def a_peek_shows_what_a_pop_would_give(m: Moment) -> Iterator[str]:
    """`peek` shows the jobs that a pop would give next, in that order, without those that have expired. The turns of
    due jobs in a fair queue are compared by tests/property/test_fair.py.
    """
    if m.refused or m.name != "peek" or not m.few:
        return
    jobs, grace = m.before.jobs, m.option("grace-period")
    mine = {jid: job for jid, job in jobs.items() if job["queue"] == m.op.queue}
    keyed = any({"ordered", "request"} & set(dict(job["options"])) for job in mine.values())
    plain = not m.queue(m.op.queue)["recur"] and not m.before.lines and not keyed
    due = m.is_fair(m.op.queue) and any(job["state"] == "scheduled" for job in mine.values())
    if due or not plain or any("dead_queue" in dict(job["options"]) for job in mine.values()):
        return
    ended = [
        ((-1 if job["state"] == "stalled" else job["expires_at"]), job["seq"], jid)
        for jid, job in mine.items()
        if job["state"] == "stalled" or (job["state"] == "running" and job["expires_at"] + grace <= m.now)
    ]
    first = [
        jid for _, _, jid in sorted(ended)
        if jobs[jid]["state"] == "stalled" or (
            not is_spent(jobs[jid])
            and "revoked" not in dict(jobs[jid]["options"])
            and jobs[jid]["expires_at"] + backoff(jobs[jid]) <= m.now
        )
    ]  # fmt: skip
    over = {jid for jid, job in mine.items() if is_over(job, m.now)}
    stand = places(m.queue(m.op.queue), mine, m.aging(m.op.queue))
    ready = sorted((stand[jid], jid) for jid, job in mine.items() if _state(m, job) == "waiting" and jid not in over)
    if len(first) != len(ended) and len(ended) > m.op.count:
        return  # of the ended leases, as many are examined as are asked for
    wanted = [*first, *(jid for _, jid in ready)][: m.op.count]
    yield from _shows(m, wanted, [job.jid for job in m.outcome])


@law_of_reads
def throttles_in_use_are_listed(m: Moment) -> Iterator[str]:
    """`throttles_used` lists by name the throttles that match and are in use: each that a running or stalled job holds
    or a job is parked at, and no other, but those with a claim in their window or a bucket that is not full.
    """
    if m.refused or m.name != "throttles_used":
        return
    shown, jobs = [one.name for one in m.outcome.throttles], m.before.jobs.values()
    held = {name for job in jobs if job["state"] in ("running", "stalled") for name in _held(job)}
    parked = {dict(job["options"]).get("gate", "") for job in jobs if job["state"] == "throttled"} - {""}
    if shown != sorted(set(shown)) or len(shown) > m.op.count:
        yield f"{shown} are shown, and {m.op.count} were asked for"
    for one in m.outcome.throttles:
        if not _like(m.op.match, one.name) or one.name <= m.op.cursor:
            yield f"{one.name} is shown, after {m.op.cursor!r} of {m.op.match!r}"
        rests = one.name not in held | parked and not one.running
        if rests and not one.claims and not one.capacity:
            yield f"{one.name} is shown, and not in use"
    end = m.outcome.cursor
    for name in (held | parked) - set(shown):
        if _like(m.op.match, name) and name > m.op.cursor and (not end or name <= end):
            yield f"{name} is in use, and not shown up to {end!r}"


def _held(job: dict[str, Any]) -> set[str]:
    """The throttles that a leased job counts in."""
    options = dict(job["options"])
    return set(options.get("throttles", "").split()) - set(options.get("released", "").split())


@law_of_reads
def other_lists_are_in_order(m: Moment) -> Iterator[str]:
    """Recurring jobs are listed next due first; requests longest in their state first; throttles by name; subscriptions
    and messages oldest first; events and entries of the journal in the order of their numbers.
    """
    if m.refused:
        return
    if m.name == "recurring":
        places = m.queue(m.op.queue)["recur"]
        mine = [jid for jid, one in m.before.schedules.items() if one["queue"] == m.op.queue]
        moments = {jid: at for at, _, jid in places}
        found = sorted(mine, key=lambda jid: (moments.get(jid, 0), m.before.schedules[jid]["seq"]))
        yield from _shows(m, _page(m, found), tuple(m.outcome))
    elif m.name == "requests":
        since = {id: (at, seq) for at, seq, id in m.before.request_states.get(m.op.state, ())}
        found = [id for id, one in m.before.requested.items() if one["state"] == m.op.state]
        yield from _shows(m, _page(m, sorted(found, key=lambda id: since.get(id, (0, 0)))), tuple(m.outcome))
    elif m.name == "throttles":
        names = [n for n, one in m.before.throttles.items() if one["concurrency"] or one["rate"] or one["capacity"]]
        names = sorted(names, key=str.encode)[m.op.offset : m.op.offset + m.op.count]
        yield from _shows(m, names, [one.name for one in m.outcome])
    elif m.name == "subscriptions":
        found = sorted(m.before.subscriptions, key=lambda name: m.before.subscriptions[name]["seq"])
        yield from _shows(m, found[m.op.offset : m.op.offset + m.op.count], [one.name for one in m.outcome])
    elif m.name == "messages":
        found_ = [one for one in m.before.messages if one[0] > m.op.after][: m.op.count]
        yield from _shows(m, found_[: len(m.outcome)], [tuple(one) for one in m.outcome])
    elif m.name in ("events", "journal"):
        numbers = [one[0] for one in m.outcome]
        if numbers != sorted(set(numbers)) or any(number <= m.op.after for number in numbers):
            yield f"{m.name} shows {numbers} after {m.op.after}"
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            yield f"{m.name} has gaps: {numbers}"
    elif m.name == "newest" and tuple(m.outcome) != (m.before.seq, m.before.epoch):
        yield f"{m.outcome} is shown, and {m.before.seq} of epoch {m.before.epoch} is the newest event"
