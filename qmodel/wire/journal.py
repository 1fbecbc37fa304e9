"""Decode entries of the journal: calls and replies, stored as they were on the wire (lua/state/journal.lua)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodel.contract import replies
from qmodel.contract.operations import Operation
from qmodel.wire import as_json, parse

Raw = Any
"""A reply as the server sends it, as in codec.py."""


def recorded(raw: Raw, decode: Callable[[Operation, Raw], Any]) -> replies.Recorded:
    """Decode an entry: number, sequence, operation, call, outcome, epoch; `decode` decodes the outcome."""
    number, seq, name, call, outcome, epoch = raw
    words = [word.decode("utf-8", "surrogateescape") for word in _resp(call)]
    op = parse.operation(name.decode(), words)
    found = decode(op, _resp(outcome))
    return replies.Recorded(int(number), int(seq), as_json.call(int(words[0]), op), as_json.outcome(found), int(epoch))


def resp(text: bytes) -> Raw:
    """Decode one value of the Redis protocol (RESP2).

    >>> resp(b"*2\\r\\n$1\\r\\na\\r\\n:5\\r\\n")
    [b'a', 5]
    """
    return _resp_at(text, 0)[0]


def _resp_at(text: bytes, at: int) -> tuple[Raw, int]:
    """Decode the value at an offset; give it and the offset after it."""
    end = text.index(b"\r\n", at)
    kind, number, at = text[at : at + 1], int(text[at + 1 : end]), end + 2
    if kind == b":":
        return number, at
    if kind == b"$":
        return (None, at) if number < 0 else (text[at : at + number], at + number + 2)
    found = []
    for _ in range(number):
        one, at = _resp_at(text, at)
        found.append(one)
    return found, at


def _reader() -> Callable[[bytes], Raw]:
    """Choose the decoder: that of hiredis if it is installed, because it takes a tenth of the time."""
    try:
        from hiredis import Reader
    except ImportError:
        return resp

    def read(text: bytes) -> Raw:
        reader = Reader()
        reader.feed(text)
        return reader.gets()

    return read


_resp = _reader()
