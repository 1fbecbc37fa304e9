"""The health probes of a worker, and its metrics if prometheus-client is installed: at `--health-port`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodel.contract.operations import Newest
from qmodel.errors import LocalError
from qmodel.telemetry.health import Endpoint, Health, Page, serve

if TYPE_CHECKING:
    from qmodel.app import App
    from qmodel.worker.connection import Connection


def start_health(app: App, connection: Connection, host: str, port: int) -> tuple[Health, Endpoint]:
    """Serve `/live` and `/ready`, and `/metrics` if prometheus-client is installed.

    Raises LocalError when the port is taken.
    """
    health = Health(lambda: connection.client.execute(Newest()))
    try:
        return health, serve(health, port, host, metrics=_metrics(app))
    except OSError as error:
        raise LocalError(f"Port {port} of {host} cannot be used: {error.strerror}.", "Choose another one.") from error


def _metrics(app: App) -> Page | None:
    try:
        from qmodel.telemetry import prometheus
    except ImportError:
        return None
    return prometheus.page(prometheus.metrics(app))
