"""A session of qless's Python clients: put, work, complete, and more. Run it with the interpreter that has the client.

python session_python.py qless|reqless <url of a server>
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any


def data(package: Any, **facts: object) -> Any:
    """Convert data to the form that this client takes."""
    return facts if package.__name__ == "qless" else json.dumps(facts)


def refused_by(package: Any) -> Any:
    """Give the exception class that this client raises for refusals."""
    return getattr(package, "QlessException", None) or package.ReqlessError


def put_work_complete(package: Any, client: Any) -> None:
    """Put, pop, heartbeat and complete a job."""
    queue = client.queues["emails"]
    jid = queue.put("mail.Send", data(package, to="ada"), priority=3, tags=["welcome"])
    client.track(jid)
    assert queue.counts["waiting"] == len(queue) == 1
    job = queue.pop()
    assert (job.jid, job.data, job.tags, job.state) == (jid, data(package, to="ada"), ["welcome"], "running")
    assert job.worker_name == "worker-1" and job.ttl > 50
    assert job.heartbeat() > time.time()
    assert job.complete() == "complete"
    assert client.jobs[jid].state == "complete" and client.jobs.complete() == [jid]
    assert [job.jid for job in client.jobs.tracked()["jobs"]] == [jid]
    assert client.jobs["unknown"] is None


def retry_fail_unfail(package: Any, client: Any) -> None:
    """Retry a job, fail it, let its worker lose it, and unfail it."""
    queue = client.queues["emails"]
    jid = queue.put("mail.Send", data(package), retries=1)
    assert queue.pop().retry() == 0
    (job,) = queue.pop(5)
    assert job.fail("smtp", "no route") == jid
    assert client.jobs.failed() == {"smtp": 1}
    assert [job.jid for job in client.jobs.failed("smtp")["jobs"]] == [jid]
    try:
        job.complete()
    except refused_by(package) as refused:
        assert "is not currently running: failed" in str(refused)
    else:
        raise AssertionError("a failed job was completed")
    assert client.unfail("smtp", "emails") == 1
    job = queue.pop()
    assert job.complete("archive") == "waiting" if package.__name__ == "reqless" else job.complete("archive", delay=0)
    assert client.jobs[jid].queue_name == "archive"
    assert [stage["what"] for stage in client.jobs[jid].history][-2:] == ["done", "put"]


def depend_pause_configure(package: Any, client: Any) -> None:
    """Use dependencies, pauses, tags, workers, statistics and the configuration."""
    queue = client.queues["letters"]
    for jid, depends in (("parent", []), ("child", ["parent"])):
        queue.put("k", data(package), jid=jid, depends=depends)
    child = client.jobs["child"]
    assert (child.state, child.dependencies, queue.jobs.depends()) == ("depends", ["parent"], ["child"])
    assert client.jobs["parent"].dependents == ["child"]
    child.undepend(all=True)
    assert client.jobs["child"].state == "waiting"
    child.tag("urgent")
    client.jobs["parent"].tag("urgent")
    assert client.tags() == ["urgent"] and client.jobs.tagged("urgent")["total"] == 2
    queue.pause()
    assert queue.counts["paused"] and queue.pop() is None
    queue.unpause()
    assert {job.jid for job in queue.pop(5)} == {"parent", "child"}
    assert sorted(client.workers["worker-1"]["jobs"]) == ["child", "parent"]
    client.jobs["child"].timeout()
    assert client.jobs["child"].state == "stalled"
    client.jobs["child"].cancel()
    assert client.jobs["child"] is None
    assert queue.stats()["wait"]["count"] == 2
    client.config["heartbeat"] = 30
    assert str(client.config["heartbeat"]) == "30" == str(client.config.all["heartbeat"])


def recur(package: Any, client: Any) -> None:
    """Create a recurring job, change it, tag it, and cancel it."""
    queue = client.queues["hourly"]
    queue.recur("k", data(package), interval=3600, offset=0, jid="clock", retries=2)
    assert queue.jobs.recurring() == ["clock"] and queue.counts["recurring"] == 1
    (job,) = queue.pop(5)
    assert (job.jid, job.state) == ("clock-1", "running")
    clock = client.jobs["clock"]
    assert (clock.interval, clock.count) == (3600, 1)
    clock.priority = 7
    clock.tag("often")
    assert (client.jobs["clock"].priority, client.jobs["clock"].tags) == (7, ["often"])
    clock.cancel()
    assert client.jobs["clock"] is None and client.jobs["clock-1"].state == "running"


def main(name: str, url: str) -> None:
    """Run all sessions one after the other, with one client."""
    package = importlib.import_module(name)
    client = package.Client(url, hostname="worker-1")
    for part in (put_work_complete, retry_fail_unfail, depend_pause_configure, recur):
        part(package, client)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
