"""A deployment on this server works as on Redis: its own tests, but for those with more than one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import qmodel
from qmodel.backends.bundle import ready_keys
from qmodel.contract.operations import CATALOGUE
from tests.backends import test_redis_deployment as of_backend
from tests.backends.test_redis_deployment import backend  # noqa: F401  # a fixture of those tests
from tests.serve.support import Serving, serving
from tests.serve.test_journal import opened, same
from tests.serve.test_sessions import read
from tests.servers import Server
from tests.worker import test_shards as of_worker
from tests.worker.test_shards import client, loses, url  # noqa: F401

OTHERS = {
    "test_shards_are_spread_over_the_nodes_and_any_node_leads_to_them",
    "test_a_shard_that_moves_and_a_node_that_dies_lose_nothing_and_raise_nothing",
    "test_a_node_that_hangs_holds_up_only_calls_for_its_shards",
    "test_a_task_does_not_wait_for_ever_for_a_server_that_hangs",
    "test_a_worker_goes_on_with_other_shards_while_a_node_hangs",
    "test_a_job_that_ends_while_its_node_hangs_and_its_worker_stops_is_reported",
    "test_no_wake_up_is_lost_and_the_calls_of_a_job_do_not_grow_with_the_shards",
    "test_an_error_of_one_shard_is_raised_and_others_work",
    "test_the_doctor_names_the_nodes_whose_settings_lose_jobs",
}
"""These have several servers, count by a statistic that only Redis keeps, or write a key of another type."""

TESTS = {name: test for one in (of_backend, of_worker) for name, test in vars(one).items() if name.startswith("test_")}


@pytest.fixture(scope="module")
def serve() -> Iterator[Serving]:
    with serving() as started:
        yield started


@pytest.fixture
def server(serve: Serving) -> Server:
    """Replace the server of those tests by `qmodel serve`."""
    return Server("serve", serve.url)


globals().update({name: test for name, test in TESTS.items() if name not in OTHERS})


def test_what_is_left_out_is_there() -> None:
    assert TESTS.keys() >= OTHERS


PREFIX = "{shop:0.1}:"


def pop(asking: Any) -> None:
    asking.fcall("qmodel_v1_pop", 1, PREFIX, "", "", "q", "w", "wait", "1")


def put(asking: Any, jid: str, *more: str) -> None:
    asking.fcall("qmodel_v1_put", 1, PREFIX, "", "", "q", jid, "K", "{}", *more)


WAKE = f"{PREFIX}q:q-wake"


def test_a_wake_up_that_is_given_back_wakes_another_one(serve: Serving) -> None:
    with serve.client() as asking, serve.client(decode_responses=True) as other:
        assert asking.rpush(WAKE, 1) == 0  # there is no such queue, so nobody needs it
        pop(asking)
        put(asking, "j")
        assert other.blpop([WAKE], 5) == (WAKE, "1")
        assert other.blpop([WAKE], 0.05) is None
        assert asking.rpush(WAKE, 1) == 1
        assert other.blpop([WAKE], 5) == (WAKE, "1")
        with pytest.raises(redis.ResponseError, match="gives back wake-ups, and nothing else"):
            asking.rpush("mylist", 1)


def test_a_wake_up_that_is_given_back_is_in_the_journal(tmp_path: Path) -> None:
    journal, executor = opened(tmp_path)
    for name, *words in (("pop", "q", "w", "wait", "1"), ("put", "q", "j", "K", "{}")):
        executor.call(0, CATALOGUE[name], PREFIX, ["", "", *words], 0)
    assert executor.take_wake(0, [WAKE]) == WAKE
    assert executor.give_back_wake(0, WAKE) == 1
    journal.commit()
    journal.close()
    journal, again = opened(tmp_path)
    assert same(executor.spaces, again.spaces)
    assert again.take_wake(0, [WAKE]) == WAKE
    journal.close()


def test_who_waits_is_unblocked_once(serve: Serving) -> None:
    with serve.line() as line, serve.client() as asking:
        for how, said in ((), b"*-1"), (("TIMEOUT",), b"*-1"), (("ERROR",), b"-UNBLOCKED"):
            line.sendall(b"CLIENT ID\r\nBLPOP ql:q:q-wake 60\r\n")
            (number,) = read(line, 1)
            asked = [("CLIENT", "UNBLOCK", number[1:].decode(), *how)] * 2
            with asking.pipeline(transaction=False) as several:
                for words in asked:
                    several.execute_command(*words)
                assert several.execute() == [1, 0]
            assert read(line, 1)[0].startswith(said)
        for words, why in (("x",), "not an integer"), (("1", "SOON"), "wrong number"):
            with pytest.raises(redis.ResponseError, match=why):
                asking.execute_command("CLIENT", "UNBLOCK", *words)


def test_lists_exist_that_are_not_empty(serve: Serving) -> None:
    with serve.client() as asking:
        asking.flushall()
        put(asking, "a")
        put(asking, "b", "delay_ms", "60000")
        keys = ready_keys(PREFIX, "q")
        assert [asking.exists(key) for key in keys] == [1, 1, 0, 0, 0]
        assert asking.exists(*keys, *ready_keys(PREFIX, "other"), *ready_keys("other:", "q")) == 2
        with pytest.raises(redis.ResponseError, match="EXISTS looks at lists of queues here"):
            asking.exists("a")


def test_a_deployment_behind_another_backend_is_refused() -> None:
    with serving("--url", "embedded://") as started:
        with pytest.raises(qmodel.ConnectError, match="only one namespace"):
            qmodel.connect(f"{started.url}?name=shop&shards=4")
        with started.client() as asking:
            for words in ("RPUSH", WAKE, "1"), ("EXISTS", *ready_keys("ql:", "q")):
                with pytest.raises(redis.ResponseError, match="start qmodel serve without --url"):
                    asking.execute_command(*words)
