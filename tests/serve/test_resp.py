"""The protocol: parsing does not depend on where the input is split, and malformed input is an error without harm."""

from __future__ import annotations

import random
from typing import Any

import pytest

from qmodel.serve.resp import NO_LIST, OK, Fault, Limits, Malformed, Pairs, Parser, Push, encode, split_inline, write


def packed(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def parsed(data: bytes, cut: int = 1 << 30) -> tuple[list[list[str]], str]:
    parser = Parser(Limits(1000, 1 << 16, 1 << 18))
    found = []
    for at in range(0, len(data), cut):
        found += parser.feed(data[at : at + cut])
    return found, parser.error


WORDS = (b"", b"PING", b"a\r\nb", b"\r\n", b"$3\r\n", b"*1\r\n", "é".encode(), b"\xff\x00", b"x" * 5000, b"1")


@pytest.mark.parametrize("seed", range(30))
def test_commands_are_read_alike_however_they_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    commands = [[chance.choice(WORDS) for _ in range(chance.randint(1, 6))] for _ in range(chance.randint(1, 12))]
    data = b"".join(packed(*command) for command in commands)
    wanted = [[word.decode("utf-8", "surrogateescape") for word in command] for command in commands]
    for cut in (1, 2, 3, 7, 64, 1000, 1 << 30):
        assert parsed(data, cut) == (wanted, "")


def test_bytes_come_back_as_they_were() -> None:
    every = bytes(range(256))
    (((_, word),), _) = parsed(packed(b"ECHO", every))
    assert encode(write(word)) == b"$256\r\n" + every + b"\r\n"


def test_inline_commands_are_split_into_words() -> None:
    assert parsed(b'PING\r\n\r\n  \nECHO "a b"\r\n') == ([["PING"], ["ECHO", "a b"]], "")
    with pytest.raises(Malformed):
        split_inline('ECHO "a')


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*99999999999999\r\n", "invalid multibulk length"),
        (b"*1001\r\n", "invalid multibulk length"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$99999999999\r\n", "invalid bulk length"),
        (b"*1\r\n$" + b"1" * 40, "invalid bulk length"),
        (b"*1\r\n$4\r\nPINGxx", "expected a line end after an argument"),
        (b"x" * (1 << 17), "too big inline request"),
        (b'ECHO "a\r\n', "unbalanced quotes in request"),
    ],
)
def test_what_is_malformed_is_named(data: bytes, error: str) -> None:
    for cut in (1, 5, 1 << 30):
        assert parsed(packed(b"PING") + data, cut) == ([["PING"]], error)


def test_a_command_may_not_be_too_big_in_all() -> None:
    assert parsed(packed(*[b"x" * 60_000] * 5))[1] == "too big request"


def test_empty_commands_are_passed_over() -> None:
    assert parsed(b"*0\r\n*-1\r\n" + packed(b"PING")) == ([["PING"]], "")


@pytest.mark.parametrize("seed", range(60))
def test_noise_is_read_or_named_and_never_more(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(b"".join(packed(*(chance.choice(WORDS[:9]) for _ in range(3))) for _ in range(5)))
    for _ in range(chance.randint(1, 10)):
        at = chance.randrange(len(data))
        data[at : at + chance.randint(0, 3)] = bytes(chance.choices(b"*$\r\n-0159a\xff", k=chance.randint(0, 3)))
    whole = parsed(bytes(data))
    assert parsed(bytes(data), 1) == whole
    assert parsed(bytes(data), chance.randint(2, 50)) == whole


@pytest.mark.parametrize(
    ("value", "two", "three"),
    [
        (None, b"$-1\r\n", b"_\r\n"),
        (NO_LIST, b"*-1\r\n", b"_\r\n"),
        (OK, b"+OK\r\n", b"+OK\r\n"),
        (7, b":7\r\n", b":7\r\n"),
        ("é", b"$2\r\n\xc3\xa9\r\n", b"$2\r\n\xc3\xa9\r\n"),
        (Fault("ERR a\r\nb"), b"-ERR a  b\r\n", b"-ERR a  b\r\n"),
        (("a", [1]), b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n"),
        (Pairs(("a", 1)), b"*2\r\n$1\r\na\r\n:1\r\n", b"%1\r\n$1\r\na\r\n:1\r\n"),
        (Push(("m",)), b"*1\r\n$1\r\nm\r\n", b">1\r\n$1\r\nm\r\n"),
    ],
)
def test_values_are_written_in_either_version(value: Any, two: bytes, three: bytes) -> None:
    assert (encode(write(value, 2)), encode(write(value, 3))) == (two, three)
