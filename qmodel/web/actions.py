"""What people do: a form names an action, the action makes operations, and the next page tells what became of them.

An action that deletes something, or takes something from a worker, asks first: the same form comes back with a
question, and is sent once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from qmodel.client.fields import new_job
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.contract.arguments import MOST
from qmodel.errors import RefusedError
from qmodel.model.state.options import OF_PUT
from qmodel.web.forms import Form

Make = Callable[[Form], list[ops.Operation]]
Tell = Callable[[Form, list[Any]], str]


class Action(NamedTuple):
    """What is sent, how it is told afterwards, what is asked before, and where to go where the page may be gone."""

    make: Make
    tell: Tell
    asks: str = ""
    leads: str = ""
    ticks: tuple[str, str] = ("", "")
    """A box beside the question that may be ticked: its field, and what it says."""


def perform(client: Client, action: Action, form: Form) -> str:
    """Send the operations of an action; tell what became of them. Raises the refusal of one that is alone."""
    wanted = action.make(form)
    found = client.execute_many(wanted)
    if len(found) == 1 and isinstance(found[0], RefusedError):
        raise found[0]
    refused = [one for one in found if isinstance(one, RefusedError)]
    told = action.tell(form, [one for one in found if not isinstance(one, RefusedError)])
    return told if not refused else f"{told} {len(refused)} refused: {refused[0].sentence}"


def retry(client: Client, form: Form) -> str:
    """Put failed jobs anew, each into its own queue and with its own options, as it was put."""
    known = client.execute(ops.Multiget(form.jids()))
    failed = [job for job in known if job.state == "failed"]
    found = client.execute_many([again(job) for job in failed])
    done = sum(isinstance(reply, str) and reply == job.jid for reply, job in zip(found, failed, strict=True))
    left = len(form.jids()) - done
    why = next((one.sentence for one in found if isinstance(one, RefusedError)), "The others had not failed.")
    return jobs(done, "put back") + (f" {left} passed over: {why}" if left else "")


def again(job: replies.Job) -> ops.Put:
    """The put of a job as it is, so that it starts anew."""
    given = {name: _argument(name, job.option(name)) for name in OF_PUT if job.option(name) is not None}
    return ops.Put(job.queue, job.jid, job.klass, job.data, **given)


def _argument(name: str, text: str | None) -> Any:
    """An option's text as the argument of a put that gave it."""
    if name == "throttles":
        return tuple((text or "").split())
    if name == "lifo":
        return text == "1"
    return int(text or 0) if name.endswith("_ms") or name == "cost" else text


def move(client: Client, form: Form) -> str:
    """Put a job into another queue, with its own options."""
    queue, jid = form.needed("queue"), form.needed("jid")
    for job in client.execute(ops.Multiget((jid,))):
        put = again(job)
        put.queue = queue  # type: ignore[misc]  # frozen for type checkers only
        client.execute(put)
    return f"Job {jid} is in queue {queue}."


def free(client: Client, form: Form) -> str:
    """Take the jobs that a worker holds away from it, up to 1000 of them."""
    held = client.execute(ops.Worker(form.needed("worker"))).jobs
    if held:
        client.execute(ops.Timeout(held[:MOST]))
    return jobs(min(len(held), MOST), "taken away") + (f" {len(held) - MOST:,} are left." if len(held) > MOST else "")


def quiet(client: Client, form: Form) -> str:
    """Let workers take no more jobs."""
    client.workers.quiet(*form.several("worker"))
    return f"{workers(form)} told to take no more jobs."


def resume(client: Client, form: Form) -> str:
    """Let quiet workers take jobs again."""
    client.workers.resume(*form.several("worker"))
    return f"{workers(form)} told to take jobs again."


def stop(client: Client, form: Form) -> str:
    """Let workers end."""
    client.workers.stop(*form.several("worker"), now=bool(form.text("now")))
    return f"{workers(form)} told to stop."


def workers(form: Form) -> str:
    """The workers that a form names, as they are told of."""
    names = form.several("worker")
    return f"{names[0]} is" if len(names) == 1 else f"{len(names)} workers are"


def jobs(count: int, done: str) -> str:
    """How many jobs something was done to."""
    return f"{count:,} job{'' if count == 1 else 's'} {done}."


def _counted(said: str, otherwise: str) -> Tell:
    """What is told of an operation that replies whether it changed something."""
    return lambda form, found: (said if sum(found) else otherwise).format(**form.fields)


def _of_queues(one: str, several: str) -> Tell:
    """What is told of one queue, or of several."""

    def tell(form: Form, found: Sequence[Any]) -> str:
        names = form.several("queue")
        return f"Queue {names[0]} {one}." if len(names) == 1 else f"{len(names)} queues {several}."

    return tell


def _said(text: str) -> Tell:
    return lambda form, found: text.format(**form.fields)


