"""Threads and processes on one server: in the recorded order, their replies equal the model's."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from qmodel.conformance.concurrency import replay
from qmodel.contract.refusals import Refusal
from tests.servers import Server

COUNT = int(os.environ.get("QMODEL_CONCURRENT_OPERATIONS", "6000"))


@pytest.fixture(scope="module")
def history(server: Server) -> list[replay.Answered]:
    return replay.run(server.url, processes=2, threads=4, count=COUNT // 8)


def test_replies_to_many_clients_equal_the_models_replies(server: Server, history: list[replay.Answered]) -> None:
    assert len(history) == COUNT // 8 * 8
    assert replay.differences(server.url, history) == []


def test_the_clients_do_compete(history: list[replay.Answered]) -> None:
    changes = sum(a.op.spec.name != b.op.spec.name for a, b in pairwise(history))
    lost = sum(isinstance(one.outcome, Refusal) and one.outcome.code == "LOCK_LOST" for one in history)
    assert changes > len(history) / 4
    assert lost > len(history) / 100


def test_another_order_is_noticed(server: Server, history: list[replay.Answered]) -> None:
    wrong = sorted(history, key=lambda one: (one.order // 7, -one.order))
    assert replay.differences(server.url, wrong) != []
