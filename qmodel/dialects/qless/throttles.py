"""Commands of reqless for throttles and queue patterns.

A throttle of reqless is one of ours with a concurrency, which its jobs name. All jobs that are put by commands of
reqless name that of their queue, `ql:q:<queue>`. What the engine does not keep, a throttle's maximum when it has none
and its end, is kept as metadata; so are the patterns, which only bindings read.

In reqless a job is parked when it is put or popped, and admitted when another job leaves the throttle. So a command
names the parked jobs that follow (`plan`) before jobs leave their throttles, and admits them afterwards (`admit`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from qmodel.contract import operations as ops
from qmodel.contract.arguments import LONGEST_MS, NAME_BYTES, RESERVED
from qmodel.dialects.qless import texts
from qmodel.dialects.qless.arguments import need, need_queue, whole_of
from qmodel.dialects.qless.session import QlessError, Reply, Session

OWN = "ql:q:"
"""The names of the queues' own throttles begin so."""

STARRED = "ql:t:"
"""The engine's names of throttles with a `*` begin so: there, a `*` makes a family."""

THROTTLES = "qless:throttles"
"""The klass whose metadata hold the maximum and the end (milliseconds; 0: none) of each throttle."""

UNLIMITED = 10
"""How many parked jobs follow one job out of a throttle that has no limit any more."""

IDENTIFIERS = "qless:identifiers"
PRIORITIES = "qless:priorities"
"""The klasses whose metadata hold the patterns of queues."""

ALL = '["*"]'
EVEN = '{"fairly": false, "pattern": ["default"]}'
_EVEN = re.compile(r'"pattern"\s*:\s*\[\s*"default"\s*\]')
_HIDDEN = re.compile(rb"[^!-$&-)+-~]")
_NOTE = re.compile(r"([0-9]{1,14}) ([0-9]{1,14})\Z")
_WRITTEN = re.compile(rb"%([0-9A-F]{2})")


# ---- names


def ours(tid: str) -> str:
    """Convert a name of a throttle to the engine's, which has no blanks: those of a queue's name are escaped, and so is
    a `*` of any name.
    """
    if not tid.startswith(OWN):
        if "*" not in tid and not tid.startswith(STARRED):
            return tid
        tid = STARRED + tid
    name = _HIDDEN.sub(lambda found: f"%{found[0][0]:02X}".encode(), tid.encode()).decode()
    if name.endswith(RESERVED):
        head, _, tail = name.rpartition("-")
        name = f"{head}%2D{tail}"
    return name


def theirs(name: str) -> str:
    """Convert the engine's name of a throttle to reqless's."""
    if not name.startswith((OWN, STARRED)):
        return name
    text = _WRITTEN.sub(lambda found: bytes([int(found[1], 16)]), name.removeprefix(STARRED).encode())
    return text.decode(errors="replace")  # another client may have written any bytes


def named(given: Iterable[str], queue: str, before: str | None) -> tuple[str, ...]:
    """The throttles that a put gives a job: those given, without that of its queue before the put, and that of its
    queue.
    """
    return kept([*(tid for tid in given if before is None or tid != OWN + before), OWN + queue])


def kept(tids: Iterable[str]) -> tuple[str, ...]:
    """The names of throttles, without repetitions; a queue with too long a name has none."""
    names = dict.fromkeys(map(ours, tids))
    return tuple(name for name in names if not name.startswith(OWN) or len(name) <= NAME_BYTES)


# ---- limits


def _kept(session: Session, tid: str) -> tuple[int, int] | None:
    """Read the maximum and the end of a throttle; None if it was not set, or has ended."""
    found = _read(session.note(THROTTLES, tid) or "")
    return None if found is None or 0 < found[1] <= session.now else found


def _read(note: str) -> tuple[int, int] | None:
    """Read a note of a maximum and an end; None if it is another text."""
    found = _NOTE.match(note)
    return None if found is None else (int(found[1]), int(found[2]))


def throttle_set(
    session: Session, tid: str | None = None, maximum: str | None = None, expiration: str | None = "0"
) -> Reply:
    """Set how many jobs of a throttle may run at once, perhaps for some seconds only; 0: any number."""
    tid = need("throttle.set", "tid", tid)
    most = whole_of("throttle.set", "max", maximum)
    seconds = whole_of("throttle.set", "expiration", expiration)
    op = ops.ThrottleSet(ours(tid), most) if most > 0 else ops.ThrottleUnset(ours(tid))
    session.check("throttle.set", op)
    kept = _kept(session, tid)
    ends_at = session.now + min(seconds * 1000, LONGEST_MS) if seconds > 0 else kept[1] if kept is not None else 0
    session.ask("throttle.set", ops.MetadataSet(THROTTLES, tid, f"{max(most, 0)} {ends_at}"))
    session.ask("throttle.set", op)
    return None


def throttle_get(session: Session, tid: str | None = None) -> Reply:
    """Show a throttle."""
    tid = need("throttle.get", "tid", tid)
    kept = _kept(session, tid)
    return texts.record((("id", tid), ("maximum", 0 if kept is None else kept[0]), ("ttl", _left(session, kept))))