def _put_off(form: Form) -> list[ops.Operation]:
    return [ops.Delay(form.needed("jid"), form.duration("delay"))]


def _limits(form: Form) -> list[ops.Operation]:
    whole, span = form.whole_or_none, form.duration_or_none
    limits = (whole("concurrency"), whole("rate"), span("per"), whole("capacity"), whole("refill"), span("every"))
    return [ops.ThrottleSet(form.needed("throttle"), *limits)]


def _schedule(form: Form) -> list[ops.Operation]:
    """What the form gives of a recurring job; what is empty stays as it is."""
    update = ops.RecurUpdate(
        form.needed("jid"),
        queue=form.text("queue") or None,
        data=form.text("data") or None,
        interval_ms=form.duration_or_none("every"),
        priority=form.whole_or_none("priority"),
        retries=form.whole_or_none("retries"),
    )
    return [update]


def _option(form: Form) -> list[ops.Operation]:
    value = form.duration("value") if form.text("unit") == "ms" else form.whole("value")
    return [ops.ConfigSet(form.needed("option"), value)]


def _put(form: Form) -> list[ops.Operation]:
    """A new job, or a copy of one: its fields are those of the form."""
    tags = tuple(dict.fromkeys(form.text("tags").replace(",", " ").split()))
    put = new_job(
        form.needed("queue"),
        form.needed("klass"),
        text=form.text("data") or "null",
        priority=form.whole_or_none("priority"),
        delay=(form.duration_or_none("delay") or 0) / 1000,
        retries=form.whole_or_none("retries"),
        tags=tags or None,
    )
    return [put]


def _cancel(form: Form) -> list[ops.Operation]:
    return [ops.Cancel(form.jids(), bool(form.text("cascade")))]


def _canceled(form: Form, found: Sequence[Any]) -> str:
    return jobs(sum(map(len, found)), "canceled")


