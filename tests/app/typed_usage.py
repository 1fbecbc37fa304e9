"""What a type checker makes of an app: checked by mypy in `test_typing.py`, and never run."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, assert_type

from qmodel import App, Context
from qmodel.app import AsyncTypedJob, TypedJob
from qmodel.client.sync import Client, Job, RecurringJob
from qmodel.contract.operations import Put
from qmodel.testing import Harness

app = App("memory://")


@app.job(queue="emails", retries=5, backoff="exponential")
def send_email(to: str, *, subject: str = "") -> int:
    return len(to) + len(subject)


@app.job
def bare(x: int) -> str:
    return str(x)


@app.job(unique=True)
async def fetch(url: str) -> bytes:
    return url.encode()


@app.job()
def with_context(context: Context, name: str) -> list[str]:
    return [name, context.jid]


@app.job
async def async_with_context(context: Context, name: str) -> None:
    await context.alog(name)


class Resize:
    def perform(self, file: str, width: int = 100) -> float:
        return float(width)


class Upload:
    async def perform(self, context: Context, file: str) -> bool:
        return context.cancelled


# mypy takes no notice of what a decorator makes of a class.
resize = app.job(queue="images")(Resize)
upload = app.job(Upload)


@app.job
def anything(data: object, extra: int = 0) -> int:
    return extra


def use() -> None:
    assert_type(send_email("a@b"), int)
    assert_type(send_email.put("a@b", subject="x"), TypedJob[int])
    assert_type(send_email.put("a@b").wait(10), int)
    assert_type(send_email.put("a@b").result, int | None)
    assert_type(send_email.result("jid"), int)
    assert_type(send_email.options(delay=60, priority=-1).put("a@b"), TypedJob[int])
    assert_type(send_email.make("a@b"), Put)
    assert_type(send_email.put_many([("a@b",), {"to": "c@d"}]), list[TypedJob[int]])
    assert_type(bare.put(1).wait(), str)
    coroutine = fetch("x")
    _ = assert_type(coroutine, Coroutine[Any, Any, bytes])
    assert_type(fetch.put("x").wait(), bytes)
    assert_type(with_context.put("x"), TypedJob[list[str]])
    assert_type(async_with_context.put("x"), TypedJob[None])
    assert_type(resize.put("a.png", width=3).wait(), float)
    assert_type(upload.put("a.png").wait(), bool)
    assert_type(anything.put({"a": 1}, extra=2), TypedJob[int])

    send_email.put()  # expect: call-arg
    send_email.put(1)  # expect: arg-type
    send_email.put("a", "b")  # expect: call-arg
    send_email.options(dellay=3)  # expect: call-arg
    send_email.options(delay="soon")  # expect: arg-type
    send_email.options(delay=1).put(to=1)  # expect: arg-type
    bare("x")  # expect: arg-type
    with_context.put()  # expect: call-arg
    with_context("x")  # expect: call-arg arg-type
    resize.put(3)  # expect: arg-type
    app.job(quueue="x")  # expect: call-overload


def use_client(client: Client) -> None:
    queue = client.queues["q"]
    job = assert_type(queue.put("k", {"a": 1}, delay=60, tags=["a"], unique="x", unique_mode="window"), Job)
    assert_type(queue.new("k", text="a", depends=[job, "b"]), Put)
    assert_type(queue.recur("k", interval=60, missed="one"), RecurringJob)
    assert_type(job.move("r", priority=3, delay=timedelta(minutes=1)), Job)
    client.subscriptions.add("s", "a.*", "q", "k", lifo=True, since=0)

    queue.put("k", dellay=3)  # expect: call-arg
    queue.put("k", delay="soon")  # expect: arg-type
    queue.put("k", unique_mode="never")  # expect: arg-type
    queue.new("k", interval=3)  # expect: call-arg
    queue.recur("k", interval=60, limit="3")  # expect: arg-type
    queue.recur("k", every=60)  # expect: call-arg
    job.move("r", jid="other")  # expect: call-arg
    client.subscriptions.add("s", "a.*", "q", "k", unique="x")  # expect: call-arg


async def use_async() -> None:
    assert_type(await send_email.aput("a@b"), AsyncTypedJob[int])
    assert_type(await (await fetch.aput("x")).wait(), bytes)
    assert_type(await fetch.aresult("jid", timeout=3), bytes)
    await fetch.aput(3)  # expect: arg-type


async def use_in_tests(qm: Harness) -> None:
    assert_type(qm.perform_job(send_email, "a@b"), int)
    assert_type(await qm.aperform_job(fetch, "x"), bytes)
    qm.perform_job(send_email, 3)  # expect: call-overload
