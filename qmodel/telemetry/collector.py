"""Read the engine's figures at each scrape, and export them to Prometheus.

All figures are stored in the server, so one exporter serves all workers, in any language. The counts of completed,
failed and retried jobs, and the histograms, are the statistics of the UTC day. They restart at midnight, which
Prometheus treats as a restart of the exporter, as `rate` and `increase` expect.

A scrape takes a few round trips: the queues a thousand at a time, then the figures of each. It exports at most `most`
queues, groups and throttles, and `qmodel_left_out` shows if there are more: a frequent scrape has to stay small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from threading import Lock
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from qmodel.client import profiles
from qmodel.client.job_types import TypeFigures
from qmodel.client.profiles import Profile
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.contract import replies
from qmodel.errors import ConnectError
from qmodel.model.state.stats import bin_of
from qmodel.version import __version__

PAGE = 1000
STATES = ("waiting", "scheduled", "depends", "throttled", "running", "stalled")
REQUESTS = ("open", "closed", "canceling", "done", "canceled")
BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400, 259_200)
"""The buckets, in seconds; each is the edge of a bin of the engine's histogram."""


class EngineCollector:
    """The metrics of a namespace, for a registry of prometheus_client: `registry.register(EngineCollector(client))`.

    For a URL, a client is opened when it is first needed. `queues` is a shell pattern that selects queues by name;
    `most` limits their number. Without `histograms` a scrape is smaller. With `types`, each scrape reads the newest
    2000 events too, for figures by job type. While the server cannot be reached, the only metric is `qmodel_up 0`.
    """

    def __init__(
        self, client: Client | str, *, queues: str = "*", most: int = 1000, histograms: bool = True, types: bool = False
    ) -> None:
        self._given = client
        self._opened = client if isinstance(client, Client) else None
        self._opening = Lock()
        self._pattern = queues
        self._most = most
        self._histograms = histograms
        self._types = types

    @property
    def _client(self) -> Client:
        with self._opening:
            if self._opened is None:
                self._opened = Client(self._given)  # type: ignore[arg-type]
            return self._opened

    def reach(self) -> None:
        """Make one small request. Raises ConnectError when the server cannot be reached."""
        self._client.newest()

    def close(self) -> None:
        """Close the client, if it was opened here."""
        if self._opened is not None and self._opened is not self._given:
            self._opened.close()

    def describe(self) -> Iterable[Metric]:
        """Give no descriptions, so that registering the collector does not need the server."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Read all figures, and yield them as metrics."""
        began = time.perf_counter()
        up = GaugeMetricFamily("qmodel_up", "Whether the server could be reached.")
        try:
            found = list(self._read())
        except ConnectError:
            up.add_metric((), 0)
            yield up
            return
        up.add_metric((), 1)
        yield up
        yield from found
        took = GaugeMetricFamily("qmodel_scrape_seconds", "Seconds that reading these metrics from the server took.")
        took.add_metric((), time.perf_counter() - began)
        yield took

    def _read(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "qmodel_info", "The version of qmodel that exports these metrics.", labels=("version",)
        )
        info.add_metric((__version__,), 1)
        yield info
        newest = CounterMetricFamily("qmodel_events", "Events since the namespace was first used.")
        newest.add_metric((), self._client.newest())
        yield newest
        queues, more = self._listed(ops.Queues)
        chosen = [one for one in queues if fnmatchcase(one.name, self._pattern)]
        yield from _counts(chosen)
        yield from self._waits([one.name for one in chosen if one.waiting or one.stalled])
        yield from self._days([one.name for one in chosen])
        groups, more_groups = self._listed(ops.FailedGroups)
        yield _gauge("qmodel_failed_jobs", "Failed jobs by group.", "group", ((one.name, one.jobs) for one in groups))
        throttles, more_throttles = self._listed(ops.Throttles)
        yield from _throttles(throttles)
        yield from self._workers()
        yield from self._others()
        if self._types:
            yield from _job_types(self._client.job_types().types[: self._most])
        cut = GaugeMetricFamily(
            "qmodel_left_out", "Whether some queues, groups or throttles are not exported.", labels=("what",)
        )
        for what, is_cut in (("queues", more), ("groups", more_groups), ("throttles", more_throttles)):
            cut.add_metric((what,), is_cut)
        yield cut

    def _listed(self, op: Callable[[int, int], ops.Operation]) -> tuple[list[Any], bool]:
        """Read a list page by page, up to `most`; say whether there is more."""
        found: list[Any] = []
        while len(found) <= self._most:
            page = self._client.execute(op(len(found), PAGE))
            found += page
            if len(page) < PAGE:
                break
        return found[: self._most], len(found) > self._most

    def _waits(self, names: list[str]) -> Iterator[Metric]:
        now = time.time_ns() // 1_000_000
        peeked = self._client.execute_many(ops.Peek(name) for name in names)
        ages = (
            (name, max(now - jobs[0].ready_at, 0) / 1000)
            for name, jobs in zip(names, peeked, strict=True)
            if isinstance(jobs, tuple) and jobs
        )
        text = "How long the next job of a queue has been ready."
        yield _gauge("qmodel_queue_next_wait_seconds", text, "queue", ages)

    def _days(self, names: list[str]) -> Iterator[Metric]:
        found = self._client.execute_many(ops.Stats(name) for name in names)
        days = [one for one in found if isinstance(one, replies.Stats)]
        counters: tuple[tuple[str, str, Callable[[replies.Stats], int]], ...] = (
            ("qmodel_jobs_popped", "Jobs given to workers, since midnight UTC.", lambda day: day.wait.count),
            ("qmodel_jobs_completed", "Jobs completed, since midnight UTC.", lambda day: day.run.count),
            ("qmodel_jobs_failed", "Jobs failed, since midnight UTC.", lambda day: day.failures),
            (
                "qmodel_jobs_retried",
                "Failed attempts that will be retried, since midnight UTC.",
                lambda day: day.retries,
            ),
        )
        for name, text, value in counters:
            counter = CounterMetricFamily(name, text, labels=("queue",))
            for day in days:
                counter.add_metric((day.queue,), value(day))
            yield counter
        if self._histograms:
            yield _histogram("qmodel_job_wait_seconds", "How long jobs were ready before a pop", days, "wait")
            yield _histogram("qmodel_job_run_seconds", "How long completed jobs ran", days, "run")

    def _workers(self) -> Iterator[Metric]:
        workers, _ = self._listed(ops.Workers)
        known = GaugeMetricFamily("qmodel_workers", "Known workers.")
        known.add_metric((), len(workers))
        yield known
        held = (("running", sum(one.jobs for one in workers)), ("stalled", sum(one.stalled for one in workers)))
        yield _gauge("qmodel_worker_jobs", "Jobs that workers hold, or held when their lease expired.", "state", held)
        yield from _profiles(profiles.read(self._client.execute(profiles.asked())), {one.name for one in workers})

    def _others(self) -> Iterator[Metric]:
        """Read the figures of the whole namespace, and of its subscriptions."""
        asked = [ops.Completed(0, 1), *(ops.Requests(state, 0, 1) for state in REQUESTS), ops.RecurringUnset(0, PAGE)]
        complete, *requests, unset = self._client.execute_many(asked)
        kept = GaugeMetricFamily("qmodel_complete_jobs", "Complete jobs that are kept.")
        kept.add_metric((), complete.total)
        yield kept
        text = "Requests by state; finished requests count while they are kept."
        yield _gauge("qmodel_requests", text, "state", zip(REQUESTS, (page.total for page in requests), strict=True))
        waiting = GaugeMetricFamily(
            "qmodel_recurring_unset", "Recurring jobs that wait for the next times of their cron expressions."
        )
        waiting.add_metric((), len(unset))
        yield waiting
        subscriptions, _ = self._listed(ops.Subscriptions)
        behind = ((one.name, one.behind) for one in subscriptions)
        yield _gauge("qmodel_subscription_behind", "Past messages that are not yet delivered.", "subscription", behind)


