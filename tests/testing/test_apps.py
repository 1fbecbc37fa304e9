"""Jobs of an App: put, found and performed in a test as workers perform them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any
from unittest.mock import ANY

import pytest

from qmodel.app import App, Context, Fail, Release, Retry, current
from qmodel.app.connections import NotHere
from qmodel.testing import Drained, Harness, NobodyPerforms
from qmodel.worker import Worker


@dataclass
class Person:
    """A recipient, as a dataclass argument."""

    name: str
    born: date


app = App("redis://nowhere.invalid:1/0")
noted: list[str] = []


@app.job(queue="emails", retries=2, backoff=[60, 600])
def send(to: str, *, subject: str = "Hello", on: date = date(2026, 1, 1)) -> str:
    if to == "bad":
        raise ValueError("no such address")
    return f"{subject}, {to}"


@app.job(queue="sums")
async def add(x: int, y: int = 0) -> int:
    await asyncio.sleep(0)
    return x + y


@app.job(queue="people")
def greet(context: Context, person: Person) -> Person:
    context.log("greeting")
    noted.append(f"{context.queue} {context.attempt} {current().jid == context.jid}")
    send.put(person.name, subject="Welcome")
    return Person(person.name.upper(), person.born)


@app.job
def odd(how: str) -> None:
    if how == "retry":
        raise Retry("again", delay=5)
    if how == "release":
        raise Release(5)
    if how == "fail":
        raise Fail("hopeless", "never")


@app.job(every=600, queue="ticks")
def tick() -> None:
    noted.append("tick")


@pytest.fixture
def qmodel_app() -> App:
    """Give the App that the plugin's fixtures use here."""
    noted.clear()
    return app


# ---- looking


def test_the_jobs_of_the_app_are_in_the_queue_of_the_test(qm_any: Harness) -> None:
    send.put("ada")
    job = qm_any.assert_enqueued(send, args={"to": "ada"}, queue="emails")
    assert job.jid == qm_any.client.queues["emails"].peek().jid  # type: ignore[union-attr]


def test_afterwards_the_app_is_where_it_was() -> None:
    with Harness(app):
        send.put("ada")
        assert app.url == "testing://"
    assert app.url == "redis://nowhere.invalid:1/0"


def test_code_that_closes_the_app_does_not_leave_the_queue_of_the_test(qm_any: Harness) -> None:
    with app:
        send.put("ada")
    app.close()
    send.put("bob")
    qm_any.assert_enqueued(send, count=2)


def test_a_forked_process_does_not_reach_the_apps_own_server(qm: Harness) -> None:
    pid = os.fork()
    if not pid:
        try:
            send.put("ada")
        except NotHere:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.qmodel(mode="live")
def test_live_a_real_worker_performs_in_the_time_of_the_test(qm_any: Harness) -> None:
    worker = Worker(app, ["emails"])
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        job = send.options(delay=3600).put("ada")
        qm_any.clock.advance(hours=1)
        assert job.wait(timeout=30) == "Hello, ada"
        assert job.history[1].at == qm_any.clock.time
    finally:
        worker.stop()
        thread.join(30)


@pytest.mark.parametrize(
    "args",
    [
        {"to": "ada"},
        ("ada",),
        ["ada", "Hello"],
        {"subject": "Hello"},
        {"on": date(2026, 1, 1)},
        {"on": "2026-01-01"},
        {"to": ANY},
    ],
)
def test_arguments_are_compared_as_they_are_stored_and_with_their_defaults(qm: Harness, args: Any) -> None:
    send.put("ada")
    qm.assert_enqueued(send, args=args)
    qm.assert_enqueued("send", args=args)
    qm.assert_enqueued(send.options(delay=3), args=args)


def test_models_are_compared_as_they_are_stored(qm: Harness) -> None:
    greet.put(Person("ada", date(1815, 12, 10)))
    qm.assert_enqueued(greet, args={"person": Person("ada", date(1815, 12, 10))})
    qm.refute_enqueued(greet, args={"person": Person("ada", date(1815, 12, 11))})


def test_a_slip_in_the_name_of_an_argument_is_told(qm: Harness) -> None:
    with pytest.raises(TypeError, match=r"send takes no argument 'too'\. Did you mean 'to'"):
        qm.refute_enqueued(send, args={"too": "ada"})
    with pytest.raises(TypeError, match="send takes 3 arguments, not 4"):
        qm.refute_enqueued(send, args=(1, 2, 3, 4))
    with pytest.raises(TypeError, match="Give args by name or in order"):
        qm.refute_enqueued(send, args="ada")


def test_all_that_was_put_may_be_asked_for(qm: Harness) -> None:
    send.put("ada")
    qm.assert_enqueued(send, data={"to": "ada"})
    qm.refute_enqueued(send, data={"to": "ada", "subject": "Hello"})


# ---- performing


def test_a_job_is_performed_alone(qm_any: Harness) -> None:
    person = qm_any.perform_job(greet, Person("ada", date(1815, 12, 10)))
    assert person == Person("ADA", date(1815, 12, 10))
    assert noted == ["people 1 True"]
    assert [job.klass for job in qm_any.jobs()] == ["send"]
    qm_any.assert_enqueued(send, args={"to": "ada", "subject": "Welcome"})
    assert "perform_job" not in [one.name for one in qm_any.client.queues.counts()]


@pytest.mark.parametrize(
    ("how", "error"), [("retry", Retry), ("release", Release), ("fail", Fail)], ids=["retry", "release", "fail"]
)
def test_what_a_job_raises_that_is_performed_alone_leaves_the_call(
    qm: Harness, how: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        qm.perform_job(odd, how)
    assert qm.jobs() == []
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'to'"):
        qm.perform_job(send)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="no such address"):
        qm.perform_job(send, "bad")


