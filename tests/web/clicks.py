"""Every action as somebody does it: on which page, in which menu, with what in its form."""

from __future__ import annotations

from typing import NamedTuple

from qmodel import Client
from qmodel.contract import operations as ops


class Click(NamedTuple):
    """An action: its page, the menu that has it, what is filled in and ticked, and what is told afterwards."""

    page: str
    said: str
    menu: str = ""
    fields: dict[str, str] = {}  # noqa: RUF012  # nobody changes it
    ticks: str = ""


def prepare(client: Client) -> None:
    """What a small shop does not have: jobs that run just now, a dead letter, queues that may go."""
    for queue in ("held", "taken", "off"):
        client.execute(ops.Put(queue, queue, "K", "{}", lease_ms=3_600_000))
        client.execute(ops.Pop(queue, f"{queue}.worker"))
    for queue in ("drained", "doomed", "gone"):
        client.queues[queue].put_many([("K", number) for number in range(3)])
    client.queues["gone"].drain()
    client.execute(ops.Put("mortal", "died", "K", "{}", dead_queue="morgue"))
    [job] = client.execute(ops.Pop("mortal", "w2.example-1-1"))
    client.execute(ops.Fail("died", job.token, "Oh", "no"))


CLICKS: dict[str, Click] = {
    "pause": Click("/queue?name=bills", "Queue bills is paused.", "Pause…", {"reason": "night", "for": "2h"}),
    "unpause": Click("/queue?name=emails", "Queue emails is unpaused."),
    "fire": Click("/queue?name=reports", "0 due runs enqueued.", "More…"),
    "forget": Click("/queue?name=gone", "Queue gone is removed from the list.", "More…"),
    "drain": Click("/queue?name=drained", "3 jobs canceled, 0 left.", "More…"),
    "obliterate": Click("/queue?name=doomed", "3 jobs deleted, 0 left.", "More…"),
    "put": Click(
        "/queue?name=emails",
        "Job * is in queue emails.",
        "Enqueue…",
        {"klass": "K", "data": "[1]", "priority": "-2", "delay": "1h", "tags": "a b"},
    ),
    "track": Click("/job?jid=mail-0", "Job mail-0 is tracked.", "More…"),
    "untrack": Click("/job?jid=mail-0", "Job mail-0 is no longer tracked.", "More…"),
    "priority": Click("/job?jid=mail-0", "The priority is -7.", "More…", {"priority": "-7"}),
    "delay": Click("/job?jid=mail-0", "Job mail-0 is ready in 10m.", "More…", {"delay": "10m"}),
    "promote-jobs": Click("/job?jid=mail-0", "1 job ready now."),
    "tag": Click("/job?jid=mail-0", "Tag new is added.", "More…", {"tag": "new"}),
    "untag": Click("/job?jid=mail-0", "Tag eu is removed."),
    "log": Click("/job?jid=mail-0", "The note is added to the timeline.", "More…", {"message": "looked at"}),
    "update": Click("/job?jid=mail-0", "The data is replaced.", "Edit or copy…", {"data": '{"to": "bob"}'}),
    "move": Click("/job?jid=mail-0", "Job mail-0 is in queue other.", "More…", {"queue": "other"}),
    "depends-off": Click("/job?jid=render", "It waits for no other job now."),
    "cancel-jobs": Click("/job?jid=mail-1", "1 job canceled.", ticks="cascade"),
    "delete-jobs": Click("/job?jid=good", "1 job deleted.", ticks="cascade"),
    "revoke-jobs": Click("/job?jid=held", "1 job revoked. 1 worker will hear of it."),
    "timeout": Click("/job?jid=held", "The lease of job held is taken; the next pop leases it again."),
    "retry-jobs": Click("/job?jid=bad-1", "1 job retried."),
    "replay": Click("/jobs?queue=morgue", "Job died is enqueued again, and the dead letter is deleted."),
    "move-group": Click("/jobs?group=KeyError", "1 job moved to queue other.", "Move all…", {"queue": "other"}),
    "unique-release": Click("/unique?key=sync", "The key sync is released."),
    "quiet": Click("/worker?name=taken.worker", "taken.worker is told to take no more jobs."),
    "resume": Click("/worker?name=taken.worker", "taken.worker is told to take jobs again."),
    "stop": Click("/worker?name=taken.worker", "taken.worker is told to stop.", ticks="now"),
    "free": Click("/worker?name=taken.worker", "1 job taken from the worker."),
    "deregister": Click("/worker?name=off.worker", "off.worker is removed from the list."),
    "recur-now": Click("/schedule?jid=daily", "Run daily-1 is enqueued."),
    "recur-pause": Click("/schedule?jid=daily", "daily is paused."),
    "recur-unpause": Click("/schedule?jid=daily", "daily is unpaused."),
    "recur-update": Click(
        "/schedule?jid=daily",
        "The schedule is changed; runs that are enqueued stay as they are.",
        "Change…",
        {"queue": "other", "priority": "3", "retries": "1", "data": "[2]"},
    ),
    "recur-tag": Click("/schedule?jid=daily", "Future runs have the tag eu.", "", {"tag": "eu"}),
    "recur-untag": Click("/schedule?jid=daily", "Future runs do not have the tag eu."),
    "unrecur": Click("/schedule?jid=daily", "Schedule daily is deleted."),
    "throttle-set": Click(
        "/throttle?name=stripe",
        "The limits of throttle stripe are set.",
        "",
        {"concurrency": "4", "rate": "9", "per": "2m", "capacity": "5", "refill": "1", "every": "1s"},
    ),
    "throttle-unset": Click("/throttle?name=stripe", "The limits of throttle stripe are removed."),
    "request-tune": Click(
        "/request?id=album", "Request album has priority 2 and runs 3 at once.", "", {"priority": "2", "limit": "3"}
    ),
    "request-close": Click("/request?id=album", "Request album is closed: it ends with its last sub-request."),
    "request-cancel": Click("/request?id=album", "Request album is canceled; 0 sub-requests left to cancel."),
    "request-forget": Click("/request?id=done", "Request done is forgotten."),
    "request-delete": Click("/request?id=done", "Request done is forgotten; 0 jobs deleted."),
    "publish": Click("/messages", "Message * is published.", "Publish…", {"subject": "orders.lost", "data": "1"}),
    "catch-up": Click("/subscription?name=books", "The subscription has caught up; 0 messages left."),
    "trim": Click("/messages", "4 messages deleted."),
    "unsubscribe": Click("/subscription?name=books", "Subscription books is ended."),
    "metadata-set": Click("/klass?name=SendEmail", "phone is saved.", "", {"key": "phone", "value": "123"}),
    "metadata-unset": Click("/klass?name=SendEmail", "owner is deleted."),
    "config-set": Click("/settings", "Option heartbeat is 2m.", "", {"value": "2m"}),
    "config-unset": Click("/settings", "Option heartbeat has its default value."),
}
"""Every action, in an order in which each finds what it needs."""
