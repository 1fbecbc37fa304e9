"""Commands that put, hold, change and remove jobs."""

from __future__ import annotations

from functools import partial

from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.contract.replies import Job
from qmodel.dialects.qless import shapes, texts, throttles
from qmodel.dialects.qless.arguments import (
    delay_of,
    first,
    limited,
    need,
    need_data,
    need_jid,
    need_queue,
    options_of,
    page,
    strings_of,
    whole_of,
    window,
)
from qmodel.dialects.qless.session import SENTENCES, QlessError, Reply, Session, state
from qmodel.model.state import tracking

# ---- putting


def known(session: Session, command: str, jid: str, others: tuple[str, ...]) -> tuple[str, ...]:
    """Select the dependencies that exist; qless ignores the others, which may be complete and deleted.

    The job's own id stays in, so that the engine refuses it.
    """
    if not others:
        return ()
    there = {job.jid for job in session.ask(command, ops.Multiget(others))} | {jid}
    return tuple(other for other in others if other in there)


def put(
    session: Session,
    me: str | None = None,
    queue: str | None = None,
    jid: str | None = None,
    klass: str | None = None,
    data: str | None = None,
    delay: str | None = None,
    *options: str,
) -> Reply:
    """Put a job into a queue, or move it there."""
    queue = need_queue(queue)
    jid, klass = need("Put", "jid", jid), need("Put", "klass", klass)
    data = need_data("Put", data)
    delay_ms = delay_of("Put", delay)
    given = options_of("Put", options)
    retries = whole_of("Put", "retries", given["retries"]) if "retries" in given else None
    tags = strings_of("Put", "tags", given["tags"]) if "tags" in given else None
    priority = session.sign * _priority_of(given["priority"]) if "priority" in given else None
    depends = strings_of("Put", "depends", given.get("depends", "[]"))
    asked = "depends" in given and (depends or session.document)
    depends = known(session, "Put", jid, depends)
    tids = strings_of("Put", "throttles", given["throttles"]) if session.reqless and "throttles" in given else ()

    before = session.stored(jid)
    names = throttles.named(tids, queue, None if before is None else before.queue) if session.reqless else ()
    followers = throttles.plan(session, [jid], throttles.left(session, jid)) if session.reqless else []
    kept = () if before is None else tuple(before.tags)
    tagged = kept if tags is None else tags if set(tags) & set(kept) else ()
    seq = session.seq
    edges = depends if asked else None
    klass = texts.stored_klass(klass)
    op = ops.Put(queue, jid, klass, data, priority, delay_ms, retries, tags, edges, throttles=names or None)
    session.ask("Put", op)
    if tagged:
        session.ask("Put", ops.TagRemove(jid, tagged))
        session.ask("Put", ops.TagAdd(jid, tagged))
    throttles.admit(session, followers, session.ready_of((jid,)))
    if session.reqless:
        throttles.park(session, jid)
    session.remember(queue)
    session.log(("jid", jid), ("event", "put"), ("queue", queue))
    for event in session.events(seq):
        if event.event == "lock_lost" and event.named["worker"] != me:
            session.lost(jid, str(event.named["worker"]))
    session.tracked("put", jid)
    return jid


def _priority_of(text: str) -> int:
    found = texts.whole(text)
    if found is None:
        raise QlessError(f'Put(): Arg "priority" not a number{texts.shown(text)}')
    return found


def requeue(
    session: Session, me: str | None = None, queue: str | None = None, jid: str | None = None, *more: str
) -> Reply:
    """Put an existing job again."""
    jid = need_jid(jid)
    find(session, "Requeue", jid)
    return put(session, me, queue, jid, *more)


# ---- holding


def find(session: Session, command: str, jid: str) -> Job:
    """Find a job; refuse if it does not exist."""
    job: Job | None = session.ask(command, ops.Get(jid))
    if job is None:
        raise QlessError(f"{command}(): {_name_of(session, command, jid)} does not exist", by_state=True)
    return job


def _name_of(session: Session, command: str, jid: str) -> str:
    """Name a job in an error; reqless mostly does not give its id."""
    return "Job" if session.reqless and command != "Requeue" else f"Job {jid}"


