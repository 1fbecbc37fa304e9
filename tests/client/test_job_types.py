"""Figures of job types, from the newest events."""

from __future__ import annotations

from qmodel import Client
from qmodel.client import job_types
from qmodel.client.job_types import Durations
from qmodel.contract import operations as ops
from qmodel.contract.events import Event


def told(seq: int, kind: str, *facts: str | int) -> Event:
    return Event(seq, 1000 * seq, kind, facts)


def test_the_figures_of_a_type_are_those_of_its_jobs(client: Client) -> None:
    queue = client.queues["q"]
    for number in range(4):
        queue.put("Send", jid=f"s{number}")
    queue.put("Bill", jid="b")
    one, two, three, four = queue.pop(4)
    one.complete()
    two.retry(group="timeout")
    three.fail("broken", "it broke")
    four.release()
    found = client.job_types()
    send, bill = found.types
    assert (send.klass, send.put, send.popped, send.completed, send.retried, send.failed) == ("Send", 4, 4, 1, 1, 1)
    assert dict(send.groups) == {"timeout": 1, "broken": 1}
    assert (send.wait.samples, send.run.samples) == (4, 1)
    assert (bill.klass, bill.put, bill.popped, bill.wait) == ("Bill", 1, 0, Durations(0, 0, 0, 0))
    assert found.unknown == 0
    assert found.begin_at <= found.end_at


def test_jobs_that_were_put_earlier_are_looked_up(client: Client) -> None:
    queue = client.queues["q"]
    for number in range(20):
        queue.put("Send", jid=f"s{number}")
    for job in queue.pop(3):
        job.complete()
    found = client.job_types(events=6)
    assert [(one.klass, one.put, one.popped, one.completed) for one in found.types] == [("Send", 0, 3, 3)]
    assert found.events == 6
    client.execute(ops.Cancel(tuple(f"s{number}" for number in range(3, 20))))
    assert client.job_types(events=1).types == ()


def test_more_jobs_than_are_looked_up_are_counted_as_unknown(client: Client) -> None:
    client.queues["q"].put_many([client.queues["q"].new("Send", jid=f"s{number}") for number in range(300)])
    client.queues["q"].pop(300)
    found = client.job_types(events=300)
    assert found.unknown == 300 - job_types.LOOKED_UP
    assert [one.popped for one in found.types] == [job_types.LOOKED_UP]


def test_an_empty_namespace_has_no_types(client: Client) -> None:
    assert client.job_types() == ((), 0, 0, 0, 0)


def test_rates_are_of_the_time_between_the_events() -> None:
    events = [told(1, "put", "a", "q", "K", "waiting"), told(2, "popped", "a", "q", "w", 7)]
    events += [told(31, "completed", "a", "q", "w", 2, 5), told(61, "popped", "gone", "q", "w", 9)]
    found = job_types.figures(events, {})
    assert found.types[0].per_minute == 1.0
    assert (found.begin_at, found.end_at, found.unknown) == (1000, 61_000, 1)
    assert job_types.unnamed(events) == ["gone"]


def test_percentiles_are_of_the_nearest_rank() -> None:
    assert job_types.durations(list(range(100, 0, -1))) == Durations(100, 50, 95, 99)
    assert job_types.durations([]) == Durations(0, 0, 0, 0)
    assert job_types.durations([3]) == Durations(1, 3, 3, 3)
