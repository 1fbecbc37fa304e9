"""Arguments and results that JSON does not have, serializers, and backoff."""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypedDict

import msgspec
import pydantic
import pytest

import qmodel
from qmodel import App
from qmodel.app import DeclarationError, Failed, Json, backoff
from qmodel.app.values import is_plain
from tests.app.conftest import perform_next

if TYPE_CHECKING:
    from qmodel import Context


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    at: datetime


class Struct(msgspec.Struct):
    name: str
    when: datetime


class Model(pydantic.BaseModel, strict=True):
    name: str
    when: datetime


class Odd:
    """Nothing says how one is stored."""


@dataclasses.dataclass
class WithOdd:
    odd: Odd | None


class Plain(TypedDict):
    name: str
    sizes: list[int]


UserId = NewType("UserId", int)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES: list[tuple[Any, Any]] = [
    (NOW, datetime),
    (uuid.UUID(int=1), uuid.UUID),
    (Decimal("1.10"), Decimal),
    (Colour.RED, Colour),
    ({1, 2}, set[int]),
    ((1, "a"), tuple[int, str]),
    ({1: "a"}, dict[int, str]),
    (b"\x00", bytes),
    (timedelta(seconds=90), timedelta),
    (Point(1, NOW), Point),
    ([Point(1, NOW)], list[Point]),
    (Struct("a", NOW), Struct),
    (Model(name="a", when=NOW), Model),
    ({"a": Model(name="a", when=NOW)}, dict[str, Model]),
    (None, Model | None),
]


@pytest.mark.parametrize(("value", "annotation"), VALUES, ids=lambda one: str(one)[:30])
def test_values_come_back_as_they_were(value: Any, annotation: Any) -> None:
    app = App("memory://")
    seen: list[Any] = []

    def work(x, *several, named=None):  # type: ignore[no-untyped-def]
        seen.append((x, several, named))
        return x

    work.__annotations__ = dict.fromkeys(("x", "several", "named", "return"), annotation)
    job = app.job(work).put(value, value, named=value)
    perform_next(app)
    assert seen == [(value, (value,), value)]
    assert type(seen[0][0]) is type(value)
    assert job.wait(10) == value
    json.loads(job.text)


def test_what_json_has_is_left_alone() -> None:
    for annotation in (
        int,
        str | None,
        list[dict[str, float]],
        Sequence[int],
        Mapping[str, Any],
        Literal["a", 1],
        UserId,
        Plain,
        list[Plain],
        Any,
        object,
    ):
        assert is_plain(annotation), annotation
    for annotation in (
        datetime,
        tuple[int, ...],
        dict[int, str],
        set[int],
        Colour,
        Point,
        Annotated[int, 3],
        list[Point],
    ):
        assert not is_plain(annotation), annotation


def test_a_value_that_is_not_what_the_annotation_says_fails() -> None:
    app = App("memory://")

    @app.job
    def work(at: datetime) -> None: ...

    app.client.queues["default"].put("work", {"at": "tomorrow"})
    outcome = perform_next(app)
    assert isinstance(outcome, Failed)
    assert "work cannot take at = 'tomorrow'" in outcome.message


def test_a_model_of_pydantic_is_validated() -> None:
    app = App("memory://")

    @app.job
    def work(model: Model) -> str:
        return model.name

    app.client.queues["default"].put("work", {"model": {"name": 3, "when": "2026-01-01T00:00:00Z"}})
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and "valid string" in outcome.message


def test_what_cannot_be_stored_is_refused_when_it_is_declared() -> None:
    app = App("memory://")

    def work(x): ...  # type: ignore[no-untyped-def]

    for annotation in (complex, list[Odd], WithOdd):
        work.__annotations__ = {"x": annotation}
        with pytest.raises(DeclarationError, match=r"Argument x of work is annotated as.*nothing is known of"):
            app.job(work)
    assert not app.jobs


def test_without_msgspec_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgspec", None)
    app = App("memory://")

    def work(at: datetime) -> None: ...

    with pytest.raises(DeclarationError, match="pip install msgspec"):
        app.job(work)


def test_an_annotation_of_type_checkers_alone_does_not_matter() -> None:
    app = App("memory://")

    @app.job
    def work(context: Context, x: int) -> int:
        return context.attempt + x

    job = work.put(2)
    perform_next(app)
    assert job.wait(10) == 3


