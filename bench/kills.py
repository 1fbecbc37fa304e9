"""Kill an archiver again and again while jobs are put and performed.

It shows the progress of the server and of the archive, and whether at the end each event is archived exactly once. The
picture is `docs/pipeline/archive.svg`: a sample of both every 50 ms, and a mark for each kill. A kill ends the archiver
and all its processes, at a random moment after it began to add events.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from bench import Options
from bench.machine import candidates, pinned
from bench.report import Report, Table
from qmodel import connect
from qmodel.contract import operations as ops

KILLS, QUICK = 9, 3
PICTURE = Path(__file__).parents[1] / "docs" / "pipeline" / "archive.svg"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 340, 74, 16, 58, 40
SERVER, ARCHIVE, KILL = "#2a6fb0", "#1e8449", "#c0392b"


class Look(NamedTuple):
    """A sample: the newest event on the server and in the archive, and the time in seconds since the start."""

    at: float
    newest: int
    archived: int


class Watch:
    """Puts and performs jobs, and samples the server and the archive, until it is stopped."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root
        self.began = time.monotonic()
        self.looks: list[Look] = []
        self.kills: list[float] = []
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.work), threading.Thread(target=self.look)]

    def work(self) -> None:
        """Put and perform jobs repeatedly; each job makes three events."""
        with connect(self.url) as client:
            while not self.stopped.wait(0.05):
                client.put_many([ops.Put("q", f"j{time.monotonic_ns()}-{n}", "Klass", "") for n in range(40)])
                client.complete_many(client.pop(["q"], count=40, worker="worker-1"))

    def look(self) -> None:
        """Sample the server and the archive."""
        from qmodel.pipeline.archive.layout import Archive

        archive = Archive(str(self.root))
        with connect(self.url) as client:
            while not self.stopped.wait(0.05):
                archived = max((file.last for file in archive.files()), default=0)
                self.looks.append(Look(time.monotonic() - self.began, client.newest(), archived))

    def kill(self, lives: float) -> None:
        """Kill an archiver some seconds after it has reported its first addition."""
        command = [sys.executable, "-m", "qmodel", "--url", self.url, "archive", "run", str(self.root.parent)]
        command += ["--every", "150ms", "--rows", "500"]
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        with subprocess.Popen(command, stdout=-1, env=environment, start_new_session=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(lives)
            os.killpg(process.pid, signal.SIGKILL)
        self.kills.append(time.monotonic() - self.began)


def run(options: Options) -> Report:
    """Kill, archive the rest, and verify all files."""
    from qmodel.pipeline.archive.verify import verify
    from qmodel.pipeline.archive.write import archive

    chance = random.Random(11)
    with pinned(candidates(options.server)[0]) as server, tempfile.TemporaryDirectory() as folder:
        url, root = f"{server.url}?prefix=kills:", Path(folder) / "events"
        with connect(url) as client:
            client.config.set("max-events", 10**7)
        watch = Watch(url, root)
        for thread in watch.threads:
            thread.start()
        for _ in range(QUICK if options.quick else KILLS):
            watch.kill(chance.uniform(0, 1.5))
        list(archive(url, str(root)))
        time.sleep(0.5)
        watch.stopped.set()
        for thread in watch.threads:
            thread.join()
        list(archive(url, str(root)))
        (verdict,) = verify(str(root))
        version = server.version
    if not options.quick:
        PICTURE.write_text(picture(watch), encoding="utf-8")
    table = Table("Events", ["", "events"])
    missing, twice = sum(map(len, verdict.missing)), sum(map(len, verdict.twice))
    for name, count in (("told by the server", watch.looks[-1].newest), ("missing", missing), ("twice", twice)):
        table.add(name, f"{count:,}")
    table.add("kills", len(watch.kills))
    return Report("kills", "python -m bench kills", " ".join(str(__doc__).split()), [table], [], [version])


def picture(watch: Watch) -> str:
    """Draw both lines and the kills."""
    last = watch.looks[-1]

    def x(at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at / last.at

    def y(events: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * events / last.newest

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{last.newest:,} events, an archiver that was killed '
        f"{len(watch.kills)} times: each is archived once</text>",
    ]
    legend = (("told by the server", SERVER), ("archived", ARCHIVE), ("killed", KILL))
    for place, (name, colour) in enumerate(legend):
        out.append(f'<text x="{LEFT + 150 * place}" y="44" fill="{colour}">{name}</text>')
    for part in range(5):
        events = last.newest * part / 4
        out.append(f'<path d="M{LEFT} {y(events):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(events) + 4:.1f}" text-anchor="end" fill="#777">{events:,.0f}</text>')
    for second in range(0, int(last.at) + 1, 2):
        out.append(f'<text x="{x(second):.1f}" y="{HEIGHT - 20}" text-anchor="middle" fill="#777">{second}</text>')
    out.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end" fill="#777">seconds</text>')
    for at in watch.kills:
        out.append(f'<path d="M{x(at):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="{KILL}" stroke-dasharray="3 3"/>')
    newest = " ".join(f"{x(look.at):.1f},{y(look.newest):.1f}" for look in watch.looks)
    steps = " ".join(f"H{x(look.at):.1f}V{y(look.archived):.1f}" for look in watch.looks)
    out.append(f'<polyline points="{newest}" fill="none" stroke="{SERVER}" stroke-width="1.5"/>')
    out.append(f'<path d="M{LEFT} {y(0):.1f}{steps}" fill="none" stroke="{ARCHIVE}" stroke-width="2"/>')
    return "\n".join([*out, "</svg>"]) + "\n"
