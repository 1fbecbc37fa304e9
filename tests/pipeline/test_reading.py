"""Read events as Arrow tables, and compare the engine's statistics with folded ones, on servers and on the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmodel import Client, connect
from qmodel.backends.redis.take_snapshot import taken
from qmodel.contract import operations as ops
from qmodel.contract.arguments import EPOCH_END, TOKEN_EPOCH
from qmodel.contract.events import EVENTS, WHOLE, Event
from qmodel.pipeline.events.gaps import EventsGone, Gap, SequenceWentBack
from qmodel.pipeline.statistics.fold import Fold, Key
from qmodel.pipeline.statistics.reconcile import Report, reconcile
from tests.pipeline.archives import as_version_2
from tests.pipeline.histories import every_event
from tests.servers import Server

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it comes with the extra `spark`")

from qmodel.pipeline.events import decode, schema  # noqa: E402
from qmodel.pipeline.events.columns import UnknownEvent, batch_of  # noqa: E402
from qmodel.pipeline.journal import archive  # noqa: E402
from qmodel.pipeline.journal import tables as journal_tables  # noqa: E402
from qmodel.pipeline.tables import live  # noqa: E402

JOBS = 300


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with connect(f"{server.url}?prefix=pipeline:") as client:
        if newest := client.newest():
            server.client().flushdb()
            assert not client.newest(), newest
        yield client


def work(client: Client, jobs: int = JOBS) -> None:
    """Put, perform, retry and fail jobs."""
    queue = client.queues["q"]
    for number in range(jobs):
        queue.put("Send", number, jid=f"j{number}")
    while popped := queue.pop(25, worker="w"):
        for job in popped:
            number = int(job.jid[1:])
            if number % 7 == 3 and job.remaining == job.retries:
                job.retry()
            elif number % 5 == 4:
                job.fail("no-disk", "It is full.")
            else:
                job.complete()
    client.failed.retry(group="no-disk", to="q")


def test_a_version_has_just_these_columns() -> None:
    """Changing or removing a column raises VERSION; a new column is added to this list."""
    assert schema.VERSION == 3
    assert schema.SCHEMA.names[:4] == ["seq", "happened_at", "event", "epoch"]
    assert " ".join(schema.FACTS) == (
        "canceled capacity cause completed concurrency dependencies due_at failed group jid key klass last last_at "
        "left letter limit messages mode next_at option outcome previous priority queue rate rate_ms ready_at reason "
        "refill refill_ms remaining request run run_ms runs schedule state subject subscription subscriptions tag "
        "tags throttle times to token unique until value wait_ms worker"
    )


def test_columns_have_the_facts_types_and_hide_none_of_the_first_four() -> None:
    assert not {"seq", "happened_at", "event", "epoch"} & set(schema.FACTS)
    for fact in schema.FACTS:
        whole = schema.TOKEN if fact == "token" else schema.MOMENT if fact.endswith("_at") else pa.int64()
        text = pa.list_(pa.string()) if fact == "tags" else pa.string()
        assert schema.SCHEMA.field(schema.NAMED.get(fact, fact)).type == (whole if fact in WHOLE else text)


def test_no_column_needs_quotes_in_sql() -> None:
    """DuckDB says which words are reserved; Spark reserves none unless told, and then fewer."""
    duckdb = pytest.importorskip("duckdb")
    words = "select keyword_name from duckdb_keywords() where keyword_category in ('reserved', 'type_function')"
    reserved = {word for (word,) in duckdb.sql(words).fetchall()}
    assert {"group", "to"} <= reserved
    assert not reserved & {*schema.SCHEMA.names, *journal_tables.SCHEMA.names}


def test_a_table_of_version_2_has_other_names_and_is_read_as_a_current_one() -> None:
    events = list(every_event())
    table = decode.tables([decode.batch(events)])
    old = as_version_2(table)
    assert {"at", "group", "to", "limit"} <= set(old.column_names) and old.column("at").type == pa.int64()
    assert schema.current(old).equals(table)
    assert list(decode.events_of(old)) == list(decode.events_of(old.to_batches()[0])) == events


def test_the_longest_token_fits_and_a_table_of_version_1_is_of_epoch_0() -> None:
    long = Event(9, 7, "revoked", ("j", "q", "w", (EPOCH_END - 1) * TOKEN_EPOCH + TOKEN_EPOCH - 1), EPOCH_END - 1)
    assert list(decode.events_of(decode.batch([long]))) == [long]
    assert batch_of([9], [EPOCH_END - 1], [sent(long)], schema.SCHEMA).equals(decode.batch([long]))

    old = Event(1, 7, "revoked", ("j", "q", "w", TOKEN_EPOCH - 1))
    table = as_version_2(decode.tables([decode.batch([old])])).drop_columns(["epoch"])
    place = table.schema.get_field_index("token")
    table = table.set_column(place, "token", table.column("token").cast(pa.int64()))
    table = table.replace_schema_metadata({schema.VERSION_KEY: b"1"})
    assert list(decode.events_of(table)) == list(decode.events_of(schema.current(table))) == [old]
    both = pa.concat_tables([schema.current(table), decode.tables([decode.batch([long])])], promote_options="default")
    assert list(decode.events_of(both)) == [old, long]


def test_every_kind_of_event_comes_back_from_a_table_as_it_was() -> None:
    events = list(every_event())
    assert len({one.event for one in events}) > len(EVENTS) * 0.8
    assert list(decode.events_of(decode.batch(events))) == events
    assert list(decode.events_of(decode.tables([]))) == []


def sent(event: Event) -> bytes:
    """Give the text of an event as a server sends it."""
    return "\t".join(map(str, (event.at, event.event, *event.facts))).encode()


def test_columns_of_texts_are_those_of_their_events() -> None:
    odd = Event(10**6, 7, "failed", ("j", "", 'q"é,\n', 3, "group of\r\n words"))
    events = [*every_event(), odd]
    seqs, epochs, texts = [one.seq for one in events], [one.epoch for one in events], [*map(sent, events)]
    few = pa.schema([schema.SCHEMA.field(name) for name in ("queue", "seq", "run_ms", "times", "epoch")])
    for columns in (schema.SCHEMA, few):
        assert batch_of(seqs, epochs, texts, columns).equals(decode.batch(events, columns), check_metadata=True)
        assert batch_of([], [], [], columns).equals(decode.batch([], columns))


@pytest.mark.parametrize("text", [b"", b"12", b"12\tteleported\tj", b"12\tretired", b"12\tretired\tj\tk"])
def test_a_text_that_the_catalogue_does_not_have_is_named(text: bytes) -> None:
    with pytest.raises(UnknownEvent, match="Event 4 is not in this catalogue") as told:
        batch_of([3, 4, 5], [0, 0, 0], [b"12\tretired\tj", text, b"12\tnone"], schema.SCHEMA)
    assert told.value.text == text.decode()


def test_a_table_of_a_later_version_is_refused_and_an_unknown_event_too() -> None:
    later = schema.SCHEMA.with_metadata({schema.VERSION_KEY: b"4"})
    with pytest.raises(ValueError, match="version 1 to 3, and this has 4"):
        next(decode.events_of(later.empty_table()))
    with pytest.raises(UnknownEvent, match=r"Event 7 is not in this catalogue: .*Read it with the qmodel"):
        decode.entry(b"7-0", {b"e": b"12\tteleported\tj1"})


def test_entries_of_the_stream_and_the_clients_events_are_the_same(client: Client, server: Server) -> None:
    work(client)
    entries = [event for one in server.client().xrange("pipeline:events") for event in decode.entry(*one)]
    assert len(entries) > 900
    assert entries == list(client.events())
    assert list(decode.events_of(decode.tables(decode.read(client)))) == entries
    some = decode.tables(decode.read(client, 10, 950))
    assert some.column("seq").to_pylist() == list(range(11, 951))


def test_what_is_gone_is_told_and_not_passed_over(client: Client) -> None:
    client.config.set("max-events", 100)
    work(client)
    newest = client.newest()
    kept = next(client.events()).seq
    with pytest.raises(EventsGone) as told:
        list(decode.read(client))
    assert told.value.gaps == (Gap(1, kept - 1),)
    gaps: list[Gap] = []
    assert decode.tables(decode.read(client, gaps=gaps)).num_rows + len(gaps[0]) == newest
    with pytest.raises(EventsGone):
        list(decode.read(client, 0, 10))
    with pytest.raises(SequenceWentBack):
        next(decode.read(client, newest + 1))


def test_a_server_counts_what_its_events_tell_to_the_last_bit(client: Client) -> None:
    work(client)
    report = reconcile(client, Fold())
    assert (len(report.compared), report.differences, report.moving) == (1, (), ())
    work(client)
    parts = Fold()
    for page in decode.pages(client):
        part = Fold(parts.last, part=parts.last > 0)
        part.add(page)
        parts.merge(part)
    assert reconcile(client, parts, tolerance=1e-9).differences == ()


def test_one_event_less_is_a_difference_in_a_table() -> None:
    client = connect("memory://reconciling")
    work(client, 3)
    fold = Fold()
    for event in client.events():
        if event.event == "popped":
            fold.pass_over(Gap(event.seq, event.seq))
            break
        fold.add([event])
    report = reconcile(client, fold)
    assert [one.figure for one in report.differences if one.figure == "wait count"] == ["wait count"]
    lines = str(report).splitlines()
    assert lines[0] == f"1 day of a queue compared, {len(report.differences)} differences"
    assert lines[1].split() == ["queue", "day", "figure", "engine", "folded"]
    assert any(line.split()[2:] == ["wait", "count", "3", "2"] for line in lines[2:])


def test_days_that_are_kept_no_longer_or_were_not_seen_whole_are_told_apart() -> None:
    client = connect("memory://apart")
    for at in (0, 40 * 86_400_000):
        client.execute(ops.Put("q", f"j{at}", "Send", ""), now=at)
        client.execute(ops.Pop("q", "w"), now=at + 5)
    fold = Fold(1)
    report = reconcile(client, fold)
    assert report.differences == ()
    assert isinstance(report, Report)
    assert report.gone[0] == Key(0, "queue", "q")


def test_a_text_that_is_no_utf8_stands_in_tables_as_in_json(server: Server, client: Client, tmp_path: Path) -> None:
    """A binding in another language can store any bytes; one such job kept all others from the archive."""
    client.config["journal"] = 1
    call = "", "", "q", "bad", "k", b"[1\xfe]"
    with Client(f"{server.url}?prefix=pipeline:") as raw:
        if not raw.backend.found.functions:  # type: ignore[attr-defined]
            pytest.skip("the call is one of functions")
    server.client().fcall("qmodel_v1_put", 1, "pipeline:", *call)
    called = [row["call"] for row in journal_tables.table(list(client.journal())).to_pylist()]
    assert "\\udcfe" in called[-1] and json.loads(called[-1])["data"] == "[1\udcfe]"
    (batch,) = live.read(client, "jobs", live.Narrow(queue="q"), live.Part(("q",)))
    assert batch.column("data").to_pylist() == ["[1\\udcfe]"]
    state = taken(f"{server.url}?prefix=pipeline:")
    archive.keep(str(tmp_path), "n", state)
    assert archive.state(str(tmp_path), "n", state.journaled) == state
