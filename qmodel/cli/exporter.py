"""`qmodel exporter`: export the metrics of a namespace to Prometheus."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import click

from qmodel.cli.listen import listening
from qmodel.cli.live import impatient, need
from qmodel.cli.session import common, session
from qmodel.errors import ConnectError, QmodelError

if TYPE_CHECKING:
    from qmodel.telemetry.collector import EngineCollector


@click.command("exporter")
@listening(9808)
@click.option("--queues", default="*", show_default=True, metavar="PATTERN", help="Only queues whose names match.")
@click.option(
    "--most", type=click.IntRange(1), default=1000, show_default=True, help="The most queues, groups and throttles."
)
@click.option("--histograms/--no-histograms", default=True, show_default=True, help="How long jobs waited and ran.")
@click.option("--types/--no-types", default=False, show_default=True, help="Figures by job type, of the newest events.")
@click.option("--once", is_flag=True, help="Print the metrics and end.")
def command(host: str, port: int, queues: str, most: int, histograms: bool, types: bool, once: bool) -> None:
    """Export the metrics of all queues to Prometheus, whatever program works on them.

    One exporter is enough for a namespace; it answers /metrics, and /live and /ready for probes.
    docs/operating.md has the table of metrics, and alerts to set.

    \b
        qmodel exporter                              on 127.0.0.1:9808
        qmodel exporter --host 0.0.0.0 --port 80     for other machines; there is no password
        qmodel exporter --once                       print the metrics; exit code 69 without a server
    """
    need("prometheus_client", "prometheus", "exporter")
    from prometheus_client import CollectorRegistry

    from qmodel.telemetry.health import Health, serve
    from qmodel.telemetry.prometheus import EngineCollector, page

    at = session()
    at.url = impatient(at.url)
    collector = EngineCollector(at.url, queues=queues, most=most, histograms=histograms, types=types)
    click.get_current_context().call_on_close(collector.close)
    registry = CollectorRegistry()
    registry.register(collector)
    if once:
        _print(collector, page(registry)()[1].decode())
        return
    _begin(collector)
    health = Health(collector.reach)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    try:
        endpoint = serve(health, port, host, metrics=page(registry))
    except OSError as error:
        raise QmodelError(f"Port {port} of {host} cannot be used: {error}. Give another --port.") from None
    place = f"[{host}]" if ":" in host else host
    click.echo(f"qmodel serves its metrics at http://{place}:{endpoint.port}/metrics")
    while not stop.wait(1):
        health.tick()
    endpoint.close()


def _print(collector: EngineCollector, text: str) -> None:
    """Print metrics; raise ConnectError if there is no server."""
    click.echo(text, nl=False)
    if "\nqmodel_up 0" in text:
        collector.reach()


def _begin(collector: EngineCollector) -> None:
    """Check the URL; a server that is not there may still start."""
    try:
        collector.reach()
    except ConnectError as error:
        if error.__cause__ is None:
            raise
        click.echo(f"{error.sentence} Until the server is there, qmodel_up is 0.", err=True)


common(command)
