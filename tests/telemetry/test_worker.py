"""A real worker process: its logs, metrics and traces of jobs that another process put."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import qmodel
from tests.processes import started
from tests.servers import ROOT, Server
from tests.worker.support import free_port

SHOP = """
import logging
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from qmodel import App
from qmodel.telemetry import otel

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: span.to_json(None) + "\\n")))
app = App()
otel.instrument(app, provider)

@app.job(queue="mails", retries=0)
def send(to: str) -> None:
    logging.getLogger("shop").info("sending to %s", to)
    if to == "nobody":
        raise ValueError("no such address")
"""

PUT = "import shop; print(shop.send.put('ada').jid); print(shop.send.put('nobody').jid)"


def test_a_job_is_followed_from_its_put_through_log_metrics_and_traces(server: Server, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    url, port = f"{server.url}?prefix=telemetry:", free_port()
    environment = {"QMODEL_URL": url, "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    told = subprocess.run(
        [sys.executable, "-c", PUT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    ).stdout
    jids = re.findall(r"^[0-9a-f]{32}$", told, re.M)
    put = [json.loads(line) for line in told.splitlines() if line.startswith("{")]

    command = [sys.executable, "-m", "qmodel", "worker", "shop:app", "-q", "mails", "--log-json"]
    command += ["--health-port", str(port)]
    with (
        started(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as worker,
        qmodel.connect(url) as client,
    ):
        client.wait(jids, timeout=60)
        metrics = _metrics(port, 'outcome="failed",queue="mails"} 1.0')
        worker.terminate()
        out, err = worker.communicate(timeout=60)
    lines = [json.loads(line) for line in err.splitlines()]
    spans = [json.loads(line) for line in out.splitlines()]

    (sent,) = (line for line in lines if line["message"] == "sending to ada")
    assert (sent["jid"], sent["klass"], sent["queue"], sent["attempt"]) == (jids[0], "send", "mails", 1)
    assert {line["jid"] for line in lines if line["logger"] == "qmodel.worker" and "jid" in line} == set(jids)
    assert 'qmodel_attempts_total{klass="send",outcome="completed",queue="mails"} 1.0' in metrics
    by_jid = {span["attributes"]["messaging.message.id"]: span for span in spans}
    assert [by_jid[jid]["context"]["trace_id"] for jid in jids] == [span["context"]["trace_id"] for span in put]
    assert [by_jid[jid]["attributes"]["qmodel.outcome"] for jid in jids] == ["completed", "failed"]
    assert by_jid[jids[0]]["context"]["trace_id"] == f"0x{sent['trace_id']}"


def _metrics(port: int, wanted: str) -> str:
    """Poll a worker's metrics until they contain a text: a job is counted shortly after it has ended."""
    until = time.monotonic() + 60
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            text: str = answer.read().decode()
        if wanted in text or time.monotonic() > until:
            return text
        time.sleep(0.02)
