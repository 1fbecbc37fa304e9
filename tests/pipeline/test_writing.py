"""Each row becomes one job, however often it is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from qmodel import Client, connect
from qmodel.contract.operations import Put
from qmodel.pipeline.jobs.send import RowRefused, add, put
from qmodel.pipeline.jobs.write import COLUMNS, Rows, Writing, check
from tests.servers import Server

EMAILS = Writing(run="monday", queue="emails", klass="Send")


@pytest.fixture
def client() -> Iterator[Client]:
    with connect("memory://") as client:
        yield client


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def puts(rows: pa.RecordBatch, what: Writing = EMAILS, part: int = 0) -> list[Put]:
    check(rows.schema, what)
    return list(Rows(rows.schema, what, part).puts(rows))


def waiting(client: Client, queue: str = "emails") -> int:
    return client.queues[queue].counts.waiting


def test_a_row_is_a_job_with_all_that_it_says(client: Client) -> None:
    rows = batch(
        jid=["a"],
        queue=["mails"],
        klass=["Send"],
        data=['{"to":1}'],
        priority=[-2],
        delay_ms=[5000],
        retries=[1],
        tags=[["x", "y"]],
        lifo=[True],
        unique=["key"],
        ttl_ms=[9000],
        throttles=pa.array([None], pa.list_(pa.string())),
    )
    put(client, puts(rows))
    job = client.jobs["a"]
    assert (job.queue, job.klass, job.data, job.priority, job.retries) == ("mails", "Send", {"to": 1}, -2, 1)
    assert (job.tags, job.state, job.raw.lifo, job.raw.unique, job.raw.ttl_ms) == (
        ("x", "y"), "scheduled", True, "key", 9000,
    )  # fmt: skip


def test_every_argument_of_a_put_is_a_column() -> None:
    assert {*COLUMNS, "request"} == set(Put.__dataclass_fields__)


def test_structures_become_json_and_texts_stay_as_they_are() -> None:
    day = datetime(2026, 11, 21, tzinfo=UTC)
    rows = batch(data=[{"at": day, "sum": Decimal("1.50"), "to": ["a", None], "none": None}])
    assert json.loads(puts(rows)[0].data) == {"at": day.isoformat(), "sum": "1.50", "to": ["a", None], "none": None}
    pairs = pa.array([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64()))
    assert puts(batch(data=pairs))[0].data == '{"a":1,"b":null}'
    assert [one.data for one in puts(batch(data=["not JSON", None]))] == ["not JSON", "null"]


def test_the_same_rows_again_are_no_new_jobs_in_whatever_order(client: Client) -> None:
    numbers = [*range(700), 5, 5, 5]
    put(client, puts(batch(data=numbers)))
    assert waiting(client) == 703
    first = client.queues["emails"].pop()
    assert first is not None
    put(client, puts(batch(data=numbers[::-1])))
    assert waiting(client) == 702
    first.complete()  # its lease is as it was
    put(client, puts(batch(data=numbers)))
    assert waiting(client) == 702


def test_another_run_another_part_and_other_rows_are_other_jobs(client: Client) -> None:
    rows = batch(data=[1, 2])
    for what, part in ((EMAILS, 0), (EMAILS, 1), (EMAILS._replace(run="tuesday"), 0)):
        put(client, puts(rows, what, part))
    assert waiting(client) == 6


def test_keys_tell_rows_apart(client: Client) -> None:
    what = EMAILS._replace(keys=("shop", "order"))
    put(client, puts(batch(shop=["a", "a", "b"], order=[1, 2, 1]), what))
    put(client, puts(batch(shop=["b", "a"], order=[1, 3]), what, part=7))
    assert waiting(client) == 4


@pytest.mark.parametrize("other", [{"queue": "crm"}, {"klass": "Sync"}, {"run": "tuesday"}, {"keys": ("customer",)}])
def test_equal_values_of_another_queue_type_run_or_column_are_other_jobs(client: Client, other: Any) -> None:
    what = EMAILS._replace(keys=("invoice",))
    numbers = list(range(100))
    assert put(client, puts(batch(invoice=numbers), what)) == (100, 100)
    another = what._replace(**other)
    assert put(client, puts(batch(**{another.keys[0]: numbers}), another)) == (100, 100)
    assert put(client, puts(batch(invoice=numbers), what)).known == 100


def test_rows_without_keys_are_jobs_of_their_queue_and_type(client: Client) -> None:
    for what in (EMAILS, EMAILS._replace(queue="crm"), EMAILS._replace(klass="Sync")):
        assert put(client, puts(batch(data=[1, 2]), what)) == (2, 2)


def test_a_jid_of_another_job_is_an_error_that_names_both(client: Client) -> None:
    put(client, puts(batch(jid=["a", "b"])))
    for what, said in ((EMAILS._replace(queue="crm"), "for queue crm"), (EMAILS._replace(klass="Sync"), "type Sync")):
        with pytest.raises(RowRefused, match=f"type Send in queue emails has this id, and the row is .*{said}"):
            put(client, puts(batch(jid=["b", "a"]), what))


def test_a_job_that_moved_to_another_queue_is_known(client: Client) -> None:
    put(client, puts(batch(jid=["a"])))
    job = client.queues["emails"].pop()
    assert job is not None
    job.complete(next="archive")
    assert put(client, puts(batch(jid=["a"]))) == (1, 0)


def test_a_moment_is_the_same_in_every_time_zone() -> None:
    moment = datetime(2026, 11, 21, 8, tzinfo=UTC)
    zones = [pa.struct([("at", pa.timestamp("us", zone))]) for zone in ("UTC", "Asia/Tokyo")]
    first, other = (puts(batch(data=pa.array([{"at": moment}], zone)))[0] for zone in zones)
    assert first == other
    assert first.data == '{"at":"2026-11-21T08:00:00+00:00"}'


def test_numbers_that_json_does_not_have_are_refused_with_their_place() -> None:
    with pytest.raises(ValueError, match=r"data\.sums\[\] is nan, which JSON does not have"):
        puts(batch(data=[{"sums": [1.5, float("nan")]}]))


def test_a_jid_that_is_taken_is_passed_over_whoever_took_it(client: Client) -> None:
    rows = batch(jid=["a", "a", "b"])
    client.queues["emails"].put("Send", jid="b")
    assert put(client, puts(rows)) == (3, 1)
    client.queues["emails"].pop(2)
    assert put(client, puts(rows, EMAILS._replace(run="tuesday"))) == (3, 0)
    assert waiting(client) == 0


def test_jobs_with_keys_are_known_each_for_itself(client: Client) -> None:
    rows = batch(data=[1, 2, 3], unique=["a", "b", "a"])
    put(client, puts(rows))
    put(client, puts(rows))
    assert waiting(client) == 2


def test_a_batch_that_mixes_old_and_new_rows_loses_none(client: Client) -> None:
    put(client, puts(batch(jid=["b"])))
    put(client, puts(batch(jid=["a", "b", "c"])))
    assert waiting(client) == 3


def test_a_row_is_the_same_job_for_as_long_as_that_is_kept(client: Client) -> None:
    put(client, puts(batch(jid=["a", "b"])))
    for job in client.queues["emails"].pop(2):
        job.complete()
    assert put(client, puts(batch(jid=["a", "b"]))) == (2, 0)
    client.config.set("jobs-history-count", 1)
    put(client, puts(batch(jid=["c"])))
    with client.queues["emails"].pop():
        pass  # what is kept no longer goes when another one is complete
    assert put(client, puts(batch(jid=["a", "b", "c"]))) == (3, 2)


def test_many_rows_are_put_in_their_order(client: Client) -> None:
    rows = batch(jid=[f"{number}" for number in range(3500)])
    assert put(client, iter(puts(rows))) == (3500, 3500)
    assert [job.jid for job in client.queues["emails"].pop(1000)] == [f"{number}" for number in range(1000)]
    assert put(client, iter(puts(batch(jid=["last"])))) == (1, 1)


def test_sub_requests_are_known_when_their_jobs_are_gone(client: Client) -> None:
    what = EMAILS._replace(request="fit", keys=("n",), run="fit")
    client.requests.open("fit", "emails", limit=10)
    rows = batch(n=list(range(250)), keep_complete_ms=[0] * 250)
    assert add(client, "fit", puts(rows, what)) == (250, 250)
    for job in client.queues["emails"].pop(10):
        job.complete()
    assert add(client, "fit", puts(rows, what)) == (250, 0)
    assert client.requests["fit"].get().total == 250


def test_the_same_row_twice_in_a_step_is_one_sub_request(client: Client) -> None:
    client.requests.open("fit", "emails", limit=10)
    what = EMAILS._replace(request="fit")
    assert add(client, "fit", puts(batch(jid=["a", "a", "b"]), what)) == (3, 2)
    assert client.jobs["fit:a"].state == "waiting"


def test_a_refused_row_is_named_and_those_before_it_stay(client: Client) -> None:
    rows = batch(jid=["a", "b", "bad id", "c"])
    with pytest.raises(RowRefused, match="job bad id was refused"):
        put(client, puts(rows))
    assert waiting(client) == 2
    put(client, puts(batch(jid=["fit:a"])))
    client.requests.open("fit", "emails", limit=10)
    with pytest.raises(RowRefused, match="fit:a"):
        add(client, "fit", puts(batch(jid=["b", "a"]), EMAILS._replace(request="fit")))


def test_rows_that_are_too_large_for_one_call_together_are_jobs(client: Client) -> None:
    rows = batch(jid=[f"j{number}" for number in range(15)], data=[f'"{"x" * 1_000_000}"'] * 15)
    assert put(client, puts(rows)) == (15, 15)
    assert put(client, puts(rows)) == (15, 0)
    client.requests.open("fit", "emails", limit=10)
    assert add(client, "fit", puts(rows, EMAILS._replace(request="fit"))) == (15, 15)


def test_two_that_write_the_same_at_a_time_make_each_job_once(spark_server: Server, url: str) -> None:
    rows = batch(n=list(range(2000)))
    what = EMAILS._replace(keys=("n",))

    def attempt(part: int) -> None:
        with connect(url) as client:
            put(client, puts(rows, what, part))

    with connect(url) as client, ThreadPoolExecutor(3) as pool:
        list(pool.map(attempt, range(3)))
        assert waiting(client) == 2000
        assert sum(event.event == "put" for event in client.events()) == 2000


@pytest.mark.parametrize(
    ("columns", "what", "said"),
    [
        ({"jid": ["a"], "color": ["red"]}, EMAILS, "A job has no column 'color'"),
        ({"jid": ["a"]}, Writing(queue="q"), "need a column 'klass'"),
        ({"jid": ["a"]}, Writing(klass="k"), "need a column 'queue'"),
        ({"priority": ["high"]}, EMAILS, "'priority' must contain whole numbers, not string"),
        ({"tags": ["a,b"]}, EMAILS, "'tags' must contain a list of texts, not string"),
        ({"lifo": [1]}, EMAILS, "'lifo' must contain true or false"),
        ({"data": [b"x"]}, EMAILS, "data has the type binary, which JSON does not have"),
        ({"data": [{"a": [b"x"]}]}, EMAILS, r"data\.a\[\] has the type binary"),
        ({"jid": ["a"], "n": [1]}, EMAILS._replace(keys=("n",)), "use one of them"),
        ({"n": [1]}, EMAILS._replace(keys=("m",)), "idColumns has 'm', and the rows have n"),
        ({"priority": [1]}, EMAILS._replace(request="r"), "no 'priority' of its own"),
    ],
)
def test_columns_that_cannot_be_are_refused(columns: dict[str, Any], what: Writing, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check(batch(**columns).schema, what)


@pytest.mark.parametrize(("columns", "said"), [({"jid": [None]}, "no jid"), ({"klass": [None]}, "no klass")])
def test_rows_that_lack_something_are_refused(columns: dict[str, Any], said: str) -> None:
    rows = pa.RecordBatch.from_pydict(columns, schema=pa.schema([(next(iter(columns)), pa.string())]))
    with pytest.raises(ValueError, match=said):
        puts(rows)
