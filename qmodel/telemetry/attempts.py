"""Prometheus metrics that only a worker can measure: the number of attempts, their outcomes, and their durations.

They are measured in the process that performs the jobs. With several processes (`--processes`, `--runner fork`) each
has its own figures, unless PROMETHEUS_MULTIPROC_DIR names an empty folder: then prometheus_client adds them up in files
there.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from qmodel.telemetry.outcomes import ending

if TYPE_CHECKING:
    from qmodel.app import App, Context
    from qmodel.app.outcome import Outcome

BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
"""The buckets of durations, in seconds."""

LABELS = ("queue", "klass")


class AttemptMetrics:
    """The metrics of the attempts of an app, in a registry."""

    def __init__(self, app: App, registry: CollectorRegistry) -> None:
        self._began: WeakKeyDictionary[Context, float] = WeakKeyDictionary()
        running = Gauge(
            "qmodel_attempts_running", "Attempts under way.", LABELS, registry=registry, multiprocess_mode="livesum"
        )
        seconds = Histogram(
            "qmodel_attempt_seconds", "How long attempts took.", LABELS, registry=registry, buckets=BUCKETS
        )
        ended = Counter(
            "qmodel_attempts", "Attempts that have ended, and how.", (*LABELS, "outcome"), registry=registry
        )
        self._lost = Counter(
            "qmodel_locks_lost", "Attempts that lost their lock before they had ended.", LABELS, registry=registry
        )
        # The look-up of a metric by its labels takes longer than counting, so its result is kept.
        self._running = lru_cache(None)(running.labels)
        self._seconds = lru_cache(None)(seconds.labels)
        self._ended_as = lru_cache(None)(ended.labels)
        app.on("before")(self._before)
        app.on("after")(self._after)
        app.on("lost_lock")(self._lost_lock)

    def _before(self, context: Context, outcome: None) -> None:
        self._began[context] = time.perf_counter()
        self._running(context.queue, context.klass).inc()

    def _after(self, context: Context, outcome: Outcome) -> None:
        queue, klass = context.queue, context.klass
        self._ended_as(queue, klass, ending(context, outcome)).inc()
        began = self._began.pop(context, None)  # None if the arguments could not be read, or if the klass is unknown
        if began is not None:
            self._running(queue, klass).dec()
            self._seconds(queue, klass).observe(time.perf_counter() - began)

    def _lost_lock(self, context: Context, outcome: Outcome | None) -> None:
        self._lost.labels(context.queue, context.klass).inc()
