"""The commands by name, and the one entry: `call(store, arguments)`.

`arguments` are texts: command, now, and what the command takes. What is missing at their end counts as not given, what
is too much is passed over. Besides qless's own names those of reqless are understood, as far as they say the same.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from qmodel.contract.arguments import TIME_END
from qmodel.dialects.qless import jobs, queues, recurring, settings, texts
from qmodel.dialects.qless.session import Answer, QlessError, Reply, Session
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
}

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
"""reqless's names: the command, and words that stand before its arguments, or behind the first so many of them."""

MOST = 5000
"""The most arguments of a call."""

JSON_LISTS = ("jobs.completed", "queue.jobsByState")
"""Where reqless replies JSON and qless a list."""


def _takes(command: Command) -> int | None:
    """How many arguments a command takes, or None for any number."""
    parameters = inspect.signature(command).parameters.values()
    return None if any(one.kind is one.VAR_POSITIONAL for one in parameters) else len(parameters) - 1


_TAKES = {command: _takes(command) for command in COMMANDS.values()}


def call(store: Store, arguments: Sequence[str]) -> Answer:
    """Execute one call of the unified interface on a store; refusals are raised as QlessError."""
    if not arguments:
        raise QlessError("Must provide a command")
    name, *given = arguments
    command, given = _found(name, given)
    if name == "put" and len(given) > 5 and len(given) % 2 == 0:  # older clients do not say who they are
        given.insert(1, "")
    session = Session(store, moment(given.pop(0) if given else None))
    reply, published = execute(session, command, given)
    return Answer(texts.dump(reply) if name in JSON_LISTS else reply, published)


def execute(session: Session, name: str, given: Sequence[str]) -> Answer:
    """Execute a command with its arguments."""
    if len(given) > MOST:
        raise QlessError(f"More than {MOST} arguments")
    command = COMMANDS[name]
    reply = command(session, *given[: _TAKES[command]])
    return Answer(str(reply) if isinstance(reply, str) else reply, session.published)


def _found(name: str, given: list[str]) -> tuple[str, list[str]]:
    """The command of a name, and its arguments, the moment first."""
    if name in COMMANDS:
        return name, given
    if name not in REQLESS:
        raise QlessError(f"Unknown command {texts.shown(name)}")
    command, *words = REQLESS[name]
    behind = int(words.pop(0)) if len(words) == 2 else 0
    if name == "job.completeAndRequeue" and len(given) % 2:  # it may say `next` itself
        words = []
    return command, [*given[: 1 + behind], *words, *given[1 + behind :]]


def moment(text: str | None) -> int:
    """The moment of a call, in milliseconds."""
    found = texts.number(text)
    if found is None or not 0 <= found < TIME_END / 1000:
        raise QlessError(f'Arg "now" missing or not a number: {texts.shown(text)}')
    return min(texts.milliseconds(found), TIME_END - 1)


def is_known(name: str) -> bool:
    """Whether a command has this name."""
    return name in COMMANDS or name in REQLESS
