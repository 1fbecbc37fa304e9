"""What the page of the dialect lists as a difference: how the original is mended where ours does not copy a defect.

After a call the original's own keys are put right, so that its later answers are what they would be without the defect.
"""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import Any

from qmodel.testing.servers import Server
from tools.oracle.compare import Heard
from tools.oracle.sides import ScriptSide, Side, Words, client_of

DAY = 86_400


class Mended:
    """The original without the defects that are rows of the page."""

    def __init__(self, side: Side, keys: Any) -> None:
        self._side = side
        self._keys = keys
        self._entries = Entries()

    def begin(self) -> None:
        """Empty the database."""
        self._side.begin()
        self._entries = Entries()

    def close(self) -> None:
        """Disconnect."""
        self._side.close()

    def call(self, words: Words) -> Heard:
        """Execute one call, and mend what it has done."""
        if words[0] == "track" and words[2:3] == ("untrack",) and _is_left(self._keys, words[3]):
            return _untracked(self._keys, words[3])
        before = BEFORE.get(words[0])
        noted = before(self._keys, words) if before is not None else None
        heard = self._side.call(words)
        after = AFTER.get(words[0])
        if after is not None and heard.error is None:
            after(self._keys, words, heard, noted)
        self._entries.order(self._keys, words)
        return heard


class Entries:
    """When each job came into the order of its queue. Jobs with equal scores are put into the order in which they came;
    by itself Redis orders them by name, of which the documents of qless say nothing.
    """

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._there: dict[str, set[str]] = {}

    def order(self, keys: Any, words: Words) -> None:
        """Note what a call has brought into the orders, and tell equal scores apart."""
        for key in {*self._there, *keys.scan_iter("ql:q:*-work", 1000)}:
            found = keys.zrange(key, 0, -1, desc=True, withscores=True)
            there = self._there.get(key, set())
            if words[0] in ("put", "requeue"):
                there.discard(words[4] if len(words) > 4 else "")
            new = [jid for jid, _ in found if jid not in there]
            made = [jid for jid in new if words[0] in ("pop", "peek") and self._is_made(keys, jid)]
            for jid in [*(jid for jid in new if jid not in made), *sorted(made, key=_run)]:
                self._place[jid] = len(self._place) + max(self._place.values(), default=0)
            self._there[key] = {jid for jid, _ in found}
            for score, members in groupby(found, itemgetter(1)):
                equal = sorted((jid for jid, _ in members), key=self._place.__getitem__)
                if len(equal) > 1 and score < float("inf"):
                    step = 1e-14 if abs(score) < 64 else 4e-12
                    keys.zadd(key, {jid: score - at * step for at, jid in enumerate(equal)})

    def _is_made(self, keys: Any, jid: str) -> bool:
        """Whether a job is a run that this call has made, and that no throttle of reqless has parked."""
        return "-" in jid and jid not in self._place and bool(keys.hget(job_key(jid), "state") == "waiting")


def _run(jid: str) -> tuple[str, int]:
    name, _, number = jid.rpartition("-")
    return name, int(number)


def job_key(jid: str) -> str:
    """The key of a job."""
    return f"ql:j:{jid}"


def failed_key(when: float, queue: str) -> str:
    """The key that counts the failed jobs of a queue on a day."""
    return f"ql:s:stats:{when - when % DAY:.14g}:{queue}"


# ---- a lease that was given back: its worker is not told of the job's later fate, and does not list it


def _give_back(keys: Any, jid: str, worker: str) -> None:
    keys.hset(job_key(jid), mapping={"worker": "", "expires": 0})
    keys.hdel(job_key(jid), "grace")
    keys.zrem(f"ql:w:{worker}:jobs", jid)


def _owners(keys: Any, words: Words) -> dict[str, str]:
    return {jid: keys.hget(job_key(jid), "worker") or "" for jid in words[2:]}


def _timed_out(keys: Any, words: Words, heard: Heard, owners: dict[str, str]) -> None:
    for jid in words[2:]:
        _give_back(keys, jid, owners[jid])


