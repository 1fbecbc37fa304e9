"""Refusals are exceptions of their own classes, and backends that cannot be had say what to do."""

from __future__ import annotations

import builtins
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import qmodel
from qmodel import backends, errors
from qmodel.backends.memory import MemoryBackend
from qmodel.contract import operations
from qmodel.contract.refusals import BESIDE_OTHERS, EVERY_REASON, Refusal


def test_every_refusal_has_an_exception_with_its_facts_as_attributes() -> None:
    assert set(errors.BY_CODE) == set(EVERY_REASON)
    for code, reason in EVERY_REASON.items():
        cls = errors.BY_CODE[code]
        assert tuple(cls.__annotations__) == reason.facts
        assert cls.__name__.lower() == code.replace("_", "").lower()
        assert getattr(qmodel, cls.__name__) is cls


@pytest.mark.parametrize("code", [code for code in EVERY_REASON if code != "BAD_ARGUMENT"])
def test_an_exception_carries_code_facts_sentence_and_next_step(code: str) -> None:
    refusal = Refusal(code, tuple(f"<{fact}>" for fact in EVERY_REASON[code].facts))
    error = errors.error_of(refusal)

    assert error.code == code
    assert error.facts == refusal.named
    assert str(error) == refusal.sentence == f"{error.sentence} {error.next_step}"
    for name, value in error.facts.items():
        assert getattr(error, name) == value


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (("put", "priority"), "whole number from -2147483648"),
        (("put_many", "klass"), "1 to 128 bytes"),
        (("peek", "now"), "milliseconds since the epoch"),
        (("complete", "delay_ms"), "a delay needs next."),
        (("put", "unique_max_ms"), "whole number from 1 to 316224000000; it needs unique in the mode debounce"),
        (("put_many", "unique_ms"), "in the mode pending or window; the mode window requires it."),
        (("throttle_set", "rate"), "rate and rate_ms are given together."),
        (("recur", "cron"), "the kind cron requires it, the others exclude it."),
    ],
)
def test_a_bad_argument_says_what_it_must_be(facts: tuple[str, str], expected: str) -> None:
    assert expected in str(errors.error_of(Refusal("BAD_ARGUMENT", facts)))


def test_every_rule_that_binds_an_argument_to_others_is_of_one_that_exists() -> None:
    for argument, rules in BESIDE_OTHERS.items():
        for operation in rules:
            assert errors._expected(operation, argument) is not None, (operation, argument)


def test_the_client_raises_what_the_model_refuses() -> None:
    with pytest.raises(qmodel.BadArgument, match=r"length was given a bad queue. It must be 1 to"):
        qmodel.Client().execute(operations.Length(""))


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("mermory://", "Did you mean memory://"),
        ("reddis://localhost", "Did you mean redis://"),
        ("amqp://localhost", "It can open memory://"),
        ("localhost:6379", "Did you mean redis://localhost:6379"),
        ("memory", "Did you mean memory://"),
        ("memory:", "Did you mean memory://"),
        ("", "memory:// or redis://"),
    ],
)
def test_a_url_that_nothing_can_open_is_answered_with_a_hint(url: str, hint: str) -> None:
    with pytest.raises(qmodel.ConnectError, match=hint):
        qmodel.connect(url)
    with pytest.raises(qmodel.ConnectError, match=hint):
        qmodel.AsyncClient(url)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_redis(name: str, *args: Any, **named: Any) -> Any:
        if name.partition(".")[0] in ("redis", "valkey"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return real(name, *args, **named)

    module = ModuleType("qmodel.backends.needy")
    monkeypatch.setitem(sys.modules, module.__name__, None)
    monkeypatch.setitem(backends.BUILT_IN, "needy", ("redis_is_not_here", "redis"))
    monkeypatch.setattr(builtins, "__import__", without_redis)

    with pytest.raises(qmodel.ConnectError, match=r"pip install '\.\[redis\]'"):
        qmodel.connect("needy://")


def test_other_packages_can_plug_in_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    plugged: Any = ModuleType("plugged")
    plugged.connect = lambda url: MemoryBackend()
    monkeypatch.setitem(sys.modules, "plugged", plugged)
    point = EntryPoint("mine", "plugged:connect", backends.ENTRY_POINTS)
    monkeypatch.setattr(backends, "_plugged_in", lambda: [point])

    assert isinstance(qmodel.connect("mine://x").backend, MemoryBackend)
    with pytest.raises(qmodel.ConnectError, match="no connect_async"):
        qmodel.AsyncClient("mine://x")
    with pytest.raises(qmodel.ConnectError, match=r"Did you mean mine://"):
        qmodel.connect("mime://x")


def test_the_built_in_schemes_are_the_entry_points_of_the_package() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][backends.ENTRY_POINTS]

    assert {scheme: value.partition(":")[0] for scheme, value in points.items()} == {
        scheme: module for scheme, (module, _) in backends.BUILT_IN.items()
    }
    extras = {extra for _, extra in backends.BUILT_IN.values()} - {""}
    assert extras <= set(project["optional-dependencies"])
