"""The server's replies equal those of the Lua library byte for byte: for valid calls and for broken ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.host import LuaHost
from qmodel.conformance.compare.runner import draw
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE
from qmodel.serve import lists
from qmodel.serve.functions import ModelExecutor
from qmodel.serve.replies import SHAPES
from qmodel.serve.resp import encode, write
from qmodel.wire import codec
from qmodel.wire.journal import resp
from tests.tester import share

PREFIX = "ql:"


@cache
def host() -> LuaHost:
    return LuaHost(lambda: 1_700_000_000.0)


def both() -> ModelExecutor:
    """Empty the library's keys, forget what it remembers, and give a server whose epochs end in the same digits."""
    host().fresh()
    host().keyspace.run_id = b"0" * 40
    host().load(bundle.library())
    executor = ModelExecutor(lambda: 1_700_000_000_000)
    executor._digits = 0
    return executor


def calls(seed: int, steps: int = 60) -> Iterator[tuple[str, list[str]]]:
    """Convert a history to calls: the operation's name, and its words."""
    for now, op in draw(RandomChooser(seed), steps):
        try:
            yield op.spec.name, codec.encode(op, now)
        except codec.Unencodable:
            continue


def of_lua(name: str, words: list[str]) -> bytes:
    raw = host().fcall(bundle.function_name(name), (PREFIX,), words)
    return encode(write(raw))


def same(executor: ModelExecutor, name: str, words: list[str]) -> bool:
    """Compare the bytes of both replies; of a peek the jobs, which the library shows as they will be when popped."""
    served, replied = of_server(executor, name, words), of_lua(name, words)
    return served == replied or (name == "peek" and _shown(served) == _shown(replied))


def _shown(reply: bytes) -> Any:
    return codec.decode(ops.Peek("q"), resp(reply))


def of_server(executor: ModelExecutor, name: str, words: list[str]) -> bytes:
    return encode(write(executor.call(0, CATALOGUE[name], PREFIX, words, 0)))


def comparable(seed: int) -> Iterator[tuple[str, list[str]]]:
    """Give the calls of a seed, but for reads of the journal: they show replies as a reader decodes them."""
    return ((name, words) for name, words in calls(seed) if name != "journal")


@pytest.mark.parametrize("block", range(4))
def test_replies_are_those_of_the_lua_library_byte_for_byte(block: int) -> None:
    for seed in range(block * 40, block * 40 + share(40)):
        executor = both()
        for name, words in comparable(seed):
            assert same(executor, name, words), (seed, name, words)


@pytest.mark.parametrize("block", range(2))
def test_the_lists_that_exist_are_the_keys_of_the_lua_library(block: int) -> None:
    for seed in range(block * 20, block * 20 + share(20)):
        executor = both()
        for name, words in comparable(seed):
            of_server(executor, name, words)
            of_lua(name, words)
            for queue in executor.spaces.of(0, PREFIX).store.queues:
                for key in bundle.ready_keys(PREFIX, queue):
                    assert lists.count(executor, 0, [key]) == (key.encode() in host().keyspace.dump()), (
                        seed,
                        name,
                        key,
                    )


def broken(chance: random.Random, words: list[str]) -> list[str]:
    """Make a call with one or two mistakes."""
    words = list(words)
    for _ in range(chance.randint(1, 2)):
        at = chance.randrange(len(words)) if words else 0
        act = chance.randrange(4)
        if act == 0 and words:
            del words[at]
        elif act == 1:
            words.insert(at, chance.choice(HOSTILE))
        elif act == 2 and words:
            words[at] = chance.choice(HOSTILE)
        else:
            words += [chance.choice(("no", "priority", "tags", "jobs", "request", "jid", "count", "x"))]
            words += [chance.choice(HOSTILE)] * chance.randint(0, 2)
    return words


HOSTILE = (
    "", "0", "1", "-0", "+1", "01", "1e3", "1.0", " 1", "9" * 15, "9" * 16, "-5", "no", "tags", "jobs", "queue",
    "a b", "x" * 129, "a-data", "\x00", "\t", "\x7f", "é", "request", "priority", "true",
)  # fmt: skip


@pytest.mark.parametrize("block", range(4))
def test_broken_calls_are_refused_as_by_the_lua_library(block: int) -> None:
    for seed in range(block * 40, block * 40 + share(40)):
        chance = random.Random(seed)
        executor = both()
        for name, proper in calls(seed):
            words = broken(chance, proper) if chance.random() < 0.5 else proper
            assert same(executor, name, words), (seed, name, words)


def test_every_shape_of_reply_can_be_written() -> None:
    assert SHAPES.keys() == codec.SHAPES.keys()


def test_text_that_is_not_utf_8_is_refused() -> None:
    executor = ModelExecutor(lambda: 1_700_000_000_000)
    refused: Any = executor.call(0, CATALOGUE["put"], PREFIX, ["1", "", "q", "j", "k", "\udcff"], 0)
    assert refused == ["BAD_ARGUMENT", "put", "data"]