def held(session: Session, command: str, jid: str, worker: str, not_running: str, other: str) -> Job:
    """Find a job that a worker holds, or refuse; qless has no tokens, so the worker's current lease is used."""
    job = find(session, command, jid)
    name = _name_of(session, command, jid)
    if state(session, job) != "running":
        raise QlessError(f"{command}(): {name} {not_running}: {state(session, job)}", by_state=True)
    if job.worker != worker:
        raise QlessError(f"{command}(): {name} {other}: {job.worker}", by_state=True)
    return job


def in_queue(session: Session, command: str, job: Job, queue: str) -> None:
    """Refuse if a job runs in another queue."""
    if job.queue != queue:
        sentence = f"{command}(): {_name_of(session, command, job.jid)} running in another queue: {job.queue}"
        raise QlessError(sentence, by_state=True)


NOTHING = "qless:nothing"
"""A queue without jobs: a pop of it is a sign of life of the worker, and nothing else."""


def see(session: Session, command: str, worker: str) -> None:
    """Record that a worker was seen now."""
    session.ask(command, ops.Pop(NOTHING, worker, qless=True, tries=0))


def heartbeat(session: Session, jid: str | None = None, worker: str | None = None, data: str | None = None) -> Reply:
    """Renew a worker's lease from now; reply its end in whole seconds."""
    jid = need_jid(jid)
    worker = need("Heatbeat", "worker", worker)  # so it stands in qless
    if data is not None:
        need_data("Heartbeat", data)
    job = held(session, "Heartbeat", jid, worker, "not currently running", "given out to another worker")

    expires_at: int = session.ask("Heartbeat", ops.Heartbeat(jid, job.token, data)).expires_at
    see(session, "Heartbeat", worker)
    return expires_at // 1000


def complete(
    session: Session,
    jid: str | None = None,
    worker: str | None = None,
    queue: str | None = None,
    data: str | None = None,
    *options: str,
) -> Reply:
    """Complete a job, or move it to its next queue; reply its state."""
    jid = need_jid(jid)
    worker, queue = need("Complete", "worker", worker), need("Complete", "queue", queue)
    data = need_data("Complete", data)
    given = options_of("Complete", options)
    following = given.get("next")
    delay_ms = delay_of("Complete", given["delay"]) if "delay" in given else 0
    depends = strings_of("Complete", "depends", given["depends"]) if "depends" in given else ()
    for name in ("delay", "depends"):
        if following is None and name in given:
            raise QlessError(f'Complete(): "{name}" cannot be used without a "next".')
    not_running, other = "is not currently running", "has been handed out to another worker"
    job = held(session, "Complete", jid, worker, not_running, other)
    in_queue(session, "Complete", job, queue)
    depends = known(session, "Complete", jid, depends)

    op = ops.Complete(jid, job.token, "", data, following, delay_ms, depends)
    followers = throttles.plan(session, [jid]) if session.reqless else []
    reply: str = session.ask("Complete", op)
    dependents = job.dependents if following is None else ()
    throttles.admit(session, followers, session.ready_of((jid, *dependents)))
    session.tracked("completed", jid)
    if following is None:
        session.log(("jid", jid), ("event", "completed"), ("queue", queue))
    else:
        session.remember(following)
        session.log(("jid", jid), ("to", following), ("event", "advanced"), ("queue", queue))
    return reply


def fail(
    session: Session,
    jid: str | None = None,
    worker: str | None = None,
    group: str | None = None,
    message: str | None = None,
    data: str | None = None,
) -> Reply:
    """Fail a job into a group; reply its id."""
    jid = need_jid(jid)
    worker = need("Fail", "worker", worker)
    group, message = need("Fail", "group", group), need("Fail", "message", message)
    if data is not None:
        need_data("Fail", data)
    job = session.ask("Fail", ops.Get(jid))
    now = "" if job is None else state(session, job)
    name = _name_of(session, "Fail", jid)
    if now != "running":
        blank = " " if session.reqless else ""  # none stands there in qless either
        raise QlessError(
            f"Fail(): {name}{blank}" + (f"not currently running: {now}" if now else "does not exist"), True
        )
    if job.worker != worker:
        raise QlessError(f"Fail(): {name} running with another worker: {job.worker}", by_state=True)

    followers = throttles.plan(session, [jid]) if session.reqless else []
    session.ask("Fail", ops.Fail(jid, job.token, group, message, data, qless=True))
    throttles.admit(session, followers)
    tell_failed(session, jid, worker, group, message)
    session.tracked("failed", jid)
    return jid


