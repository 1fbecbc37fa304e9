"""Commands for recurring jobs."""

from __future__ import annotations

from typing import Any

from qmodel.contract import operations as ops
from qmodel.contract.arguments import LONGEST_MS
from qmodel.dialects.qless import shapes, texts, throttles
from qmodel.dialects.qless.arguments import first, need, need_queue, options_of, strings_of, whole_of
from qmodel.dialects.qless.session import QlessError, Reply, Session

GONE = "Job {0} does not exist"


def _need_jid(jid: str | None) -> str:
    if jid is None:
        raise QlessError("Recurring(): no jid provided")
    return jid


def _interval(text: str | None) -> int:
    found = texts.number(text)
    if found is None:
        raise QlessError(f'Recur(): Arg "interval" not a number: {texts.shown(text)}')
    if found < 0.001 or found * 1000 > LONGEST_MS:
        raise QlessError('Recur(): Arg "interval" must be greater than 0')
    return texts.milliseconds(found)


def _offset(text: str | None) -> int:
    found = texts.number(text)
    if found is None or found * 1000 > LONGEST_MS:
        raise QlessError(f'Recur(): Arg "offset" not a number: {texts.shown(text)}')
    return texts.milliseconds(found) if found > 0 else 0


def recur(
    session: Session,
    queue: str | None = None,
    jid: str | None = None,
    klass: str | None = None,
    data: str | None = None,
    spec: str | None = None,
    interval: str | None = None,
    offset: str | None = None,
    *options: str,
) -> Reply:
    """Create a recurring job, or replace everything except the number of its last run."""
    queue, jid = need_queue(queue), need("RecurringJob On", "jid", jid)
    klass, spec = need("RecurringJob On", "klass", klass), need("RecurringJob On", "spec", spec)
    if data is None or not texts.is_json(data):
        raise QlessError(f'RecurringJob On(): Arg "data" not JSON: {texts.shown(data)}')
    if spec != "interval":
        raise QlessError(f'Recur(): schedule type "{texts.shown(spec)}" unknown')
    interval_ms, offset_ms = _interval(interval), _offset(offset)
    given = {"tags": "[]", "priority": "0", "retries": "0", "backlog": "0", "throttles": "[]"}
    given |= options_of("Recur", options)
    tags = strings_of("Recur", "tags", given["tags"])
    priority = session.sign * whole_of("Recur", "priority", given["priority"])
    retries, backlog = (whole_of("Recur", name, given[name]) for name in ("retries", "backlog"))

    begins = (session.now + offset_ms) // 1000 * 1000  # due times are whole seconds in qless
    paced = (interval_ms, offset_ms, priority, retries, tags, backlog)
    named = (
        throttles.named(strings_of("Recur", "throttles", given["throttles"]), queue, None) if session.reqless else ()
    )
    op = ops.Recur(queue, jid, texts.stored_klass(klass), data, *paced, restart=True, throttles=named)
    if not session.is_listed(queue):  # it is listed since now, not since the second's begin
        session.ask("Recur", op)
    reply: str = session.ask_at(max(begins - offset_ms, 0), "Recur", op)
    session.remember(queue)
    return reply


def recur_get(session: Session, jid: str | None = None) -> Reply:
    """Show a recurring job; nothing if there is none."""
    found = session.ask("Recur", ops.RecurGet(_need_jid(jid)))
    return None if found is None else shapes.schedule(session, found)


def unrecur(session: Session, jid: str | None = None) -> Reply:
    """Delete a recurring job; the jobs that it has put stay."""
    session.ask("Recur", ops.Unrecur(_need_jid(jid)))
    return 1


def recur_update(session: Session, jid: str | None = None, *options: str) -> Reply:
    """Change the given options of a recurring job, all or none."""
    jid = _need_jid(jid)
    changes: dict[str, Any] = {}
    for name, value in zip(options[::2], (*options[1::2], None), strict=False):
        if value is None:
            raise QlessError(f"Recur(): No value provided for {texts.shown(name)}")
        changes |= _change(session, name, value)
        if session.reqless and name == "queue":
            changes["throttles"] = _moved(session, jid, changes)
    session.ask("Recur", ops.RecurUpdate(jid, **changes))
    if "queue" in changes:
        session.remember(changes["queue"])
    return 1


def _moved(session: Session, jid: str, changes: dict[str, Any]) -> tuple[str, ...]:
    """The throttles of a recurring job in another queue: that of the new one comes in the place of that of the old."""
    before = session.ask("Recur", ops.RecurGet(jid))
    named = changes.get("throttles", () if before is None else before.throttles)
    return throttles.named(map(throttles.theirs, named), changes["queue"], "" if before is None else before.queue)


def _change(session: Session, name: str, value: str) -> dict[str, Any]:
    if name == "interval":
        return {"interval_ms": _interval(value)}
    if name == "priority":
        return {name: session.sign * whole_of("Recur", name, value)}
    if name in ("retries", "backlog"):
        return {name: whole_of("Recur", name, value)}
    if name == "data" and not texts.is_json(value):
        raise QlessError(f'Recur(): Arg "data" is not JSON-encoded: {texts.shown(value)}')
    if name == "throttles" and session.reqless:
        return {name: tuple(map(throttles.ours, strings_of("Recur", "throttles", value)))}
    if name not in ("data", "klass", "queue"):
        raise QlessError(f'Recur(): Unrecognized option "{texts.shown(name)}"')
    return {name: texts.stored_klass(value) if name == "klass" else value}


def recur_tag(session: Session, jid: str | None = None, *tags: str) -> Reply:
    """Add tags to a recurring job, for the jobs that it will put."""
    jid = _need_jid(jid)
    need("Tag", "tag", first(tags))
    return texts.dump(session.ask("Tag", ops.RecurTag(jid, tags), SCHEDULE_NOT_FOUND=GONE))


def recur_untag(session: Session, jid: str | None = None, *tags: str) -> Reply:
    """Remove tags from a recurring job, for the jobs that it will put."""
    jid = _need_jid(jid)
    need("Untag", "tag", first(tags))
    return texts.dump(session.ask("Untag", ops.RecurUntag(jid, tags), SCHEDULE_NOT_FOUND=GONE))
