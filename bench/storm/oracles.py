"""The oracles of a storm: what the evidence of a round says against the promises.

A loss is declared if the fault that was at work says that such a loss may happen. It is counted apart, with its reason.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.storm.evidence import Acknowledged, Evidence, Note
from qmodel.contract.events import Event

COUNTED = ("lost", "ended twice", "limits exceeded", "invariants broken", "differences in the audit", "errors")
"""What must be zero, in the order in which it is told."""

SLACK = 2.0
"""How long after a fault a client may still raise its error, in seconds: the thread that saw it has to run."""

CLOCKS = 0.01
"""How far the clocks of servers and workers may be apart, in seconds: those of the servers are whole milliseconds."""

FREES = frozenset(("completed", "advanced", "failed", "retried", "released", "lock_lost", "canceled"))
"""The events that end a lease."""


@dataclass
class Verdict:
    """What the oracles found: for each count the sentences, and the declared losses by reason."""

    acknowledged: int = 0
    found: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in COUNTED})
    declared: Counter[str] = field(default_factory=Counter)

    def add(self, other: Verdict, where: str) -> None:
        """Add another round's."""
        self.acknowledged += other.acknowledged
        self.declared += other.declared
        for name, sentences in other.found.items():
            self.found[name] += [f"{where}: {sentence}" for sentence in sentences]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not any(self.found.values())


def judge(evidence: Evidence) -> Verdict:
    """Ask all oracles."""
    verdict = Verdict(len(evidence.acknowledged))
    _lost(evidence, verdict)
    _ended_twice(evidence, verdict)
    verdict.found["limits exceeded"] += exceeded(evidence)
    verdict.found["invariants broken"] += [*evidence.broken, *_tokens(evidence), *_too_early(evidence)]
    verdict.found["differences in the audit"] += evidence.differences
    verdict.found["errors"] += [*_not_allowed(evidence), *evidence.crashes]
    return verdict


def stalls(evidence: Evidence) -> dict[str, tuple[float, float]]:
    """Give for each kind of fault the longest put that it met, in seconds, and the most that one took beyond the time
    for which the servers themselves were away. A put that met several faults counts for the one that lasted longest.
    """
    found: dict[str, tuple[float, float]] = {}
    for put in evidence.acknowledged:
        met = [one for one in evidence.windows if one.begins <= put.at <= one.ends + put.took]
        if met:
            window = max(met, key=lambda one: one.away)
            longest, beyond = found.get(window.kind, (0.0, 0.0))
            found[window.kind] = max(longest, put.took), max(beyond, put.took - window.away)
    return found


# ---- what is lost


def _excuse(evidence: Evidence, one: Acknowledged | Note) -> str:
    """Say why something that was acknowledged may be lost; empty if it may not."""
    for window in evidence.windows:
        at_work = window.loses and window.begins <= one.at <= window.ends
        if at_work and (window.loses_confirmed or not one.confirmed):
            return window.loses
    return ""


def _completed(evidence: Evidence) -> set[tuple[str, str]]:
    """Give the completions in the stream: the jobs and the tokens of their leases."""
    return {(str(e.named["jid"]), str(e.named["token"])) for e in evidence.events if e.event == "completed"}


def _lost(evidence: Evidence, verdict: Verdict) -> None:
    """Each acknowledged put is there, or declared lost; so is each acknowledged completion."""
    completed = _completed(evidence)
    missing: list[tuple[str, str, Acknowledged | Note]]
    missing = [(one.jid, "put", one) for one in evidence.acknowledged if one.jid not in evidence.jobs]
    for note in evidence.notes:
        if note.what == "acknowledged" and (note.jid, note.token) not in completed:
            missing.append((note.jid, "completion", note))
    for jid, what, one in missing:
        if why := _excuse(evidence, one):
            verdict.declared[why] += 1
        else:
            verdict.found["lost"].append(f"the {what} of {jid}, acknowledged at {one.at:.3f}")


