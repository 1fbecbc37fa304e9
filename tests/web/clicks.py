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
    "unpause": Click("/queue?name=emails", "Queue emails goes on."),
    "fire": Click("/queue?name=reports", "0 runs were due and are made.", "More…"),
    "forget": Click("/queue?name=gone", "Queue gone is off the list.", "More…"),
    "drain": Click("/queue?name=drained", "3 jobs canceled. 0 are left.", "More…"),
    "obliterate": Click("/queue?name=doomed", "3 jobs deleted. 0 are left.", "More…"),
    "put": Click(
        "/queue?name=emails",
        "Job * is in queue emails.",
        "Put…",
        {"klass": "K", "data": "[1]", "priority": "-2", "delay": "1h", "tags": "a b"},
    ),
    "track": Click("/job?jid=mail-0", "It is tracked.", "More…"),
    "untrack": Click("/job?jid=mail-0", "It is no longer tracked.", "More…"),
    "priority": Click("/job?jid=mail-0", "Its priority is -7.", "More…", {"priority": "-7"}),
    "delay": Click("/job?jid=mail-0", "It is ready in 10m.", "More…", {"delay": "10m"}),
    "promote-jobs": Click("/job?jid=mail-0", "1 job ready now."),
    "tag": Click("/job?jid=mail-0", "It has the tag new.", "More…", {"tag": "new"}),
    "untag": Click("/job?jid=mail-0", "It has the tag eu no more."),
    "log": Click("/job?jid=mail-0", "The note is in its history.", "More…", {"message": "looked at"}),
    "update": Click("/job?jid=mail-0", "Its data are replaced.", "Edit, or put a copy…", {"data": '{"to": "bob"}'}),
    "move": Click("/job?jid=mail-0", "Job mail-0 is in queue other.", "More…", {"queue": "other"}),
    "depends-off": Click("/job?jid=render", "It waits for no other jobs now."),
    "cancel-jobs": Click("/job?jid=mail-1", "1 job canceled.", ticks="cascade"),
    "revoke-jobs": Click("/job?jid=held", "1 job called off."),
    "timeout": Click("/job?jid=held", "The lease is taken away; the next pop of its queue gets it."),
    "retry-jobs": Click("/job?jid=bad-1", "1 job put back."),
    "replay": Click("/jobs?queue=morgue", "Job died is put anew, and the letter deleted."),
    "unfail": Click("/jobs?group=KeyError", "1 job put into queue other.", "Move all…", {"queue": "other"}),
    "unique-release": Click("/unique?key=sync", "Nobody holds the key sync now."),
    "quiet": Click("/worker?name=taken.worker", "taken.worker is told to take no more jobs."),
    "resume": Click("/worker?name=taken.worker", "taken.worker is told to take jobs again."),
    "stop": Click("/worker?name=taken.worker", "taken.worker is told to stop.", ticks="now"),
    "free": Click("/worker?name=taken.worker", "1 job taken away."),
    "deregister": Click("/worker?name=off.worker", "off.worker is off the list."),
    "recur-now": Click("/schedule?jid=daily", "Run daily-1 is made."),
    "recur-pause": Click("/schedule?jid=daily", "daily is paused."),
    "recur-unpause": Click("/schedule?jid=daily", "daily goes on."),
    "recur-update": Click(
        "/schedule?jid=daily",
        "It is changed; runs that were made stay as they are.",
        "Change…",
        {"queue": "other", "priority": "3", "retries": "1", "data": "[2]"},
    ),
    "recur-tag": Click("/schedule?jid=daily", "Runs to come have the tag eu.", "", {"tag": "eu"}),
    "recur-untag": Click("/schedule?jid=daily", "Runs to come have the tag eu no more."),
    "unrecur": Click("/schedule?jid=daily", "daily recurs no more."),
    "throttle-set": Click(
        "/throttle?name=stripe",
        "Throttle stripe has these limits.",
        "",
        {"concurrency": "4", "rate": "9", "per": "2m", "capacity": "5", "refill": "1", "every": "1s"},
    ),
    "throttle-unset": Click("/throttle?name=stripe", "Throttle stripe has no limits."),
    "request-tune": Click(
        "/request?id=album", "Request album has priority 2 and runs 3 at once.", "", {"priority": "2", "limit": "3"}
    ),
    "request-close": Click("/request?id=album", "Request album ends with its last sub-request."),
    "request-cancel": Click("/request?id=album", "It is called off; 0 sub-requests are left to cancel."),
    "request-forget": Click("/request?id=done", "Request done is forgotten."),
    "publish": Click("/messages", "Message * is published.", "Publish…", {"subject": "orders.lost", "data": "1"}),
    "catch-up": Click("/subscription?name=books", "It has got what it was behind; 0 messages are left."),
    "trim": Click("/messages", "4 messages are dropped."),
    "unsubscribe": Click("/subscription?name=books", "Subscription books has ended."),
    "metadata-set": Click("/klass?name=SendEmail", "phone is noted.", "", {"key": "phone", "value": "123"}),
    "metadata-unset": Click("/klass?name=SendEmail", "owner is forgotten."),
    "config-set": Click("/settings", "Option heartbeat is 2m.", "", {"value": "2m"}),
    "config-unset": Click("/settings", "Option heartbeat is what it is by default."),
}
"""Every action, in an order in which each finds what it needs."""
