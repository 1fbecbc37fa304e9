"""The scripts of `qmodel qless-lua` on a server, and the recognition of scripts."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner

from qmodel.backends import bundle
from qmodel.cli import cli
from qmodel.dialects import qless
from tests.servers import Server, serving


def printed(*words: str) -> str:
    """Run `qmodel qless-lua`; give its output."""
    done = CliRunner().invoke(cli, ["qless-lua", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_script_is_called_as_a_binding_calls_its_own(server: Server) -> None:
    with server.client(decode_responses=True) as client:
        client.flushdb()
        digest = client.script_load(printed())
        assert client.evalsha(digest, 0, "put", "1.5", "me", "q", "a", "K", "{}", "0") == "a"
        assert json.loads(client.evalsha(digest, 0, "pop", "2", "q", "w", "1"))[0]["jid"] == "a"
        assert client.evalsha(digest, 0, "length", "2", "q") == 1
        assert client.evalsha(digest, 0, "get", "2", "unknown") is None
        with pytest.raises(redis.ResponseError, match=r"^user_script:1: Pop\(\): Arg \"worker\" missing$"):
            client.evalsha(digest, 0, "pop", "2", "q")
        with pytest.raises(redis.ResponseError, match="No Keys should be provided"):
            client.evalsha(digest, 1, "k", "length", "2", "q")
        assert {key.partition(":")[0] for key in client.scan_iter()} == {"ql"}


def test_a_prefix_is_where_keys_and_channels_begin(server: Server) -> None:
    with server.client(decode_responses=True) as client, client.pubsub() as heard:
        client.flushdb()
        heard.psubscribe("*")
        heard.get_message(timeout=60)
        client.eval(printed("--prefix", "{it's}:"), 0, "put", "1.5", "me", "q", "a", "K", "{}", "0")
        assert all(key.startswith("{it's}:") for key in client.scan_iter())
        message = heard.get_message(timeout=60)
        assert message is not None and message["channel"] == "{it's}:log"


def test_the_function_is_called_under_any_prefix(server: Server) -> None:
    with server.client(decode_responses=True) as client:
        client.flushdb()
        client.function_load(bundle.library(), replace=True)
        name = f"{bundle.LIBRARY}_qless"
        assert client.fcall(name, 1, "x:", "put", "1.5", "me", "q", "a", "K", "{}", "0") == "a"
        with pytest.raises(redis.ResponseError, match=r"^Unknown command zap$"):
            client.fcall(name, 1, "x:", "zap", "1.5")


def test_a_document_has_a_script_for_each_operation(server: Server, tmp_path: Path) -> None:
    printed("--document", "000", "--into", str(tmp_path))
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.lua")}
    assert scripts.keys() == qless.DOCUMENTS["000"].keys()
    answers_as_the_later_document_says(server, scripts)


def test_serve_answers_the_scripts_of_a_document_and_of_its_time(tmp_path: Path) -> None:
    printed("--document", "000", "--into", str(tmp_path))
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.lua")}
    with serving("--data", str(tmp_path / "data")) as started:
        answers_as_the_later_document_says(started, scripts)
    with serving("--data", str(tmp_path / "data")) as again, again.client(decode_responses=True) as client:
        assert (
            json.loads(client.eval(scripts["get"], 0, "sooner"))["state"] == "complete"
        )  # its journal knows the calls
        client.flushdb()
        theirs = {name: OF_2012.format(name=name[0].upper() + name[1:], id="jid") for name in scripts}
        answers_as_the_later_document_says(again, theirs)
        name = f"{bundle.LIBRARY}_qless_document"
        assert json.loads(client.fcall(name, 1, "ql:", "000", "get", "later"))["jid"] == "later"


def test_the_statistics_of_the_documents_have_their_bins_and_go_by_tag(server: Server) -> None:
    with server.client(decode_responses=True) as client, serving() as started, started.client() as other:
        client.flushdb()
        for one in (client, other):
            today = int(time.time()) // 86_400 * 86_400  # a call without a time uses the server's
            put = bundle.document_script("000", "put")
            one.eval(put, 1, "q", "a", "K", "{}", today, "0", "tags", '["eu"]')
            one.eval(bundle.document_script("000", "pop"), 1, "q", "w", "1", today + 5000)
            stats = bundle.document_script("001", "stats")
            for by in ((), ("tag", "eu")):
                found = json.loads(one.eval(stats, 0, "q", today, *by))
                assert found["wait"]["total"] == 1
                assert [at for at, count in enumerate(found["wait"]["histogram"]) if count] == [120]  # a quarter
                assert len(found["wait"]["histogram"]) == 287
            assert json.loads(one.eval(stats, 0, "q", today, "worker", "w"))["wait"]["total"] == 0


def test_an_argument_that_no_document_has_is_refused(server: Server) -> None:
    with server.client(decode_responses=True) as client, serving() as started, started.client() as other:
        client.flushdb()
        for one in (client, other):
            with pytest.raises(redis.ResponseError, match=r"Stats\(\): Unexpected argument NOPE"):
                one.eval(bundle.document_script("000", "stats"), 0, "q", "now", "NOPE")
            with pytest.raises(redis.ResponseError, match=r"Pop\(\): Unexpected argument 9"):
                one.eval(bundle.document_script("001", "pop"), 1, "q", "w", "1", "2", "60", "9")
            assert one.eval(bundle.document_script("001", "pop"), 1, "q", "w", "1", "2", "60") == []


def answers_as_the_later_document_says(server: Server, scripts: dict[str, str]) -> None:
    with server.client(decode_responses=True) as client:
        client.flushdb()
        for jid, priority in (("later", 1), ("sooner", -1)):
            words = (jid, "K", '{"n":1}', "1.5", "0", "priority", priority)
            assert client.eval(scripts["put"], 1, "q", *words) == jid
        (job,) = client.eval(scripts["pop"], 1, "q", "w", "1", "2")
        found = json.loads(job)
        assert (found["jid"], found["data"], found["priority"]) == ("sooner", {"n": 1}, -1)
        assert found["history"] == [{"q": "q", "put": 1, "popped": 2, "worker": "w"}]
        assert client.eval(scripts["heartbeat"], 0, "sooner", "other", "3") is None
        assert client.eval(scripts["complete"], 0, "sooner", "w", "q", "3", "{}") == "complete"
        assert json.loads(client.eval(scripts["get"], 0, "later"))["state"] == "waiting"


def test_document_and_folder_go_together() -> None:
    done = CliRunner().invoke(cli, ["qless-lua", "--document", "000"])
    assert done.exit_code == 2 and "--into" in done.output


OF_2012 = """\
-- This script takes a name and then checks
if #KEYS ~= 1 then error('{name}(): Expected 1 KEYS argument') end
redis.call('hset', 'ql:j:' .. {id}, 'data', '')
"""
"""What the scripts of that time have in common."""

THEIRS = "-- Current SHA: 0\nlocal Qless = {\n  ns = 'ql:'\n}\nlocal QlessAPI = {}\nif #KEYS > 0 then error('no') end\n"


def test_scripts_are_recognised_by_what_stands_in_them() -> None:
    assert qless.recognise(bundle.qless_script())
    assert qless.recognise(bundle.qless_script("other:"))
    assert qless.recognise(THEIRS)
    assert qless.recognise(THEIRS.replace("Qless", "Reqless"))
    assert not qless.recognise("return redis.call('GET', KEYS[1])")
    assert not qless.recognise(bundle.script())
    assert not qless.recognise(bundle.document_script("000", "put"))


def test_scripts_of_the_documents_say_which_operation_they_are() -> None:
    for document, operations in qless.DOCUMENTS.items():
        for operation in operations:
            found = qless.recognise_document(bundle.document_script(document, operation))
            assert found == (document, operation)
    assert qless.recognise_document(OF_2012.format(name="GetConfig", id="jid")) == ("000", "getconfig")
    assert qless.recognise_document(OF_2012.format(name="Put", id="id")) == ("001", "put")
    assert qless.recognise_document(bundle.qless_script()) is None
    assert qless.recognise_document("-- Put(1, something) of another system") is None