def _left(session: Session, kept: tuple[int, int] | None) -> int:
    """The seconds until a throttle ends, as Redis gives them."""
    if kept is None:
        return -2
    return -1 if kept[1] == 0 else -((session.now - kept[1]) // 1000)


def throttle_ttl(session: Session, tid: str | None = None) -> Reply:
    """Show the seconds until a throttle ends: -1 if it does not, -2 if it is not set."""
    return _left(session, _kept(session, need("throttle.ttl", "tid", tid)))


def throttle_delete(session: Session, tid: str | None = None) -> Reply:
    """Remove a throttle's limit."""
    tid = need("throttle.delete", "tid", tid)
    session.ask("throttle.delete", ops.ThrottleUnset(ours(tid)))
    session.ask("throttle.delete", ops.MetadataUnset(THROTTLES, tid))
    return None


def end_throttles(session: Session) -> None:
    """Remove the limits that have ended."""
    for tid, note in session.ask("queue.pop", ops.MetadataGet(THROTTLES)):
        found = _read(note)
        if found is not None and 0 < found[1] <= session.now:
            throttle_delete(session, tid)


def queue_throttle_set(session: Session, queue: str | None = None, maximum: str | None = None) -> Reply:
    """Set how many jobs of a queue may run at once."""
    return throttle_set(session, OWN + need_queue(queue), maximum)


def queue_throttle_get(session: Session, queue: str | None = None) -> Reply:
    """Show the throttle of a queue."""
    return throttle_get(session, OWN + need_queue(queue))


def throttle_locks(session: Session, tid: str | None = None) -> Reply:
    """List the jobs that hold a throttle, by id."""
    return texts.dump(sorted(session.holders(ours(need("throttle.locks", "tid", tid)))))


def throttle_pending(session: Session, tid: str | None = None) -> Reply:
    """List the jobs that wait for a throttle, first parked first."""
    return texts.dump(session.parked_at(ours(need("throttle.pending", "tid", tid))))


def throttle_release(session: Session, tid: str | None = None, *jids: str) -> Reply:
    """Let jobs that hold a throttle count in it no longer; let those that wait for it go on."""
    tid = need("throttle.release", "tid", tid)
    name = ours(tid)
    for jid in jids:
        session.check("throttle.release", ops.ThrottleUnset(name, jid=jid))
    for jid in jids:
        followers = plan(session, [jid], [name])
        parked = jid in session.parked_at(name)
        session.ask("throttle.release", ops.ThrottleUnset(name, jid=jid))
        admit(session, [*followers, jid] if parked else followers)
    return None


# ---- parking, and admitting


def is_open(session: Session, name: str) -> bool:
    """Whether a throttle has room for one more job, whoever was admitted."""
    kept = _kept(session, theirs(name))
    return kept is None or kept[0] <= 0 or session.holding(name) < kept[0]


def park(session: Session, jid: str) -> None:
    """Park a job that was put and is ready, if one of its throttles is closed."""
    job = session.stored(jid)
    if job is not None and job.state == "waiting" and any(not is_open(session, name) for name in session.named(jid)):
        end_throttles(session)
        session.ask("Put", ops.Delay(jid, 0, qless=True))


def left(session: Session, jid: str) -> list[str]:
    """The throttles that a put of a job leaves: those that it holds, or the one that has parked it."""
    gate = session.gate(jid)
    if gate is not None:
        return [gate]
    return [name for name in session.named(jid) if session.holds(jid, name)]


def plan(session: Session, jids: Sequence[str], only: Sequence[str] | None = None, ended: bool = False) -> list[str]:
    """Name the parked jobs that follow when jobs leave their throttles, one after the other, or `only` some throttles.
    `ended`: the jobs, which held them, have left already.
    """
    names = {jid: session.named(jid) if only is None else list(only) for jid in dict.fromkeys(jids)}
    every = list(dict.fromkeys(name for some in names.values() for name in some))
    waiting = {name: session.parked_at(name) for name in every}
    holding = {name: session.holding(name) + ended * sum(name in some for some in names.values()) for name in every}
    followers = []
    for jid, some in names.items():
        for name in some:
            if ended or session.holds(jid, name):
                holding[name] -= 1
            elif jid in waiting[name]:
                waiting[name].remove(jid)
            kept = _kept(session, theirs(name))
            room = UNLIMITED if kept is None or kept[0] <= 0 else max(kept[0] - holding[name], 0)
            followers += waiting[name][:room]
            del waiting[name][:room]
    return [jid for jid in followers if jid not in names]


def admit(session: Session, followers: Iterable[str], ready: Iterable[str] = ()) -> None:
    """Admit parked jobs. Among them and the jobs that the same call has made `ready`, the later names come first."""
    followers = tuple(followers)
    both = {*followers, *ready}
    if not followers and len(both) < 2:
        return
    for jid in sorted(both, reverse=True):
        session.ask("Delay", ops.Delay(jid, 0, qless=session.gate(jid) is not None))


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
    for name, text in pairs:
        session.check(command, ops.MetadataSet(klass, name, text))
    session.check_room(command, klass, len(dict(pairs)))
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
