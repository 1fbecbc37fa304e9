"""Profiles of workers: what a worker says of itself, and to whom."""

from __future__ import annotations

import json
import os

import pytest

from qmodel.app import App
from qmodel.client import profiles
from qmodel.client.profiles import Profile
from qmodel.client.sync import Client
from qmodel.contract.operations import MetadataSet
from qmodel.present import describe
from qmodel.version import __version__
from qmodel.worker import profile, remote_control
from tests.worker.support import until, working

SOME = Profile("host", 7, "1.0", "3.12.1", "thread", 4, 200 << 20, 10, 20, 2, ("q", "r"))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_control, "POLL_SECONDS", 0.05)


def test_a_worker_says_where_it_runs_until_it_ends(url: str, client: Client) -> None:
    client.execute(profiles.written("dead", SOME))
    client.execute(MetadataSet(profiles.PROFILES, "other", "what a later version says"))
    with working(App(url), name="w", queues=("q", "r"), concurrency=3, profile=True):
        until(lambda: "w" in client.workers.profiles(), "a profile")
        found = client.workers.profiles()
        assert found.keys() == {"w"}
        one = found["w"]
        assert (one.pid, one.version, one.concurrency, one.queues, one.queue_count) == (
            os.getpid(), __version__, 3, ("q", "r"), 2,
        )  # fmt: skip
        assert one.memory > 1 << 20
        assert one.said_at >= one.started_at > 0
    assert client.workers.profiles() == {}


def test_a_worker_without_a_profile_writes_none(url: str, client: Client) -> None:
    with working(App(url), name="w"):
        until(lambda: any(one.name == "w" for one in client.workers.counts()), "a worker on the list")
    assert client.workers.profiles() == {}


def test_a_profile_is_renewed(url: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "RENEWED_SECONDS", 0.05)
    with working(App(url), name="w", profile=True):
        until(lambda: "w" in client.workers.profiles(), "a profile")
        first = client.workers.profiles()["w"].said_at
        until(lambda: client.workers.profiles()["w"].said_at > first, "a newer profile")


def test_a_profile_fits_into_a_text_of_metadata() -> None:
    many = tuple(f"queue-{n}" for n in range(1000))
    op = profiles.written("w", SOME._replace(queues=many, queue_count=1000))
    assert len(op.value.encode()) <= 1024
    read = profiles.read([("w", op.value)])["w"]
    assert read.queue_count == 1000
    assert many[: len(read.queues)] == read.queues
    assert len(read.queues) > 10


@pytest.mark.parametrize("text", ["", "[]", "{", '{"host": "h"}', json.dumps({**SOME._asdict(), "pid": "7"})])
def test_what_is_no_profile_is_left_out(text: str) -> None:
    assert profiles.read([("w", text)]) == {}


def test_profiles_are_stale_after_an_hour() -> None:
    known = {"old": SOME, "older": SOME._replace(said_at=10), "new": SOME._replace(said_at=3_600_000)}
    assert profiles.stale(known, 3_600_021) == ["older", "old"]


def test_memory_is_known_without_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(profile, "STATM", profile.Path(f"{tmp_path}/missing"))
    assert profile.memory() > 1 << 20


def test_a_profile_is_described_in_a_sentence() -> None:
    assert describe.worker(SOME) == (
        "Process 7 on host: thread runner, 4 slots, 200 MiB of memory, qmodel 1.0, Python 3.12.1; serves q, r."
    )
    assert describe.profile_row(SOME._replace(memory=0, queue_count=9)) == (
        "host",
        "7",
        "4",
        "-",
        "1.0",
        "q, r and 7 more",
    )
    assert describe.profile_row(None) == ("-",) * len(describe.PROFILE_COLUMNS)
