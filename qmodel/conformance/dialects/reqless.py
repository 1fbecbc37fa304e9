"""Calls of qless in the words of reqless."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Words = tuple[str, ...]

NAMES = {
    "put": "queue.put", "requeue": "job.requeue", "pop": "queue.pop", "heartbeat": "job.heartbeat", "fail": "job.fail",
    "retry": "job.retry", "timeout": "job.timeout", "cancel": "job.cancel", "priority": "job.setPriority",
    "log": "job.log", "get": "job.get", "multiget": "job.getMulti", "length": "queue.length", "stats": "queue.stats",
    "unfail": "queue.unfail", "pause": "queue.pause", "unpause": "queue.unpause", "worker.deregister": "worker.forget",
    "unrecur": "recurringJob.cancel", "recur.get": "recurringJob.get", "recur.update": "recurringJob.update",
    "recur.tag": "recurringJob.addTag", "recur.untag": "recurringJob.removeTag",
}  # fmt: skip
"""The commands that have another name only."""


def _complete(given: Words) -> Words:
    if "next" not in given[4:]:
        return "job.complete", *given
    at = given.index("next", 4)
    return "job.completeAndRequeue", *given[:at], *given[at + 1 :]


def _depends(given: Words) -> Words:
    command = "job.addDependency" if given[1] == "on" else "job.removeDependency"
    return command, given[0], *given[2:]


TRANSLATED: dict[str, Callable[[Words], Words]] = {
    "peek": lambda given: ("queue.peek", given[0], "0", *given[1:]),
    "complete": _complete,
    "depends": _depends,
    "tag": lambda given: (
        {"add": "job.addTag", "remove": "job.removeTag", "get": "jobs.tagged", "top": "tags.top"}[given[0]],
        *given[1:],
    ),
    "track": lambda given: (f"job.{given[0]}", *given[1:]) if given else ("jobs.tracked",),
    "jobs": lambda given: ("jobs.completed", *given[1:]) if given[0] == "complete" else ("queue.jobsByState", *given),
    "failed": lambda given: ("jobs.failedByGroup", *given) if given else ("failureGroups.counts",),
    "queues": lambda given: ("queue.counts", *given) if given else ("queues.counts",),
    "workers": lambda given: ("worker.jobs", *given) if given else ("workers.counts",),
    "recur": lambda given: ("queue.recurAtInterval", *given[:4], *given[5:]),
    "config.get": lambda given: ("config.get", *given) if given else ("config.getAll",),
}
"""The commands whose arguments differ, too: the command and its arguments, without the time."""


def translated(words: Sequence[str]) -> Words:
    """Say a call of qless in the words of reqless."""
    name, now, *given = words
    translate = TRANSLATED.get(name)
    if translate is None:
        return NAMES.get(name, name), now, *given
    command, *rest = translate(tuple(given))
    return command, now, *rest
