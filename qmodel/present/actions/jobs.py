"""Actions on jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmodel.client.build import new_job
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import Whole
from qmodel.contract.refusals import Refusal
from qmodel.errors import error_of
from qmodel.model.state.options import OF_PUT
from qmodel.present.actions.kinds import Action, Once, Stepwise, either, of_bulk, said
from qmodel.present.fields import Fields
from qmodel.present.numbers import counted


def _passed_over(fields: Fields, done: int, why: str) -> str:
    left = len(fields.jids()) - done
    return f" {left:,} passed over: {why}." if left > 0 else ""


def _retried(fields: Fields, found: list[Any]) -> str:
    done = sum(step.done for step in found)
    return f"{counted(done, 'job')} retried.{_passed_over(fields, done, 'not failed, or gone')}"


def _canceled(fields: Fields, found: list[Any]) -> str:
    done = sum(map(len, found))
    return f"{counted(done, 'job')} canceled.{_passed_over(fields, done, 'complete, or gone')}"


def _revoked(fields: Fields, found: list[Any]) -> str:
    states = [state for states in found for state in states]
    running = states.count("running")
    told = f" {counted(running, 'worker')} will hear of it." if running else ""
    return f"{counted(len(states), 'job')} revoked.{told}"


def _waits(fields: Fields, found: list[Any]) -> str:
    left = len(found[0])
    return f"It waits for {counted(left, 'other job')} now." if left else "It waits for no other job now."


def _put(fields: Fields) -> list[ops.Operation]:
    """Make the put of a new job, or of a copy of one."""
    tags = tuple(dict.fromkeys(fields.text("tags").replace(",", " ").split()))
    put = new_job(
        fields.needed("queue"),
        fields.needed("klass"),
        text=fields.data() or "null",
        priority=fields.whole_or_none("priority"),
        delay=(fields.duration_or_none("delay") or 0) / 1000,
        retries=fields.whole_or_none("retries"),
        tags=tags or None,
    )
    return [put]


def _moved(fields: Fields, known: Sequence[replies.Job]) -> list[ops.Operation]:
    """Move a job: a failed one by a retry, another one by a put with all that it has."""
    queue = fields.needed("queue")
    if not known:
        raise error_of(Refusal("JOB_NOT_FOUND", (fields.needed("jid"),)))
    return [ops.RetryMany(jids=(job.jid,), to=queue) if job.state == "failed" else again(job, queue) for job in known]


def again(job: replies.Job, queue: str) -> ops.Put:
    """Make a put of a job as it is, into a queue: what an existing job keeps is left out."""
    given = {name: argument(name, job.option(name)) for name in OF_PUT if job.option(name) is not None}
    return ops.Put(queue, job.jid, job.klass, job.data, **given)


_NUMBERS = {one.name for one in ops.Put.spec.arguments if isinstance(one.kind, Whole)}


def argument(name: str, text: str | None) -> Any:
    """Read an option's text as the argument of the put that gave it."""
    if name == "throttles":
        return tuple((text or "").split())
    if name == "lifo":
        return text == "1"
    return int(text or 0) if name in _NUMBERS else text


