"""Injected faults, the judge's findings about a binding's reaction, and the record."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import redis
from click.testing import CliRunner

import qmodel
from qmodel.cli import cli
from qmodel.conformance.kit import vectors
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.model import engine
from qmodel.model.state.store import Store
from qmodel.serve.faults import FAULTS, Faults, rule
from qmodel.serve.judge import KEPT, MOST_FINDINGS, Judge
from qmodel.serve.namespaces import Space
from tests.serve.support import Serving, run_to_its_end, serving

PREFIX = "ql:"


@pytest.fixture(scope="module")
def judged() -> Iterator[Serving]:
    with serving() as server:
        yield server


@pytest.fixture
def served(judged: Serving) -> Iterator[Serving]:
    with judged.client() as client:
        client.flushall()
        client.execute_command("DEBUG", "QMODEL", "HEAL")
    yield judged


def put(client: redis.Redis, jid: str, request: str = "r") -> Any:
    return client.fcall("qmodel_v1_put", 1, PREFIX, "", request, "q", jid, "K", "{}")


def length(client: redis.Redis) -> Any:
    return client.fcall("qmodel_v1_length", 1, PREFIX, "", "", "q")


def fault(server: Serving, text: str) -> None:
    with server.client() as client:
        client.execute_command("DEBUG", "QMODEL", "FAULT", text)


# ---- faults


@pytest.mark.parametrize(
    ("name", "error", "executed"),
    [
        ("busy", "BUSY|running a script", 0),
        ("loading", "loading", 0),
        ("readonly", "read only", 0),
        ("not-found", "Function not found", 0),
        ("drop", None, 0),
        ("lost", None, 1),
        ("cut", None, 1),
    ],
)
def test_a_fault_is_what_it_says(served: Serving, name: str, error: str | None, executed: int) -> None:
    fault(served, f"{name}:putx1")
    with served.client() as client:
        with pytest.raises(redis.RedisError, match=error):
            put(client, "j")
        client.execute_command("PING")
    if name == "not-found":
        qmodel.connect(served.url).close()  # the client loads the library again
    with served.client() as client:
        assert length(client) == executed
        assert client.execute_command("DEBUG", "QMODEL", "FAULTS") == [[f"{name}:putx1".encode(), 1]]


def test_a_delay_holds_up_its_own_connection_only(served: Serving) -> None:
    held_up = []
    for number, delay in enumerate((400, 4000, 20_000)):  # longer, on a machine that is late
        fault(served, f"delay={delay}:putx1")
        with served.client() as slow, served.client() as quick:
            connection = slow.connection_pool.get_connection()
            connection.send_command("FCALL", "qmodel_v1_put", "1", PREFIX, "", "", "q", f"j{number}", "K", "{}")
            until = time.monotonic() + 60
            while length(quick) == number:
                assert time.monotonic() < until
            held_up.append(not connection.can_read(0))
            assert connection.read_response() == f"j{number}".encode()
        if held_up[-1]:
            break
    assert held_up[-1]


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "delay"])
def test_our_own_client_stands_every_fault(served: Serving, name: str) -> None:
    fault(served, f"{name}@30%")
    functions = "no" if name == "noscript" else "yes"
    with qmodel.Client(f"{served.url}?functions={functions}") as client:
        for number in range(30):
            client.queues["q"].put("K", number, jid=f"j{number}")
        done = []
        while (job := client.queues["q"].pop()) is not None:
            done.append(job.jid)
            job.complete()
        assert done == [f"j{number}" for number in range(30)]


def test_what_is_left_to_chance_is_the_same_again_from_its_seed() -> None:
    words = ["FCALL", "qmodel_v1_put"]
    drawn = [[Faults(["lost@30%"], seed).strike(words) is None for _ in range(1)] for seed in range(50)]
    again = [[Faults(["lost@30%"], seed).strike(words) is None for _ in range(1)] for seed in range(50)]
    assert drawn == again
    assert len({str(one) for one in drawn}) == 2


def several(client: redis.Redis, *jids: str, request: str = "") -> Any:
    """Put jobs by one call of several operations."""
    words = [("put", "6", "", request and f"{request}.{jid}", "q", jid, "K", "{}") for jid in jids]
    return client.fcall("qmodel_v1_calls", 1, PREFIX, *[word for one in words for word in one])


@pytest.mark.parametrize("text", ["busyx1", "busy:putx1"])
def test_a_call_of_several_operations_meets_faults(served: Serving, text: str) -> None:
    fault(served, text)
    with served.client() as client:
        with pytest.raises(redis.RedisError, match=r"BUSY|running a script"):
            several(client, "a", "b")
        assert several(client, "a", "b") == [b"a", b"b"]


def test_a_rule_of_one_operation_lets_a_call_of_others_pass(served: Serving) -> None:
    fault(served, "busy:complete")
    with served.client() as client:
        assert several(client, "a", "b") == [b"a", b"b"]


def test_a_call_of_a_document_meets_faults(served: Serving) -> None:
    fault(served, "busyx1")
    with served.client() as client, pytest.raises(redis.RedisError, match=r"BUSY|running a script"):
        client.fcall("qmodel_v1_qless_document", 1, PREFIX, "000", "get", "j")


@pytest.mark.parametrize(
    "text", ["", "lose", "lost:nothing", "delay", "lost=5", "lost@x%", "lost@500%", "lostx", "delay=5:pop@5x3"]
)
def test_what_is_no_rule_is_refused(served: Serving, text: str) -> None:
    with pytest.raises(ValueError):
        rule(text)
    with served.client() as client, pytest.raises(redis.ResponseError):
        client.execute_command("DEBUG", "QMODEL", "FAULT", text)


def test_a_bad_rule_on_the_command_line_is_named() -> None:
    code, said = run_to_its_end("--fault", "lose")
    assert code == 2 and "'lose' is not a rule" in said


def test_what_can_be_salvaged_is_named() -> None:
    code, said = run_to_its_end("--salvage")
    assert code == 2 and "name their folder" in said


# ---- the judge


def verdict(act: Callable[[Serving], None], *options: str) -> str:
    """Run actions against a server; give the judge's verdict."""
    with serving("--judge", *options) as server:
        act(server)
        with server.client() as client:
            said: list[bytes] = client.execute_command("DEBUG", "QMODEL", "VERDICT")
        return "\n".join(line.decode() for line in said)


