"""Names with wildcards match as a regular expression would, in the model and in the library."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodel.backends.embedded.backend import EmbeddedBackend
from qmodel.backends.memory import MemoryBackend
from qmodel.contract import operations as ops
from qmodel.contract.refusals import Refusal
from qmodel.model.state import subjects

WORDS = st.text("ab*é", min_size=1, max_size=7)
NAMES = st.text("abé", min_size=1, max_size=9)


def meant(wildcard: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, wildcard.split("*"))), name, re.DOTALL) is not None


@given(WORDS, NAMES)
@settings(max_examples=500, deadline=None)
def test_a_star_stands_for_any_characters(wildcard: str, name: str) -> None:
    assert subjects.like(wildcard, name) == meant(wildcard, name)


@given(st.lists(NAMES, min_size=1, max_size=5), st.lists(WORDS, min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_both_sides_find_the_same_names(klasses: list[str], wildcards: list[str]) -> None:
    backends = MemoryBackend(), EmbeddedBackend()
    for backend in backends:
        backend.execute_many([ops.Put("q", f"j{n}", klass, "") for n, klass in enumerate(klasses)], 0)
    for wildcard in wildcards:
        wanted = [f"j{n}" for n, klass in enumerate(klasses) if meant(wildcard, klass)]
        for backend in backends:
            assert [job.jid for job in backend.execute(ops.Search("q", klass_like=wildcard), 1).jobs] == wanted


@pytest.mark.parametrize("backend", [MemoryBackend, EmbeddedBackend])
def test_a_search_in_data_is_bounded_and_finds_all(backend: type[MemoryBackend] | type[EmbeddedBackend]) -> None:
    at = backend()
    for number in range(9):
        at.execute(ops.Put("q", f"j{number}", "k", "x" * 1_000_000 + ("needle" if number % 4 == 0 else "")), 0)
    found, cursor, calls = [], "", 0
    while not calls or cursor:
        reply = at.execute(ops.Search("q", text="needle", cursor=cursor), 1)
        found += [job.jid for job in reply.jobs]
        cursor, calls = reply.cursor, calls + 1
    assert found == ["j0", "j4", "j8"] and calls > 2


def test_a_text_that_is_searched_has_at_most_64_bytes() -> None:
    at = MemoryBackend()
    assert at.execute(ops.Search("q", text="é" * 33), 0) == Refusal("BAD_ARGUMENT", ("search", "text"))
    assert at.execute(ops.Search("q", text=""), 0) == Refusal("BAD_ARGUMENT", ("search", "text"))