ACTIONS: dict[str, Action] = {
    "put": Once("Enqueue", make=_put, tell=lambda f, found: f"Job {found[0]} is in queue {f.exact('queue')}."),
    "update": Once(
        "Replace the data",
        make=lambda f: [ops.Update(f.needed("jid"), f.data())],
        tell=said("The data is replaced."),
    ),
    "retry-jobs": Once("Retry", make=lambda f: [ops.RetryMany(jids=f.jids())], tell=_retried),
    "promote-jobs": Once(
        "Run now",
        make=lambda f: [ops.Promote(jid) for jid in f.jids()],
        tell=lambda f, found: f"{counted(len(found), 'job')} ready now.",
    ),
    "revoke-jobs": Once(
        "Revoke",
        "Revoke {jobs}? A job that waits fails; one that runs is stopped by its worker and fails. None is retried.",
        make=lambda f: [ops.Revoke(f.jids())],
        tell=_revoked,
    ),
    "cancel-jobs": Once(
        "Cancel",
        "Cancel {jobs}? Canceled jobs are deleted; a worker that runs one loses it.",
        ("cascade", "and all jobs that depend on it"),
        make=lambda f: [ops.Cancel(f.jids(), bool(f.text("cascade")))],
        tell=_canceled,
    ),
    "delete-jobs": Once(
        "Delete",
        "Delete {jobs}, whatever their states? A worker that runs one loses it.",
        ("cascade", "and all jobs that depend on it"),
        make=lambda f: [ops.Cancel(f.jids(), bool(f.text("cascade")), True)],
        tell=lambda f, found: f"{counted(len(found[0]), 'job')} deleted.",
    ),
    "timeout": Once(
        "Take the lease",
        "Take the lease of {jobs}? The worker loses it; the next pop of the queue leases it again, and what was half "
        "done is done again.",
        make=lambda f: [ops.Timeout(f.jids())],
        tell=lambda f, found: f"The lease of {f.named('jid', 'job')} is taken; the next pop leases it again.",
    ),
    "move": Once(
        "Move",
        "Move job {jid} to queue {queue}? It starts anew there; a worker that runs it loses it.",
        look=lambda f: ops.Multiget((f.needed("jid"),)),
        choose=_moved,
        tell=said("Job {jid} is in queue {queue}."),
    ),
    "track": Once("Track", make=lambda f: [ops.Track(f.needed("jid"))], tell=said("Job {jid} is tracked.")),
    "untrack": Once(
        "Stop tracking", make=lambda f: [ops.Untrack(f.needed("jid"))], tell=said("Job {jid} is no longer tracked.")
    ),
    "priority": Once(
        "Set",
        make=lambda f: [ops.Priority(f.needed("jid"), f.whole("priority"))],
        tell=said("The priority is {priority}."),
    ),
    "delay": Once(
        "Delay",
        make=lambda f: [ops.Delay(f.needed("jid"), f.duration("delay"))],
        tell=said("Job {jid} is ready in {delay}."),
    ),
    "tag": Once(
        "Add", make=lambda f: [ops.TagAdd(f.needed("jid"), (f.needed("tag"),))], tell=said("Tag {tag} is added.")
    ),
    "untag": Once(
        "Remove",
        make=lambda f: [ops.TagRemove(f.needed("jid"), (f.needed("tag"),))],
        tell=said("Tag {tag} is removed."),
    ),
    "log": Once(
        "Add",
        make=lambda f: [ops.Log(f.needed("jid"), f.needed("message"))],
        tell=said("The note is added to the timeline."),
    ),
    "replay": Once(
        "Replay the original",
        make=lambda f: [ops.Replay(f.needed("jid"))],
        tell=lambda f, found: f"Job {found[0]} is enqueued again, and the dead letter is deleted.",
    ),
    "depends-off": Once(
        "Remove dependencies",
        "Remove the dependency of job {jid} on {dependency}? It may start without the result that it waits for.",
        make=lambda f: [ops.DependsOff(f.needed("jid"), f.all("dependency"), not f.all("dependency"))],
        tell=_waits,
    ),
    "unique-release": Once(
        "Release",
        "Release the key {unique}? The next put with it is accepted, though the job that holds it has not ended.",
        make=lambda f: [ops.UniqueRelease(f.needed("unique"))],
        tell=either("The key {unique} is released.", "The key {unique} was not held."),
    ),
    "move-group": Stepwise(
        "Move all",
        "Move all jobs of group {group} to queue {queue}? They start anew there.",
        step=lambda f, cursor: ops.RetryMany(group=f.needed("group"), to=f.needed("queue"), cursor=cursor),
        read=of_bulk,
        tell=lambda f, step: f"{counted(step.done, 'job')} moved to queue {f.exact('queue')}.",
    ),
}
"""Every action by its name."""
