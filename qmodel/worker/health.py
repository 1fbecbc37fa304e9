"""The probes of a worker, and its metrics where there is what makes them: at `--health-port`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.contract.operations import Newest
from qmodel.errors import LocalError
from qmodel.telemetry.health import Endpoint, Health, Page, serve

if TYPE_CHECKING:
    from qmodel.app import App
    from qmodel.worker.connection import Line


def watched(app: App, line: Line, host: str, port: int) -> tuple[Health, Endpoint]:
    """Answer `/live` and `/ready`, and `/metrics` where prometheus-client is installed. Raises ConnectError when the
    port is taken.
    """
    health = Health(lambda: line.client.execute(Newest()))
    try:
        return health, serve(health, port, host, metrics=_metrics(app))
    except OSError as error:
        raise LocalError(f"Port {port} of {host} cannot be used: {error.strerror}.", "Give another one.") from error


def _metrics(app: App) -> Page | None:
    try:
        from qmodel.telemetry import prometheus
    except ImportError:
        return None
    return prometheus.page(prometheus.metrics(app))
