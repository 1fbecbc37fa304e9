"""Commands of reqless for throttles and queue patterns.

A throttle of reqless is one of ours with a concurrency. That of a queue is `ql:q:<queue>` in reqless and
`queue/<queue>` in the engine. What the engine does not keep, a throttle's maximum when it has none and its end, is kept
as metadata; so are the patterns, which only bindings read.
"""

from __future__ import annotations

import re

from qmodel.contract import operations as ops
from qmodel.contract.arguments import MOST
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.arguments import need, need_queue, whole_of
from qmodel.dialects.qless.session import QlessError, Reply, Session
from qmodel.dialects.qless.shapes import OWN
from qmodel.model.state.throttles import OWN as OWN_OF_ENGINE

THROTTLES = "qless:throttles"
"""The klass whose metadata hold the maximum and the end (milliseconds; 0: none) of each throttle."""

IDENTIFIERS = "qless:identifiers"
PRIORITIES = "qless:priorities"
"""The klasses whose metadata hold the patterns of queues."""

ALL = '["*"]'
EVEN = '{"fairly": false, "pattern": ["default"]}'
_EVEN = re.compile(r'"pattern"\s*:\s*\[\s*"default"\s*\]')


def _ours(tid: str) -> str:
    """Convert reqless's name of a throttle to the engine's."""
    return OWN_OF_ENGINE + tid[len(OWN) :] if tid.startswith(OWN) else tid


def _kept(session: Session, tid: str) -> tuple[int, int] | None:
    """Read the maximum and the end of a throttle; None if it was not set, or has ended."""
    note = session.note(THROTTLES, tid)
    if note is None:
        return None
    maximum, ends_at = map(int, note.split())
    return None if 0 < ends_at <= session.now else (maximum, ends_at)


def throttle_set(
    session: Session, tid: str | None = None, maximum: str | None = None, expiration: str | None = "0"
) -> Reply:
    """Set how many jobs of a throttle may run at once, perhaps for some seconds only; 0: any number."""
    tid = need("throttle.set", "tid", tid)
    most = whole_of("throttle.set", "max", maximum)
    seconds = whole_of("throttle.set", "expiration", expiration)
    if most > 0:
        session.ask("throttle.set", ops.ThrottleSet(_ours(tid), most))
    else:
        session.ask("throttle.set", ops.ThrottleUnset(_ours(tid)))
    ends_at = session.now + seconds * 1000 if seconds > 0 else 0
    session.ask("throttle.set", ops.MetadataSet(THROTTLES, tid, f"{max(most, 0)} {ends_at}"))
    return None


