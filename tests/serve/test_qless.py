"""The qless dialect through the server: a binding loads its script, and gets the model's replies and messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from qmodel.backends import bundle
from qmodel.conformance.dialects import runner
from qmodel.conformance.dialects.subjects import ModelSubject, ServerSubject
from qmodel.conformance.histories.choose import RandomChooser
from tests.serve.support import Serving, serving

LIKE_QLESS = (
    "local Qless = {}\nlocal QlessAPI = {}\nfunction QlessAPI.put(now)\nend\nif #KEYS > 0 then error('x') end\n"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving() as server:
        yield server


def test_the_length_of_a_queue_is_read_as_the_ruby_bindings_do(served: Serving) -> None:
    with served.client(decode_responses=True) as client:
        client.flushdb()
        for jid, delay in (("a", 0), ("b", 0), ("c", 60)):
            client.fcall("qmodel_v1_qless", 1, "ql:", "put", "1", "me", "q", jid, "K", "{}", delay)
        client.fcall("qmodel_v1_qless", 1, "ql:", "put", "1", "me", "q", "d", "K", "{}", 0, "depends", '["a"]')
        client.fcall("qmodel_v1_qless", 1, "ql:", "pop", "2", "q", "w", 1)
        with client.pipeline(transaction=True) as pipe:
            for name in ("locks", "work", "scheduled", "depends"):
                pipe.zcard(f"ql:q:q-{name}")
            assert sum(pipe.execute()) == 4
        assert client.zcard("ql:q:none-work") == 0
        with pytest.raises(redis.ResponseError, match="counts the jobs of a queue"):
            client.zcard("ql:queues")


class Blind(ServerSubject):
    """A server whose keys cannot be read."""

    def replies(self, history: list[Any]) -> list[tuple[Any, Any]]:
        """Collect the outcome and the messages of each step, on an empty namespace."""
        self._client.flushdb()
        with self._client.pipeline(transaction=False) as asking:
            for number, one in enumerate(history):
                asking.execute_command(*self._words(one))
                asking.publish(f"{self._prefix}end", number)
            raw = asking.execute(raise_on_error=False)[::2]
        return [(self._outcome(one, raw[n]), self._messages(str(n))) for n, one in enumerate(history)]


@pytest.mark.parametrize("script", [False, True], ids=["function", "script"])
def test_replies_and_messages_are_those_of_the_model(served: Serving, script: bool) -> None:
    subject = Blind(served.url, script)
    for seed in range(15):
        history = list(runner.draw(RandomChooser(seed), 40))
        wanted = [(heard.outcome, heard.published) for heard in ModelSubject().run(history)]
        assert subject.replies(history) == wanted


def test_any_version_of_the_script_is_recognised(served: Serving) -> None:
    with served.client(decode_responses=True) as client:
        digest = client.script_load(LIKE_QLESS)
        assert client.script_exists(digest) == [True]
        assert client.evalsha(digest, 0, "put", "1.5", "me", "q", "a", "K", "{}", "0") == "a"
        with pytest.raises(redis.ResponseError, match="No Keys should be provided"):
            client.evalsha(digest, 1, "k", "length", "2", "q")
        with pytest.raises(redis.ResponseError, match="user_script:1: "):
            client.evalsha(digest, 0, "nonsense", "1")
        client.script_flush()
        with pytest.raises(redis.exceptions.NoScriptError):
            client.evalsha(digest, 0, "length", "2", "q")


def test_a_script_that_is_not_known_is_refused_with_what_to_do(served: Serving) -> None:
    with served.client() as client:
        for ask in (lambda: client.script_load("return 1"), lambda: client.eval("return 1", 0)):
            with pytest.raises(redis.ResponseError, match="no Lua runs here"):
                ask()


def test_our_own_library_as_a_script_answers(served: Serving) -> None:
    with served.client() as client:
        digest = client.script_load(bundle.script())
        assert client.evalsha(digest, 1, "ql:", "length", "", "", "q9") == 0


def test_a_call_is_one_entry_of_the_journal_and_is_there_after_kill_9(tmp_path: Any) -> None:
    with serving("--data", str(tmp_path)) as server:
        with server.client(decode_responses=True) as client:
            digest = client.script_load(LIKE_QLESS)
            for jid in "abc":
                client.evalsha(digest, 0, "put", "1.5", "me", "q", jid, "K", "{}", "0")
            client.evalsha(digest, 0, "pop", "2", "q", "me", "2")
        server.kill()
        server.start()
        with server.client(decode_responses=True) as client:
            assert client.evalsha(client.script_load(LIKE_QLESS), 0, "length", "3", "q") == 3
            assert client.evalsha(digest, 0, "peek", "3", "q", "5").count('"jid"') == 1