def _retried(keys: Any, words: Words, heard: Heard, noted: None) -> None:
    if int(heard.reply) >= 0:
        _give_back(keys, words[2], words[4])


# ---- the grace of a lease ends with the lease


def _beaten(keys: Any, words: Words, heard: Heard, noted: None) -> None:
    keys.hdel(job_key(words[2]), "grace")


# ---- a job leaves the failed ones: the count falls where it rose


def _failure(keys: Any, jid: str) -> tuple[float, str] | None:
    state, failure, queue = keys.hmget(job_key(jid), "state", "failure", "queue")
    return (float(json.loads(failure)["when"]), queue) if state == "failed" else None


def _put_before(keys: Any, words: Words) -> tuple[tuple[float, str] | None, Any]:
    jid = words[4] if len(words) > 4 else ""
    return _failure(keys, jid), keys.hget(job_key(jid), "scheduled")


def _put_after(keys: Any, words: Words, heard: Heard, noted: tuple[tuple[float, str] | None, Any]) -> None:
    queue, jid = words[3], words[4]
    failure, _ = noted
    if failure is not None:
        keys.hincrby(failed_key(failure[0], queue), "failed", 1)
        keys.hincrby(failed_key(*failure), "failed", -1)
    keys.hdel(job_key(jid), "grace")
    if not (keys.hget(job_key(jid), "state") == "depends" and float(words[7]) > 0):
        keys.hdel(job_key(jid), "scheduled")
    _count_tags(keys)


def _unfail_before(keys: Any, words: Words) -> list[tuple[str, tuple[float, str] | None]]:
    jids = keys.lrange(f"ql:f:{words[3]}", -int(words[4]) if len(words) > 4 else -25, -1)
    return [(jid, _failure(keys, jid)) for jid in jids]


def _unfail_after(keys: Any, words: Words, heard: Heard, noted: list[tuple[str, tuple[float, str] | None]]) -> None:
    for jid, failure in noted:
        if failure is not None:
            keys.hincrby(failed_key(*failure), "failed", -1)
        keys.hdel(job_key(jid), "grace", "scheduled")
        keys.hset(job_key(jid), "time", words[1])
        keys.zadd("ql:queues", {words[2]: float(words[1])}, nx=True)


# ---- delays


def _completed(keys: Any, words: Words, heard: Heard, noted: list[str]) -> None:
    jid, now = words[2], float(words[1])
    keys.hdel(job_key(jid), "grace")
    if heard.reply == "scheduled":
        keys.hset(job_key(jid), "state", "scheduled")
    if heard.reply != "depends":
        keys.hdel(job_key(jid), "scheduled")
    for other in noted:  # what became due while it waited is ready now
        queue, state, priority = keys.hmget(job_key(other), "queue", "state", "priority")
        due = keys.zscore(f"ql:q:{queue}-scheduled", other)
        if heard.reply == "complete" and state == "scheduled" and due is not None and due <= now:
            keys.zrem(f"ql:q:{queue}-scheduled", other)
            keys.zadd(f"ql:q:{queue}-work", {other: float(priority) - now / 1e10})
            keys.hset(job_key(other), "state", "waiting")


def _dependents(keys: Any, words: Words) -> list[str]:
    return list(keys.smembers(f"{job_key(words[2])}-dependents"))


def _freed(keys: Any, words: Words, heard: Heard, noted: None) -> None:
    jid, now = words[2], float(words[1])
    queue, state, due = keys.hmget(job_key(jid), "queue", "state", "scheduled")
    if state == "waiting" and due is not None:
        keys.hdel(job_key(jid), "scheduled")
        if float(due) > now:
            keys.zrem(f"ql:q:{queue}-work", jid)
            keys.zadd(f"ql:q:{queue}-scheduled", {jid: float(due)})
            keys.hset(job_key(jid), "state", "scheduled")


# ---- tags are counted once, and keep their place


