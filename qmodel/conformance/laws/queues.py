"""Laws of queues and of the namespace: pauses, wake-ups, workers, options, metadata, journal, requests sent again."""

from __future__ import annotations

from collections.abc import Iterator

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories, law_of_reads
from qmodel.contract.settings import OPTIONS, meant_by
from qmodel.model.snapshot import DEFAULT_QUEUE

REMEMBERED = 1000
"""How many replies a namespace remembers."""


@law
def a_paused_queue_hands_out_nothing(m: Moment) -> Iterator[str]:
    """A paused queue hands out nothing from the moment of the call, and takes nothing back; leased jobs may be
    finished.
    """
    for one in m.told("popped"):
        if m.is_paused(str(one.facts["queue"])):
            yield f"{one.jid} was handed out of {one.facts['queue']}, which is paused"


@law
def each_pause_ends_alone(m: Moment) -> Iterator[str]:
    """A queue is paused while any reason is left: each reason has its own end, a second pause with the same reason
    replaces the first, and the end of one ends no other. A pause with `for_ms` ends by itself, at that moment;
    `unpause` ends one, or all.
    """
    for name in {*m.before.queues, *m.after.queues}:
        wanted = dict(m.queue(name)["pauses"])
        for event in m.events:
            if event.event == "forgotten" and event.facts[0] == name:
                wanted = {}
            if event.event not in ("paused", "unpaused") or event.facts[0] != name:
                continue
            reason = str(event.facts[1])
            if event.event == "paused":
                until = m.now + m.op.for_ms if m.op.for_ms else 0
                if (reason, int(event.facts[2])) != (m.op.reason, until):
                    yield f"{event}, but {m.op.reason!r} lasts until {until}"
                wanted[reason] = until
                continue
            by_hand = m.name == "unpause" and m.op.reason in (None, reason or None)
            if not by_hand and not 0 < wanted.get(reason, 0) <= m.now:
                yield f"{event}, but that pause lasts until {wanted.get(reason)}"
            wanted = {one: until for one, until in wanted.items() if reason and one != reason}
            if event.facts[2] != len(wanted):
                yield f"{event}, but {len(wanted)} pauses are left"
        if m.queue(name, before=False)["pauses"] != wanted:
            yield f"{name} is paused for {m.queue(name, before=False)['pauses']}, and the events say {wanted}"
    if m.name == "unpause" and not m.refused and m.events:
        for name in m.op.queues:
            left = m.queue(name, before=False)["pauses"]
            if m.op.reason in left or (m.op.reason is None and left):
                yield f"{name} is paused for {left} after it was unpaused"


@law
def a_pop_removes_ended_pauses(m: Moment) -> Iterator[str]:
    """The next pop removes a pause that has ended, and records the event."""
    for queue in m.pops():
        held = m.name != "pop" or (m.outcome and not any(m.told("popped")))
        for reason, until in m.queue(queue, before=False)["pauses"].items():
            if 0 < until <= m.now and not held:
                yield f"{queue} is paused for {reason!r} until {until}, and was popped at {m.now}"


@law
def a_new_job_wakes_one_worker(m: Moment) -> Iterator[str]:
    """Each job that becomes ready turns one idle worker of its queue into a wake-up; idle workers and wake-ups change
    by nothing else but a pop that waits, the end of a pause, and what may have opened a throttle or changed a time.
    """
    for name in {*m.before.queues, *m.after.queues}:
        before, after = m.queue(name), m.queue(name, before=False)
        if m.name in ("forget", "obliterate"):
            continue
        waits = m.pops() and m.op.wait and name in m.pops()
        if after["idle"] + after["wakes"] != before["idle"] + before["wakes"] and not waits:
            yield f"{name} had {before['idle']}, {before['wakes']} idle, woken; now {after['idle']}, {after['wakes']}"
        if after["idle"] > before["idle"] and not waits:
            yield f"{name} had {before['idle']} idle workers, and has {after['idle']}"
        ready, woken, scheduled = _became_ready(m, name)
        quiet = not (m.before.throttles or m.after.throttles or m.before.schedules or m.after.schedules)
        quiet = quiet and m.name != "request_tune" and not any(event.event == "unpaused" for event in m.events)
        if not waits and quiet and before["idle"] - after["idle"] > ready + scheduled:
            yield f"{name} has {after['idle']} of {before['idle']} idle workers, and only {ready} became ready"
        if not waits and m.few and after["idle"] > max(before["idle"] - woken, 0):
            yield f"{name} has {after['idle']} of {before['idle']} idle workers, and {woken} jobs became ready"


