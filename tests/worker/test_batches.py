"""Jobs that are performed in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from qmodel.app import App, DeclarationError, Fail, batched
from qmodel.errors import JobFailed
from tests.worker.support import PATIENCE, working

SIZES: list[int] = []


def declared(app: App, runner: str, size: int, wait: float) -> Any:
    """Declare a job type that doubles numbers in batches; the number 13 fails alone, 666 makes its whole batch fail."""

    def double(numbers: list[int]) -> Sequence[int | BaseException]:
        SIZES.append(len(numbers))
        if 666 in numbers:
            raise RuntimeError("all of them")
        return [ValueError("bad luck") if number == 13 else 2 * number for number in numbers]

    async def adouble(numbers: list[int]) -> Sequence[int | BaseException]:
        return double(numbers)

    together = batched(size, wait=wait)
    return app.job(retries=0)(together(adouble)) if runner == "async" else app.job(retries=0)(together(double))


@pytest.fixture(params=["thread", "async"])
def runner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_jobs_at_hand_are_performed_in_one_call(url: str, runner: str) -> None:
    SIZES.clear()
    app = App(url)
    double = declared(app, runner, 10, PATIENCE)  # so that it waits for full batches, however slow the machine is
    put = double.put_many([(number,) for number in range(20, 40)])
    assert put[0].data == {"number": 20}
    with working(app, concurrency=20, runner=runner):
        assert [job.wait(timeout=PATIENCE) for job in put] == [2 * number for number in range(20, 40)]
    assert SIZES == [10, 10]


def test_a_batch_that_does_not_fill_is_performed_after_its_wait(url: str, runner: str) -> None:
    SIZES.clear()
    app = App(url)
    double = declared(app, runner, 10, 0.01)
    with working(app, concurrency=20, runner=runner):
        assert double.put(4).wait(timeout=PATIENCE) == 8
    assert SIZES == [1]


def test_one_may_fail_alone_and_all_may_fail_together(url: str, runner: str) -> None:
    app = App(url)
    double = declared(app, runner, 2, PATIENCE)
    with working(app, concurrency=10, runner=runner):
        lucky, unlucky = double.put_many([(1,), (13,)])
        assert lucky.wait(timeout=PATIENCE) == 2
        with pytest.raises(JobFailed, match="bad luck"):
            unlucky.wait(timeout=PATIENCE)
        for job in double.put_many([(1,), (666,)]):
            with pytest.raises(JobFailed, match="all of them"):
                job.wait(timeout=PATIENCE)


def test_an_async_function_is_called_in_the_threads_of_a_worker_too(url: str) -> None:
    SIZES.clear()
    app = App(url)
    double = declared(app, "async", 4, PATIENCE)
    put = double.put_many([(number,) for number in range(20, 32)])
    with working(app, concurrency=8, runner="thread"):
        assert [job.wait(timeout=PATIENCE) for job in put] == [2 * number for number in range(20, 32)]
    assert SIZES == [4, 4, 4]


class Odd(Exception):
    """An exception that Python cannot copy."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


@pytest.mark.parametrize(
    ("error", "group"), [(KeyError("x"), "KeyError"), (Fail("closed", "x"), "closed"), (Odd("x", "y"), "Odd")]
)
def test_an_exception_of_the_function_means_the_same_for_each_job(
    url: str, runner: str, error: Exception, group: str
) -> None:
    app = App(url)

    def refuse(numbers: list[int]) -> None:
        raise error

    async def arefuse(numbers: list[int]) -> None:
        raise error

    function: Any = batched(3, wait=PATIENCE)(arefuse if runner == "async" else refuse)  # type: ignore[arg-type]
    kind = app.job(retries=0 if group == "Odd" else 5, fail_on=KeyError, name="refuse")(function)
    with working(app, concurrency=3, runner=runner):
        for job in kind.put_many([(1,), (2,), (3,)]):
            with pytest.raises(JobFailed, match="x") as failed:
                job.wait(timeout=PATIENCE)
            assert failed.value.group in (group, "BatchError" if group == "Odd" else group)


def test_a_batch_of_a_wrong_length_is_told(url: str) -> None:
    app = App(url)

    @app.job(retries=0)
    @batched(5)
    def short(numbers: list[int]) -> list[int]:
        return [1, 2, 3]

    with working(app), pytest.raises(JobFailed, match="short returned 3 for 1 job"):
        short.put(1).wait(timeout=PATIENCE)


def test_arguments_are_checked_when_they_are_put() -> None:
    app = App("memory://")

    @app.job
    @batched(5)
    def index(documents: list[str]) -> None: ...

    with pytest.raises(TypeError):
        index.put()  # type: ignore[call-arg]
    assert index.put(document="x").data == {"document": "x"}  # type: ignore[call-arg]
    with pytest.raises(DeclarationError, match="takes 2 arguments"):
        batched(5)(lambda one, two: None)  # type: ignore[call-overload, misc]
    with pytest.raises(DeclarationError, match="the size 0"):
        batched(0)