def tell_failed(session: Session, jid: str, worker: str, group: str, message: str) -> None:
    """Publish to the log that a job failed."""
    session.log(("message", message), ("jid", jid), ("group", group), ("event", "failed"), ("worker", worker))


def retry(
    session: Session,
    jid: str | None = None,
    queue: str | None = None,
    worker: str | None = None,
    delay: str | None = None,
    group: str | None = None,
    message: str | None = None,
) -> Reply:
    """Retry a job; reply the remaining retries, or -1 if the job failed because there were none."""
    jid = need_jid(jid)
    queue, worker = need("Retry", "queue", queue), need("Retry", "worker", worker)
    delay_ms = delay_of("Retry", "0" if delay is None else delay)
    not_running, other = "is not currently running", "has been given to another worker"
    job = held(session, "Retry", jid, worker, not_running, other)
    in_queue(session, "Retry", job, queue)
    if group is None or message is None:  # only both together have an effect
        group, message = None, shapes.exhausted(job.queue)

    followers = throttles.plan(session, [jid]) if session.reqless else []
    remaining: int = session.ask("Retry", ops.Retry(jid, job.token, delay_ms, group, message, qless=True))
    throttles.admit(session, followers, session.ready_of((jid,)))
    if remaining < 0 and not session.reqless:
        session.tracked("failed", jid)
    return remaining


def timeout(session: Session, *jids: str) -> Reply:
    """End the leases of jobs at once, all or none."""
    if jids:
        seq = session.seq
        followers = throttles.plan(session, jids) if session.reqless else []
        never = "Job {0} not running"
        absent = never if session.reqless else SENTENCES["JOB_NOT_FOUND"]
        op = ops.Timeout(jids, qless=session.reqless)
        session.ask("Timeout", op, WRONG_STATE=never, JOB_NOT_FOUND=absent)
        throttles.admit(session, followers)
        for event in session.events(seq):
            if event.event == "lock_lost":
                session.lost(str(event.named["jid"]), str(event.named["worker"]))
    return None


# ---- removing


def cancel(session: Session, *jids: str) -> Reply:
    """Delete jobs that are not complete, all or none; reply the ids given."""
    if jids:
        there = {jid: job for jid in jids if (job := session.stored(jid)) is not None}
        owned = {jid: (job.worker, job.queue) for jid, job in there.items() if job.state != "complete"}
        followers = throttles.plan(session, list(owned)) if session.reqless else []
        session.ask("Cancel", ops.Cancel(jids))
        throttles.admit(session, followers)
        for jid in jids:
            if jid in owned:
                _tell_canceled(session, jid, *owned.pop(jid))
            elif session.stored(jid) is None:
                session.log(("jid", jid), ("queue", False), ("event", "canceled"), ("worker", False))
                session.tracked("canceled", jid)
    return list(jids)


def _tell_canceled(session: Session, jid: str, owner: str, queue: str) -> None:
    told = texts.record((("jid", jid), ("queue", queue), ("event", "canceled"), ("worker", owner)))
    session.say("log", told)
    if owner:
        session.say("w:" + owner, told)
    session.tracked("canceled", jid)


# ---- changing


def priority(session: Session, jid: str | None = None, level: str | None = None) -> Reply:
    """Change a job's priority; reply it."""
    jid = need_jid(jid)
    found = texts.whole(level)
    if found is None:
        raise QlessError(f'Priority(): Arg "priority" missing or not a number: {texts.shown(level)}')

    op = ops.Priority(jid, session.sign * found, first=True)  # so it is in qless
    if session.reqless and session.stored(jid) is None:
        raise QlessError("Queue(): no queue name provided", by_state=True)
    session.ask("Priority", op)
    return found