def _became_ready(m: Moment, queue: str) -> tuple[int, int, int]:
    """How many jobs of a queue became ready in a step, how many of them were not parked after it, and how many were
    scheduled or changed their priority.
    """
    parked = {one.jid: one.event.seq for one in m.told("throttled")}
    ready = woken = scheduled = 0
    for one in m.tale:
        job, was = one.becomes, one.was
        if job is None or one.event.event in ("popped", "revoked"):
            continue
        scheduled += job["state"] == "scheduled" or one.event.event == "prioritized"
        moved = was is None or was["state"] != job["state"] or was["seq"] != job["seq"]
        if moved and job["state"] in ("waiting", "stalled") and job["queue"] == queue:
            ready += 1
            woken += parked.get(one.jid, 0) <= one.event.seq
    return ready, woken, scheduled


@law
def a_wait_counts_one_idle_worker(m: Moment) -> Iterator[str]:
    """A pop that waits and finds nothing counts its caller as idle, once in each queue; up to 1000 are counted."""
    if not m.pops() or not m.op.wait:
        return
    jobs = m.outcome.jobs if m.name == "complete_and_pop" else m.outcome
    for name in m.pops():
        before, after = m.queue(name), m.queue(name, before=False)
        counted = after["idle"] + after["wakes"] - before["idle"] - before["wakes"]
        full = before["idle"] + before["wakes"] >= REMEMBERED
        if counted != (0 if jobs or full else 1):
            yield f"{name} counts {counted} more idle workers, after {len(jobs)} jobs"


@law
def a_queue_is_listed_from_its_first_use(m: Moment) -> Iterator[str]:
    """A queue is on the list from its first put on, until it is forgotten; its first use never changes."""
    for name, before in m.before.queues.items():
        after = m.after.queues.get(name, DEFAULT_QUEUE)
        forgotten = any(event.event == "forgotten" and event.facts[0] == name for event in m.events)
        if before["first_seen"] is not None and after["first_seen"] != before["first_seen"] and not forgotten:
            yield f"{name} was first seen at {before['first_seen']}, and now at {after['first_seen']}"
    for one in m.told("put"):
        if one.jid in m.after.jobs and m.queue(str(one.facts["queue"]), before=False)["first_seen"] is None and m.puts:
            yield f"{one.facts['queue']} has a job, and is not on the list"
    if m.name == "forget" and not m.refused and m.events:
        for name in m.op.queues:
            if any(
                job["queue"] == name and job["state"] not in ("complete", "failed") for job in m.before.jobs.values()
            ):
                yield f"{name} has jobs, and was forgotten"
            if any(one["queue"] == name for one in m.before.schedules.values()):
                yield f"{name} has recurring jobs, and was forgotten"


@law
def a_worker_is_seen_when_it_pops_or_renews(m: Moment) -> Iterator[str]:
    """A worker is seen at each pop and heartbeat, to the second, and stays on the list as long as it holds anything."""
    seen = {m.op.worker} if m.pops() and (not m.outcome or any(m.told("popped"))) else set()
    if m.name == "heartbeat" and not m.refused:
        seen = {m.before.jobs[m.op.jid]["worker"]}
    for name in seen if m.option("max-worker-age") else ():
        at = m.after.workers.get(name, {"seen_at": None})["seen_at"]
        again = m.name == "complete_and_pop" or m.name == "pop_any"
        if (at is None or not at <= m.now < at + 1000) and (not again or at is None):
            yield f"{name} is seen at {m.now}, and was last seen at {at}"
    for name, before in m.before.workers.items():
        after = m.after.workers.get(name, {"seen_at": None})
        if before["seen_at"] is None or after["seen_at"] is not None:
            continue
        told = any(event.event == "deregistered" and event.facts[0] == name for event in m.events)
        held = [jid for jid in before["held"] if jid not in m.becomes]
        if not told and (min(before["seen_at"], m.now) > m.now - m.option("max-worker-age") or held):
            yield f"{name} was seen at {before['seen_at']}, and is off the list"