def test_our_own_client_is_found_clean_under_faults() -> None:
    def act(server: Serving) -> None:
        with qmodel.Client(server.url) as client:
            for number in range(40):
                client.queues["q"].put("K", number)
            while (job := client.queues["q"].pop()) is not None:
                job.complete()

    said = verdict(act, "--fault", "lost@15%", "--fault", "busy@10%", "--fault", "not-found@3%", "--seed", "7")
    assert "No mistakes were found" in said and "were struck by a fault" in said


def raw(*calls: tuple[str, ...]) -> Callable[[Serving], None]:
    """Make an action that sends calls and ignores their outcomes."""

    def act(server: Serving) -> None:
        for name, *words in calls:
            with server.client() as client:
                try:
                    client.fcall(f"qmodel_v1_{name}", 1, PREFIX, "", *words)
                except redis.RedisError:
                    continue

    return act


PUT = ("put", "r1", "q", "j", "K", "{}")
POP = ("pop", "r2", "q", "w")

WRONG: dict[str, tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]] = {
    "UNKNOWN-FUNCTION": ((("nonsense", "", "q"),), ()),
    "CALL-1": ((("put", "r", "q", "j", "K", "{}", "priority", "1.0"),), ()),
    "SEND-1": ((PUT, ("put", "another", *PUT[2:])), ("--fault", "lost:putx1")),
    "SEND-2": ((("pop", "", "q", "w"),), ()),
    "SEND-3": ((PUT, ("pop", "r1", "q", "w")), ()),
    "LEASE-2": ((PUT, POP, ("complete", "", "j", "77")), ()),
    "LOAD-1": ((PUT,), ("--fault", "not-found:putx1")),
    "RETRY-1": ((PUT,), ("--fault", "lost:putx1")),
}


@pytest.mark.parametrize("code", WRONG)
def test_a_binding_that_is_wrong_is_named_for_what_is_wrong(code: str) -> None:
    calls, options = WRONG[code]
    said = verdict(raw(*calls), *options)
    assert f"{code}, once" in said, said


def test_a_call_that_is_cut_short_gets_one_reply_when_a_fault_strikes_it() -> None:
    def act(server: Serving) -> None:
        fault(server, "busyx2")
        with server.client() as client:
            for words in (("FCALL", "qmodel_v1_pop", "0"), ("FCALL", "qmodel_v1_pop", "1")):
                with pytest.raises(redis.RedisError, match=r"BUSY|running a script"):
                    client.execute_command(*words)
                assert client.ping() is True

    assert "pop" in verdict(act)


def test_what_is_sent_together_is_to_be_sent_again() -> None:
    def act(again: str) -> Callable[[Serving], None]:
        def run(server: Serving) -> None:
            fault(server, "busyx1")
            with server.client() as client:
                with pytest.raises(redis.RedisError, match=r"BUSY|running a script"):
                    several(client, "a", "b", request="r")
                several(client, "a", "b", request=again)

        return run

    assert "No mistakes" in verdict(act("r"))
    assert "SEND-1, 2 times" in verdict(act("s"))


