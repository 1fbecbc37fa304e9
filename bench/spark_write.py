"""Measure the cost of turning rows into jobs, for the server and the client, from one process and from two Spark tasks.

Rows have data of 40 bytes and a column for the id. Batches have 10,000 rows, round trips have 1,000 jobs. They are
compared with `put_many` of 100 jobs, the cheapest way to put; but it cannot be repeated safely in other batches. All
variants take turns on one server, and run twice: the second time every row is already a job. Rates are by the clock and
depend on what else the machine did. CPU times are those of the server and of the client.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import pyarrow as pa

from bench import Options
from bench.machine import Pinned, candidates, pinned
from bench.report import Report, Table, Verdict, median
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.pipeline.jobs.send import add, put
from qmodel.pipeline.jobs.write import Rows, Writing

TARGET = 120_000
BATCH = 10_000
WHAT = Writing(run="bench", queue="q", klass="SendEmail", keys=("id",))
REQUEST = WHAT._replace(request="bench")
WAYS = ("put_many of 100", "rows", "the same rows again", "rows of a request", "the same again")


class Measured(NamedTuple):
    """Jobs per second, and microseconds of the server's and the client's CPU per job."""

    rate: float
    server: float
    client: float


def run(options: Options) -> Report:
    """Measure each variant on one server."""
    rows = 20_000 if options.quick else 100_000
    found: dict[str, list[Measured]] = {}
    candidate = candidates("redis" if options.server == "all" else options.server)[0]
    with pinned(candidate) as server:
        with Client(server.url) as client:
            for _ in range(options.runs):
                for way, measured in _ways(server, client, rows):
                    found.setdefault(way, []).append(measured)
        if find_spec("pyspark"):
            for way, measured in _spark(server, rows, options.runs):
                found.setdefault(way, []).append(measured)
        version = server.version
    table = Table("Rows", ["", "jobs/s", "server us", "client us", "jobs/s of a server's CPU"])
    middle = {way: Measured(*(median(one) for one in zip(*all, strict=True))) for way, all in found.items()}
    for way, one in middle.items():
        table.add(way, f"{one.rate:,.0f}", one.server, one.client or "", f"{1e6 / one.server:,.0f}")
    best = max(one.rate for way, one in middle.items() if "again" not in way and way != WAYS[0])
    verdicts = [
        Verdict("rows that become jobs, a second", best, TARGET, at_least=True),
        Verdict("a row for the server, times a job of put_many", middle["rows"].server / middle[WAYS[0]].server, 3),
    ]
    return Report(
        "spark-write", "python -m bench spark-write", " ".join(str(__doc__).split()), [table], verdicts, [version]
    )


def _batches(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, BATCH):
        ids = range(start, start + BATCH)
        data = [f'{{"to":"user-{id:010}@example.com"}}' for id in ids]
        yield pa.RecordBatch.from_pydict({"id": list(ids), "data": data})


def _puts(batches: list[pa.RecordBatch], what: Writing) -> Iterator[ops.Put]:
    rows = Rows(batches[0].schema, what)
    for batch in batches:
        yield from rows.puts(batch)


def _ways(server: Pinned, client: Client, rows: int) -> Iterator[tuple[str, Measured]]:
    batches = list(_batches(rows))

    def many() -> None:
        jobs = list(_puts(batches, REQUEST))  # the jobs have no request ids
        steps = [ops.PutMany(tuple(jobs[at : at + 100])) for at in range(0, rows, 100)]
        for at in range(0, len(steps), 10):
            client.execute_many(steps[at : at + 10])

    def each() -> None:
        put(client, _puts(batches, WHAT))

    def request() -> None:
        client.requests.open("bench", "q", limit=1000)
        add(client, "bench", _puts(batches, REQUEST))

    for name, do, empty in zip(WAYS, (many, each, each, request, request), (1, 1, 0, 1, 0), strict=True):
        if empty:
            _empty(server)
        yield name, _measure(server, rows, do)


def _empty(server: Pinned) -> None:
    with server.server.client() as raw:
        raw.flushdb()


def _measure(server: Pinned, rows: int, do: Callable[[], Any], here: bool = True) -> Measured:
    cpu, own, began = server.cpu_us(), time.process_time(), time.perf_counter()
    do()
    spent, own, cpu = time.perf_counter() - began, time.process_time() - own, server.cpu_us() - cpu
    return Measured(rows / spent, cpu / rows, own * 1e6 / rows if here else 0.0)


def _spark(server: Pinned, rows: int, runs: int) -> Iterator[tuple[str, Measured]]:
    from pyspark.sql import functions as F

    from qmodel.pipeline.spark import session

    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
    spark = session("bench", "local[2]")
    try:
        text = F.format_string('{"to":"user-%010d@example.com"}', "id")
        frame = spark.range(0, 2 * rows, 1, 2).withColumn("data", text)
        writer = frame.write.format("qmodel").mode("append").option("url", server.url)
        writer = writer.options(queue="q", klass="SendEmail", idColumns="id")
        writer.save()  # the first run starts Python
        for _ in range(runs):
            for name, empty in (("Spark, two tasks", True), ("Spark, the same rows again", False)):
                if empty:
                    _empty(server)
                yield name, _measure(server, 2 * rows, writer.save, here=False)
    finally:
        spark.stop()