@law
def options_change_as_they_are_set(m: Moment) -> Iterator[str]:
    """Options change only by `config_set` and `config_unset`, within their ranges; the reply is the value."""
    wanted = dict(m.before.config)
    for event in m.events:
        if event.event == "configured":
            option, value = str(event.facts[0]), int(event.facts[1])
            if m.name == "config_unset":
                wanted.pop(option, None)
                value = OPTIONS[meant_by(option) or option].default
            else:
                wanted[option] = m.op.value
            if m.outcome != value:
                yield f"{event}, and {m.outcome} is replied"
    if m.after.config != wanted:
        yield f"the options are {m.after.config}, and the events say {wanted}"


@law
def metadata_change_as_they_are_set(m: Moment) -> Iterator[str]:
    """Texts of a klass change only by `metadata_set`, `metadata_unset` and `metadata_increment`, which adds to a whole
    number in one step, so that no count is lost.
    """
    wanted = {klass: dict(texts) for klass, texts in m.before.metadata.items()}
    for event in m.events:
        if event.event == "unnoted":
            wanted[str(event.facts[0])].pop(str(event.facts[1]))
        if event.event == "noted":
            klass, key = map(str, event.facts)
            if m.name == "metadata_increment":
                wanted.setdefault(klass, {})[key] = str(int(wanted.get(klass, {}).get(key, "0")) + m.op.by)
                if str(m.outcome) != wanted[klass][key]:
                    yield f"{m.outcome} is replied, and the sum is {wanted[klass][key]}"
            else:
                wanted.setdefault(klass, {})[key] = m.after.metadata.get(klass, {}).get(key, "")
    if m.after.metadata != {klass: texts for klass, texts in wanted.items() if texts}:
        yield "metadata changed otherwise than the events say"


@law_of_reads
def the_journal_records_each_call(m: Moment) -> Iterator[str]:
    """While the option `journal` is 1, each operation that may change something has an entry, also a refused one, with
    the sequence of the last event after it; numbers have no gaps, and calls that are refused for their form have none.
    """
    on = m.option("journal") or m.option("journal", before=False)
    malformed = m.refused and m.outcome.code == "BAD_ARGUMENT"
    wanted = int(bool(on) and not m.op.spec.reads)
    has = m.after.journaled - m.before.journaled
    if has != wanted and not (malformed and has == 0):
        yield f"{m.name} has {has} entries in the journal, not {wanted}"
    if (
        has
        and m.after.journal
        and m.after.journal[-1][0] == m.after.journaled
        and m.after.journal[-1][1] != m.after.seq
    ):
        yield f"the entry says {m.after.journal[-1][1]}, and {m.after.seq} is the last event"
    numbers = [entry[0] for entry in m.after.journal]
    if numbers and numbers != list(range(m.after.journaled - len(numbers) + 1, m.after.journaled + 1)):
        yield f"the entries are {numbers}, and the last one is {m.after.journaled}"


@law_of_histories
def a_request_that_is_sent_again_replies_the_same(m: Moment, ghost: Ghost) -> Iterator[str]:
    """The namespace remembers the replies of the last 1000 requests of its operations: sent again, they reply the same
    and change nothing. A put is recognised by its job, until that is put by another request.
    """
    request = getattr(m.op, "request", "")
    if m.refused or not request:
        return
    at = m.name, request
    kind = m.op.spec.resend
    if kind == "memo" and len(ghost) < REMEMBERED // 2:
        if at in ghost and ghost[at] != hash((repr(m.op), repr(m.outcome))) and ghost[at, "op"] == hash(repr(m.op)):
            yield f"{m.op} replies {m.outcome!r}, and another reply before"
        if at in ghost and ghost[at, "op"] == hash(repr(m.op)) and m.events:
            yield f"{m.op} was sent again, and {m.events[0]}"
        ghost[at], ghost[at, "op"] = hash((repr(m.op), repr(m.outcome))), hash(repr(m.op))
    if kind == "job" and m.name == "put":
        job = m.before.jobs.get(m.op.jid)
        if job is not None and job["put_request"] == request and m.events:
            yield f"{m.op.jid} was put by {request!r} before, and {m.events[0]}"


