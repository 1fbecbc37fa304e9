"""Metrics for Prometheus: what the engine counts, and what a worker measures of its attempts.

What stands in the server is told once, by one exporter, whoever works: `EngineCollector`, which `qmodel exporter`
serves. A worker tells only what it alone knows: `metrics(app)`.
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
    """Measure the attempts of an app; give the registry of it, a new one unless one is given.

    An app is measured once: asked again, it gives the registry there is. Raises ValueError for another one.
    """
    found = _MEASURED.get(app)
    if found is None:
        found = _MEASURED[app] = CollectorRegistry() if registry is None else registry
        AttemptMetrics(app, found)
    if registry not in (None, found):
        raise ValueError("The attempts of this app are measured in another registry already.")
    return found


def page(registry: CollectorRegistry) -> Callable[[], tuple[str, bytes]]:
    """The page of a registry, as `qmodel.telemetry.health.serve` takes it.

    Where processes write down their figures (PROMETHEUS_MULTIPROC_DIR) it is that of all of them.
    """

    def write() -> tuple[str, bytes]:
        found = registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            found = CollectorRegistry()
            MultiProcessCollector(found)  # type: ignore[no-untyped-call]
        return CONTENT_TYPE_LATEST, generate_latest(found)

    return write
