"""Whatever the parameters of a function and the arguments of a call are: a job that is put gets what a call would, and
where a call raises TypeError, so does the put."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qmodel import App
from qmodel.app import Completed, Failed, perform
from qmodel.contract.operations import Pop

NAMES = ("a", "b", "list", "found", "unset", "check", "bind", "self")


@st.composite
def functions(draw: st.DrawFn) -> str:
    """The parameters of a function, as they are written."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=5))
    cuts = sorted(draw(st.lists(st.integers(0, len(names)), min_size=2, max_size=2)))
    first, middle, last = names[: cuts[0]], names[cuts[0] : cuts[1]], names[cuts[1] :]
    defaults = draw(st.integers(0, len(first) + len(middle)))
    by_place = [f"{name}={number}" if number >= defaults else name for number, name in enumerate(first + middle)]
    written = by_place[: len(first)] + (["/"] if first else []) + by_place[len(first) :]
    several = draw(st.booleans())
    if several or last:
        written.append("*several" if several else "*")
    written += [f"{name}=None" if draw(st.booleans()) else name for name in last]
    return ", ".join(written + (["**others"] if draw(st.booleans()) else []))


CALLS = st.tuples(
    st.lists(st.integers(0, 9), max_size=5),
    st.dictionaries(st.sampled_from((*NAMES, "x", "y")), st.integers(0, 9), max_size=4),
)


def made(parameters: str) -> Callable[..., Any]:
    """A function with these parameters that gives what it got."""
    names: dict[str, Any] = {}
    exec(f"def function({parameters}):\n return dict(sorted(locals().items()))", names)
    function: Callable[..., Any] = names["function"]
    return function


@settings(max_examples=300, deadline=None)
@given(functions(), CALLS)
@example("a=0, /, **others", ([], {"a": 0}))
@example("*several, **others", ([], {"several": 0}))
def test_a_job_gets_what_a_call_would(parameters: str, call: tuple[list[int], dict[str, int]]) -> None:
    args, kwargs = call
    app = App("memory://")
    function = made(parameters)
    kind = app.job(function)
    assert all(f"{name}" in parameters for name in kind.binding.names)
    try:
        expected = function(*args, **kwargs)
    except TypeError:
        expected = None
    try:
        op = kind.make(*args, **kwargs)
    except TypeError as error:
        assert expected is None or "is positional-only" in str(error)
        return
    assert expected is not None
    app.client.execute(op)
    (job,) = app.client.execute(Pop("default", "me"))
    outcome = perform(app, job)
    assert isinstance(outcome, Completed)
    assert kind.result_of(outcome.result_text) == {**expected, **_listed(expected)}


def _listed(expected: dict[str, Any]) -> dict[str, Any]:
    """What JSON makes of the arguments that a star gathers."""
    return {"several": list(expected["several"])} if "several" in expected else {}


def test_a_call_that_must_fail_is_among_them() -> None:
    function = made("a, /, *, b")
    for args, kwargs in (((), {}), ((1,), {"a": 1}), ((1, 2), {"b": 1})):
        try:
            App("memory://").job(function).make(*args, **kwargs)
        except TypeError:
            continue
        raise AssertionError((args, kwargs))


@pytest.mark.parametrize("given", ["abc", 5, None, {"a": 1}])
def test_data_with_something_else_than_a_list_for_several_arguments_fail_at_once(given: Any) -> None:
    app = App("memory://")

    @app.job
    def add(*numbers: int) -> int:
        return sum(numbers)

    app.client.queues["default"].put("add", {"numbers": given})
    job = app.client.pop(["default"])
    assert job is not None
    outcome = perform(app, job.raw)
    assert isinstance(outcome, Failed) and outcome.group == "BadArguments"
    assert outcome.message == f"add takes numbers: a list, not {given!r}."
