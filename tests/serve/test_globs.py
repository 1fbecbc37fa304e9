"""Patterns of channels: as Redis matches them, in a time that no pattern can blow up."""

from __future__ import annotations

import random
import time
from functools import cache

import pytest

from qmodel.serve.globs import CHANNEL, PATTERN, Glob, matching
from tests.serve.support import serving


@cache
def naive(pattern: str, text: str) -> bool:
    """Match stars and question marks by their definition."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return naive(pattern[1:], text) or (bool(text) and naive(pattern, text[1:]))
    return bool(text) and pattern[0] in ("?", text[0]) and naive(pattern[1:], text[1:])


@pytest.mark.parametrize("seed", range(10))
def test_it_matches_what_the_definition_matches(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(2000):
        pattern = "".join(chance.choices("ab*?", (3, 2, 2, 1), k=chance.randint(0, 7)))
        text = "".join(chance.choices("ab\n", (6, 3, 1), k=chance.randint(0, 8)))
        assert Glob(pattern).matches(text) == naive(pattern, text), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("h[ae]llo", "hello", "hillo"),
        ("h[^e]llo", "hallo", "hello"),
        ("h[a-b]llo", "hbllo", "hcllo"),
        (r"h\*llo", "h*llo", "hello"),
        ("h[z-a]llo", "h[z-a]llo", "hzllo"),
        ("h[", "h[", "h"),
        ("*[ab]*c", "xbyc", "xyc"),
    ],
)
def test_classes_and_literals(pattern: str, yes: str, no: str) -> None:
    assert Glob(pattern).matches(yes) and not Glob(pattern).matches(no)


@pytest.mark.parametrize(
    "pattern",
    ["*a" * (PATTERN // 2 - 1) + "*b", "*?" * (PATTERN // 2 - 1) + "b", "*" + "a?" * 126 + "*b", "[" * 99],
)
def test_no_pattern_takes_long(pattern: str) -> None:
    assert len(pattern) <= PATTERN
    glob, began = matching(pattern), time.process_time()
    assert not glob.matches("a" * CHANNEL)
    assert time.process_time() - began < 0.25


def test_patterns_and_channels_have_a_limit() -> None:
    with serving() as server, server.client() as client:
        for words in (("PSUBSCRIBE", "*" * 257), ("PUBSUB", "CHANNELS", "*" * 257), ("PUBLISH", "c" * 4097, "x")):
            with pytest.raises(Exception, match="has at most"):
                client.execute_command(*words)
        assert client.publish("c" * 4096, "x") == 0
