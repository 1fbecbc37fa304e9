"""The refusal catalogue: every reason why an operation may be refused.

A refusal is data: a code, and its facts in the order given here. Programs test the code and never parse a sentence.
Sentences are made here from code and facts, so they read the same with every backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Reason:
    """What a code means: the names of its facts, the sentence that they fill, and what to do next."""

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
        "Stop working on it; its history shows which worker took it, and when.",
    ),
    "FORKED": Reason(
        ("after", "epoch", "current", "common"),
        "Number {after} of epoch {epoch} is not part of this history, whose epoch is {current}: the server lost the "
        "end of its log, and what follows number {common} is different now.",
        "Take back what was read after number {common}, and read on from there.",
    ),
    "EPOCH_PASSED": Reason(
        ("epoch", "current"),
        "Epoch {epoch} cannot begin: the current epoch is {current}.",
        "Epochs only grow: give a greater number, such as the time in microseconds.",
    ),
    "WRONG_STATE": Reason(
        ("jid", "state"),
        "Job {jid} is {state}, which does not allow this operation.",
        "See docs/catalogue.md for the states in which each operation is allowed.",
    ),
    "DEPENDENCY_NOT_FOUND": Reason(
        ("jid", "dependency"),
        "Job {jid} cannot depend on {dependency}: that does not exist.",
        "Put {dependency} first, or put both with one put_many; a request must have been opened.",
    ),
    "DEPENDENCY_CYCLE": Reason(
        ("path",),
        "These dependencies form a cycle: {path}.",
        "Remove one of them.",
    ),
    "DEPENDENCY_LIMIT": Reason(
        ("jid",),
        "Job {jid} has more dependents or dependencies than one operation can process (1000; 4000 in total), or longer "
        "results (4 MiB of its dependencies, 16 MiB of copies for its dependents).",
        "Add and remove dependencies in parts; if more than 1000 jobs wait for one, put intermediate jobs; keep long "
        "results elsewhere.",
    ),
    "DUPLICATE_JID": Reason(("jid",), "Job {jid} occurs twice in one operation.", "Give every job its own id."),
    "NOT_A_DEAD_LETTER": Reason(
        ("jid",), "Job {jid} is not a dead letter.", "A dead letter is put when a job with a `dead_queue` fails."
    ),
    "DUPLICATE_KEY": Reason(
        ("jid", "unique"),
        "Job {jid} has the key {unique}, and the same operation puts another job with that key.",
        "Put the two jobs with separate operations.",
    ),
    "HAS_DEPENDENTS": Reason(
        ("jid", "dependent"),
        "{jid} cannot be canceled or forgotten: job {dependent} depends on it.",
        "Name {dependent} too, or cancel with cascade; or remove the dependency with depends_off.",
    ),
    "CANCEL_LIMIT": Reason(
        ("jid",),
        "Canceling {jid} would cancel more than 1000 jobs, or end more than 1000 dependencies.",
        "Cancel its dependents first, in parts, or remove its dependencies in parts.",
    ),
    "OVER_BUDGET": Reason(
        ("operation", "units", "most", "parts"),
        "{operation} would take {units} units of work; one call may take {most} (docs/semantics.md, Bounds).",
        "Send less in one call: at most {parts} items of this size, dependents before or with the jobs they depend on.",
    ),
    "QUEUE_BUSY": Reason(
        ("queue", "jobs"),
        "Queue {queue} has running or stalled jobs: {jobs}.",
        "Pause the queue and wait until they end, or obliterate it with force.",
    ),
    "SCHEDULE_NOT_FOUND": Reason(
        ("jid",), "There is no recurring job {jid}.", "`qmodel op recurring QUEUE` lists those of a queue."
    ),
    "TOO_WIDE": Reason(
        ("operation",),
        "{operation} needs a narrower filter.",
        "Name a queue, a tag, a group or a worker, or the state complete or failed.",
    ),
    "NOT_WHOLE": Reason(
        ("klass", "key"),
        "The metadata of {klass} under {key} is not a whole number of at most 14 digits, or the sum would not be one.",
        "`qmodel op metadata-get {klass}` shows it; set it to a number first.",
    ),
    "SUBSCRIPTION_NOT_FOUND": Reason(
        ("subscription",), "There is no subscription {subscription}.", "`qmodel op subscriptions` lists them."
    ),
    "BAD_SUBJECT": Reason(
        ("subject",),
        "'{subject}' is not a subject.",
        "Write non-empty segments separated by dots, without * and >, for example orders.eu.created.",
    ),
    "BAD_PATTERN": Reason(
        ("pattern", "segment"),
        "'{pattern}' is not a pattern: its segment '{segment}' is not allowed.",
        "A segment is * for any one, or > for one or more at the end, or a non-empty text that contains neither sign.",
    ),
    "LIMIT_REACHED": Reason(
        ("what", "most"),
        "The limit of {most} {what} is reached.",
        "Remove one that is no longer needed.",
    ),
    "SCHEDULE_OVER": Reason(
        ("jid",),
        "Recurring job {jid} would have no run: it is past its end, or has reached its limit.",
        "Give a later end_at, a higher limit, or neither.",
    ),
    "OVER_CAPACITY": Reason(
        ("jid", "throttle", "cost", "capacity"),
        "Job {jid} costs {cost}, but throttle {throttle} never holds more than {capacity} tokens.",
        "Lower the cost, or raise the capacity.",
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
        "Request {request} is {state}, which does not allow this operation.",
        "Sub-requests are added while it is open; it is tuned until it ends, and forgotten afterwards.",
    ),
    "JOB_EXISTS": Reason(
        ("jid",),
        "Job {jid} already exists, and is not a sub-request of this request.",
        "Give the sub-request another id.",
    ),
    "QUEUE_NOT_EMPTY": Reason(
        ("queue", "length"),
        "Queue {queue} still has jobs: {length}.",
        "Drain it first, wait until its running jobs end, and unrecur its recurring jobs.",
    ),
    "UNKNOWN_OPTION": Reason(("option",), "There is no option {option}.", "`qmodel config` lists the options."),
    "BAD_VALUE": Reason(
        ("option", "low", "high"),
        "Option {option} must be a whole number from {low} to {high}.",
        "`qmodel config` shows each option's unit.",
    ),
}

ROUTING_REASONS: dict[str, Reason] = {
    "CROSS_SHARD": Reason(
        ("name", "shard", "other", "other_shard"),
        "'{name}' belongs to shard {shard} and '{other}' to shard {other_shard}, but one shard executes an operation.",
        "Write the same tag into both names, such as order-7{{cust-1}} and sync{{cust-1}}.",
    ),
    "UNTAGGED": Reason(
        ("operation", "name"),
        "{operation} cannot be given '{name}': the ids that are made from it would belong to other shards.",
        "Put a part of it in braces, such as {{{name}}}.",
    ),
    "BY_SHARD": Reason(
        ("operation",),
        "A deployment has no answer to {operation}: each shard has its own.",
        "Ask each shard: its URL has its prefix in place of the name; `qmodel doctor` lists the prefixes.",
    ),
    "SPLIT_LIMIT": Reason(
        ("throttle", "argument", "shards"),
        "Throttle {throttle} is divided over {shards} shards, and its {argument} is less than that.",
        "Give it at least {shards}, or declare the queue single, so that it lies in one shard.",
    ),
}
"""Why an operation is refused before any shard executes it (qmodel.contract.routing). Only deployments refuse so."""

EVERY_REASON: dict[str, Reason] = REASONS | ROUTING_REASONS


class Refusal(NamedTuple):
    """Why an operation was refused: a code of REASONS or ROUTING_REASONS and its facts, all as text."""

    code: str
    facts: tuple[str, ...]

    @property
    def named(self) -> dict[str, str]:
        """Give the facts by name."""
        return dict(zip(EVERY_REASON[self.code].facts, self.facts, strict=True))

    @property
    def sentence(self) -> str:
        """Say what went wrong and what to do next."""
        reason = EVERY_REASON[self.code]
        return f"{reason.sentence} {reason.next_step}".format(**self.named)


class Refused(Exception):
    """Raised by a step before its first change, to refuse the operation."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def refuse(code: str, *facts: object) -> Refused:
    """Make the exception that refuses; the caller raises it."""
    return Refused(Refusal(code, tuple(map(str, facts))))


