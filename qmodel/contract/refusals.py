"""The refusal catalogue: every reason for which an operation may be refused.

A refusal is data: a code, and its facts in the order given here. Nobody parses a sentence; sentences are made here,
once, from code and facts, and read the same whatever executed the operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Reason:
    """What a code means: the names of its facts, the sentence they fill, and what to do next."""

    facts: tuple[str, ...]
    sentence: str
    next_step: str


REASONS: dict[str, Reason] = {
    "BAD_ARGUMENT": Reason(
        ("operation", "argument"),
        "{operation} was given a bad {argument}.",
        "See `{operation}` in docs/catalogue.md for what {argument} may be.",
    ),
    "JOB_NOT_FOUND": Reason(
        ("jid",),
        "There is no job {jid}.",
        "It was never put, was canceled, or was completed longer ago than jobs-history keeps.",
    ),
    "LOCK_LOST": Reason(
        ("jid", "token", "state", "worker"),
        "Job {jid} is not leased under token {token}: it is {state}, its worker is '{worker}'.",
        "Stop working on it; its history says who took it and when.",
    ),
    "WRONG_STATE": Reason(
        ("jid", "state"),
        "Job {jid} is {state}, which does not allow that.",
        "See docs/catalogue.md for the states in which each operation is allowed.",
    ),
    "DEPENDENCY_NOT_FOUND": Reason(
        ("jid", "dependency"),
        "Job {jid} cannot depend on {dependency}: there is no such job.",
        "Put {dependency} first, or put both in one put_many.",
    ),
    "DEPENDENCY_CYCLE": Reason(
        ("path",),
        "Those dependencies would wait for each other for ever: {path}.",
        "Leave out one of them.",
    ),
    "DEPENDENCY_LIMIT": Reason(
        ("jid",),
        "Job {jid} has more dependents, or more dependencies, than one operation can see to (1000; 4000 in all).",
        "Add and remove dependencies in parts; put a job in between where more than 1000 wait for one.",
    ),
    "DUPLICATE_JID": Reason(("jid",), "Job {jid} occurs twice in one operation.", "Give every job its own id."),
    "NOT_A_DEAD_LETTER": Reason(
        ("jid",), "Job {jid} is no dead letter.", "A dead letter is put when a job fails that has a `dead_queue`."
    ),
    "DUPLICATE_KEY": Reason(
        ("jid", "unique"),
        "Job {jid} has the key {unique}, with which another job is put in the same operation.",
        "Put the two one after the other.",
    ),
    "HAS_DEPENDENTS": Reason(
        ("jid", "dependent"),
        "Job {jid} cannot be canceled: {dependent} depends on it.",
        "Name {dependent} too, or cancel with cascade.",
    ),
    "CANCEL_LIMIT": Reason(
        ("jid",),
        "Canceling {jid} would take more than 1000 jobs with it, or end more than 1000 dependencies.",
        "Cancel its dependents first, in parts, or remove its dependencies in parts.",
    ),
    "QUEUE_BUSY": Reason(
        ("queue", "jobs"),
        "Queue {queue} has running or stalled jobs: {jobs}.",
        "Pause the queue and let them end, or obliterate it with force.",
    ),
    "SCHEDULE_NOT_FOUND": Reason(
        ("jid",), "There is no recurring job {jid}.", "`qmodel op recurring QUEUE` lists those of a queue."
    ),
    "TOO_WIDE": Reason(
        ("operation",),
        "No list has just the jobs that {operation} is to look at.",
        "Name a queue, a tag, a group or a worker, or the state complete or failed.",
    ),
    "NOT_WHOLE": Reason(
        ("klass", "key"),
        "What is noted for {klass} under {key} is no whole number of at most 14 digits, or the sum would be none.",
        "`qmodel op metadata-get {klass}` shows it; set it to a number first.",
    ),
    "SUBSCRIPTION_NOT_FOUND": Reason(
        ("subscription",), "There is no subscription {subscription}.", "`qmodel op subscriptions` lists them."
    ),
    "BAD_SUBJECT": Reason(
        ("subject",),
        "'{subject}' is not a subject.",
        "Write segments with dots between, none of them empty, without * and >: orders.eu.created, say.",
    ),
    "BAD_PATTERN": Reason(
        ("pattern", "segment"),
        "'{pattern}' is not a pattern, because of its segment '{segment}'.",
        "A segment is * for any one, or > for all that follow, which must be the last; or else is not empty, and holds "
        "neither.",
    ),
    "LIMIT_REACHED": Reason(
        ("what", "most"),
        "There are {most} {what} already, and there may be no more.",
        "Remove one that is no longer needed first.",
    ),
    "SCHEDULE_OVER": Reason(
        ("jid",),
        "Recurring job {jid} would have no run: it is past its end, or has made as many as it may.",
        "Give a later end_at, a higher limit, or none.",
    ),
    "OVER_CAPACITY": Reason(
        ("jid", "throttle", "cost", "capacity"),
        "Job {jid} costs {cost}, and throttle {throttle} never holds more than {capacity}.",
        "Let it cost less, or set a higher capacity.",
    ),
    "REQUEST_NOT_FOUND": Reason(
        ("request",),
        "There is no request {request}.",
        "It was never opened, or ended longer ago than requests-history keeps.",
    ),
    "REQUEST_CONFLICT": Reason(
        ("request", "argument", "value"),
        "Request {request} was opened with another {argument}: {value}.",
        "Open another one, or change this one with request_tune.",
    ),
    "REQUEST_STATE": Reason(
        ("request", "state"),
        "Request {request} is {state}, which does not allow that.",
        "Sub-requests are added while it is open; it is tuned until it ends, and forgotten afterwards.",
    ),
    "JOB_EXISTS": Reason(
        ("jid",),
        "Job {jid} is there already, and is no sub-request of that request.",
        "Give the sub-request another id.",
    ),
    "QUEUE_NOT_EMPTY": Reason(
        ("queue", "length"),
        "Queue {queue} still has jobs: {length}.",
        "Drain it first, let its running jobs end, and unrecur what recurs there.",
    ),
    "UNKNOWN_OPTION": Reason(("option",), "There is no option {option}.", "`qmodel config` lists the options."),
    "BAD_VALUE": Reason(
        ("option", "low", "high"),
        "Option {option} must be a whole number from {low} to {high}.",
        "`qmodel config` shows each option's unit.",
    ),
}


class Refusal(NamedTuple):
    """Why an operation was refused: a code of REASONS and its facts, all as text."""

    code: str
    facts: tuple[str, ...]

    @property
    def named(self) -> dict[str, str]:
        """The facts by name."""
        return dict(zip(REASONS[self.code].facts, self.facts, strict=True))

    @property
    def sentence(self) -> str:
        """What went wrong and what to do, for a person."""
        reason = REASONS[self.code]
        return f"{reason.sentence} {reason.next_step}".format(**self.named)


class Refused(Exception):
    """Raised inside a step, above the blank line, to refuse the operation."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def refuse(code: str, *facts: object) -> Refused:
    """Make the exception that refuses; the caller raises it."""
    return Refused(Refusal(code, tuple(map(str, facts))))