def _job_types(found: Sequence[TypeFigures]) -> Iterator[Metric]:
    """The figures by job type, from the newest events."""
    text = "Completed jobs of a type in a minute, in the newest events."
    yield _gauge("qmodel_job_type_per_minute", text, "klass", ((one.klass, one.per_minute) for one in found))
    attempts = GaugeMetricFamily(
        "qmodel_job_type_attempts",
        "How attempts of a job type ended, in the newest events.",
        labels=("klass", "outcome"),
    )
    seconds = GaugeMetricFamily(
        "qmodel_job_type_seconds",
        "Percentiles of how long jobs of a type waited and ran, in the newest events.",
        labels=("klass", "of", "percentile"),
    )
    for one in found:
        for outcome in ("completed", "failed", "retried", "lost"):
            attempts.add_metric((one.klass, outcome), getattr(one, outcome))
        for of, durations in (("wait", one.wait), ("run", one.run)):
            for percentile in ("p50", "p95", "p99"):
                seconds.add_metric((one.klass, of, percentile), getattr(durations, percentile) / 1000)
    yield attempts
    yield seconds


def _profiles(known: dict[str, Profile], listed: set[str]) -> Iterator[Metric]:
    """What the workers on the list say of themselves."""
    told = [(name, one) for name, one in sorted(known.items()) if name in listed]
    labels = ("worker", "host", "pid", "version", "runner")
    about = GaugeMetricFamily("qmodel_worker", "A worker that says where it runs; always 1.", labels=labels)
    for name, one in told:
        about.add_metric((name, one.host, str(one.pid), one.version, one.runner), 1)
    yield about
    slots = ((name, one.concurrency) for name, one in told)
    yield _gauge("qmodel_worker_slots", "Jobs that a worker runs at once at most.", "worker", slots)
    memory = ((name, one.memory) for name, one in told if one.memory)
    yield _gauge("qmodel_worker_memory_bytes", "The resident memory of a worker.", "worker", memory)


