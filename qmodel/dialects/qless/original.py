"""Read the keys of a namespace that the original qless or reqless wrote, of any version since 2012.

The keys are those of the original: `j:<jid>` and the like behind a prefix. Nothing is written. Histories were a JSON
list in the job's hash until 2013, and are a Redis list of their own since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

BATCH = 500
"""How many jobs are read in one round trip."""

MOST = 1e15
"""What an infinite number is read as, which the original accepts: more than any number may be here."""


class Stage(NamedTuple):
    """An entry of a history: seconds since the epoch, what happened, and the worker and the queue, where named."""

    when: float
    what: str
    worker: str
    queue: str


@dataclass(frozen=True, slots=True)
class OldJob:
    """A job of the original; moments are seconds since the epoch, 0 if unknown."""

    jid: str
    klass: str
    data: str
    state: str
    queue: str
    worker: str
    priority: float
    tags: tuple[str, ...]
    retries: int
    remaining: int
    expires: float
    time: float
    due: float
    failure: dict[str, Any]
    history: tuple[Stage, ...]
    depends: tuple[str, ...]
    throttles: tuple[str, ...]
    entered: float = 0


@dataclass(frozen=True, slots=True)
class OldSchedule:
    """A recurring job of the original; `next` and `interval` are seconds."""

    jid: str
    klass: str
    data: str
    queue: str
    priority: float
    tags: tuple[str, ...]
    retries: int
    backlog: int
    interval: float
    count: int
    next: float
    throttles: tuple[str, ...]


@dataclass(slots=True)
class Original:
    """All that a namespace of the original holds, but for its statistics.

    `queues` are (name, first seen). `lines` are the waiting jobs of each queue with their scores, first one first;
    `throttled` those that wait for a throttle. `failed` (group by group), `complete` and `tagged` (when, job, tag) are
    oldest first. `throttles` are (name, maximum, seconds left or 0).
    """

    config: dict[str, str] = field(default_factory=dict)
    queues: list[tuple[str, float]] = field(default_factory=list)
    jobs: dict[str, OldJob] = field(default_factory=dict)
    lines: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    throttled: dict[str, list[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    complete: list[str] = field(default_factory=list)
    schedules: list[OldSchedule] = field(default_factory=list)
    tagged: list[tuple[float, str, str]] = field(default_factory=list)
    tracked: list[tuple[str, float]] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    throttles: list[tuple[str, int, int]] = field(default_factory=list)
    identifiers: dict[str, str] = field(default_factory=dict)
    priorities: list[str] = field(default_factory=list)


def read(client: Any, prefix: str = "ql:") -> Original:
    """Read a namespace. `client` is a redis.Redis with `decode_responses`, and may decode any bytes to surrogates; it
    should not be in use meanwhile.
    """
    found = Original()
    found.config = client.hgetall(f"{prefix}config")
    found.queues = client.zrange(f"{prefix}queues", 0, -1, withscores=True)
    found.complete = client.zrange(f"{prefix}completed", 0, -1)
    for group in sorted(client.smembers(f"{prefix}failures")):
        found.failed += reversed(client.lrange(_key(f"{prefix}f:{group}"), 0, -1))
    found.tracked = client.zrange(f"{prefix}tracked", 0, -1, withscores=True)
    found.paused = sorted(client.smembers(f"{prefix}paused_queues"))
    found.identifiers = client.hgetall(f"{prefix}qp:identifiers")
    found.priorities = client.lrange(f"{prefix}qp:priorities", 0, -1)
    dues, ends = _read_queues(client, prefix, found)
    ready = {jid for line in found.lines.values() for jid, _ in line}
    for jids in _batches(_names(client, f"{prefix}j:")):
        for job in _jobs(client, prefix, jids, dues, ends):
            found.jobs[job.jid] = job if job.jid in ready or job.jid not in dues else _scheduled(job)
    for tag in _names(client, f"{prefix}t:"):
        tagged = client.zrange(_key(f"{prefix}t:{tag}"), 0, -1, withscores=True)
        found.tagged += [(when, jid, tag) for jid, when in tagged if jid in found.jobs]
    found.tagged.sort(key=lambda one: (one[0], one[1], _at(found.jobs[one[1]].tags, one[2])))
    for name in sorted(_names(client, f"{prefix}th:")):
        found.throttles += _throttle(client, f"{prefix}th:{name}", name)
    return found


def _read_queues(client: Any, prefix: str, found: Original) -> tuple[dict[str, float], dict[str, float]]:
    """Read the lists of the queues; give the due times and the ends of leases of their jobs."""
    dues: dict[str, float] = {}
    ends: dict[str, float] = {}
    for queue in _queues_of(client, prefix):
        own = f"{prefix}q:{queue}"
        found.lines[queue] = client.zrevrange(_key(f"{own}-work"), 0, -1, withscores=True)
        found.throttled[queue] = client.zrange(_key(f"{own}-throttled"), 0, -1)
        dues |= client.zrange(_key(f"{own}-scheduled"), 0, -1, withscores=True)
        ends |= client.zrange(_key(f"{own}-locks"), 0, -1, withscores=True)
        for jid, moment in client.zrange(_key(f"{own}-recur"), 0, -1, withscores=True):
            found.schedules += _schedules(jid, client.hgetall(_key(f"{prefix}r:{jid}")), queue, moment)
    return dues, ends


def _key(text: str) -> bytes:
    """The bytes of a key, which need not be a text in UTF-8."""
    return text.encode(errors="surrogateescape")


def _scheduled(job: OldJob) -> OldJob:
    """The original calls a job that it has advanced with a delay waiting."""
    return replace(job, state="scheduled") if job.state == "waiting" else job


def _names(client: Any, start: str) -> Iterator[str]:
    """Name the keys with a start, without it, each once. A server before 2.8 has no SCAN: it lists all at once."""
    import redis

    pattern = "".join(f"\\{one}" if one in "*?[]\\" else one for one in start) + "*"
    seen: set[str] = set()
    try:
        keys: Iterable[str] = list(client.scan_iter(pattern, count=1000))
    except redis.ResponseError:
        keys = client.keys(pattern)
    for key in keys:
        if key not in seen:
            seen.add(key)
            yield key[len(start) :]


def _at(tags: Sequence[str], tag: str) -> int:
    """Where a tag stands among the tags of a job."""
    return tags.index(tag) if tag in tags else len(tags)


def _queues_of(client: Any, prefix: str) -> list[str]:
    """Name the queues that have jobs or recurring jobs; the original forgets some of them in its list."""
    ends = ("-work", "-locks", "-scheduled", "-depends", "-recur", "-throttled")
    listed = client.zrange(f"{prefix}queues", 0, -1)
    more = {name[: -len(end)] for name in _names(client, f"{prefix}q:") for end in ends if name.endswith(end)}
    return [*listed, *sorted(more - set(listed))]


def _batches(names: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(names, BATCH)):
        yield some


def _jobs(
    client: Any, prefix: str, jids: Sequence[str], dues: dict[str, float], ends: dict[str, float]
) -> Iterator[OldJob]:
    """Read the jobs among some names; the others are histories and dependencies of jobs."""
    with client.pipeline(transaction=False) as pipeline:
        for jid in jids:
            key = _key(f"{prefix}j:{jid}")
            pipeline.hgetall(key)
            pipeline.lrange(key + b"-history", 0, -1)
            pipeline.smembers(key + b"-dependencies")
        replies = pipeline.execute(raise_on_error=False)
    for at, jid in enumerate(jids):
        hash_, history, depends = replies[3 * at : 3 * at + 3]
        if isinstance(hash_, dict) and hash_.get("jid", hash_.get("id")) == jid:
            entries = history if isinstance(history, list) else []
            others = sorted(depends) if isinstance(depends, set) else []
            due = dues.get(jid, _number(hash_.get("scheduled")))
            yield _job(jid, hash_, entries, others, due, ends.get(jid, _number(hash_.get("expires"))))


def _job(jid: str, hash_: dict[str, str], history: list[str], depends: list[str], due: float, expires: float) -> OldJob:
    retries = int(_number(hash_.get("retries")))
    return OldJob(
        jid=jid,
        klass=hash_.get("klass") or hash_.get("type", ""),
        data=hash_.get("data", "{}"),
        state=hash_.get("state", ""),
        queue=hash_.get("queue", ""),
        worker=hash_.get("worker", ""),
        priority=_number(hash_.get("priority")),
        tags=_strings(hash_.get("tags")),
        retries=retries,
        remaining=int(_number(hash_.get("remaining"), retries)),
        expires=_bounded(expires),
        time=_number(hash_.get("time")),
        due=_bounded(due),
        failure=_object(hash_.get("failure")),
        history=tuple(_history(history, hash_.get("history"))),
        depends=tuple(depends),
        throttles=_strings(hash_.get("throttles")),
    )


def _history(entries: list[str], old: str | None) -> Iterator[Stage]:
    """The stages of a history, in either form."""
    for when, what, *more in filter(_is_stage, map(_parsed, entries)):
        facts = more[0] if more and isinstance(more[0], dict) else {}
        yield Stage(
            _bounded(when), str(what), str(facts.get("worker", "")), str(facts.get("q") or facts.get("queue") or "")
        )
    past = _parsed(old)
    for one in past if isinstance(past, list) and all(isinstance(one, dict) for one in past) else []:
        worker = str(one.get("worker", ""))
        for name in ("put", "popped", "done", "failed"):
            if isinstance(one.get(name), int | float):
                by = worker if name in ("popped", "failed") else ""
                yield Stage(_bounded(one[name]), name, by, str(one.get("q", "")) if name == "put" else "")


def _is_stage(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) > 1 and isinstance(entry[0], int | float)


def _schedules(jid: str, hash_: dict[str, str], queue: str, moment: float) -> Iterator[OldSchedule]:
    if hash_:
        yield OldSchedule(
            jid=jid,
            klass=hash_.get("klass") or hash_.get("type", ""),
            data=hash_.get("data", "{}"),
            queue=queue,
            priority=_number(hash_.get("priority")),
            tags=_strings(hash_.get("tags")),
            retries=int(_number(hash_.get("retries"))),
            backlog=int(_number(hash_.get("backlog"))),
            throttles=_strings(hash_.get("throttles")),
            interval=_number(hash_.get("interval")),
            count=int(_number(hash_.get("count"))),
            next=_bounded(moment),
        )


def _throttle(client: Any, key: str, name: str) -> Iterator[tuple[str, int, int]]:
    """A throttle, if a key holds one; the others hold its jobs."""
    if client.type(_key(key)) == "hash":
        maximum = client.hget(_key(key), "maximum")
        yield name, int(_number(maximum)), max(client.ttl(_key(key)), 0)


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def _number(text: str | None, default: float = 0.0) -> float:
    try:
        return default if not text else _bounded(float(text))
    except ValueError:
        return default


def _bounded(number: float) -> float:
    """A number that is finite: what is none counts as 0."""
    return 0.0 if number != number else float(min(max(number, -MOST), MOST))


def _strings(text: str | None) -> tuple[str, ...]:
    found = _parsed(text)
    return tuple(one for one in found if isinstance(one, str)) if isinstance(found, list) else ()


def _object(text: str | None) -> dict[str, Any]:
    found = _parsed(text)
    return found if isinstance(found, dict) else {}


def dependencies_first(jobs: Iterable[OldJob]) -> list[OldJob]:
    """Order jobs so that each comes after those that it depends on; those of a circle come last."""
    waiting = {job.jid: job for job in jobs}
    missing = {jid: {other for other in job.depends if other in waiting} for jid, job in waiting.items()}
    dependents: dict[str, list[str]] = {}
    for jid, others in missing.items():
        for other in others:
            dependents.setdefault(other, []).append(jid)
    ordered = [jid for jid, others in missing.items() if not others]
    for jid in ordered:  # it grows meanwhile
        for other in dependents.get(jid, ()):
            missing[other].discard(jid)
            if not missing[other]:
                ordered.append(other)
    circles = [jid for jid, others in missing.items() if others]
    return [waiting[jid] for jid in (*ordered, *circles)]
