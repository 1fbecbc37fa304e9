"""Metrics for Prometheus: the engine's figures, and a worker's measurements of its attempts.

The figures that are stored in the server are exported once, by one exporter for all workers: `EngineCollector`, which
`qmodel exporter` serves. A worker exports only its own measurements: `metrics(app)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from qmodel.telemetry.attempts import AttemptMetrics
from qmodel.telemetry.collector import EngineCollector

if TYPE_CHECKING:
    from qmodel.app import App

__all__ = ["EngineCollector", "metrics", "page"]


_MEASURED: WeakKeyDictionary[App, CollectorRegistry] = WeakKeyDictionary()


def metrics(app: App, registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """Measure the attempts of an app; give the registry, a new one unless one is given.

    An app is measured once: a second call gives the same registry, and raises ValueError if another one is given.
    """
    found = _MEASURED.get(app)
    if found is None:
        found = _MEASURED[app] = CollectorRegistry() if registry is None else registry
        AttemptMetrics(app, found)
    if registry not in (None, found):
        raise ValueError("The attempts of this app are already measured in another registry.")
    return found


def page(registry: CollectorRegistry) -> Callable[[], tuple[str, bytes]]:
    """Make the page of a registry for `qmodel.telemetry.health.serve`.

    With PROMETHEUS_MULTIPROC_DIR, in which processes store their figures, the page has the figures of all processes.
    """

    def write() -> tuple[str, bytes]:
        found = registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            found = CollectorRegistry()
            MultiProcessCollector(found)  # type: ignore[no-untyped-call]
        return CONTENT_TYPE_LATEST, generate_latest(found)

    return write
