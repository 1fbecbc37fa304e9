"""Take the pictures of the dashboard and of `qmodel top`: `python -m tools.docs.pictures`.

It starts `qmodel serve` and `qmodel web`, plays an hour of an invented shop, and goes on playing in real time while
the pictures are taken. The shop is drawn from a seed, so the figures are similar each time; the times are not the same.
It needs Chromium (`--chromium`: another program of this kind) and the extras `redis`, `web` and `top`. CI does not run
it: run it when the pages look different, and look at the pictures before you commit them.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import qmodel
from qmodel.client.aio import AsyncClient
from qmodel.contract import operations as ops
from qmodel.contract.replies import Job
from qmodel.errors import ConnectError
from qmodel.top.app import Top

HOUR = 3600
OVERVIEW = (1280, 1320)
JOB = (1280, 860)
TERMINAL = (150, 15)
SAMPLES = 24
"""How many times `top` draws before its picture is taken: its line of activity shows 20 samples."""

TRACE = 'Traceback (most recent call last):\n  File "/srv/shop/{file}.py", line {line}, in perform\n{error}'


class Kind(NamedTuple):
    """Jobs of a queue: how many come in a minute, how long they run, and how they may fail."""

    queue: str
    klass: str
    data: str
    per_minute: float
    seconds: tuple[int, int]
    workers: int
    failures: tuple[str, ...]
    options: dict[str, Any]


KINDS = (
    Kind("emails", "SendEmail", '{{"to": "customer-{n}@example.com"}}', 34, (1, 4), 2,
         ("SMTPRecipientsRefused: 550 no such user", "ReadTimeout: no answer in 30 s"), {"tags": ("eu",)}),
    Kind("thumbnails", "MakeThumbnail", '{{"image": {n}, "width": 320}}', 18, (3, 9), 2,
         ("UnidentifiedImageError: cannot identify image file",), {"priority": 10}),
    Kind("billing", "ChargeCustomer", '{{"customer": {n}, "amount": 12900}}', 3, (15, 40), 2,
         ("CardDeclined: insufficient funds",), {"throttles": ("payments",), "priority": -100}),
    Kind("reports/daily", "BuildReport", '{{"orders": {n}}}', 2, (20, 50), 1, ("KeyError: 'total'",), {}),
    Kind("webhooks", "CallWebhook", '{{"order": {n}}}', 5, (1, 3), 1, ("ReadTimeout: no answer in 30 s",), {}),
)  # fmt: skip


class Worker(NamedTuple):
    """A worker, the job that it performs if any, and when it finishes."""

    kind: Kind
    name: str
    job: Job | None = None
    until: int = 0


class Shop:
    """Puts and performs jobs, second by second, from an hour ago."""

    def __init__(self, client: qmodel.Client) -> None:
        self.client = client
        self.random = random.Random(7)
        self.now = int(time.time()) - HOUR
        self.number = 4000
        self.workers = [
            Worker(kind, f"web-{at + 1}.example-{1001 + one}-1")
            for at, kind in enumerate(KINDS)
            for one in range(kind.workers)
        ]

    def execute(self, op: ops.Operation) -> Any:
        """Execute an operation at the time of the shop."""
        return self.client.execute(op, now=self.now * 1000)

    def play(self, until: float) -> None:
        """Play up to a moment, in seconds since the epoch."""
        while self.now < until:
            for kind in KINDS:
                if self.random.random() < kind.per_minute / 60:
                    self.put(kind)
            self.workers = list(map(self.work, self.workers))
            self.now += 1

    def put(self, kind: Kind) -> None:
        """Put a job; every twentieth one is delayed."""
        self.number += 1
        options = kind.options | ({"delay_ms": 900_000} if self.number % 20 == 0 else {})
        jid = f"{kind.klass.lower()}-{self.number}"
        self.execute(ops.Put(kind.queue, jid, kind.klass, kind.data.format(n=self.number), **options))

    def work(self, worker: Worker) -> Worker:
        """Finish the job of a worker when its time has come, and take the next one."""
        if worker.job is not None and self.now < worker.until:
            return worker
        if worker.job is not None:
            self.finish(worker.kind, worker.job)
        found = self.execute(ops.Pop(worker.kind.queue, worker.name))
        if not found:
            return worker._replace(job=None)
        return worker._replace(job=found[0], until=self.now + self.random.randint(*worker.kind.seconds))

    def finish(self, kind: Kind, job: Job) -> None:
        """Let a job complete, or sometimes fail or be tried again."""
        chance = self.random.random()
        error = self.random.choice(kind.failures)
        if chance < 0.02:
            message = TRACE.format(file=kind.klass.lower(), line=self.random.randint(20, 90), error=error)
            self.execute(ops.Fail(job.jid, job.token, error.split(":")[0], message))
        elif chance < 0.05:
            self.execute(ops.Retry(job.jid, job.token, 30_000))
        else:
            self.execute(ops.Complete(job.jid, job.token, '{"ok": true}'))


def fill(shop: Shop) -> None:
    """Play the hour, with a throttle, a flow, a schedule, a job to look at, a lost worker, and a pause."""
    ended = time.time()
    shop.execute(ops.ThrottleSet("payments", concurrency=1))
    shop.execute(ops.Recur("reports/daily", "daily", "BuildReport", "{}", 86_400_000, tags=("finance",)))
    shop.play(ended - 130)
    look_at_one(shop, ended)
    for number in range(5):
        shop.execute(ops.Put("reports/daily", f"part-{number}", "BuildReport", "{}", delay_ms=600_000))
    shop.execute(ops.Put("reports/daily", "summary", "Summarize", "{}", depends=tuple(f"part-{n}" for n in range(5))))
    shop.execute(ops.Pause(("webhooks",), "partner is down"))
    shop.play(ended)


def look_at_one(shop: Shop, ended: float) -> None:
    """Charge one customer: the first attempt is retried, the second one asks for a confirmation."""
    jid = "charge-9f31"
    data = '{"customer": 4711, "amount": 12900, "currency": "EUR"}'
    options: dict[str, Any] = {"priority": -100, "tags": ("eu", "vip")}
    shop.execute(ops.Put("cards", jid, "ChargeCard", data, **options))
    shop.play(ended - 123)
    [job] = shop.execute(ops.Pop("cards", "web-3.example-1001-1"))
    shop.execute(ops.Put("cards", "charge-9f2c", "ChargeCard", data, **options))
    shop.execute(ops.Pop("cards", "web-4.example-1001-1"))  # this worker is lost
    shop.play(ended - 95)
    shop.execute(ops.Retry(jid, job.token, 12_000, "ReadTimeout", "ReadTimeout: no answer in 30 s"))
    shop.play(ended - 75)
    [job] = shop.execute(ops.Pop("cards", "web-3.example-1002-1"))
    shop.play(ended - 66)
    shop.execute(ops.Log(jid, "customer was asked to confirm"))
    shop.execute(ops.Progress(jid, job.token, "waiting for the bank"))
    shop.play(ended - 44)
    shop.execute(ops.Complete(jid, job.token, '{"charge": "ch_1Nx2", "paid": true}'))


@contextmanager
def running(*command: str) -> Iterator[None]:
    """Run a qmodel command in a process of its own."""
    process = subprocess.Popen([sys.executable, "-m", "qmodel", *command], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def playing(shop: Shop) -> Iterator[None]:
    """Go on playing in real time, in a thread."""
    stop = threading.Event()

    def play() -> None:
        while not stop.wait(0.5):
            shop.play(time.time())

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def connected(url: str) -> qmodel.Client:
    """Connect to the server, as soon as it listens."""
    for _ in range(100):
        try:
            client = qmodel.connect(url)
            client.execute(ops.Queues())
            return client
        except ConnectError:
            time.sleep(0.1)
    raise SystemExit(f"no server at {url}")


def answered(page: str) -> None:
    """Wait until the dashboard answers."""
    for _ in range(100):
        try:
            urllib.request.urlopen(page, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"no dashboard at {page}")


def browse(chromium: str, page: str, file: Path, size: tuple[int, int], *, dark: bool = False) -> None:
    """Save a page of the dashboard as a picture."""
    with tempfile.TemporaryDirectory() as profile:
        command = [chromium, "--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
        command += [f"--window-size={size[0]},{size[1]}", "--timeout=4000", f"--screenshot={file}"]
        command += ["--blink-settings=preferredColorScheme=0"] if dark else []
        subprocess.run([*command, page], check=True, timeout=120, stderr=subprocess.DEVNULL)


async def show_top(url: str, file: Path) -> None:
    """Save the first view of `qmodel top` as a picture."""
    app = Top(AsyncClient(url), url, interval=0.5)
    async with app.run_test(size=TERMINAL) as pilot:
        while app.drawn < SAMPLES:
            await pilot.pause(0.1)
        drawn = app.export_screenshot(title="qmodel top")
    own = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.S)  # a picture in a page loads no font from elsewhere
    own = own.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, Consolas, monospace")
    file.write_text(re.sub(r" +$", "", own, flags=re.M), encoding="utf-8")


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description="Take the pictures of the dashboard and of top.")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--port", default="6379", help="of the server; the pictures show it")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[2] / "docs")
    given = parser.parse_args()
    url, pages = f"redis://localhost:{given.port}/0", "http://127.0.0.1:8700"
    with running("serve", "--port", given.port), connected(url) as client:
        shop = Shop(client)
        fill(shop)
        with running("web", "--url", url, "--port", "8700", "--writable"), playing(shop):
            answered(pages)
            browse(given.chromium, pages, given.folder / "web-overview.png", OVERVIEW)
            browse(given.chromium, f"{pages}/job?jid=charge-9f31", given.folder / "web-job.png", JOB, dark=True)
            asyncio.run(show_top(url, given.folder / "top.svg"))


if __name__ == "__main__":
    main()