# ---- what ended twice


def _ended_twice(evidence: Evidence, verdict: Verdict) -> None:
    """A job has one completion in the stream, and one that was acknowledged, but for those that were declared lost."""
    there = _completed(evidence)
    ended = Counter(str(event.named["jid"]) for event in evidence.events if event.event == "completed")
    twice = verdict.found["ended twice"]
    twice += [f"{jid}: {count} completions in the stream" for jid, count in ended.items() if count > 1]
    holders: dict[str, dict[tuple[str, int], Note]] = defaultdict(dict)
    for note in evidence.notes:
        if note.what == "acknowledged" and ended[note.jid] <= 1:
            holders[note.jid][note.token, note.pid] = note
    for jid, notes in holders.items():
        kept = [note for note in notes.values() if (jid, note.token) in there or not _excuse(evidence, note)]
        if len(kept) > 1:
            twice.append(f"{jid}: acknowledged under the tokens {', '.join(note.token for note in kept)}")


def _tokens(evidence: Evidence) -> Iterator[str]:
    """No token of a shard is given to two holders, whatever the server has lost."""
    holders: dict[tuple[int, str], set[tuple[str, int]]] = defaultdict(set)
    for note in evidence.notes:
        shard = evidence.layout.home(note.jid) if evidence.layout is not None else 0
        holders[shard, note.token].add((note.jid, note.pid))
    for (_, token), found in holders.items():
        if len(found) > 1:
            shown = ", ".join(f"{jid} in process {pid}" for jid, pid in sorted(found))
            yield f"tokens are unique: {token} was given for {shown}"


def _too_early(evidence: Evidence) -> Iterator[str]:
    """A job begins only when the job that it waits for has ended, in its own shard or in another one."""
    ended = {str(event.named["jid"]): event.at / 1000 for event in evidence.events if event.event == "completed"}
    for note in evidence.notes:
        plan = evidence.plans.get(note.jid)
        if note.what != "started" or plan is None or plan.after is None or _excuse(evidence, note):
            continue
        if note.at < ended.get(plan.after, note.at) - CLOCKS:
            yield f"jobs wait for others: {note.jid} began at {note.at:.3f}, and {plan.after} had not ended"


# ---- limits


def exceeded(evidence: Evidence) -> list[str]:
    """At every moment of the stream, no throttle, queue or concurrency key has more leases than it may."""
    held: dict[str, set[str]] = defaultdict(set)
    found = []
    for event in evidence.events:
        if event.event != "popped" and event.event not in FREES:
            continue
        jid = str(event.named["jid"])
        for name, limit in _limits(evidence, event, jid):
            if event.event != "popped":
                held[name].discard(jid)
                continue
            held[name].add(jid)
            if len(held[name]) > limit:
                found.append(f"{name}: {len(held[name])} of {limit} after event {event.seq}")
    return found


def _limits(evidence: Evidence, event: Event, jid: str) -> Iterator[tuple[str, int]]:
    """The limits that a job counts for."""
    queue = f"queue/{event.named['queue']}"
    if queue in evidence.limits:
        yield queue, evidence.limits[queue]
    if (plan := evidence.plans.get(jid)) is not None:
        if plan.throttle is not None:
            yield plan.throttle, evidence.limits[plan.throttle]
        if plan.ordered is not None:
            yield f"ordered {plan.ordered}", 1


# ---- errors


def _not_allowed(evidence: Evidence) -> Iterator[str]:
    """Clients raise only the typed errors that a fault at work allows."""
    for error in evidence.errors:
        allowed = any(
            error.code in window.allowed and window.begins <= error.at <= window.ends + SLACK
            for window in evidence.windows
        )
        lost = error.code == "DEPENDENCY_NOT_FOUND" and any(w.loses and w.begins <= error.at for w in evidence.windows)
        if not allowed and not lost:
            yield f"{error.text} [{error.code}, {error.who} at {error.at:.3f}]"
