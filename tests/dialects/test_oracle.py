"""The oracle (tools/oracle) finds what differs, and only that: on planted differences, without the original."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from qmodel.conformance.compare.shrink import shorten
from tools.oracle.compare import Heard, difference, kind
from tools.oracle.histories import Drawer
from tools.oracle.original import loadable
from tools.oracle.run import run
from tools.oracle.sides import MemorySide, Words


def said(reply: object, *published: tuple[str, str]) -> Heard:
    """A reply with messages."""
    return Heard(reply, None, published)


def refused(sentence: str) -> Heard:
    """An error."""
    return Heard(None, sentence, ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (said("{}"), said("[]")),
        (said('{"tags":{},"jid":"a"}'), said('{"jid":"a","tags":[]}')),
        (said('{"dependents":["b","a"]}'), said('{"dependents":["a","b"]}')),
        (said('{"mean":0.30000000000000004}'), said('{"mean":0.3}')),
        (said('[{"priority":7}]'), said('[{"priority":7.0}]')),
        (said(None, ("log", '{"a":1,"b":2}')), said(None, ("log", '{"b":2,"a":1}'))),
        (refused("user_script:7: Put(): Arg \"jid\" missing script: " + "0" * 40), refused('Put(): Arg "jid" missing')),
        (refused("user_script:7: attempt to index a nil value"), refused('Log(): Arg "data" not a JSON object: 3')),
    ],
)  # fmt: skip
def test_what_is_equal(one: Heard, other: Heard) -> None:
    assert difference(one, other) is None


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (said('[{"jid":"a","state":"running"}]'), said('[{"jid":"a","state":"waiting"}]'), "reply[0].state"),
        (said('{"tags":["a","b"]}'), said('{"tags":["b","a"]}'), "reply.tags[0]"),
        (said('{"tags":[]}'), said('{"tags":[],"throttles":[]}'), "reply.throttles"),
        (said("a"), refused("Put(): Arg \"jid\" missing"), "error Put()"),
        (refused("Put(): Arg \"jid\" missing"), refused("Put(): Arg \"klass\" missing"), '"klass"'),
        (said(None, ("log", "{}")), said(None), "published"),
        (said(None, ("log", "1"), ("w:v", "1")), said(None, ("w:v", "1"), ("log", "1")), "published"),
    ],
)  # fmt: skip
def test_what_differs(one: Heard, other: Heard, named: str) -> None:
    found = difference(one, other)
    assert found is not None and named in found


def test_errors_of_lua_itself_are_one_kind() -> None:
    assert kind("ERR user_script:3: bad argument #1 to 'decode' (string expected, got nil)") == "internal"
    assert kind("user_script:1: Complete(): Job a does not exist") == "Complete(): Job a does not exist"


def test_a_history_is_shrunk_to_what_the_difference_needs() -> None:
    def differs(history: Sequence[int]) -> int | None:
        at = history.index(7) if 7 in history else None
        return at if at is not None and 3 in history[:at] else None

    assert shorten([1, 3, *range(10, 40), 7, 8], differs) == [3, 7]


class Planted(MemorySide):
    """The dialect with a planted fault: a job that was failed loses its tags."""

    def call(self, words: Words) -> Heard:
        """Execute one call."""
        heard = super().call(words)
        if words[0] == "get" and heard.reply is not None:
            job = json.loads(heard.reply)
            if job["state"] == "failed" and job["tags"]:
                return heard._replace(reply=json.dumps(job | {"tags": []}))
        return heard


def test_a_planted_fault_is_found_and_shrunk() -> None:
    weights = {"put": 6, "pop": 6, "fail": 4, "get": 6, "stats": 1, "queues": 1}
    result = run(MemorySide(), Planted(), lambda seed: Drawer(seed, weights), 20, 60, "planted")
    assert result.differing.keys() == {"get"}
    (found,) = result.found
    assert (found.history[0][0], found.history[-1][0]) == ("put", "get") and len(found.history) <= 4
    assert "reply.tags" in found.said


def test_the_same_sides_do_not_differ() -> None:
    result = run(MemorySide(), MemorySide(), Drawer, 5, 60, "same")
    assert (result.equal, result.histories) == (5, 5)


def test_the_original_is_made_loadable() -> None:
    script = "function table.extend(self, other)\nend\ntable.extend(jids, more)"
    assert loadable(script) == "local function table_extend(self, other)\nend\ntable_extend(jids, more)"
