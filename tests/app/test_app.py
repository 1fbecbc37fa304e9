"""Job types: what is put, and what is refused."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal, NewType, NotRequired, TypedDict

import pytest

import qmodel
from qmodel import App, Context, NobodyPerforms, NotEnded
from qmodel.app import (
    AsyncTypedJob,
    BadArguments,
    Completed,
    DeclarationError,
    NoLoop,
    TypedJob,
    typed_jobs,
    typed_jobs_aio,
)
from qmodel.app.values import check_of
from qmodel.contract.operations import Put
from tests.app.conftest import perform_next

ROOT = Path(__file__).parents[2]


def test_a_call_is_a_call(app: App) -> None:
    @app.job
    def add(x: int, y: int = 1) -> int:
        return x + y

    assert add(2, y=3) == 5
    assert app.client.queues["default"].length() == 0


def test_arguments_are_stored_by_name(app: App) -> None:
    @app.job(queue="emails")
    def send(to: str, *copies: str, subject: str = "", **fields: int) -> None: ...

    job = send.put("a@b", "c@d", subject="x", size=3)
    assert job.refresh().data == {"to": "a@b", "copies": ["c@d"], "subject": "x", "size": 3}
    assert (job.klass, job.queue) == ("send", "emails")
    assert send.put("a@b").refresh().text == '{"to":"a@b"}'


def test_a_job_is_performed_with_what_was_put(app: App) -> None:
    seen: list[Any] = []

    @app.job
    def send(first: str, /, to: str, *copies: str, subject: str = "", **fields: int) -> None:
        seen.append((first, to, copies, subject, fields))

    send.put("a", "b", "c", "d", subject="s", size=1)
    send.put("a", to="b")
    perform_next(app)
    perform_next(app)
    assert seen == [("a", "b", ("c", "d"), "s", {"size": 1}), ("a", "b", (), "", {})]


def test_a_mistake_is_found_when_the_job_is_put(app: App) -> None:
    @app.job
    def send(to: str, *, subject: str = "") -> None: ...

    wrong: Any = send
    with pytest.raises(TypeError, match=r"send\(\) missing 1 required positional argument: 'to'"):
        wrong.put()
    with pytest.raises(TypeError, match=r"send\(\) got an unexpected keyword argument 'subjekt'"):
        wrong.put("a", subjekt="x")
    with pytest.raises(TypeError, match="tuple"):
        wrong.put_many(["a@b"])
    with pytest.raises(BadArguments, match=r"send takes to: str, not 5\."):
        wrong.put(5)
    assert app.client.queues["default"].length() == 0


def test_a_value_that_cannot_be_stored_is_found_when_the_job_is_put(app: App) -> None:
    @app.job
    def send(to: Any) -> None: ...

    with pytest.raises(qmodel.DataError, match="Argument to of send"):
        send.put(object())
    assert app.client.queues["default"].length() == 0


class Address(TypedDict):
    street: str
    number: NotRequired[int]


@pytest.mark.parametrize(
    ("hint", "fitting", "wrong"),
    [
        (str, ["a"], [5, None, ["a"]]),
        (int, [5, True], ["5", 5.0, None]),
        (float, [5, 0.5], ["5"]),
        (bool, [True], [1, "yes"]),
        (None, [None], [0]),
        (int | None, [5, None], ["5"]),
        (list[int], [[], [1], (1, 2)], [["a"], "a", 1, {}]),
        (Sequence[str], [["a"]], ["a", [1]]),
        (list, [[1, "a"]], ["a"]),
        (dict[str, float], [{}, {"a": 1}], [{"a": "b"}, []]),
        (dict[str, Any], [{"a": object}], [[]]),
        (Literal["a", 1], ["a", 1], ["b", True]),
        (NewType("Id", str), ["a"], [1]),
        (Address, [{"street": "x"}, {"street": "x", "number": 1, "more": 2}], [{}, {"street": 1}]),
        (Address, [], [{"street": "x", "number": "1"}]),
        (Any, [1, "a"], []),
        (list[Any] | int, [[1, "a"], 1], ["a"]),
        (Any | None, [object], []),
    ],
)  # fmt: skip
def test_the_values_of_an_annotation(hint: Any, fitting: list[Any], wrong: list[Any]) -> None:
    check = check_of(hint) or (lambda value: True)
    assert [one for one in fitting if not check(one)] == [one for one in wrong if check(one)] == []


def test_arguments_are_of_their_annotations(app: App) -> None:
    @app.job
    def note(day: date, *sizes: int, owner: str = None, **others: float) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    wrong: Any = note
    today = date(2026, 1, 2)
    note.put(today, 1, 2, owner=None, left=1, right=0.5)  # type: ignore[arg-type]
    for args, kwargs, said in [
        (("x",), {}, "note takes day: datetime.date, not 'x'"),
        ((today, 1, "2"), {}, r"note takes sizes: int, not \[1, '2'\]"),
        ((today,), {"owner": 5}, "note takes owner: str, not 5"),
        ((today,), {"left": "1"}, "note takes left: float, not '1'"),
    ]:
        with pytest.raises(BadArguments, match=said):
            wrong.put(*args, **kwargs)
    assert app.client.queues["default"].length() == 1


def test_data_of_other_types_fail_at_once(app: App) -> None:
    @app.job
    def send(to: str) -> None: ...

    job = app.client.queues["default"].put("send", {"to": 5}, retries=3)
    perform_next(app)
    assert job.refresh().failure is not None and job.failure.group == "BadArguments"


def test_a_wait_for_a_job_that_nobody_can_perform_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMODEL_URL", raising=False)
    monkeypatch.setattr(typed_jobs, "PATIENCE", 0.01)
    monkeypatch.setattr(typed_jobs_aio, "PATIENCE", 0.01)
    app = App()

    @app.job
    def send(to: str) -> str:
        return to

    with pytest.raises(NobodyPerforms, match=r"Nobody performs job .* Set QMODEL_URL"):
        send.put("a").wait()

    async def wait() -> None:
        with pytest.raises(NobodyPerforms):
            await (await send.aput("a")).wait()
        await app.aclose()

    asyncio.run(wait())
    app.client.queues["default"].pop(worker="w")  # now there is a worker
    with pytest.raises(NotEnded):
        send.put("a").wait(0.05)
    app.close()


def test_options_go_with_a_job(app: App) -> None:
    @app.job(queue="emails", priority=3, retries=2, tags=["mail"], timeout=60)
    def send(to: str) -> None: ...

    job = send.options(queue="other", priority=-1, delay=60, jid="mine").put("a").refresh()
    assert (job.jid, job.queue, job.priority, job.retries, job.tags) == ("mine", "other", -1, 2, ("mail",))
    assert job.state == "scheduled"
    assert send.put("a").refresh().longest == qmodel.client.fields.timedelta(seconds=60)  # type: ignore[attr-defined]
    assert send.put("a").refresh().priority == 3


def test_a_fair_key_is_made_of_the_arguments(app: App) -> None:
    @app.job(fair_key="tenant-{tenant}", fair_weight=2, retry_delay=2, max_lapses=1)
    def report(tenant: int) -> None: ...

    known = report.put(tenant=7).refresh()
    assert (known.fair_key, known.fair_weight) == ("tenant-7", 2)
    assert (known.retry_delay, known.max_lapses) == (timedelta(seconds=2), 1)


def test_options_are_filled_in_from_the_arguments(app: App) -> None:
    @app.job(ordered="customer-{customer}", tags=["bill", "c-{customer}"], unique=["customer"], throttles="{customer}")
    def bill(customer: str, amount: int = 0) -> None: ...

    job = bill.put("ada", 3)
    known = job.refresh()
    assert (known.ordered, known.tags, known.throttles) == ("customer-ada", ("bill", "c-ada"), ("ada",))
    again = bill.put("ada", 4)
    assert (again.jid, again.deduplicated) == (job.jid, True)
    assert not bill.put("eve").deduplicated
    assert bill.options(unique="{customer}", tags=["{literally}"]).put("ada").refresh().unique == "{customer}"


def test_a_unique_job_is_the_same_with_a_default_or_without(app: App) -> None:
    @app.job(unique=True)
    def sync(account: str, full: bool = False) -> None: ...

    assert sync.put("a").jid == sync.put("a", full=False).jid != sync.put("a", full=True).jid


def test_a_unique_job_differs_by_what_is_given_besides(app: App) -> None:
    @app.job(unique=True)
    def note(*words: str, **fields: int) -> None: ...

    jids = {note.put(*words, **fields).jid for words in ((), ("a",)) for fields in ({}, {"x": 1}, {"x": 2})}
    assert len(jids) == 6
    assert note.put("a", x=2).deduplicated
    with pytest.raises(DeclarationError, match="it has no such argument"):
        app.job(name="other", unique=["fields"])(note.target)


def test_many_are_put_in_steps_of_a_thousand(app: App) -> None:
    @app.job
    def add(x: int, y: int = 0) -> int:
        return x + y

    jobs = add.put_many((number,) for number in range(1500))
    assert len({job.jid for job in jobs}) == 1500
    assert app.client.queues["default"].length() == 1500
    assert add.put_many([{"x": 1, "y": 2}, (3,)])[0].refresh().data == {"x": 1, "y": 2}


def test_put_many_puts_none_when_one_is_wrong(app: App) -> None:
    @app.job
    def add(x: int) -> int:
        return x

    with pytest.raises(TypeError):
        add.put_many([(1,), ()])
    assert app.client.queues["default"].length() == 0


def test_jobs_of_several_types_are_put_together(app: App) -> None:
    @app.job
    def one(x: int) -> int:
        return x

    @app.job(queue="b")
    def two() -> None: ...

    made = one.make(1)
    assert isinstance(made, Put)
    assert [job.klass for job in app.put_many([made, two.make()])] == ["one", "two"]


def test_a_result_is_what_the_function_gave(app: App) -> None:
    @app.job
    def add(x: int, y: int) -> int:
        return x + y

    job = add.put(1, 2)
    assert isinstance(job, TypedJob)
    perform_next(app)
    assert (job.wait(10), job.result, add.result(job.jid)) == (3, 3, 3)


def test_a_class_is_made_anew_for_each_job(app: App) -> None:
    made: list[object] = []

    class Resize:
        def __init__(self) -> None:
            made.append(self)

        def perform(self, context: Context, file: str) -> str:
            return f"{context.klass} {file}"

    resize = app.job(queue="images")(Resize)
    jobs = resize.put_many([("a",), ("b",)])
    perform_next(app, "images")
    perform_next(app, "images")
    assert [job.wait(10) for job in jobs] == ["Resize a", "Resize b"]
    assert len(made) == 2


def test_asynchronously(app: App) -> None:
    @app.job
    async def add(x: int, y: int) -> int:
        return x + y

    async def put() -> AsyncTypedJob[int]:
        many = await add.aput_many([(1, 1)])
        assert len(many) == 1
        return await add.aput(1, 2)

    async def result(jid: str) -> int:
        try:
            return await add.aresult(jid, timeout=10)
        finally:
            await app.aclose()

    job = asyncio.run(put())
    perform_next(app)
    perform_next(app)
    assert asyncio.run(result(job.jid)) == 3
    with pytest.raises(NoLoop):
        _ = app.aclient


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"retrys": 1}, "Did you mean 'retries'"),
    ({"retries": -1}, "retries = -1"),
    ({"queue": ""}, "queue = ''"),
    ({"name": "a\nb"}, "A job type cannot be called"),
    ({"ttl": -1}, "ttl = -1"),
    ({"delay": "soon"}, "options of job cannot be used"),
    ({"unique_mode": "window"}, "needs unique: True"),
    ({"unique": True, "unique_mode": "windw", "unique_for": 1}, "one of pending, window"),
    ({"unique": True, "unique_mode": "window"}, "unique_for"),
    ({"unique": ["yy"]}, "Did you mean 'y'"),
    ({"unique_max": 3, "unique": True}, "debounce"),
    ({"unique": lambda z: "a"}, "cannot have this function as unique"),
    ({"ordered": "{z}"}, "takes no argument 'z'"),
    ({"ordered": "{y"}, "brace"),
    ({"throttles": ["a b"]}, "throttles"),
    ({"backoff": "exponentiol"}, "Did you mean 'exponential'"),
    ({"backoff": -1}, "is no backoff"),
    ({"backoff": []}, "is no backoff"),
    ({"fail_on": "ValueError"}, "Give exception classes"),
    ({"cron": "99 * * * *"}, "is no cron expression"),
    ({"cron": "0 9 * * *", "tz": "Europe/Berlyn"}, "no time zone"),
    ({"cron": "0 9 * * *", "every": 60}, "one of every, cron and after"),
    ({"tz": "UTC"}, "one of every, cron and after"),
    ({"every": 0}, "every = 0"),
    ({"every": 60, "arguments": {"z": 1}}, "unexpected keyword argument 'z'"),
    ({"after": 60, "unique": True}, "Remove unique"),
    ({"arguments": {"y": 1}}, "Give every, cron or after"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG, ids=lambda one: " ".join(one) if type(one) is dict else "")
def test_what_cannot_work_is_refused_when_it_is_declared(options: dict[str, Any], sentence: str) -> None:
    def job(y: int = 0) -> None: ...

    app = App("memory://")
    with pytest.raises(DeclarationError, match=sentence):
        app.job(**options)(job)  # type: ignore[call-overload]
    assert dict(app.jobs) == dict(app.schedules) == {}


def test_what_is_no_job_type_is_refused() -> None:
    app: Any = App("memory://")

    def several() -> Any:
        yield 1

    class Empty: ...

    class Needs:
        def __init__(self, x: int) -> None: ...
        def perform(self) -> None: ...

    for target, sentence in (
        (several, "generator"),
        (Empty, "no method perform"),
        (Needs, "without arguments"),
        ("emails", "name='emails'"),
        (3, "neither a function nor a class"),
    ):
        with pytest.raises(DeclarationError, match=sentence):
            app.job(target)


def test_an_app_knows_its_queues() -> None:
    app = App("memory://")
    assert app.queues == ("default",)
    for name, queue in (("a", "two"), ("b", "one"), ("c", "two")):
        app.job(name=name, queue=queue)(lambda: None)
    assert app.queues == ("two", "one")


def test_two_of_one_name_are_refused() -> None:
    app = App("memory://")

    @app.job
    def send() -> None: ...

    with pytest.raises(DeclarationError, match="a job type 'send' already"):
        app.job(name="send")(lambda: None)
    assert list(app.jobs) == ["send"]
    assert app.jobs["send"] is send


def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QMODEL_URL", raising=False)
    app = App()
    assert app.url == "memory://"
    monkeypatch.setenv("QMODEL_URL", "memory://said")
    assert app.url == "memory://said"
    assert App("memory://given").url == "memory://given"


def test_jobs_that_nobody_will_see_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("QMODEL_URL", raising=False)
    for app, warned in ((App(), True), (App("memory://"), False)):
        app.job(name="work")(lambda: None).put_many([(), ()])
        app.client.newest()
        assert [("in the memory of this process" in text) for text in caplog.messages] == [True] * warned
        caplog.clear()


def test_nothing_is_opened_before_it_is_needed() -> None:
    app = App("redis://127.0.0.1:1/0")

    @app.job
    def send() -> None: ...

    assert send.make().klass == "send"


def test_a_child_process_has_a_client_of_its_own(app: App) -> None:
    @app.job
    def note(pid: int) -> None: ...

    note.put(0)
    before = app.client
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            note.put(os.getpid())
            code = 0 if app.client is not before else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert app.client is before
    assert app.client.queues["default"].length() == (1 if app.url == "memory://" else 2)


def test_an_app_costs_no_thread_and_no_optional_package() -> None:
    program = """