ACTIONS: dict[str, Action] = {
    "pause": Action(
        lambda f: [ops.Pause(f.several("queue"), f.text("reason", "by hand"), f.duration_or_none("for") or 0)],
        _of_queues("is paused", "are paused"),
    ),
    "unpause": Action(
        lambda f: [ops.Unpause(f.several("queue"), f.text("reason") or None)], _of_queues("goes on", "go on")
    ),
    "fire": Action(
        lambda f: [ops.Fire(f.needed("queue"))], lambda form, found: f"{sum(found):,} runs were due and are made."
    ),
    "forget": Action(
        lambda f: [ops.Forget((f.needed("queue"),))], _said("Queue {queue} is off the list."), leads="/queues"
    ),
    "put": Action(_put, lambda form, found: f"Job {found[0]} is in queue {form.text('queue')}."),
    "update": Action(lambda f: [ops.Update(f.needed("jid"), f.text("data"))], _said("Its data are replaced.")),
    "unique-release": Action(
        lambda f: [ops.UniqueRelease(f.needed("unique"))],
        _counted("Nobody holds the key {unique} now.", "Nobody held the key {unique}."),
        "Let nobody hold the key {unique}? The next put with it is accepted, though its holder has not ended.",
    ),
    "promote-jobs": Action(
        lambda f: [ops.Promote(jid) for jid in f.jids()], lambda form, found: jobs(len(found), "ready now")
    ),
    "revoke-jobs": Action(lambda f: [ops.Revoke(f.jids())], lambda form, found: jobs(len(found[0]), "called off")),
    "cancel-jobs": Action(
        _cancel,
        _canceled,
        "Cancel {jobs}? They are deleted; a worker that runs one loses it.",
        leads="/jobs",
        ticks=("cascade", "and all jobs that depend on it"),
    ),
    "timeout": Action(
        lambda f: [ops.Timeout(f.jids())],
        _said("The lease is taken away; the next pop of its queue gets it."),
        "Take the lease of {jobs} away? Whoever works on it loses it, and it is handed out again.",
    ),
    "track": Action(lambda f: [ops.Track(f.needed("jid"))], _said("It is tracked.")),
    "untrack": Action(lambda f: [ops.Untrack(f.needed("jid"))], _said("It is no longer tracked.")),
    "priority": Action(
        lambda f: [ops.Priority(f.needed("jid"), f.whole("priority"))], _said("Its priority is {priority}.")
    ),
    "delay": Action(_put_off, _said("It is ready in {delay}.")),
    "tag": Action(lambda f: [ops.TagAdd(f.needed("jid"), (f.needed("tag"),))], _said("It has the tag {tag}.")),
    "untag": Action(
        lambda f: [ops.TagRemove(f.needed("jid"), (f.needed("tag"),))], _said("It has the tag {tag} no more.")
    ),
    "log": Action(lambda f: [ops.Log(f.needed("jid"), f.needed("message"))], _said("The note is in its history.")),
    "replay": Action(
        lambda f: [ops.Replay(f.needed("jid"))],
        lambda form, found: f"Job {found[0]} is put anew, and the letter deleted.",
        leads="/jobs",
    ),
    "deregister": Action(
        lambda f: [ops.Deregister((f.needed("worker"),))], _said("{worker} is off the list."), leads="/workers"
    ),
    "recur-now": Action(
        lambda f: [ops.RecurNow(f.needed("jid"))],
        lambda form, found: f"Run {found[0]} is made." if found[0] else "No free number was found; try again.",
    ),
    "recur-pause": Action(lambda f: [ops.RecurPause(f.needed("jid"))], _said("{jid} is paused.")),
    "recur-unpause": Action(lambda f: [ops.RecurUnpause(f.needed("jid"))], _said("{jid} goes on.")),
    "unrecur": Action(
        lambda f: [ops.Unrecur(f.needed("jid"))],
        _counted("{jid} recurs no more.", "{jid} was not there."),
        "Let {jid} recur no more? Runs that were made stay.",
        leads="/schedules",
    ),
    "recur-update": Action(_schedule, _said("It is changed; runs that were made stay as they are.")),
    "recur-tag": Action(
        lambda f: [ops.RecurTag(f.needed("jid"), (f.needed("tag"),))], _said("Runs to come have the tag {tag}.")
    ),
    "recur-untag": Action(
        lambda f: [ops.RecurUntag(f.needed("jid"), (f.needed("tag"),))],
        _said("Runs to come have the tag {tag} no more."),
    ),
    "depends-off": Action(
        lambda f: [ops.DependsOff(f.needed("jid"), f.all("dependency"), not f.all("dependency"))],
        lambda form, found: f"It waits for {len(found[0]) or 'no'} other job{'' if len(found[0]) == 1 else 's'} now.",
        "Let job {jid} wait no longer for {dependency}? It may begin without what they would have given it.",
    ),
    "publish": Action(
        lambda f: [ops.Publish(f.needed("subject"), f.text("data") or "null")],
        lambda form, found: f"Message {found[0]:,} is published.",
    ),
    "unsubscribe": Action(
        lambda f: [ops.Unsubscribe(f.needed("subscription"))],
        _counted("Subscription {subscription} has ended.", "Subscription {subscription} was not there."),
        "End subscription {subscription}? Messages make no jobs for it from then on; those that it has got stay.",
        leads="/subscriptions",
    ),
    "metadata-set": Action(
        lambda f: [ops.MetadataSet(f.needed("klass"), f.needed("key"), f.text("value"))], _said("{key} is noted.")
    ),
    "metadata-unset": Action(
        lambda f: [ops.MetadataUnset(f.needed("klass"), f.needed("key"))],
        _counted("{key} is forgotten.", "Nothing was noted under {key}."),
    ),
    "config-set": Action(_option, _said("Option {option} is {value}.")),
    "config-unset": Action(
        lambda f: [ops.ConfigUnset(f.needed("option"))], _said("Option {option} is what it is by default.")
    ),
    "request-close": Action(
        lambda f: [ops.RequestClose(f.needed("id"))], _said("Request {id} ends with its last sub-request.")
    ),
    "request-tune": Action(
        lambda f: [ops.RequestTune(f.needed("id"), f.whole("priority"), f.whole("limit"))],
        _said("Request {id} has priority {priority} and runs {limit} at once."),
    ),
    "throttle-set": Action(_limits, _said("Throttle {throttle} has these limits.")),
    "throttle-unset": Action(
        lambda f: [ops.ThrottleUnset(f.needed("throttle"))],
        _counted("Throttle {throttle} has no limits.", "Throttle {throttle} had none."),
        "Take all limits from throttle {throttle}? Parked jobs go on at once.",
        leads="/throttles",
    ),
}
"""Every action of one or a few operations, by the name that forms give it."""


class Own(NamedTuple):
    """An action that looks before it acts: what it does and tells, what is asked before, and the box beside that."""

    do: Callable[[Client, Form], str]
    asks: str = ""
    ticks: tuple[str, str] = ("", "")


OWN: dict[str, Own] = {
    "retry-jobs": Own(retry),
    "move": Own(move, "Put job {jid} into queue {queue}? It starts anew there; a worker that runs it loses it."),
    "free": Own(free, "Take all jobs away from worker {worker}? It loses them, and they are handed out again."),
    "quiet": Own(quiet),
    "resume": Own(resume),
    "stop": Own(
        stop,
        "Stop {workers}? They end when the jobs at hand have ended, or their grace is over; what started them decides "
        "whether others begin.",
        ("now", "at once, and give back the jobs at hand"),
    ),
}
"""Every such action, by the name that forms give it."""