@law
def a_put_remembers_its_request(m: Moment) -> Iterator[str]:
    """A job remembers the request that put it, until it is put by another one."""
    for one in m.told("put"):
        after = m.after.jobs.get(one.jid)
        if one.becomes is None or one.becomes["source"] != "put" or after is None or m.name not in ("put", "put_many"):
            continue
        if after["put_request"] != m.op.request:
            yield f"{one.jid} was put by {m.op.request!r}, and remembers {after['put_request']!r}"


@law
def an_obliterated_queue_leaves_nothing(m: Moment) -> Iterator[str]:
    """`obliterate` deletes a queue with its jobs in any state, its recurring jobs, its pauses and its own throttle;
    running jobs only by force. No job is left waiting for a deleted one.
    """
    if m.name != "obliterate" or m.refused or not m.events:
        return
    queue = m.op.queue
    busy = [
        jid for jid, job in m.before.jobs.items() if job["queue"] == queue and job["state"] in ("running", "stalled")
    ]
    if busy and not m.op.force:
        yield f"{busy} were leased, and {queue} was deleted"
    if any(event.event == "forgotten" for event in m.events):
        left = [
            jid
            for jid, job in m.after.jobs.items()
            if job["queue"] == queue and job["state"] not in ("complete", "failed")
        ]
        left += [jid for jid, one in m.after.schedules.items() if one["queue"] == queue]
        if (left and not m.follow) or m.queue(queue, before=False)["pauses"]:
            yield f"{queue} was deleted, and {left} are left"


@law
def drain_cancels_what_has_not_started(m: Moment) -> Iterator[str]:
    """`drain` cancels jobs of a queue that have not started and have no dependents, and replies how many, and how many
    are left, before jobs follow the end of a request.
    """
    if m.name != "drain" or m.refused or not m.events or m.before.cascade:
        return
    gone = [one for one in m.told("canceled") if one.jid not in m.follow]
    for one in gone:
        was = m.before.jobs.get(one.jid)
        if was is not None and (
            was["queue"] != m.op.queue or was["state"] in ("running", "stalled", "complete", "failed")
        ):
            yield f"{one.jid} of {was['queue']} was {was['state']}, and drained"
    left = sum(
        job["queue"] == m.op.queue and job["state"] not in ("complete", "failed") for job in m.after.jobs.values()
    )
    if not m.follow and (m.outcome[1] != left or m.outcome[0] != len(gone)):
        yield f"{m.outcome} is replied, {len(gone)} were canceled, {left} are left"


@law
def bulk_operations_take_what_matches(m: Moment) -> Iterator[str]:
    """`cancel_many`, `retry_many` and `clean` act on the jobs that match; `preview` only counts. `clean` deletes those
    that ended long enough ago, and replies their ids.
    """
    if m.name not in ("cancel_many", "retry_many", "clean") or m.refused:
        return
    op = m.op
    if op.preview and m.tale and not m.before.cascade:
        yield f"a preview, and {m.tale[0].event}"
    kinds = {"cancel_many": ("canceled",), "retry_many": ("unfailed",), "clean": ("canceled", "retired")}[m.name]
    for one in m.told(*kinds):
        was = m.before.jobs.get(one.jid)
        if was is None or one.jid in m.follow:
            continue
        options = [tag for tag, _ in was["tags"]]
        fits = (
            (op.queue is None or was["queue"] == op.queue) and (op.klass is None or was["klass"] == op.klass)
            and (op.tag is None or op.tag in options)
            and (op.group is None or (was["failure"] is not None and was["failure"][0] == op.group))
        )  # fmt: skip
        if not fits or (m.name == "clean" and was["ended_at"] > m.now - op.older_ms):
            yield f"{one.event}, but {op} does not name it"
    gone = tuple(one.jid for one in m.told(*kinds))
    if m.name == "clean" and gone and not m.before.cascade and m.outcome.jids != gone:
        yield f"{m.outcome.jids} are replied, and {gone} were deleted"