def test_a_worker_that_ignores_lock_lost_is_named() -> None:
    def act(server: Serving) -> None:
        with server.client() as client:
            put(client, "j")
            popped = client.fcall("qmodel_v1_pop", 1, PREFIX, "5", "p1", "q", "w")
            client.fcall("qmodel_v1_timeout", 1, PREFIX, "6", "t1", "jids", "j")
            token = popped.split(b"\n")[1].split(b"\t")[9]
            for _ in range(2):  # the same call again is fine
                client.fcall("qmodel_v1_heartbeat", 1, PREFIX, "7", "", "j", token)
            client.fcall("qmodel_v1_complete", 1, PREFIX, "8", "", "j", token)

    said = verdict(act)
    assert "LEASE-4, once" in said and "complete j" in said, said


def test_what_is_no_call_of_a_queue_is_named() -> None:
    def act(server: Serving) -> None:
        with server.client() as client, pytest.raises(redis.ResponseError):
            client.set("a", 1)
        with server.line() as line:
            line.sendall(b"*1\r\nGET / HTTP/1.1\r\n")
            assert line.recv(100).startswith(b"-ERR Protocol error")

    said = verdict(act)
    assert "UNKNOWN-COMMAND, once" in said and "PROTOCOL, once" in said


def test_the_verdict_is_the_exit_code() -> None:
    with serving("--judge") as server:
        raw(*WRONG["SEND-2"][0])(server)
        assert server.process is not None
        server.process.terminate()
        said = server.process.communicate(timeout=60)[0]
        assert server.process.returncode == 1 and "SEND-2, once" in said


def test_what_the_judge_remembers_is_bounded() -> None:
    judge = Judge()
    for number in range(2 * MOST_FINDINGS):
        judge.unknown(1, [f"NO-{number}"])
        judge.malformed(1, "x" * 500_000 + str(number))
    assert len(judge.findings) == MOST_FINDINGS and all(len(what) <= 300 for _, what in judge.findings)
    assert list(judge.lines())[-1] == "1,001 more calls showed other mistakes, which are not listed."

    space, spec = Space(0, "p:", lambda *_: None), CATALOGUE["heartbeat"]
    for token in range(KEPT + 10):
        lost = Refusal("LOCK_LOST", ("a", str(token), "", ""))
        judge.call(1, space, spec, ["", "a", str(token)], ops.Heartbeat("a", token), lost)
    assert len(judge._lost) == KEPT
    judge.call(1, space, CATALOGUE["put"], ["r", "x" * 1_000_000], None, None)
    assert sys.getsizeof(judge._requests["r"]) < 200


def test_the_same_lease_in_two_namespaces_is_no_finding() -> None:
    def act(server: Serving) -> None:
        with server.client() as client:
            for prefix in ("one:", "other:"):
                client.fcall("qmodel_v1_put", 1, prefix, "5", f"r{prefix}", "q", "j", "K", "{}")
                with contextlib.suppress(redis.RedisError):
                    client.fcall("qmodel_v1_heartbeat", 1, prefix, "5", "", "j", "7")

    assert "LEASE-4" not in verdict(act)


# ---- the record


def test_a_record_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["serve", "--port", "0", "--record", str(tmp_path / "none" / "record.jsonl")])
    assert done.exit_code == 69 and "cannot be written: No such file or directory." in done.stderr


def test_the_record_is_vectors_that_the_model_agrees_with(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    with serving("--record", str(path)) as server:
        with qmodel.Client(server.url) as client:
            client.queues["q"].put("K", "one", jid="a")
            client.queues["q"].pop(worker="w")
            client.queues["q"].pop(worker="w", timeout=0)
        with qmodel.Client(f"{server.url}?prefix=other:") as client:
            client.queues["q"].put("K", jid="b")
            with server.client() as admin:
                admin.flushdb()
            client.queues["q"].put("K", jid="c")
        assert "3 vectors" in server.stop()
    head, found = vectors.loads(path.read_text())
    assert [len(set(head["connections"][one.id])) for one in found] == [1, 1, 1]
    for line in path.read_text().splitlines():
        jsonschema.Draft202012Validator(vectors.as_schema()).validate(json.loads(line))
    for one in found:
        store = Store()
        assert [vectors.outcome(engine.step(store, *step)) for step in one.steps] == list(one.outcomes)
    assert [step.op.spec.name for step in found[0].steps][:2] == ["put", "pop"]
