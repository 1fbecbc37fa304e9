"""Perform the pieces of a request with three workers of two threads each, and kill one of them in the middle.

It shows when each piece ran, how many ran at the same time, and whether each was completed exactly once.

Leases are short (2 seconds), so the pieces of the dead worker are soon taken by another one. The picture is
`docs/pipeline/requests.svg`: a bar for each lease of a piece, in the colour of the worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import Options
from bench.machine import candidates, pinned
from bench.report import Report, Table, Verdict
from qmodel.client.sync import Client
from qmodel.contract.events import Event

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pipeline" / "requests.svg"
PIECES, LIMIT, WORKERS = 30, 4, 3
WIDTH, ROW, TOP, LEFT, RIGHT, BOTTOM = 760, 12, 60, 50, 20, 40
COLOURS = ("#1c7ed6", "#2b8a3e", "#e67700", "#862e9c")
LOST = "#c92a2a"

APP = """
import time
from qmodel import App

app = App()


@app.job(name="Fit", queue="models")
def fit(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
"""


class Bar(NamedTuple):
    """A lease of a piece: the worker, its start and end, and how it ended."""

    piece: int
    worker: str
    begins: int
    ends: int
    how: str


def run(options: Options) -> Report:
    """Perform the pieces, kill a worker, and look at the events."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(pinned(candidates(options.server)[0]))
        client = stack.enter_context(Client(server.url))
        client.config.set("heartbeat", 2)
        client.config.set("grace-period", 0)
        (Path(folder) / "models.py").write_text(APP, encoding="utf-8")
        workers = [stack.enter_context(worker(server.url, folder)) for _ in range(WORKERS)]
        while len(client.workers.counts()) < WORKERS:
            time.sleep(0.1)
        queue = client.queues["models"]
        puts = [queue.new("Fit", {"seconds": 0.6}, jid=f"fit:{piece:02}") for piece in range(PIECES)]
        request = client.requests.put("fit", "models", puts, limit=LIMIT)
        while request.get().done < PIECES // 3 or request.get().running < LIMIT:
            time.sleep(0.01)
        workers[0].kill()
        known = request.wait(120)
        found = list(bars(client.events()))
        version = server.version
    if not options.quick:
        PICTURE.write_text(picture(found), encoding="utf-8")
    table = Table("Pieces", ["", "pieces"])
    lost = sum(bar.how == "lock_lost" for bar in found)
    for name, count in (("put", PIECES), ("done", known.done), ("handed out", len(found)), ("lost by the dead", lost)):
        table.add(name, count)
    most = Verdict("pieces that ran at a time", most_at_a_time(found), LIMIT)
    return Report("pieces", "python -m bench pieces", " ".join(str(__doc__).split()), [table], [most], [version])


@contextmanager
def worker(url: str, folder: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker in a process of its own."""
    command = [sys.executable, "-m", "qmodel", "worker", "models:app", "--url", url, "--concurrency", "2"]
    path = os.pathsep.join((str(ROOT), folder))
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def bars(events: Iterator[Event]) -> Iterator[Bar]:
    """Find each lease of a piece, and the event that ended it."""
    held: dict[str, tuple[str, int]] = {}
    for event in events:
        facts = event.named
        jid = str(facts.get("jid", ""))
        if event.event in ("completed", "lock_lost", "retried", "failed") and jid in held:
            worker, begins = held.pop(jid)
            yield Bar(int(jid.rpartition(":")[2]), worker, begins, event.at, event.event)
        if event.event == "popped":
            held[jid] = (str(facts["worker"]), event.at)


def most_at_a_time(found: list[Bar]) -> int:
    """Find the largest number of bars at one moment."""
    return max(sum(bar.begins <= one.begins < bar.ends for bar in found) for one in found)


def picture(found: list[Bar]) -> str:
    """Draw the bars: a row for each piece."""
    begins, ends = min(bar.begins for bar in found), max(bar.ends for bar in found)
    workers = sorted({bar.worker for bar in found})
    height = TOP + PIECES * ROW + BOTTOM

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at - begins) / (ends - begins)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{PIECES} pieces, at most {LIMIT} at a time, by {len(workers)} workers '
        "of which one was killed</text>",
    ]
    for place in range(len(workers)):
        out.append(f'<text x="{LEFT + 100 * place}" y="44" fill="{COLOURS[place]}">worker {place + 1}</text>')
    out.append(f'<text x="{LEFT + 100 * len(workers)}" y="44" fill="{LOST}">lost with its worker</text>')
    for second in range(int((ends - begins) / 1000) + 1):
        at = x(begins + 1000 * second)
        out.append(f'<path d="M{at:.1f} {TOP}V{height - BOTTOM}" stroke="#eee"/>')
        out.append(f'<text x="{at:.1f}" y="{height - 20}" text-anchor="middle" fill="#777">{second}</text>')
    out.append(f'<text x="{WIDTH - RIGHT}" y="{height - 5}" text-anchor="end" fill="#777">seconds</text>')
    for bar in found:
        colour = LOST if bar.how == "lock_lost" else COLOURS[workers.index(bar.worker)]
        out.append(
            f'<rect x="{x(bar.begins):.1f}" y="{TOP + bar.piece * ROW + 2}" height="{ROW - 4}" fill="{colour}" '
            f'width="{max(x(bar.ends) - x(bar.begins), 1):.1f}"/>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"