def depends(session: Session, jid: str | None = None, command: str | None = None, *jids: str) -> Reply:
    """Change the dependencies of a waiting job."""
    jid = need_jid(jid)
    need("Depends", "command", command)
    job: Job | None = session.ask("Depends", ops.Get(jid))
    if job is None or job.state != "depends":
        found = "false" if job is None else state(session, job)
        raise QlessError(f"Depends(): Job {jid} not in the depends state: {found}", by_state=True)
    if command not in ("on", "off"):
        raise QlessError('Depends(): Argument "command" must be "on" or "off"')

    if command == "on":
        others = known(session, "Depends", jid, jids)
        if others:
            session.ask("Depends", ops.DependsOn(jid, others))
    else:
        everything = jids[:1] == ("all",)
        session.ask("Depends", ops.DependsOff(jid, () if everything else jids, everything))
    return 1


def log(session: Session, jid: str | None = None, message: str | None = None, data: str | None = None) -> Reply:
    """Add a line to a job's history, with the names and values of a JSON object."""
    if jid is None or message is None:
        raise QlessError(f"Log(): Argument '{'jid' if jid is None else 'message'}' missing")
    if data is not None and not texts.is_object(data):
        raise QlessError(f'Log(): Arg "data" not a JSON object: {texts.shown(data)}')

    more = "" if data is None else "\n" + data.lstrip(" \t\r\n")  # so the break tells where the object begins
    session.ask("Log", ops.Log(jid, message + more))
    return None


def tag(session: Session, command: str | None = None, *arguments: str) -> Reply:
    """Add or remove a job's tags, find jobs by tag, or list the most used tags."""
    if command in ("add", "remove"):
        jid, tags = need("Tag", "jid", first(arguments)), arguments[1:]
        need("Tag", "tag", first(tags))
        change = ops.TagAdd(jid, tags) if command == "add" else ops.TagRemove(jid, tags)
        return texts.dump(session.ask("Tag", change))
    if command == "get":
        name = need("Tag", "tag", first(arguments))
        found = page(session, "Tag", partial(ops.Tagged, name), *window("Tag", "offset", "count", *arguments[1:3]))
        return texts.record((("total", found.total), ("jobs", found.jids)))
    if command == "top":
        return texts.dump(top(session, *window("Tag", "offset", "count", *arguments[:2])))
    if command is None:
        raise QlessError('Tag(): Arg "command" must be "add", "remove", "get" or "top"')
    raise QlessError('Tag(): First argument must be "add", "remove" or "get"')


def top(session: Session, offset: int, count: int) -> list[str]:
    """Give a page of the most used tags; of one number the later names come first."""
    tallies = session.ask("Tag", ops.TopTags(0, MOST))
    names = sorted(((tally.jobs, tally.name) for tally in tallies), reverse=True)
    begin, size = limited(offset, count)
    return [name for _, name in names[begin : begin + size]]


def track(session: Session, action: str | None = None, jid: str | None = None) -> Reply:
    """Track a job, stop tracking it, or show the tracked jobs."""
    if action is None:
        found = session.ask("Track", ops.Tracked(0, MOST))
        return texts.record((("jobs", shapes.jobs(session, found.jobs)), ("expired", found.expired)))
    jid = need("Track", "jid", jid)
    verb = action.lower()
    if verb == "untrack" and session.stored(jid) is None and not tracking.is_tracked(session.store, jid):
        raise QlessError("Track(): Job does not exist", by_state=True)
    if verb == "track":
        again = session.stored(jid) is not None and tracking.is_tracked(session.store, jid)
        if again:  # it is tracked since now
            session.ask("Track", ops.Untrack(jid))
        changed = session.ask("Track", ops.Track(jid), JOB_NOT_FOUND="Job does not exist")
        changed = 0 if again else changed
    elif verb == "untrack":
        changed = session.ask("Track", ops.Untrack(jid))
    else:
        raise QlessError(f'Track(): Unknown action "{texts.shown(action)}"')
    session.say(verb, jid)
    return str(changed)
