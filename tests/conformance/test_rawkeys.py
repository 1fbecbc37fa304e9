"""The decoder of raw keys notices keys that contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost
from qmodel.backends.redis import raw_keys
from qmodel.contract.operations import Complete, ConfigSet, Log, Operation, Pop, Put
from qmodel.wire import codec

Keys = dict[bytes, tuple[str, Any]]


def keys_after(*steps: Operation) -> Keys:
    """The keys after some operations."""
    host = LuaHost()
    host.load(bundle.library())
    for at, op in enumerate(steps, 1):
        host.fcall(bundle.function_name(op.spec.name), ["ql:"], codec.encode(op, at))
    return dict(host.keyspace.dump())


def corrupt(keys: Keys, key: bytes, old: bytes, new: bytes) -> None:
    """Change a text within a key."""
    kind, text = keys[key]
    assert text.count(old) == 1, text
    keys[key] = kind, text.replace(old, new)


STEPS = (Put("q", "a", "K", "data", tags=("red",)), Put("q", "b", "K", "data"), Pop("q", "w"), Complete("a", 3, "done"))


def test_keys_written_by_the_library_are_decoded() -> None:
    snapshot = raw_keys.decode(keys_after(*STEPS))
    assert snapshot.jobs["a"]["result"] == "done"
    assert [tag for tag, _ in snapshot.jobs["a"]["tags"]] == ["red"]
    assert snapshot.jobs["b"]["data"] == "data"


@pytest.mark.parametrize(
    ("key", "old", "new", "said"),
    [
        (b"ql:j:a", b"\t4\t0\t0\t\n", b"\t3\t0\t0\t\n", "bytes of texts"),
        (b"ql:j:a", b"0\t0\tred\t", b"1\t0\tred\t", "are counted as"),
        (b"ql:j:a", b"0\t0\tred\t", b"0\t0\tblu\t", "has the tags"),
        (b"ql:counters", b"4\t0\t0\t1", b"4\t0\t1\t1", "counted as tracked"),
        (b"ql:counters", b"4\t0\t0\t1", b"5\t0\t0\t1", "the sequence is 5"),
    ],
)
def test_a_contradiction_is_noticed(key: bytes, old: bytes, new: bytes, said: str) -> None:
    keys = keys_after(*STEPS)
    corrupt(keys, key, old, new)
    with pytest.raises(raw_keys.Corrupt, match=said):
        raw_keys.decode(keys)


def test_a_stream_that_is_never_trimmed_is_noticed() -> None:
    keys = keys_after(Put("q", "a", "K", ""), *(Log("a", f"line {n}") for n in range(300)), ConfigSet("max-events", 5))
    raw_keys.decode(keys)
    keys |= {b"ql:events": keys_after(Put("q", "a", "K", ""), *(Log("a", "line") for _ in range(301)))[b"ql:events"]}
    with pytest.raises(raw_keys.Corrupt, match="302 events are in the stream, where 5 are kept"):
        raw_keys.decode(keys)


def test_an_event_with_another_field_is_noticed() -> None:
    keys = keys_after(*STEPS)
    kind, (entries, last) = keys[b"ql:events"]
    keys[b"ql:events"] = kind, ([(one, (b"f", *fields[1:])) for one, fields in entries], last)
    with pytest.raises(raw_keys.Corrupt, match="other fields"):
        raw_keys.decode(keys)