def test_a_job_that_is_performed_alone_leaves_the_one_with_its_id(qm: Harness) -> None:
    send.options(jid="welcome-ada").put("ada")
    assert qm.perform_job(send.options(jid="welcome-ada"), "bob") == "Hello, bob"
    assert qm.assert_enqueued(send, args={"to": "ada"}).jid == "welcome-ada"


async def test_an_interrupt_of_an_asynchronous_job_reaches_a_plain_call_in_an_event_loop(qm: Harness) -> None:
    own = App("memory://")

    @own.job
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with Harness(own) as harness, pytest.raises(KeyboardInterrupt):
        interrupted.put()
        harness.drain_queue()


def test_the_url_of_a_harness_may_have_options(qmodel_server: str) -> None:
    redis = pytest.importorskip("redis")
    mark = "&" if "?" in qmodel_server else "?"
    with Harness(app, f"{qmodel_server}{mark}deadline=5") as harness:
        send.put("ada")
        assert harness.drain_queue().completed == 1
        prefix = harness.url.rpartition("prefix=")[2]
    with redis.Redis.from_url(qmodel_server) as server:
        assert not list(server.scan_iter(f"{prefix}*"))


def test_by_the_name_of_its_klass(qm: Harness) -> None:
    assert qm.perform_job("send", {"to": "ada"}) == "Hello, ada"
    with pytest.raises(NobodyPerforms, match=r"Nothing here performs sned \(.*\)\. Did you mean 'send'\?"):
        qm.perform_job("sned", {"to": "ada"})


def test_a_drained_queue_is_performed_with_retries_in_their_time(qm_any: Harness) -> None:
    good, bad = send.put("ada"), send.put("bad")
    before = qm_any.clock.now()
    assert qm_any.drain_queue("emails") == Drained(completed=1, retried=1)
    assert good.wait() == "Hello, ada"
    qm_any.assert_enqueued(send, args={"to": "bad"}, delay=60)
    assert qm_any.drain_queue("emails", with_scheduled=True) == Drained(retried=1, failed=1)
    assert qm_any.clock.now() - before == 660_000
    failure = bad.refresh().failure
    assert failure is not None
    assert (failure.group, failure.message.splitlines()[-1]) == ("ValueError", "ValueError: no such address")


def test_asynchronous_jobs_are_performed_in_plain_tests(qm_any: Harness) -> None:
    job = add.put(1, 2)
    assert qm_any.drain_queue() == Drained(completed=1)
    assert job.wait() == 3
    assert qm_any.perform_job(add, 3) == 3


async def test_and_in_asynchronous_ones(qm_any: Harness) -> None:
    job = await add.aput(1, 2)
    assert await qm_any.adrain_queue() == Drained(completed=1)
    assert await job.wait() == 3
    assert await qm_any.aperform_job(add, 3, y=4) == 7
    assert await qm_any.aperform_job(send, "ada") == "Hello, ada"


def test_a_worker_tells_the_schedules_of_job_types(qm_any: Harness) -> None:
    with qm_any.worker("ticks") as done:
        qm_any.clock.advance(minutes=25)
    assert (done.completed, noted) == (3, ["tick"] * 3)


def test_a_wanted_retry_is_no_failure_of_the_test(qm: Harness) -> None:
    odd.put("retry")
    odd.put("release")
    assert qm.drain_queue(with_safety=False) == Drained(retried=1, released=1)
    odd.put("fail")
    with pytest.raises(Fail):
        qm.drain_queue(with_safety=False)


# ---- inline


@pytest.mark.qmodel(mode="inline")
def test_inline_a_put_performs(qm_any: Harness) -> None:
    assert send.put("ada").wait() == "Hello, ada"
    assert add.put(1, 2).wait() == 3
    greet.put(Person("ada", date(1815, 12, 10)))
    qm_any.assert_enqueued(send, args={"subject": "Welcome"}, states="complete")


@pytest.mark.qmodel(mode="inline")
def test_inline_a_failure_is_raised_at_the_put(qm: Harness) -> None:
    with pytest.raises(ValueError, match="no such address"):
        send.put("bad")
    qm.assert_enqueued(send, args={"to": "bad"}, delay=60)
    with pytest.raises(ValueError, match="no such address"):
        qm.clock.advance(minutes=1)
    odd.put("retry")
    qm.assert_enqueued(odd, delay=5)


@pytest.mark.qmodel(mode="inline")
async def test_inline_in_an_event_loop(qm_any: Harness) -> None:
    assert await (await add.aput(1, 2)).wait() == 3
    assert add.put(2, 3).wait() == 5
    jobs = await asyncio.gather(*(add.aput(n) for n in range(5)))
    assert [await job.wait() for job in jobs] == list(range(5))


# ---- several Apps


@pytest.fixture
def two() -> Iterator[tuple[App, App]]:
    """Two Apps that have a job type of the same name."""
    one, other = App(), App()
    for made in (one, other):
        made.job(name="same")(lambda: None)
    other.job(name="own")(lambda: "own")
    yield one, other


def test_several_apps_share_a_queue(two: tuple[App, App]) -> None:
    with Harness(two) as qm:
        job = two[1].jobs["own"].put()
        assert qm.drain_queue() == Drained(completed=1)
        assert job.wait() == "own"


def test_which_of_several_apps_is_meant_has_to_be_said(two: tuple[App, App]) -> None:
    with Harness(two) as qm:
        two[0].jobs["same"].put()
        with pytest.raises(NobodyPerforms, match=r"2 Apps have a job type same\. Name the one under test"):
            qm.drain_queue()