import sys, threading
for name in ("redis", "msgspec", "pydantic", "cronsim", "lupa"):
    sys.modules[name] = None
from qmodel import App
app = App("memory://")
@app.job(queue="a", retries=1)
def add(x: int, y: list[dict[str, float]] | None = None) -> int: return x
add.put(1)
assert threading.active_count() == 1
assert not {"asyncio", "logging", "qmodel.client.aio"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_sub_requests_are_jobs_of_a_type(app: App) -> None:
    @app.job(queue="images")
    def resize(file: str) -> int:
        return len(file)

    with app.client.request("album", "images", limit=1) as request:
        request.add_many(resize.make(file) for file in ("a", "bb"))
    assert [perform_next(app, "images") for _ in range(2)] == [Completed("1"), Completed("2")]
    assert request.wait(10).done == 2


def test_a_partial_function_needs_a_name(app: App) -> None:
    def add(x: int, y: int) -> int:
        return x + y

    with pytest.raises(DeclarationError, match="neither a function nor a class"):
        app.job(functools.partial(add, 1))
    job = app.job(name="one_more")(functools.partial(add, 1)).put(2)
    assert perform_next(app) == Completed("3")
    assert job.wait(10) == 3


def test_options_gather(app: App) -> None:
    emails = app.job(queue="emails", retries=2)

    @emails(retries=3, tags=["a"])
    def one() -> None: ...

    @emails
    def two() -> None: ...

    jobs = [one.put().refresh(), two.put().refresh()]
    assert [(job.queue, job.retries, job.tags) for job in jobs] == [("emails", 3, ("a",)), ("emails", 2, ())]


def test_event_loops_that_are_closed_are_let_go(app: App) -> None:
    @app.job
    async def work() -> None: ...

    async def put() -> None:
        await work.aput()

    for _ in range(20):
        asyncio.run(put())
    assert len(app.connection._by_loop) == 1
    assert app.client.queues["default"].length() == 20