def _count_tags(keys: Any) -> None:
    for tag in keys.zrange("ql:tags", 0, -1):
        count = keys.zcard(f"ql:t:{tag}")
        keys.zadd("ql:tags", {tag: count})
        if not count:
            keys.zrem("ql:tags", tag)


def _tag_before(keys: Any, words: Words) -> dict[str, float]:
    if words[2] != "add":
        return {}
    found = {tag: keys.zscore(f"ql:t:{tag}", words[3]) for tag in words[4:]}
    return {tag: score for tag, score in found.items() if score is not None}


def _tag_after(keys: Any, words: Words, heard: Heard, noted: dict[str, float]) -> None:
    for tag, score in noted.items():
        keys.zadd(f"ql:t:{tag}", {words[3]: score})
    _count_tags(keys)


def _number_tagged(keys: Any, words: Words, heard: Heard, noted: None) -> None:
    """Order runs that were made and tagged in one call by their numbers."""
    now = float(words[1])
    for tag in keys.zrange("ql:tags", 0, -1):
        made = [jid for jid in keys.zrangebyscore(f"ql:t:{tag}", now, now) if "-" in jid]
        for jid in made:
            keys.zadd(f"ql:t:{tag}", {jid: now + int(jid.rpartition("-")[2]) * 1e-6})


# ---- a job that is gone can be untracked


def _is_left(keys: Any, jid: str) -> bool:
    return keys.zscore("ql:tracked", jid) is not None and not keys.exists(job_key(jid))


def _untracked(keys: Any, jid: str) -> Heard:
    keys.zrem("ql:tracked", jid)
    return Heard("1", None, (("untrack", jid),))


# ---- the first run of a recurring job is due at a whole second


def _recurred(keys: Any, words: Words, heard: Heard, noted: None) -> None:
    queue, jid = words[2], words[3]
    keys.zadd(f"ql:q:{queue}-recur", {jid: keys.zscore(f"ql:q:{queue}-recur", jid) // 1})


# ---- a silent worker with jobs stays on the list


def _workers_before(keys: Any, words: Words) -> Any:
    age, now = float(keys.hget("ql:config", "max-worker-age") or DAY), float(words[1])
    busy = {keys.hget(key, "worker") for key in keys.scan_iter("ql:j:*", 1000, "hash") if _runs(keys, key)}
    for name in keys.zrangebyscore("ql:workers", 0, now - age):
        if name not in busy:
            keys.zrem("ql:workers", name)
            keys.delete(f"ql:w:{name}:jobs")
    before = keys.hget("ql:config", "max-worker-age")
    keys.hset("ql:config", "max-worker-age", "1e11")
    return before


def _runs(keys: Any, key: str) -> bool:
    return bool(keys.hget(key, "state") == "running")


def _workers_after(keys: Any, words: Words, heard: Heard, before: Any) -> None:
    if before is None:
        keys.hdel("ql:config", "max-worker-age")
    else:
        keys.hset("ql:config", "max-worker-age", before)


BEFORE: dict[str, Any] = {
    "put": _put_before,
    "requeue": _put_before,
    "timeout": _owners,
    "complete": _dependents,
    "unfail": _unfail_before,
    "tag": _tag_before,
    "workers": _workers_before,
}

AFTER: dict[str, Any] = {
    "put": _put_after,
    "requeue": _put_after,
    "timeout": _timed_out,
    "retry": _retried,
    "heartbeat": _beaten,
    "complete": _completed,
    "unfail": _unfail_after,
    "depends": _freed,
    "tag": _tag_after,
    "pop": _number_tagged,
    "peek": _number_tagged,
    "recur": _recurred,
    "workers": _workers_after,
}


def original_side(server: Server, db: int, script: str) -> ScriptSide:
    """Load the original; its calls go to one database."""
    client = client_of(server, db)
    digest = client.script_load(script)
    client.close()
    return ScriptSide(server, db, ("EVALSHA", digest, "0"))