def throttle_get(session: Session, tid: str | None = None) -> Reply:
    """Show a throttle."""
    tid = need("throttle.get", "tid", tid)
    kept = _kept(session, tid)
    maximum, ends_at = kept or (0, 0)
    left = -2 if kept is None else -1 if ends_at == 0 else -((session.now - ends_at) // 1000)
    return texts.record((("id", tid), ("maximum", maximum), ("ttl", left)))


def throttle_delete(session: Session, tid: str | None = None) -> Reply:
    """Remove a throttle's limit."""
    tid = need("throttle.delete", "tid", tid)
    session.ask("throttle.delete", ops.ThrottleUnset(_ours(tid)))
    session.ask("throttle.delete", ops.MetadataUnset(THROTTLES, tid))
    return None


def end_throttles(session: Session) -> None:
    """Remove the limits that have ended."""
    for tid, note in session.ask("queue.pop", ops.MetadataGet(THROTTLES)):
        if 0 < int(note.split()[1]) <= session.now:
            throttle_delete(session, tid)


def queue_throttle_set(session: Session, queue: str | None = None, maximum: str | None = None) -> Reply:
    """Set how many jobs of a queue may run at once."""
    return throttle_set(session, OWN + need_queue(queue), maximum)


def queue_throttle_get(session: Session, queue: str | None = None) -> Reply:
    """Show the throttle of a queue."""
    return throttle_get(session, OWN + need_queue(queue))


def throttle_locks(session: Session, tid: str | None = None) -> Reply:
    """List the jobs that hold a throttle, by id."""
    return texts.dump(_holders(session, need("throttle.locks", "tid", tid)))


def _holders(session: Session, tid: str) -> list[str]:
    held = []
    for queue in session.listed():
        if tid == OWN + queue or not tid.startswith(OWN):
            for jid in session.leased(queue, True, 0, MOST) + session.leased(queue, False, 0, MOST):
                job = session.stored(jid)
                named = "" if job is None else job.options.get("throttles", "")
                if tid.startswith(OWN) or tid in named.split():
                    held.append(jid)
    return sorted(set(held))


def throttle_pending(session: Session, tid: str | None = None) -> Reply:
    """List the jobs that wait for a throttle, without those that the next pop may take."""
    return texts.dump(parked(session, need("throttle.pending", "tid", tid))[1])


def parked(session: Session, tid: str) -> tuple[list[str], list[str]]:
    """Find the jobs that wait for a throttle: those that it has room for, and the others."""
    found = []
    for queue in session.listed():
        for jid in session.ask("throttle.pending", ops.Throttled(queue, 0, MOST)).jids:
            job = session.stored(jid)
            if job is not None and job.options.get("gate") == tid:
                found.append(jid)
    kept = _kept(session, tid)
    room = max(kept[0] - len(_holders(session, tid)), 0) if kept is not None and kept[0] > 0 else len(found)
    return found[:room], found[room:]


def let_through(session: Session, queue: str) -> list[str]:
    """Find the jobs of a queue that wait for a throttle which has room again: reqless counts them as waiting."""
    jids = session.ask("queue.counts", ops.Throttled(queue, 0, MOST)).jids
    gates = {job.options.get("gate", "") for jid in jids if (job := session.stored(jid)) is not None}
    free = {jid for gate in gates for jid in parked(session, gate)[0]}
    return [jid for jid in jids if jid in free]


def kept_back(session: Session, queue: str) -> list[str]:
    """Find the jobs of a queue that wait for a throttle which has no room."""
    free = let_through(session, queue)
    return [jid for jid in session.ask("Jobs", ops.Throttled(queue, 0, MOST)).jids if jid not in free]


# ---- patterns


def identifiers_get(session: Session) -> Reply:
    """Show the names that stand for patterns of queues."""
    kept = dict(session.ask("queueIdentifierPatterns.getAll", ops.MetadataGet(IDENTIFIERS)))
    return texts.record(sorted(({"default": ALL} | kept).items()))


def identifiers_set(session: Session, *pairs: str) -> Reply:
    """Replace the names that stand for patterns of queues; a name without patterns is left out."""
    command = "queueIdentifierPatterns.setAll"
    if len(pairs) % 2:
        raise QlessError(f"Odd number of identifier patterns: {len(pairs)}")
    given = [(name, text) for name, text in zip(pairs[::2], pairs[1::2], strict=True) if texts.strings(text)]
    _replace(session, command, IDENTIFIERS, given)
    return None


def _replace(session: Session, command: str, klass: str, pairs: list[tuple[str, str]]) -> None:
    """Replace all metadata of a klass."""
    for name, _ in session.ask(command, ops.MetadataGet(klass)):
        session.ask(command, ops.MetadataUnset(klass, name))
    for name, text in pairs:
        session.ask(command, ops.MetadataSet(klass, name, text))


def priorities_get(session: Session) -> Reply:
    """List the patterns that order queues."""
    kept = session.ask("queuePriorityPatterns.getAll", ops.MetadataGet(PRIORITIES))
    return texts.dump([text for _, text in kept] or [EVEN])


def priorities_set(session: Session, *patterns: str) -> Reply:
    """Replace the patterns that order queues; the default one comes last unless it is given."""
    given = list(patterns)
    if given and not any(_EVEN.search(text) for text in given):
        given.append(EVEN)
    _replace(session, "queuePriorityPatterns.setAll", PRIORITIES, [(f"{at:03}", text) for at, text in enumerate(given)])
    return None
