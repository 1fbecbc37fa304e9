"""The model: `step(store, now, operation)` gives what the operation replies, or why it is refused.

The one dispatch. Its mirror is `lua/register.lua`. Everything that decides stands in `ops`; here arguments are
checked, resends are recognised that nothing else recognises, and refusals become data.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from qmodel.arguments import NAMES, TIME_END, Operations
from qmodel.operations import CATALOGUE, Operation, Spec
from qmodel.ops import (
    cascading,
    changing,
    configuring,
    depending,
    explaining,
    failing,
    finishing,
    firing,
    leasing,
    looking,
    noting,
    obliterating,
    pausing,
    publishing,
    putting,
    removing,
    replaying,
    requesting,
    revoking,
    scheduling,
    searching,
    tagging,
    taking,
    throttling,
    uniquing,
)
from qmodel.refusals import Refusal, Refused
from qmodel.state import journal, requests
from qmodel.state.store import Store

Verb = Callable[[Store, int, Any], Any]

VERBS: dict[str, Verb] = {
    "put": putting.put,
    "put_many": putting.put_many,
    "put_new": putting.put_new,
    "pop": taking.pop,
    "pop_any": taking.pop_any,
    "peek": taking.peek,
    "complete": finishing.complete,
    "complete_many": finishing.complete_many,
    "complete_and_pop": finishing.complete_and_pop,
    "fail": finishing.fail,
    "retry": finishing.retry,
    "release": finishing.release,
    "heartbeat": leasing.heartbeat,
    "timeout": leasing.timeout,
    "revoke": revoking.revoke,
    "update": changing.update,
    "priority": changing.priority,
    "delay": changing.delay,
    "promote": changing.promote,
    "log": changing.log,
    "progress": changing.progress,
    "cancel": removing.cancel,
    "drain": removing.drain,
    "cancel_many": removing.cancel_many,
    "clean": removing.clean,
    "obliterate": obliterating.obliterate,
    "depends_on": depending.depends_on,
    "depends_off": depending.depends_off,
    "results": depending.show_results,
    "unique_get": uniquing.unique_get,
    "unique_release": uniquing.unique_release,
    "tag_add": tagging.tag_add,
    "tag_remove": tagging.tag_remove,
    "tagged": tagging.tagged,
    "top_tags": tagging.top_tags,
    "track": tagging.track,
    "untrack": tagging.untrack,
    "tracked": tagging.tracked,
    "failed_groups": failing.failed_groups,
    "failed": failing.failed,
    "unfail": failing.unfail,
    "replay": replaying.replay,
    "retry_many": failing.retry_many,
    "request_open": requesting.request_open,
    "request_add": requesting.request_add,
    "request_close": requesting.request_close,
    "request_put": requesting.request_put,
    "request_get": requesting.request_get,
    "requests": requesting.requests,
    "request_tune": requesting.request_tune,
    "request_cancel": requesting.request_cancel,
    "request_forget": requesting.request_forget,
    "recur": scheduling.recur,
    "unrecur": scheduling.unrecur,
    "recur_get": scheduling.recur_get,
    "recur_update": scheduling.recur_update,
    "recur_tag": scheduling.recur_tag,
    "recur_untag": scheduling.recur_untag,
    "recur_pause": scheduling.recur_pause,
    "recur_unpause": scheduling.recur_unpause,
    "recur_now": firing.recur_now,
    "recur_advance": scheduling.recur_advance,
    "recurring_unset": scheduling.recurring_unset,
    "recurring": scheduling.recurring,
    "fire": firing.fire,
    "throttle_set": throttling.throttle_set,
    "throttle_unset": throttling.throttle_unset,
    "throttle_get": throttling.throttle_get,
    "throttles": throttling.list_throttles,
    "publish": publishing.publish,
    "subscribe": publishing.subscribe,
    "catch_up": publishing.catch_up,
    "unsubscribe": publishing.unsubscribe,
    "subscription_get": publishing.subscription_get,
    "subscriptions": publishing.list_subscriptions,
    "messages": publishing.list_messages,
    "trim": publishing.trim,
    "why": explaining.why,
    "get": looking.get,
    "multiget": looking.multiget,
    "search": searching.search,
    "waiting": looking.waiting,
    "scheduled": looking.scheduled,
    "depending": looking.depending,
    "throttled": looking.throttled,
    "running": looking.running,
    "stalled": looking.stalled,
    "completed": looking.list_completed,
    "queues": looking.list_queues,
    "queue": looking.queue,
    "length": looking.length,
    "workers": looking.list_workers,
    "worker": looking.worker,
    "stats": looking.show_stats,
    "metrics": looking.metrics,
    "events": looking.events,
    "newest": looking.newest,
    "journal": looking.show_journal,
    "pause": pausing.pause,
    "unpause": pausing.unpause,
    "forget": configuring.forget,
    "deregister": configuring.deregister,
    "config": configuring.list_config,
    "config_get": configuring.config_get,
    "config_set": configuring.config_set,
    "config_unset": configuring.config_unset,
    "metadata_get": noting.metadata_get,
    "metadata_set": noting.metadata_set,
    "metadata_increment": noting.metadata_increment,
    "metadata_unset": noting.metadata_unset,
}


def fault(op: Operation) -> str | None:
    """The first argument of an operation that is not what its kind accepts, or None."""
    return _CHECKS[type(op)](op)


def _check(spec: Spec) -> Callable[[Any], str | None]:
    """What finds the fault of operations of one class. A default needs no check.

    It is written out argument by argument and compiled, as dataclasses do it: a loop over the arguments that calls
    `accepts` takes three times as long, a fifth of a whole step.
    """
    lines = ["def check(op):"]
    known: dict[str, Any] = {"fault_of": fault, "NAMES": NAMES}
    for optional, several in groupby(spec.arguments, lambda a: a.optional):
        if optional:  # most calls leave all of them out
            lines.append(" if op.named:")
        for a in several:
            known |= {f"accepts_{a.name}": a.kind.accepts, f"default_{a.name}": a.default}
            fine = "" if a.required else f"value is default_{a.name} or "
            fine += f"{a.kind.plain} or accepts_{a.name}(value)"
            found = [f"value = op.{a.name}", f"if not ({fine}):", f" return {a.name!r}"]
            if type(a.kind) is Operations:
                found += ["for one in value:", " if (inner := fault_of(one)) is not None:", "  return inner"]
            lines += [(" " * (1 + optional)) + line for line in found]
    exec("\n".join([*lines, " return None"]), known)
    check: Callable[[Any], str | None] = known["check"]
    return check


_CHECKS = {spec.cls: _check(spec) for spec in CATALOGUE.values()}
_VERBS = {
    spec.cls: (VERBS[name], spec.resend == "memo", spec.cascades, spec.reads, _CHECKS[spec.cls])
    for name, spec in CATALOGUE.items()
}


def step(store: Store, now: int, op: Operation) -> Any:
    """Execute one operation at a moment (milliseconds since the epoch); give its reply, or a Refusal."""
    if type(now) is not int or not 0 <= now < TIME_END:
        return Refusal("BAD_ARGUMENT", (op.spec.name, "now"))
    verb, memo, cascades, reads, check = _VERBS[type(op)]
    bad = check(op)
    if bad is not None:
        return Refusal("BAD_ARGUMENT", (op.spec.name, bad))
    journals = store.settings["journal"]
    try:
        reply = _remembered(store, now, op, verb) if memo and op.request else verb(store, now, op)  # type: ignore[attr-defined]
    except Refused as refused:
        reply = refused.refusal
    else:
        if store.cascade and cascades:
            cascading.go_on(store, now)
    if (journals or store.settings["journal"]) and not reads:
        journal.record(store, now, op, reply)
    return reply


def _remembered(store: Store, now: int, op: Any, verb: Verb) -> Any:
    """Answer a request that was answered before as before, and remember the answer of a new one."""
    request = f"{op.spec.name} {op.request}"
    reply = requests.recall(store, request)
    if reply is None:
        reply = verb(store, now, op)
        requests.remember(store, request, reply)
    return reply
