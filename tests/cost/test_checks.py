"""The compiled checks of the model agree with the functions that they replace, which are slower."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from qmodel.contract.arguments import NAMES, Kind, ListOf, Name, Text
from qmodel.contract.operations import CATALOGUE

KINDS = {
    kind
    for spec in CATALOGUE.values()
    for argument in spec.arguments
    for kind in (argument.kind, getattr(argument.kind, "item", None))
    if kind is not None and not isinstance(kind, ListOf)
}
PIECES = ("", "a", "-data", "-d", "-dependents", " ", "\n", "\x7f", "\x1f", "~", "é", "\u2028", "\ud800", "0", "x" * 63)


class Str(str):
    """A subclass of str: equal to a text, but not one."""


def values(seed: int, count: int = 20_000) -> list[object]:
    """Give texts and whole numbers around every bound, and values of other types."""
    chance = random.Random(seed)
    bounds = [getattr(kind, end) for kind in KINDS for end in ("low", "high", "most") if hasattr(kind, end)]
    texts = ["".join(chance.choices(PIECES, k=chance.randrange(5))) for _ in range(count)]
    numbers = [bound + by for bound in bounds for by in (-1, 0, 1)]
    lengths = ["x" * (bound + by) for bound in (64, 128, 160, 1024) for by in (-1, 0, 1)]
    return [*texts, *lengths, *numbers, None, True, False, 1.0, b"a", Str("a"), (), []]


def disagreements(kind: Kind, plain: str) -> list[object]:
    """Find values that the compiled condition accepts and the function does not."""
    compiled = eval(f"lambda value: {plain}", {"NAMES": NAMES})
    return [value for value in values(1) if compiled(value) and not kind.accepts(value)]


@pytest.mark.parametrize("kind", sorted(KINDS, key=repr), ids=repr)
def test_what_is_plainly_fine_is_accepted(kind: Kind) -> None:
    assert disagreements(kind, kind.plain) == []


def test_a_condition_that_lets_too_much_through_is_noticed() -> None:
    assert disagreements(Text(10), "type(value) is str and len(value) <= 11")


def test_most_good_values_are_plainly_fine() -> None:
    for spec in (CATALOGUE["put"], CATALOGUE["pop"], CATALOGUE["complete"]):
        for argument in spec.arguments:
            good = {"text": "some data", "name": "emails", "id": "0123456789abcdef", "whole": 7}.get(argument.kind.wire)
            if good is not None:
                assert argument.kind.accepts(good)
                assert eval(argument.kind.plain, {"value": good, "NAMES": NAMES}), argument


# ---- what most calls leave out


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_operation_says_whether_anything_was_given_that_may_be_left_out(name: str) -> None:
    spec = CATALOGUE[name]
    plain = spec.cls(*("" for argument in spec.arguments if argument.required))
    assert not plain.named
    for argument in spec.arguments:
        if not argument.required:
            given = replace(plain, **{argument.name: "x"})  # type: ignore[type-var]
            assert given.named == (argument.name != "request")


def test_few_names_are_kept() -> None:
    kind = Name(128)
    for number in range(1000):
        assert kind.accepts(f"queue-{number}")
    assert 1 <= len(NAMES) <= 200
    assert kind.accepts("x" * 128)
    assert "x" * 128 not in NAMES
    assert not kind.accepts("a\tb")
    assert "a\tb" not in NAMES
