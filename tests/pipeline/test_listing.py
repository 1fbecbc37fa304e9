"""Tables show all present data, in parts and pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from qmodel import Client, connect
from qmodel.pipeline.tables.live import TABLES, Narrow, read

STATES = ["complete", "depends", "failed", "running", "scheduled", "waiting"]


@pytest.fixture
def client() -> Iterator[Client]:
    with connect("memory://") as client:
        yield client


def filled(client: Client) -> None:
    """Put jobs into two queues, in every state that is reached quickly."""
    for name in ("a", "b"):
        queue = client.queues[name]
        for number in range(3):
            queue.put("Fetch", {"n": number}, jid=f"{name}{number}", tags=["x"])
        first, second, _ = queue.pop(3, worker="w")
        first.complete({"ok": True})
        second.fail("boom", "It broke.")
        queue.put("Later", delay=60)
        queue.put("After", depends=[f"{name}2"])
        queue.put("Next")


def rows(client: Client, name: str, narrow: Narrow | None = None, size: int = 1000, days: int = 7) -> Any:
    narrow = narrow or Narrow()
    batches = [
        batch
        for part in TABLES[name].parts(client, narrow, size)
        for batch in read(client, name, narrow, part, days)
    ]  # fmt: skip
    return pa.Table.from_batches(batches, schema=TABLES[name].schema).to_pylist()


@pytest.mark.parametrize("size", [1, 1000])
def test_all_jobs_are_in_the_table_once_in_whatever_parts(client: Client, size: int) -> None:
    filled(client)
    found = rows(client, "jobs", size=size)
    assert sorted((row["queue"], row["state"]) for row in found) == [(q, state) for q in "ab" for state in STATES]
    done = next(row for row in found if row["jid"] == "a0")
    assert (done["result"], done["tags"], done["worker"], done["group"]) == ('{"ok":true}', ["x"], None, None)
    failed = next(row for row in found if row["jid"] == "b1")
    assert (failed["group"], failed["message"], failed["failed_on"]) == ("boom", "It broke.", "w")


def test_more_jobs_than_a_page_has(client: Client) -> None:
    client.queues["q"].put_many([("Send", number) for number in range(1000)])
    client.queues["q"].put_many([("Send", number) for number in range(1000, 1700)])
    assert sorted(int(row["data"]) for row in rows(client, "jobs")) == list(range(1700))


@pytest.mark.parametrize(
    ("narrow", "count"),
    [
        (Narrow(queue="a"), 6),
        (Narrow(state="failed"), 2),
        (Narrow(queue="b", state="complete"), 1),
        (Narrow(klass="Later"), 2),
        (Narrow(worker="w"), 2),
        (Narrow(tag="x", state="running"), 2),
        (Narrow(group="boom", queue="a"), 1),
        (Narrow(queue="none"), 0),
    ],
)
def test_jobs_are_narrowed_as_a_search_is(client: Client, narrow: Narrow, count: int) -> None:
    filled(client)
    assert len(rows(client, "jobs", narrow)) == count


def test_failures_are_read_group_by_group(client: Client) -> None:
    filled(client)
    client.queues["a"].pop(worker="w").fail("other")  # type: ignore[union-attr]
    assert sorted(row["group"] for row in rows(client, "failures", size=1)) == ["boom", "boom", "other"]
    assert [row["jid"] for row in rows(client, "failures", Narrow(group="boom", queue="b"))] == ["b1"]


def test_statistics_have_a_row_for_each_day_on_which_something_was(client: Client) -> None:
    filled(client)
    client.queues["empty"].put("Later", delay=5)
    found = rows(client, "stats")
    assert [(row["queue"], row["wait_count"], row["run_count"], row["failures"]) for row in found] == [
        ("a", 3, 1, 1),
        ("b", 3, 1, 1),
    ]
    assert sum(found[0]["wait_histogram"]) == 3
    assert rows(client, "stats", Narrow(queue="b"), days=1) == found[1:]


def test_queues_and_workers_are_tables_too(client: Client) -> None:
    filled(client)
    assert [(row["queue"], row["waiting"], row["paused"]) for row in rows(client, "queues")] == [
        ("a", 1, False),
        ("b", 1, False),
    ]
    assert [(row["worker"], row["jobs"]) for row in rows(client, "workers")] == [("w", 2)]


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_namespace_has_empty_tables(client: Client, name: str) -> None:
    assert rows(client, name) == []
