"""Laws of deduplication: which put is dropped, by a ghost of who holds which key until when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from qmodel.conformance.laws.law import Ghost, Moment, law, law_of_histories
from qmodel.conformance.laws.told import PENDING, Told, ready_at


class Held(NamedTuple):
    """Who holds a key, in what mode, until when (0: until its end), and who waits to hold it next."""

    jid: str
    mode: str
    ends: int
    next: str = ""


def _holder(ghost: Ghost, key: str, now: int) -> Held | None:
    """The holder of a key: a window ends exactly at its last millisecond."""
    held: Held | None = ghost.get(key)
    return held if held is not None and (not held.ends or now < held.ends) else None


@law_of_histories
def a_key_has_one_holder(m: Moment, ghost: Ghost) -> Iterator[str]:
    """While another job holds the key, nothing is put; the reply is the holder. `pending`, `debounce` and `again` hold
    the key until their job is complete, failed or deleted (`pending` at most for `unique_ms`), `window` for
    `unique_ms` from the put, however the job ends; dropped puts do not extend it. Only `again` puts a job while
    another that has begun holds the key: it waits until that one has ended, and then holds it. The job that waits may
    be put again in any mode, and goes on waiting.
    """
    yield from _follow(m, ghost)
    latest = ghost["latest",] = max(m.now, ghost.get(("latest",), 0))
    for key in [key for key, held in ghost.items() if isinstance(held, Held) and 0 < held.ends <= latest]:
        del ghost[key]  # it may be forgotten, and the clock may go back
        ghost["late", key] = True
    for key, held in ghost.items():
        if not isinstance(held, Held) or _holder(ghost, key, m.now) is None:
            continue
        known = m.after.uniques.get(key)
        if known is None or (known["jid"], known["mode"], known["ends"], known["next"]) != held:
            yield f"{key!r} is held by {known}, and the events say {held}"
    for key, known in m.after.uniques.items():
        if (not known["ends"] or latest < known["ends"]) and _holder(ghost, key, m.now) is None:
            yield f"{key!r} is held by {known}, and the events say that it is free"
    if m.name in ("put", "replay") and not m.refused and m.events and m.name == "put":
        put = m.op
        stands = [one.jid for one in m.told("put", "deduplicated") if one.jid in (put.jid, m.outcome)]
        if put.unique is not None and m.outcome not in stands:
            yield f"{m.outcome} is replied, and {stands} stands for {put.jid}"


def _follow(m: Moment, ghost: Ghost) -> Iterator[str]:
    """Apply the events of a step to what is known of the keys."""
    if ghost.pop("unknown", False):  # what happened to the keys is not known, and who holds them is
        for key, one in m.before.uniques.items():
            ghost[key] = Held(one["jid"], one["mode"], one["ends"], one["next"])
    for event in m.events:
        if event.event == "unique_released":
            ghost.pop(str(event.facts[0]), None)
    for told in m.tale:
        was = ghost.get(told.was["options"].get("unique")) if told.was is not None else None
        if told.event.event in ("put", "completed", "failed", "canceled"):
            _release(m, ghost, told)
        if told.event.event == "put" and told.becomes is not None and told.becomes["source"] == "put":
            yield from _take(m, ghost, told, was is not None and was.next == told.jid)
        if told.event.event == "deduplicated":
            yield from _dropped(m, ghost, told)


def _release(m: Moment, ghost: Ghost, one: Told) -> None:
    """End what a job held that has ended, or begins anew."""
    key = one.was["options"].get("unique") if one.was is not None else None
    held: Held | None = ghost.get(key) if key is not None else None
    if held is None:
        return
    if held.next == one.jid:
        ghost[key] = held._replace(next="")
    elif held.jid == one.jid and held.next:
        ghost[key] = Held(held.next, "again", 0)
    elif held.jid == one.jid and held.mode != "window":
        del ghost[key]


def _take(m: Moment, ghost: Ghost, one: Told, waited: bool) -> Iterator[str]:
    """Give the key to a job that was put, or its next turn; the job that `waited` for it may be put again."""
    put = m.puts[one.jid]
    if put.unique is None:
        return
    mode, held = put.unique_mode or "pending", _holder(ghost, put.unique, m.now)
    if held is None or held.jid == one.jid:
        ghost[put.unique] = Held(one.jid, mode, m.now + put.unique_ms if put.unique_ms is not None else 0)
        return
    if (mode != "again" and not waited) or held.next or held.ends or _is_pending(m, held.jid):
        yield f"{one.jid} was put by {mode}, and {held.jid} holds {put.unique!r}: {held}"
    if one.facts["state"] != "depends":
        yield f"{one.jid} is {one.facts['state']}, and {held.jid} holds {put.unique!r}"
    ghost[put.unique] = held._replace(next=one.jid)


def _is_pending(m: Moment, jid: str) -> bool:
    """Whether a job is known not to have begun."""
    job = m.before.jobs.get(jid)
    return job is not None and job["state"] in PENDING and m.begun.get(jid) is False and jid not in m.puts


def _dropped(m: Moment, ghost: Ghost, one: Told) -> Iterator[str]:
    key, mode = one.facts["unique"], one.facts["mode"]
    held = _holder(ghost, key, m.now)
    if held is None and ("late", key) not in ghost:
        yield f"{one.event}, but nobody holds {key!r}"
    if held is None:
        return
    if one.jid != (held.next or held.jid):
        yield f"{one.event}, but {held.next or held.jid} holds {key!r}"
    began = one.was is not None and one.was["state"] in ("running", "stalled")
    if mode == "again" and not held.next and not held.ends and (began or (one.was is not None and one.was["begun"])):
        yield f"{one.event}, but the holder has begun, and nobody waits for its end"


@law
def a_dropped_put_changes_the_holder_only_as_its_mode_says(m: Moment) -> Iterator[str]:
    """A dropped put changes nothing in the modes `pending` and `window`. In `debounce` and `again` the holder gets its
    data while it has not begun; in `debounce` its delay starts again, at most until `unique_max_ms` after its own put.
    A job that waits for a retry has begun: it is neither changed nor replaced.
    """
    for one in m.told("deduplicated"):
        before, after = m.before.jobs.get(one.jid), m.after.jobs.get(one.jid)
        puts = [put for put in m.puts.values() if put.unique == one.facts["unique"]]
        if before is None or after is None or len(puts) != 1 or one.becomes is None or after["seq"] > one.event.seq:
            continue
        if any(other.jid == one.jid and other is not one for other in m.tale):
            continue  # something else happened to it too
        fixed = (
            "klass",
            "queue",
            "priority",
            "retries",
            "remaining",
            "tags",
            "put_at",
            "dependencies",
            "token",
            "failure",
        )
        for name in fixed:
            if after[name] != before[name]:
                yield f"{one.event} changed {name} from {before[name]!r} to {after[name]!r}"
        begun = m.begun.get(one.jid, True)
        if (one.facts["mode"] in ("pending", "window") or begun) and m.begun.get(one.jid) is not None:
            for name in ("data", "ready_at", "state", "seq"):
                if after[name] != before[name]:
                    yield f"{one.event} changed {name} from {before[name]!r} to {after[name]!r}"
        elif before["state"] in PENDING and begun is False and after["data"] != puts[0].data:
            yield f"{one.event} left the data of {one.jid} as they were"


@law
def a_debounced_job_is_delayed_anew(m: Moment) -> Iterator[str]:
    """A debounced put delays the holder by its own delay from now, or to its own moment, at most until `unique_max_ms`
    after the put of the holder.
    """
    for one in m.told("deduplicated"):
        puts = [put for put in m.puts.values() if put.unique == one.facts["unique"]]
        after = m.after.jobs.get(one.jid)
        if one.facts["mode"] != "debounce" or len(puts) != 1 or after is None or after["seq"] != one.event.seq:
            continue
        if m.begun.get(one.jid) is not False or one.was is None or one.was["state"] == "throttled":
            continue
        most = puts[0].unique_max_ms
        wanted = ready_at(puts[0], m.now)
        since = m.before.uniques.get(one.facts["unique"], {"since": one.was["put_at"]})["since"]
        wanted = wanted if most is None else min(wanted, since + most)
        if after["state"] in ("waiting", "scheduled") and after["ready_at"] != wanted:
            yield f"{one.jid} was debounced at {m.now}, and is ready at {after['ready_at']}, not {wanted}"