_ENDS = ("complete", "complete_many", "complete_and_pop")
_PUTS = ("put", "put_many", "put_new", "request_put", "request_add")
_BUCKET = "capacity, refill and refill_ms are given together"

BESIDE_OTHERS: dict[str, dict[str, str]] = {
    "delay_ms": dict.fromkeys(_ENDS, "a delay needs next"),
    "depends": dict.fromkeys(_ENDS, "it needs next"),
    "next": {"complete_many": "it cannot be given for several jobs at once"},
    "at": dict.fromkeys(_PUTS, "a job is ready at a moment or after a delay: give at or delay, not both"),
    "unique_mode": dict.fromkeys(_PUTS, "it needs unique"),
    "unique_ms": dict.fromkeys(_PUTS, "it needs unique in the mode pending or window; the mode window requires it"),
    "unique_max_ms": dict.fromkeys(_PUTS, "it needs unique in the mode debounce"),
    "throttles": dict.fromkeys(_PUTS, "a queue's own throttle cannot be named: all its jobs pass it anyway"),
    "jobs": dict.fromkeys(_PUTS[3:], "all must be in the request's queue, without priority, ordered and unique"),
    "cron": {"recur": "the kind cron requires it, the others exclude it"},
    "interval_ms": {"recur": "0 for the kind cron, above 0 for the others", "recur_update": "not for the kind cron"},
    "offset_ms": {"recur": "not for the kind cron"},
    "due_at": {"recur": "for the kind cron only, in order, at most 100"},
    "end_at": {"recur": "not before start_at"},
    "rate": {"throttle_set": "rate and rate_ms are given together"},
    "rate_ms": {"throttle_set": "rate and rate_ms are given together"},
    "concurrency": {"throttle_set": "at least one limit must be given: concurrency, a rate or a bucket"},
    **{name: {"throttle_set": _BUCKET} for name in ("capacity", "refill", "refill_ms")},
}
"""Rules that bind one argument to others, by argument and operation: a value may be of the right kind and still be
refused.
"""
