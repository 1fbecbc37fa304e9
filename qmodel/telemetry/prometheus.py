"""Metrics for Prometheus: what the engine counts, and what a worker measures of its attempts.

    from prometheus_client import CollectorRegistry
    registry = CollectorRegistry()
    registry.register(EngineCollector(client))    # all queues, whoever works on them: `qmodel exporter` does this

What stands in the server is told once, by one exporter. A worker tells only what it alone knows.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from qmodel.telemetry.collecting import EngineCollector


def page(registry: CollectorRegistry) -> Callable[[], tuple[str, bytes]]:
    """The page of a registry, as `qmodel.telemetry.health.serve` takes it."""
    return lambda: (CONTENT_TYPE_LATEST, generate_latest(registry))


__all__ = ["EngineCollector", "page"]
