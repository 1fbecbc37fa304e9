"""One attempt: what becomes of it, and what the engine is told."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import pytest

import qmodel
from qmodel import App, Context, Fail, Release, Retry
from qmodel.app import (
    Cancelled,
    Completed,
    DeclarationError,
    Failed,
    NoJob,
    Outcome,
    Released,
    Retried,
    Unknown,
    aperform,
    current,
    perform,
)
from qmodel.client import flows
from qmodel.contract.operations import Pop, Put
from tests.app.conftest import perform_next


def outcome_of(app: App, function: Callable[..., Any], **options: Any) -> Outcome:
    """What becomes of a job of a function."""
    app.job(name="job", **options)(function).put()  # type: ignore[call-overload]
    return perform_next(app)


def raising(error: BaseException) -> Callable[[], None]:
    def job() -> None:
        raise error

    return job


DEEP = "[" * 100_000 + "]" * 100_000


def test_data_that_cannot_be_decoded_fail_at_once(app: App) -> None:
    """A retry reads the same text."""
    app.job(name="job", retries=5)(lambda x: x)
    app.client.queues["default"].put("job", text=f'{{"x":{DEEP}}}')
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and outcome.group == "BadArguments"
    assert "nested too deeply" in outcome.message


def test_a_result_that_cannot_be_encoded_fails_at_once(app: App) -> None:
    def deep() -> Any:
        found: Any = []
        for _ in range(100_000):
            found = [found]
        return found

    outcome = outcome_of(app, deep, retries=5)
    assert isinstance(outcome, Failed) and outcome.group == "BadResult"


class Silent(Exception):
    """An exception that cannot be written."""

    def __str__(self) -> str:
        raise RuntimeError


SILENT = Silent()
HALF = "half of a pair: \ud800"


@pytest.mark.parametrize(
    "function",
    [lambda: HALF, raising(ValueError(HALF)), raising(Fail(HALF)), raising(Fail("group", HALF)), raising(Retry(HALF))],
    ids=["result", "exception", "group", "message", "retry"],
)
def test_half_of_a_surrogate_pair_ends_like_any_other_text(app: App, function: Callable[[], Any]) -> None:
    outcome = outcome_of(app, function)
    assert isinstance(outcome, Completed | Failed | Retried)
    job = next(app.client.jobs.search("default"))
    assert job.state in ("complete", "failed", "scheduled")


def test_an_exception_is_tried_again_after_the_backoff(app: App) -> None:
    outcome = outcome_of(app, raising(ValueError("no")), backoff=[30, 60], retries=1)
    assert isinstance(outcome, Retried)
    assert (outcome.delay_ms, outcome.group, type(outcome.error)) == (30_000, "ValueError", ValueError)
    job = next(app.client.jobs.search("default"))
    assert (job.state, job.remaining) == ("scheduled", 0)
    assert job.failure is not None and job.failure.group == "ValueError"
    job.promote()
    assert perform_next(app).delay_ms == 60_000  # type: ignore[attr-defined]
    assert job.refresh().state == "failed"


def test_a_message_begins_with_the_jobs_own_frame(app: App) -> None:
    outcome = outcome_of(app, raising(ValueError("no")))
    assert isinstance(outcome, Retried)
    lines = outcome.message.splitlines()
    assert lines[0].startswith("Traceback") and __file__ in lines[1] and lines[-1] == "ValueError: no"
    assert "app/performing.py" not in outcome.message


@pytest.mark.parametrize(
    ("error", "options", "outcome"),
    [
        (Retry(delay=5), {}, Retried(5000, "Retry", "")),
        (Retry("busy", delay=timedelta(minutes=1)), {}, Retried(60_000, "Retry", "busy")),
        (Retry(), {"backoff": 7}, Retried(7000, "Retry", "")),
        (Release(), {}, Released(0)),
        (Release(90), {}, Released(90_000)),
        (Release(-5), {}, Released(0)),
        (Retry(delay=1e12), {}, Retried(316_224_000_000, "Retry", "")),
        (Fail("no-such-user", "ada"), {}, Failed("no-such-user", "ada")),
        (Fail(), {}, Failed("Fail", "Fail")),
        (Fail(404), {}, Failed("404", "404")),  # type: ignore[arg-type]
        (Fail("group", ValueError("no")), {}, Failed("group", "no")),  # type: ignore[arg-type]
        (Fail("group", None), {}, Failed("group", "group")),  # type: ignore[arg-type]
        (Fail("group", SILENT), {}, Failed("group", "Silent")),  # type: ignore[arg-type]
        (Retry(ValueError("no"), delay=1), {}, Retried(1000, "Retry", "no")),  # type: ignore[arg-type]
        (Fail("a\nb" + "c" * 300), {}, Failed("a\nb" + "c" * 300, "a\nb" + "c" * 300)),
        (Cancelled("stop"), {}, Released(0)),
    ],
    ids=lambda one: repr(one)[:20],
)
def test_a_job_says_how_it_goes_on(app: App, error: BaseException, options: Any, outcome: Outcome) -> None:
    assert outcome_of(app, raising(error), **options) == outcome
    state = next(iter(app.client.jobs.search("default"))).state
    assert state == {"Failed": "failed"}.get(type(outcome).__name__, "scheduled" if _delay(outcome) else "waiting")


def test_a_failure_without_group_and_message_says_where_it_was(app: App) -> None:
    outcome = outcome_of(app, raising(Fail("", "")))
    assert isinstance(outcome, Failed) and "Traceback" in outcome.message
    job = next(app.client.jobs.search("default"))
    assert job.failure is not None and (job.failure.group, job.failure.message) == ("Fail", outcome.message)


def _delay(outcome: Outcome) -> int:
    return getattr(outcome, "delay_ms", 0)


def test_some_exceptions_are_not_tried_again(app: App) -> None:
    outcome = outcome_of(app, raising(KeyError("x")), fail_on=(LookupError, OSError))
    assert isinstance(outcome, Failed) and outcome.group == "KeyError"


def test_leaving_the_program_is_a_jobs_mistake_too(app: App) -> None:
    assert isinstance(outcome_of(app, lambda: sys.exit(3)), Retried)


def test_an_interrupt_is_the_workers(app: App) -> None:
    with pytest.raises(KeyboardInterrupt):
        outcome_of(app, raising(KeyboardInterrupt()))


def test_a_backoff_that_raises_changes_nothing(app: App) -> None:
    outcome = outcome_of(app, raising(ValueError()), backoff=lambda failures: failures / 0)
    assert isinstance(outcome, Retried) and outcome.delay_ms == 30_000
    assert "the backoff of job raised" in outcome.message


def test_a_backoff_that_raises_leaves_the_message_of_a_retry(app: App) -> None:
    outcome = outcome_of(app, raising(Retry("the mail server is busy")), backoff=lambda failures: failures / 0)
    assert isinstance(outcome, Retried) and (outcome.delay_ms, outcome.group) == (30_000, "Retry")
    assert outcome.message.startswith("the mail server is busy\nqmodel: the backoff of job raised")


def test_what_nobody_knows_is_given_back(app: App) -> None:
    app.job(name="SendEmail")(lambda: None)
    job = app.client.queues["default"].put("SendEmial", {"to": 1})
    outcome = perform_next(app)
    assert isinstance(outcome, Unknown)
    assert outcome.did_you_mean == "SendEmail"
    assert "'SendEmial'" in outcome.sentence and "Did you mean 'SendEmail'?" in outcome.sentence
    known = job.refresh()
    assert (known.state, known.remaining) == ("scheduled", 5)


def test_what_nobody_knows_comes_less_and_less_often() -> None:
    app, now = App("memory://"), 1_000_000
    app.client.execute(Put("q", "a", "Nobody", "{}"), now=now)
    delays = []
    for _ in range(9):
        (job,) = app.client.execute(Pop("q", "me"), now=now)
        outcome = perform(app, job)
        app.client.execute(outcome.operation(job), now=now)
        assert isinstance(outcome, Unknown)
        delays.append(outcome.delay_ms // 1000)
        now += outcome.delay_ms
    assert delays == [10, 10, 20, 40, 80, 160, 320, 600, 600]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "lacks to. It takes (to: str, size: int = 1)"),
        ({"to": 1, "sise": 2}, "takes no 'sise'. Did you mean 'size'?"),
        ("text", "are not arguments by name"),
        ([1, 2, 3], "takes 2 positional|takes from 1 to 2 positional"),
    ],
)
def test_data_that_are_no_arguments_fail(app: App, data: object, sentence: str) -> None:
    @app.job
    def send(to: str, size: int = 1) -> None: ...

    app.client.queues["default"].put("send", data)
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and outcome.group == "BadArguments"
    assert any(part in outcome.message for part in sentence.split("|"))


def test_data_may_be_written_by_hand(app: App) -> None:
    @app.job
    def add(x: int = 1, y: int = 2) -> int:
        return x * 10 + y

    jobs = [app.client.queues["default"].put("add", data) for data in (None, [3], {"y": 4})]
    assert [perform_next(app) for _ in jobs] == [Completed("12"), Completed("32"), Completed("14")]


def test_data_that_cannot_be_read_fail(app: App) -> None:
    app.job(name="job")(lambda: None)
    app.client.queues["default"].put("job", text="{")
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and "cannot be read" in outcome.message


def test_a_result_that_cannot_be_stored_fails_and_is_not_tried_again(app: App) -> None:
    outcome = outcome_of(app, lambda: {1, 2})
    assert isinstance(outcome, Failed)
    assert (outcome.group, "its result cannot be stored" in outcome.message) == ("BadResult", True)


def test_a_result_that_is_too_long_fails(app: App) -> None:
    outcome = outcome_of(app, lambda: "a" * (1 << 20))
    assert isinstance(outcome, Failed) and "more than 1048576 bytes" in outcome.message


def test_nobody_waits_for_more_than_a_thousand(app: App) -> None:
    @app.job
    def parent(context: Context) -> None:
        context.wait_for(*map(str, range(1001)))

    parent.put()
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and "a job may wait for at most 1000" in outcome.message


def test_a_forgotten_await_is_found(app: App) -> None:
    async def later() -> int:
        return 1

    def job() -> object:
        return later()

    outcome = outcome_of(app, job)
    assert isinstance(outcome, Failed) and "async def" in outcome.message


def test_a_completed_job_may_take_the_next_in_one_step(app: App) -> None:
    app.job(name="job")(lambda: 1).put_many([(), ()])
    first = app.client.queues["default"].pop()
    assert first is not None
    op = perform(app, first).operation(first, count=5, request="r")
    reply = app.client.execute(op)
    assert (reply.state, len(reply.jobs)) == ("complete", 1)
    assert isinstance(Retried(0, "a", "b").operation(first, count=5), qmodel.contract.operations.Retry)


# ---- the context


def test_the_job_at_hand(app: App) -> None:
    seen: list[Any] = []

    @app.job(queue="q")
    def look(name: str, context: Context) -> None:
        assert current() is context
        seen.append((context.jid, context.klass, context.queue, context.attempt, context.app, context.job.data))
        seen.append(context.arguments)
        context.log("x" * 2000)
        context.progress(3, 10)
        context.heartbeat()
        context.check()
        raise ValueError

    job = look.put("ada")
    perform_next(app, "q")
    assert seen == [(job.jid, "look", "q", 1, app, {"name": "ada"}), {"name": "ada"}]
    job.promote()
    perform_next(app, "q")
    assert seen[2][3] == 2
    logged = [stage.facts["message"] for stage in job.refresh().history if stage.what == "log"]
    assert len(str(logged[0])) == 1024 and str(logged[0]).endswith("...")
    assert job.progress_text == "3/10"
    with pytest.raises(NoJob):
        current()


def test_a_context_of_an_event_loop(app: App) -> None:
    @app.job
    async def work(context: Context) -> dict[str, Any]:
        await context.alog("begun")
        await context.aprogress("half")
        await context.aheartbeat()
        assert current() is context
        return dict(await context.aresults())

    job = work.put()
    assert perform_next(app) == Completed("{}")
    assert job.refresh().progress_text == "half"


def test_a_loop_may_tell_each_number(app: App) -> None:
    @app.job
    def work(context: Context) -> None:
        for number in range(1, 1001):
            context.progress(number, 1000)

    job, before = work.put(), app.client.newest()
    perform_next(app)
    told = [event for event in app.client.events(before) if event.event == "progressed"]
    assert 2 <= len(told) < 500
    assert job.refresh().progress_text == "1000/1000"


def test_who_lost_the_lock_is_stopped(app: App) -> None:
    reasons: list[str] = []

    @app.job
    def work(context: Context) -> None:
        context.job.timeout()
        try:
            context.progress("on")
        finally:
            reasons.append(context.reason)

    work.put()
    job = app.client.queues["default"].pop()
    assert job is not None
    assert perform(app, job) == Released(0)
    assert "LOCK" in reasons[0].upper() or job.jid in reasons[0]


def test_who_was_revoked_is_told_by_the_heartbeat(app: App) -> None:
    @app.job
    def work(context: Context) -> None:
        assert not context.cancelled
        context.job.revoke()
        context.heartbeat()

    job = work.put()
    assert perform_next(app) == Released(0)
    assert job.refresh().state == "failed"


def test_a_step_goes_on_where_the_last_one_ended(app: App) -> None:
    pages: list[int] = []

    @app.job
    def copy(context: Context, source: str, page: int = 0) -> int:
        pages.append(page)
        if page < 3:
            context.release(page=page + 1)
        return page

    job = copy.put("a")
    for _ in range(4):
        perform_next(app)
    assert (pages, job.wait(10), job.refresh().remaining) == ([0, 1, 2, 3], 3, 5)
    assert job.data == {"source": "a", "page": 3}


def test_a_step_with_arguments_that_cannot_be_fails(app: App) -> None:
    outcome = outcome_of(app, raising(Release(0, {"nope": 1})))
    assert isinstance(outcome, Failed) and "takes no 'nope'" in outcome.message


def test_a_job_waits_for_its_children(app: App) -> None:
    @app.job
    def size(word: str) -> int:
        return len(word)

    @app.job
    def total(context: Context, words: list[str]) -> int:
        if not context.waited:
            context.wait_for(*(size.make(word) for word in words))
        if context.waited == 1:
            assert list(context.results.values()) == [1, 2]
            context.wait_for(size.make("again"))
        return sum(context.results.values())

    job = total.put(["a", "bb"])
    for _ in range(6):
        perform_next(app)
    assert job.wait(10) == 8


def test_a_repeated_attempt_puts_no_child_twice(app: App) -> None:
    @app.job(queue="children")
    def child() -> None: ...

    @app.job
    def parent(context: Context) -> None:
        context.spawn(child.make(), child.make())
        context.wait_for()

    parent.put()
    job = app.client.queues["default"].pop()
    assert job is not None
    first = perform(app, job)
    assert perform(app, job) == first
    assert isinstance(first, Released) and len(first.depends) == 2
    app.client.execute(first.operation(job))
    assert app.client.queues["children"].length() == 2
    perform_next(app, "children")
    perform_next(app, "children")
    assert job.refresh().state == "waiting"


def test_each_step_has_children_of_its_own(app: App) -> None:
    @app.job(queue="children")
    def child(page: int) -> None: ...

    @app.job
    def parent(context: Context, page: int = 0, seen: list[int] | None = None) -> None:
        (seen or []).append(page)
        context.spawn(child.make(page))
        if page == 1 and context.attempt == 1:
            raise ValueError
        if page < 2:
            context.release(page=page + 1)

    job = parent.put(seen=[9])
    perform_next(app)
    perform_next(app)
    job.promote()
    perform_next(app)
    perform_next(app)
    assert sorted(one.data["page"] for one in app.client.queues["children"].waiting()) == [0, 1, 2]
    assert job.refresh().data["seen"] == [9], "what a step does to its arguments is its own"


def test_another_job_may_stand_for_a_child(app: App) -> None:
    @app.job(queue="children", unique=True)
    def child(x: int) -> int:
        return x

    @app.job
    async def parent(context: Context) -> int:
        if not await context.aresults():
            context.wait_for(child.make(3))
        return sum((await context.aresults()).values())

    other, job = child.put(3), parent.put()
    outcome = perform_next(app)
    assert isinstance(outcome, Released) and outcome.depends == (f"{other.jid} fail 0",)
    perform_next(app, "children")
    perform_next(app)
    assert job.wait(10) == 3


def test_what_a_job_was_put_to_wait_for_is_not_what_it_waited_for(app: App) -> None:
    @app.job
    def first() -> int:
        return 1

    @app.job
    def second(context: Context, x: int = 5) -> list[int]:
        if not context.waited:
            context.wait_for(first.make())
        return [x, *context.results.values()]

    *_, last = app.client.put_flow(flows.chain(first.make(), second.make(x=6)))
    for _ in range(4):
        perform_next(app)
    assert last.wait(10) == [6, 1, 1]


def test_waiting_for_nothing_is_a_mistake(app: App) -> None:
    @app.job
    def parent(context: Context) -> None:
        context.wait_for()

    parent.put()
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and "waits for nothing" in outcome.message


def test_children_of_a_job_that_waits_for_none_are_put(app: App) -> None:
    @app.job(queue="children")
    def child() -> None: ...

    @app.job
    async def parent(context: Context) -> None:
        context.spawn(child.make())

    parent.put()
    perform_next(app)
    assert app.client.queues["children"].length() == 1


def test_the_failure_of_a_child_fails_its_parent_unless_it_says_so(app: App) -> None:
    @app.job(queue="children")
    def child() -> None:
        raise Fail("bad")

    @app.job
    def parent(context: Context, policy: str) -> list[str]:
        if not context.waited:
            context.wait_for(child.make(), on_failure=policy)
        return [one.state for one in context.results.all]

    strict, lax = parent.put("fail"), parent.put("ignore")
    for queue in ("default", "default", "children", "children", "default"):
        perform_next(app, queue)
    assert strict.refresh().state == "failed"
    assert lax.wait(10) == ["failed"]


# ---- middleware and hooks


def test_middleware_is_around_each_attempt(app: App) -> None:
    seen: list[str] = []

    @app.middleware
    def outer(context: Context) -> Iterator[None]:
        seen.append(f"begin {context.klass}")
        try:
            yield
        except ValueError:
            seen.append("saw it")
            raise
        finally:
            seen.append("end")

    @app.on("before")
    def before(context: Context, outcome: None) -> None:
        seen.append("before")

    @app.on("after")
    def after(context: Context, outcome: Outcome) -> None:
        seen.append(outcome.word)

    @app.on("failure")
    def failure(context: Context, outcome: Outcome) -> None:
        seen.append(str(getattr(outcome, "error", None)))

    outcome_of(app, raising(ValueError("no")))
    assert seen == ["before", "begin job", "saw it", "end", "no", "retried"]


def test_asynchronous_middleware_is_awaited_for_plain_functions_too(app: App) -> None:
    seen: list[str] = []

    @app.middleware
    async def around(context: Context) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        seen.append("in")
        yield
        seen.append("out")

    assert outcome_of(app, lambda: seen.append("job")) == Completed("")
    assert seen == ["in", "job", "out"]


def test_middleware_that_raises_is_the_attempts_failure(app: App) -> None:
    @app.middleware
    def broken(context: Context) -> Iterator[None]:
        raise OSError("no database")
        yield

    outcome = outcome_of(app, lambda: 1)
    assert isinstance(outcome, Retried) and outcome.group == "OSError"


def test_a_hook_that_raises_is_logged_and_changes_nothing(app: App, caplog: pytest.LogCaptureFixture) -> None:
    @app.on("before")
    def broken(context: Context, outcome: None) -> None:
        raise OSError("no metrics")

    with caplog.at_level(logging.ERROR, "qmodel.app"):
        assert outcome_of(app, lambda: 1) == Completed("1")
    assert "no metrics" in caplog.text


def test_headers_travel_with_a_job(app: App) -> None:
    seen: list[Any] = []

    @app.on("put")
    def carry(kind: Any, headers: dict[str, str]) -> None:
        headers["traceparent"] = f"of {kind.klass}"

    @app.job
    def work(context: Context, x: int) -> None:
        seen.append((dict(context.headers), x))
        if len(seen) == 1:
            context.release(x=2)

    work.put(1)
    perform_next(app)
    perform_next(app)
    assert seen == [({"traceparent": "of work"}, 1), ({"traceparent": "of work"}, 2)]


def test_variables_go_along_with_a_job_and_what_it_puts(app: App, caplog: pytest.LogCaptureFixture) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")
    other: ContextVar[str] = ContextVar("other", default="of the worker")
    app.carry(tenant)
    app.carry(other)
    seen: list[tuple[str, ...]] = []

    @app.job
    def work(more: int) -> None:
        seen.append((tenant.get(), other.get()))
        if more:
            work.put(more - 1)

    token = tenant.set("eu-7")
    work.put(1)
    tenant.reset(token)
    perform_next(app)
    perform_next(app)
    assert seen == [("eu-7", "of the worker")] * 2
    assert tenant.get("none") == "none"
    app.carry(tenant)
    with pytest.raises(DeclarationError, match="Another variable is named 'tenant'"):
        app.carry(ContextVar("tenant"))
    tenant.set(7)  # type: ignore[arg-type]
    work.put(0)
    assert "The variable 'tenant' is to go along with jobs, and is no text: 7" in caplog.text


def test_wrong_hooks_are_refused() -> None:
    app: Any = App("memory://")

    async def waits() -> None: ...

    with pytest.raises(DeclarationError, match="Did you mean 'before'"):
        app.on("befor")(print)
    with pytest.raises(DeclarationError, match="hooks are not awaited"):
        app.on("before")(waits)
    with pytest.raises(DeclarationError, match="Yield once"):
        app.middleware(waits)


# ---- event loops


def test_a_plain_function_leaves_the_event_loop_alone(app: App) -> None:
    async def run() -> Outcome:
        job = app.client.queues["default"].pop()
        assert job is not None
        return await aperform(app, job)

    @app.job
    def work() -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return current().klass

    work.put()
    assert asyncio.run(run()) == Completed('"work"')


def test_perform_works_inside_an_event_loop(app: App) -> None:
    @app.job
    async def work() -> int:
        return 1

    async def run() -> Outcome:
        return perform_next(app)

    work.put()
    assert asyncio.run(run()) == Completed("1")


def test_a_cancellation_of_the_worker_goes_through_or_gives_the_job_back(app: App) -> None:
    @app.job
    async def work() -> None:
        await asyncio.sleep(60)

    async def stopped(reason: str) -> Outcome:
        job = app.client.queues["default"].pop()
        assert job is not None
        context = Context(app, job.raw)
        task = asyncio.create_task(aperform(app, job, context))
        await asyncio.sleep(0.01)
        if reason:
            context.cancel(reason)
        task.cancel()
        return await task

    work.put_many([(), ()])
    assert asyncio.run(stopped("the worker stops")) == Released()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped(""))


def test_a_task_that_the_job_cancelled_itself_is_its_own_failure(app: App) -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    outcome = outcome_of(app, work)
    assert isinstance(outcome, Retried) and outcome.group == "CancelledError"


def test_an_event_loop_is_kept_and_nothing_is_left_running_in_it(app: App) -> None:
    seen: list[Any] = []

    @app.job
    async def work() -> None:
        seen.append((asyncio.get_running_loop(), app.aclient, asyncio.create_task(asyncio.sleep(60))))
        await asyncio.sleep(0)

    work.put_many([(), ()])
    perform_next(app)
    assert seen[0][2].cancelled()
    perform_next(app)
    assert seen[0][:2] == seen[1][:2]


def test_a_child_process_does_not_use_the_loop_of_its_parent(app: App) -> None:
    @app.job
    async def work() -> int:
        await asyncio.sleep(0)
        return os.getpid()

    work.put_many([(), ()])
    perform_next(app)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            job = app.client.queues["default"].pop()
            assert job is not None
            code = 0 if perform(app, job) == Completed(str(os.getpid())) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    if app.url != "memory://":
        assert app.client.queues["default"].counts.running == 1