_ENDS = ("complete", "complete_many", "complete_and_pop")
_PUTS = ("put", "put_many", "request_put", "request_add")
_BUCKET = "capacity, refill and refill_ms are given together"

BESIDE_OTHERS: dict[str, dict[str, str]] = {
    "delay_ms": dict.fromkeys(_ENDS, "above 0 it goes with next only"),
    "depends": dict.fromkeys(_ENDS, "it goes with next only"),
    "next": {"complete_many": "and it cannot be given for many jobs at once"},
    "unique_mode": dict.fromkeys(_PUTS, "it goes with unique only"),
    "unique_ms": dict.fromkeys(_PUTS, "it goes with unique in the mode pending, or window, which needs it"),
    "unique_max_ms": dict.fromkeys(_PUTS, "it goes with unique in the mode debounce only"),
    "throttles": dict.fromkeys(_PUTS, "none of them a queue's own throttle, which the queue's jobs pass anyway"),
    "jobs": dict.fromkeys(_PUTS[2:], "all of the request's queue, without priority, ordered and unique"),
    "cron": {"recur": "it goes with the kind cron, which needs it"},
    "interval_ms": {"recur": "0 for the kind cron, above 0 for the others", "recur_update": "not for the kind cron"},
    "offset_ms": {"recur": "not for the kind cron"},
    "due_at": {"recur": "for the kind cron only, in order, at most 100"},
    "end_at": {"recur": "not before start_at"},
    "rate": {"throttle_set": "rate and rate_ms are given together"},
    "rate_ms": {"throttle_set": "rate and rate_ms are given together"},
    "concurrency": {"throttle_set": "some limit has to be given: concurrency, a rate or a bucket"},
    **{name: {"throttle_set": _BUCKET} for name in ("capacity", "refill", "refill_ms")},
}
"""What is refused though it is what its kind accepts, by argument and operation: the rule that binds it to others."""
