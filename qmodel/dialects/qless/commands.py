"""The commands by name, and the only entry: `call(store, arguments)`.

`arguments` are texts: the command, the time, and the command's arguments. Missing arguments at the end count as not
given, surplus ones are ignored. Besides qless's own names, the names of reqless with the same meaning are accepted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from qmodel.contract.arguments import TIME_END
from qmodel.dialects.qless import jobs, queues, recurring, settings, texts, throttles
from qmodel.dialects.qless.session import Answer, Engine, QlessError, Reply, Session
from qmodel.model import engine
from qmodel.model.state.store import Store

Command = Callable[..., Reply]

COMMANDS: dict[str, Command] = {
    "put": jobs.put,
    "requeue": jobs.requeue,
    "heartbeat": jobs.heartbeat,
    "complete": jobs.complete,
    "fail": jobs.fail,
    "retry": jobs.retry,
    "timeout": jobs.timeout,
    "cancel": jobs.cancel,
    "priority": jobs.priority,
    "depends": jobs.depends,
    "log": jobs.log,
    "tag": jobs.tag,
    "track": jobs.track,
    "pop": queues.pop,
    "peek": queues.peek,
    "get": queues.get,
    "multiget": queues.multiget,
    "jobs": queues.jobs,
    "failed": queues.failed,
    "queues": queues.queues,
    "length": queues.length,
    "stats": queues.stats,
    "workers": queues.workers,
    "unfail": queues.unfail,
    "pause": queues.pause,
    "unpause": queues.unpause,
    "queue.forget": queues.forget,
    "worker.deregister": queues.deregister,
    "recur": recurring.recur,
    "unrecur": recurring.unrecur,
    "recur.get": recurring.recur_get,
    "recur.update": recurring.recur_update,
    "recur.tag": recurring.recur_tag,
    "recur.untag": recurring.recur_untag,
    "config.get": settings.config_get,
    "config.set": settings.config_set,
    "config.unset": settings.config_unset,
    "queue.throttle.get": throttles.queue_throttle_get,
    "queue.throttle.set": throttles.queue_throttle_set,
    "queueIdentifierPatterns.getAll": throttles.identifiers_get,
    "queueIdentifierPatterns.setAll": throttles.identifiers_set,
    "queuePriorityPatterns.getAll": throttles.priorities_get,
    "queuePriorityPatterns.setAll": throttles.priorities_set,
    "queues.names": queues.names,
    "throttle.delete": throttles.throttle_delete,
    "throttle.get": throttles.throttle_get,
    "throttle.locks": throttles.throttle_locks,
    "throttle.pending": throttles.throttle_pending,
    "throttle.release": throttles.throttle_release,
    "throttle.set": throttles.throttle_set,
    "throttle.ttl": throttles.throttle_ttl,
}
"""The commands of qless, and those that only reqless has."""

REQLESS: dict[str, tuple[str, ...]] = {
    "config.getAll": ("config.get",),
    "failureGroups.counts": ("failed",),
    "job.addDependency": ("depends", "1", "on"),
    "job.addTag": ("tag", "add"),
    "job.cancel": ("cancel",),
    "job.complete": ("complete",),
    "job.completeAndRequeue": ("complete", "4", "next"),
    "job.fail": ("fail",),
    "job.get": ("get",),
    "job.getMulti": ("multiget",),
    "job.heartbeat": ("heartbeat",),
    "job.log": ("log",),
    "job.removeDependency": ("depends", "1", "off"),
    "job.removeTag": ("tag", "remove"),
    "job.requeue": ("requeue",),
    "job.retry": ("retry",),
    "job.setPriority": ("priority",),
    "job.timeout": ("timeout",),
    "job.track": ("track", "track"),
    "job.untrack": ("track", "untrack"),
    "jobs.completed": ("jobs", "complete"),
    "jobs.failedByGroup": ("failed",),
    "jobs.tagged": ("tag", "get"),
    "jobs.tracked": ("track",),
    "queue.counts": ("queues",),
    "queue.jobsByState": ("jobs",),
    "queue.length": ("length",),
    "queue.pause": ("pause",),
    "queue.peek": ("peek",),
    "queue.pop": ("pop",),
    "queue.put": ("put",),
    "queue.stats": ("stats",),
    "queue.unfail": ("unfail",),
    "queue.unpause": ("unpause",),
    "queues.counts": ("queues",),
    "queue.recurAtInterval": ("recur", "4", "interval"),
    "recurringJob.addTag": ("recur.tag",),
    "recurringJob.cancel": ("unrecur",),
    "recurringJob.get": ("recur.get",),
    "recurringJob.removeTag": ("recur.untag",),
    "recurringJob.update": ("recur.update",),
    "tags.top": ("tag", "top"),
    "worker.forget": ("worker.deregister",),
    "worker.jobs": ("workers",),
    "workers.counts": ("workers",),
}
"""The names of reqless: the command, and words to insert before its arguments, or after the given number of them."""

EARLY = "reqless."
"""The prefix that makes any command one of reqless; the scripts for reqless put it before every command. The first
versions of reqless, as the Python client 0.13.3 has one, had the names of qless, and throttles.
"""

MOST = 5000
"""The maximum number of arguments of a call."""

JSON_LISTS = ("jobs.completed", "queue.jobsByState")
"""Commands whose reply is JSON in reqless and a list in qless."""

LISTS = (
    "job.addTag",
    "job.getMulti",
    "job.removeTag",
    "jobs.completed",
    "queue.jobsByState",
    "queue.peek",
    "queue.pop",
    "queuePriorityPatterns.getAll",
    "queues.counts",
    "queues.names",
    "tags.top",
    "throttle.locks",
    "throttle.pending",
    "workers.counts",
)
"""Commands of reqless whose empty list is `[]`; everywhere else it is `{}`."""


def _takes(command: Command) -> int | None:
    """Count the arguments of a command; None for any number."""
    parameters = inspect.signature(command).parameters.values()
    return None if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters) - 1


_TAKES = {command: _takes(command) for command in COMMANDS.values()}


def call(store: Store, arguments: Sequence[str], step: Engine = engine.step) -> Answer:
    """Execute one call of the unified interface on a store. Raises QlessError for a refusal. `step` executes its
    operations.
    """
    if not arguments:
        raise QlessError("Must provide a command")
    name, *given = arguments
    early = name.startswith(EARLY)
    name = name.removeprefix(EARLY)
    is_reqless = early or name in REQLESS
    if name in REQLESS or "throttle." in name or (name == "config.get" and len(given) > 1):  # without: all options
        early = False
    command, given = _found(name, given)
    if name == "put" and len(given) > 5 and len(given) % 2 == 0:  # older clients do not send the worker's name
        given.insert(1, "")
    session = Session(store, moment(given.pop(0) if given else None), reqless=is_reqless, early=early, step=step)
    reply, published = execute(session, command, given)
    if name in JSON_LISTS:
        reply = texts.dump(reply)
    return Answer("[]" if name in LISTS and reply == "{}" and not early else reply, published)


def execute(session: Session, name: str, given: Sequence[str]) -> Answer:
    """Execute a command with its arguments."""
    if len(given) > MOST:
        raise QlessError(f"More than {MOST} arguments")
    command = COMMANDS[name]
    reply = command(session, *given[: _TAKES[command]])
    return Answer(str(reply) if isinstance(reply, str) else reply, session.published)


def _found(name: str, given: list[str]) -> tuple[str, list[str]]:
    """Find the command of a name; give it and its arguments, the time first."""
    if name in COMMANDS:
        return name, given
    if name not in REQLESS:
        raise QlessError(f"Unknown command {texts.shown(name)}")
    command, *words = REQLESS[name]
    behind = int(words.pop(0)) if len(words) == 2 else 0
    if name == "job.completeAndRequeue" and len(given) % 2:  # the caller may give `next` itself
        words = []
    return command, [*given[: 1 + behind], *words, *given[1 + behind :]]


def moment(text: str | None) -> int:
    """Parse the time of a call, in milliseconds."""
    found = texts.number(text)
    if found is None or not 0 <= found < TIME_END / 1000:
        raise QlessError(f'Arg "now" missing or not a number: {texts.shown(text)}')
    return min(texts.milliseconds(found), TIME_END - 1)


def is_known(name: str) -> bool:
    """Whether there is a command of this name."""
    return name.removeprefix(EARLY) in COMMANDS or name.removeprefix(EARLY) in REQLESS