def test_a_context_may_be_none_where_the_function_is_called() -> None:
    app = App("memory://")

    def plain(x: int, context: qmodel.Context | None = None) -> int:
        return x + (context.attempt if context else 0)

    def hidden(x: int, context: Context | None = None) -> int:
        return x + (context.attempt if context else 0)

    for function in (plain, hidden):
        kind = app.job(function)
        job = kind.put(2)
        perform_next(app)
        assert (kind(2), job.wait(10), job.data) == (2, 3, {"x": 2})


def test_an_annotation_may_be_defined_later() -> None:
    names: dict[str, Any] = {}
    program = """
from __future__ import annotations
import dataclasses
from qmodel import App
app = App("memory://")
@app.job
def work(point: Point) -> Point: return point
@dataclasses.dataclass
class Point:
    x: int
"""
    exec(program, names)
    job = names["work"].put(names["Point"](3))
    perform_next(names["app"])
    assert job.wait(10) == names["Point"](3)


# ---- serializers


def test_long_data_are_compressed_and_still_json() -> None:
    app = App("memory://", serializer=Json(compress=100))

    @app.job
    def double(text: str) -> str:
        return text * 2

    job = double.put("a" * 1000)
    assert len(job.text) < 100 and list(json.loads(job.text)) == ["$zlib"]
    perform_next(app)
    assert job.wait(10) == "a" * 2000
    assert json.loads(double.put("b").text) == {"text": "b"}


@pytest.mark.parametrize("value", ["!", 3, "AAAA", "eJwDAAAAAAE="])
def test_what_only_claims_to_be_compressed_fails(value: object) -> None:
    app = App("memory://")
    app.job(name="job")(lambda: None)
    app.client.queues["default"].put("job", {"$zlib": value})
    outcome = perform_next(app)
    assert isinstance(outcome, Failed) and outcome.group == "BadArguments"


class Reversed:
    """A serializer whose text is none of JSON."""

    def dumps(self, value: object) -> str:
        return json.dumps(value)[::-1]

    def loads(self, text: str) -> Any:
        return json.loads(text[::-1])


def test_a_serializer_of_ones_own() -> None:
    app = App("memory://", serializer=Reversed())

    @app.job
    def add(x: int, y: int) -> list[int]:
        return [x, y]

    job = add.put(1, 2)
    assert job.text == '}2 :"y" ,1 :"x"{'
    perform_next(app)
    assert job.wait(10) == [1, 2] == add.job(job.jid).result


def test_a_result_that_is_not_what_the_annotation_says() -> None:
    app = App("memory://")

    @app.job
    def when() -> datetime:
        return NOW

    job = when.put()
    raw = app.client.queues["default"].pop()
    assert raw is not None
    raw.complete("tomorrow")
    with pytest.raises(qmodel.DataError, match="does not fit its annotation"):
        job.wait(10)


# ---- backoff


def delays(declared: Any, count: int = 5) -> list[float]:
    delay = backoff.delay_of(declared)
    return [delay(failures, None) / 1000 for failures in range(1, count + 1)]


def test_delays_grow_as_declared() -> None:
    assert delays(backoff.Exponential(jitter=0)) == [5, 10, 20, 40, 80]
    assert delays(backoff.Exponential(jitter=0), 5000)[-1] == 3600
    assert delays(backoff.Exponential(factor=1.5, jitter=0), 3) == [5, 7.5, 11.25]
    assert delays(backoff.Polynomial(jitter=0)) == [16, 31, 96, 271, 640]
    assert backoff.Polynomial(power=400.0, jitter=0)(10) == backoff.Polynomial(power=400, jitter=0)(10) == 86_400
    assert backoff.delay_of(backoff.polynomial)(9, None) >= 5_000_000  # the class stands for its defaults
    assert delays("fixed", 2) == [30, 30]
    assert delays("none", 2) == [0, 0]
    assert delays(2.5, 2) == [2.5, 2.5]
    assert delays(timedelta(minutes=1), 1) == [60]
    assert delays([1, timedelta(seconds=9)], 3) == [1, 9, 9]
    assert delays(lambda failures: failures * 2, 3) == [2, 4, 6]
    assert delays(lambda failures, error: 1 if error is None else 2, 1) == [1]
    assert delays(lambda failures: -1, 1) == [0]


def test_jitter_stays_within_its_part() -> None:
    found = delays(backoff.Fixed(100, jitter=0.2), 500)
    assert min(found) >= 80 and max(found) <= 120 and len(set(found)) > 100
