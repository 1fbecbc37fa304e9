"""Requests by both clients, on every backend; and waiting for their end: before, in between, and after it."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

import qmodel
from qmodel.contract import operations as ops
from qmodel.errors import (
    BadArgument,
    DependencyNotFound,
    JobExists,
    RequestConflict,
    RequestNotEnded,
    RequestNotFound,
    RequestState,
    WrongState,
)

PATIENCE = 60


def serve(client: qmodel.Client, queue: str = "q") -> int:
    """Complete whatever a queue has to give; give how many jobs that were."""
    done = 0
    while job := client.queues[queue].pop():
        job.complete()
        done += 1
    return done


def test_a_request_is_opened_added_to_closed_and_waited_for(client: qmodel.Client) -> None:
    request = client.requests.open("R", "q", limit=2)
    jids = [request.add("K", {"n": n}, name=str(n)) for n in range(5)]
    assert jids[0] == "R:0"
    assert request.add("K", name="0") == "R:0"
    assert [request.get().total, request.get().pending] == [5, 5]
    assert len(client.queues["q"].pop(9)) == 2
    assert client.jobs["R:0"].raw.request == "R"
    request.close()
    with pytest.raises(RequestState):
        request.add("K")
    for jid in ("R:0", "R:1"):
        client.jobs[jid].complete()
    assert serve(client) == 3
    assert [request.wait(0).state, request.wait().done] == ["done", 5]
    assert [one.id for one in client.requests.page("done")] == ["R"]
    request.forget()
    assert client.requests.get("R") is None
    with pytest.raises(RequestNotFound):
        request.wait(0)


def test_a_block_closes_its_request_or_calls_it_off(client_url: str) -> None:
    with qmodel.Client(client_url) as client:
        with client.request("R", "q", limit=3, priority=-1) as request:
            request.add("K")
        assert request.get().state == "closed"
        assert request.get().priority == -1
        with pytest.raises(ZeroDivisionError), client.request("S", "q", limit=1) as other:
            other.add("K")
            raise ZeroDivisionError
        assert other.get().state == "canceled"


def test_all_at_once_tuned_and_refused(client: qmodel.Client) -> None:
    queue = client.queues["q"]
    request = client.requests.put("R", "q", [queue.new("K", jid=f"R:{n}") for n in range(4)], limit=1)
    assert len(queue.pop(9)) == 1
    request.tune(limit=3, priority=7)
    assert len(queue.pop(9)) == 2
    with pytest.raises(RequestConflict) as conflict:
        client.requests.open("R", "q", limit=3)
    assert conflict.value.value == "1"
    queue.put("K", jid="mine")
    client.requests.open("S", "q", limit=1)
    with pytest.raises(JobExists):
        client.requests["S"].add_many([queue.new("K", jid="mine")])


def test_a_large_request_is_tuned_and_canceled_in_parts_by_one_call(client: qmodel.Client) -> None:
    """Jobs with so many tags that one step changes about thirty of them."""
    queue = client.queues["q"]
    request = client.requests.open("R", "q", limit=100)
    tags = [f"t{n}" for n in range(1000)]
    for first in range(0, 120, 3):
        request.add_many(queue.new("K", jid=f"R:{n}", tags=tags) for n in range(first, first + 3))
    request.tune(limit=120, priority=-3)
    assert request.get().limit == 120
    found = client.jobs.get_many([f"R:{n}" for n in range(120)])
    assert [(job.priority, job.state) for job in found] == [(-3, "waiting")] * 120
    assert len([*queue.pop(1), *queue.pop(1)]) == 2
    request.cancel()
    assert (request.get().canceled, request.get().running) == (118, 2)


def test_who_waits_learns_of_the_end_that_comes_while_he_waits(client_url: str) -> None:
    url = f"memory://{time.monotonic_ns()}" if client_url == "memory://" else client_url
    with qmodel.Client(url) as client, qmodel.Client(url) as other:
        with client.request("R", "q", limit=1) as request:
            request.add("K")
            request.add("K")
        with pytest.raises(RequestNotEnded):
            request.wait(0.01)
        found = []
        waiter = threading.Thread(target=lambda: found.append(other.requests["R"].wait(PATIENCE)))
        waiter.start()
        assert serve(client) == 2
        waiter.join(PATIENCE)
        assert [one.done for one in found] == [2]


def test_a_sub_request_takes_the_options_of_a_put(client: qmodel.Client) -> None:
    with client.request("R", "q", limit=9) as request:
        jid = request.add("K", name="0", lease=7, timeout=timedelta(minutes=1), throttles="t", keep_complete=60)
        with pytest.raises(TypeError, match=r"Request.add\(\) got an unexpected keyword argument 'priority'"):
            request.add("K", priority=1)  # type: ignore[call-arg]
    job = client.jobs[jid]
    assert (job.lease, job.longest) == (timedelta(seconds=7), timedelta(minutes=1))
    assert (job.throttles, job.keep_complete) == (("t",), timedelta(minutes=1))


def test_a_request_with_a_deadline_fail_fast_and_a_lease(client: qmodel.Client) -> None:
    request = client.requests.open("R", "q", limit=2, deadline=timedelta(hours=1), fail_fast=True, lease=60)
    assert request.touch() == request.get().open_until / 1000
    known = request.get()
    assert (known.deadline_at - known.opened_at, known.fail_fast, known.reason) == (3_600_000, True, "")
    for name in ("a", "b"):
        request.add("K", name=name, retries=0)
    client.queues["q"].pop().fail("wrong")
    assert client.queues["q"].pop() is None
    assert [request.wait(0).state, request.get().reason, request.get().canceled] == ["canceled", "failed", 1]
    with pytest.raises(RequestState):
        request.touch()
    with pytest.raises(RequestConflict):
        client.requests.open("R", "q", limit=2)
    with client.request("S", "q", limit=1, deadline=5) as other:
        assert other.get().deadline_at
    put = client.requests.put("T", "q", [client.queues["q"].new("K")], limit=1, deadline=5, fail_fast=True)
    assert (put.get().deadline_at - put.get().opened_at, put.get().fail_fast) == (5000, True)
    with pytest.raises(TypeError, match="deadlin"):
        client.requests.open("U", "q", limit=1, deadlin=5)


def test_a_sub_request_in_backoff_leaves_its_place_unless_the_request_keeps_places(client: qmodel.Client) -> None:
    queue = client.queues["q"]
    with client.request("R", "q", limit=1) as request:
        for name in ("a", "b"):
            request.add("K", name=name, retry_delay=60)
    queue.pop().retry()
    assert [queue.pop().jid, request.get().keep_places] == ["R:b", False]
    kept = client.requests.put("S", "s", [client.queues["s"].new("K") for _ in "ab"], limit=1, keep_places=True)
    client.queues["s"].pop().retry(delay=60)
    assert [client.queues["s"].pop(), kept.get().keep_places] == [None, True]
    with pytest.raises(RequestConflict):
        client.requests.open("S", "s", limit=1)


def test_a_job_waits_for_requests_given_as_objects_and_as_edges(client: qmodel.Client) -> None:
    first, second = (client.requests.open(id, "q", limit=1) for id in "RS")
    queue = client.queues["after"]
    put = queue.put("K", depends=[first, queue.put("J"), qmodel.Edge.to_request("S", "fail")])
    job = client.jobs[put.jid]
    assert (job.depends_on_requests, len(job.dependencies)) == (("R", "S"), 1)
    assert first.get().dependents == 1
    assert [reason.sentence for reason in job.why()][1:] == [
        "It waits for request R, which is open: 0 of 0 sub-requests are left.",
        "It waits for request S, which is open: 0 of 0 sub-requests are left.",
    ]
    with pytest.raises(RequestState):
        first.forget()
    first.close()
    assert job.depends_off(second, job.dependencies[0]) == ()
    assert client.jobs[job.jid].state == "waiting"


def test_a_job_is_released_until_a_request_has_ended(client: qmodel.Client) -> None:
    request = client.requests.put("R", "subs", [client.queues["subs"].new("K")], limit=1)
    queue = client.queues["q"]
    queue.put("K")
    job = queue.pop()
    job.release(depends=request)
    assert queue.pop() is None
    with pytest.raises(WrongState):
        queue.put("L").depends_on(request)
    client.queues["subs"].pop().complete()
    assert {one.klass for one in queue.pop(2)} == {"K", "L"}
    late = queue.put("M", depends=[qmodel.Edge.to_request("R", "cancel")])
    assert client.jobs[late.jid].state == "waiting"
    request.forget()
    with pytest.raises(DependencyNotFound):
        queue.put("N", depends=request)


def test_a_flow_may_begin_after_a_request(client: qmodel.Client) -> None:
    request = client.requests.open("R", "q", limit=1)
    queue = client.queues["f"]
    flow = qmodel.flows.chain(queue.new("A", depends=request), queue.new("B"))
    first, last = (client.jobs[job.jid] for job in client.put_flow(flow, "after"))
    assert (first.depends_on_requests, last.dependencies) == (("R",), (first.jid,))
    assert [node.jid for node in client.flow(first).nodes.values()] == [first.jid, last.jid]
    request.close()
    assert [job.klass for job in queue.pop(2)] == ["A"]


def test_a_hundred_who_wait_for_requests_and_jobs_share_one_reader(client_url: str) -> None:
    url = f"memory://{time.monotonic_ns()}" if client_url == "memory://" else client_url
    with qmodel.Client(url) as client, qmodel.Client(url) as other:
        for id in ("R", "S", "gone"):
            client.requests.put(id, "q", [client.queues["q"].new("K", jid=f"{id}:{n}") for n in range(3)], limit=1)
        job = client.queues["r"].put("K", jid="R")  # a job with the id of a request
        reads: list[ops.Operation] = []
        read = other.backend.execute
        other.backend.execute = lambda op, now=None: (reads.append(op), read(op, now))[1]  # type: ignore[method-assign]
        found: list[object] = []
        calls = [lambda: other.requests["R"].wait(PATIENCE).done, lambda: other.requests["S"].wait(PATIENCE).done]
        calls += [lambda: other.jobs[job.jid].wait(PATIENCE)]
        threads = [threading.Thread(target=lambda n=n: found.append(calls[n % 3]())) for n in range(99)]  # type: ignore[misc]
        for thread in threads:
            thread.start()
        while len(other._results._watch._waiters) < 99:
            time.sleep(0.002)
        assert serve(client) == 9
        serve(client, "r")
        for thread in threads:
            thread.join(PATIENCE)
        pages = [op for op in reads if isinstance(op, ops.Events)]
        assert sorted(found, key=str) == [3] * 66 + [None] * 33
        assert len(pages) <= 40  # one reader: not one page for each waiter and event
        assert other._results._watch._by_key == {}
        with pytest.raises(BadArgument):
            other.requests["no blanks"].wait(0)


def test_who_waits_for_a_request_that_is_forgotten_learns_of_it(client: qmodel.Client) -> None:
    client.requests.open("R", "q", limit=1).close()
    client.requests["R"].forget()
    with pytest.raises(RequestNotFound):
        client.requests["R"].wait()