def _counts(queues: list[replies.QueueCounts]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("qmodel_queue_jobs", "Jobs of a queue by state.", labels=("queue", "state"))
    for one in queues:
        for state in STATES:
            jobs.add_metric((one.name, state), getattr(one, state))
    yield jobs
    fields = (
        ("paused", "qmodel_queue_paused", "Whether a queue is paused."),
        ("recurring", "qmodel_queue_recurring", "Recurring jobs of a queue."),
        ("due", "qmodel_queue_due_runs", "Due runs of recurring jobs that are not made yet."),
    )
    for field, name, text in fields:
        yield _gauge(name, text, "queue", ((one.name, getattr(one, field)) for one in queues))


def _throttles(throttles: list[replies.Throttle]) -> Iterator[Metric]:
    fields = (
        ("concurrency", "qmodel_throttle_limit", "How many jobs of a throttle may run; 0 means no limit."),
        ("running", "qmodel_throttle_running", "Running jobs of a throttle."),
        ("parked", "qmodel_throttle_parked", "Jobs that wait for a throttle to open."),
    )
    for field, name, text in fields:
        yield _gauge(name, text, "throttle", ((one.name, getattr(one, field)) for one in throttles))


def _gauge(name: str, text: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    gauge = GaugeMetricFamily(name, text, labels=(label,))
    for of, value in values:
        gauge.add_metric((of,), value)
    return gauge


EDGES = tuple((str(float(edge)), bin_of(edge * 1000)) for edge in BUCKETS)
"""Each bucket, and the first of the engine's bins above it."""


def _histogram(name: str, text: str, days: list[replies.Stats], which: str) -> Metric:
    metric = HistogramMetricFamily(name, f"{text}, since midnight UTC.", labels=("queue",))
    for day in days:
        sample: replies.Sample = getattr(day, which)
        metric.add_metric((day.queue,), _buckets(sample), sum_value=sample.count * sample.mean / 1000)
    return metric


def _buckets(sample: replies.Sample) -> list[tuple[str, float]]:
    """Convert a sample's histogram to cumulative buckets; a sample without a histogram has only its count."""
    buckets, total, begin = [], 0, 0
    for edge, end in EDGES if sample.histogram else ():
        total += sum(sample.histogram[begin:end])
        begin = end
        buckets.append((edge, float(total)))
    return [*buckets, ("+Inf", float(sample.count))]
