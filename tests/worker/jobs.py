"""Jobs for the worker's tests, performed by real processes; they write notes to files that the tests read."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from qmodel.app import App, Context, Fail, current
from qmodel.worker import remote_control

remote_control.POLL_SECONDS = 0.1  # type: ignore[misc]  # so that no test waits two seconds for a signal

app = App()


def write(path: str, text: str) -> None:
    """Append a line to a file in one write."""
    with open(path, "ab", buffering=0) as file:
        file.write(f"{text}\n".encode())


@app.job
def add(x: int, y: int = 0) -> int:
    return x + y


@app.job
async def aadd(x: int, y: int = 0) -> int:
    await asyncio.sleep(0.001)
    return x + y


@app.job
def note(path: str, text: str) -> None:
    write(path, f"{text} {os.getpid()}")


@app.job(retries=1, backoff=0.01)
def wrong() -> None:
    raise ValueError("this goes wrong")


@app.job(retries=0)
def leave(interrupt: bool) -> None:
    raise KeyboardInterrupt if interrupt else SystemExit(4)


@app.job(retries=0)
async def aleave(interrupt: bool) -> None:
    raise KeyboardInterrupt if interrupt else SystemExit(4)


@app.job
def refuse() -> None:
    raise Fail("refused", "by the job")


def enough(path: str) -> bool:
    """Whether the test has told its jobs to end."""
    return os.path.exists(f"{path}.enough")


@app.job
def busy(seconds: float, path: str = "") -> str:
    """Compute without releasing the interpreter lock, until the time is over or the test says enough."""
    if path:
        write(path, f"begun {os.getpid()}")
    until = time.monotonic() + seconds
    while time.monotonic() < until and not (path and enough(path)):
        for _ in range(10_000):
            pass
    return "done"


@app.job(retries=3, backoff=0.01)
def rest(seconds: float, path: str) -> str:
    """Sleep until the test says enough; write when it began and how it ended."""
    write(path, f"begun {os.getpid()}")
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not enough(path):
            time.sleep(0.01)
    except BaseException as error:
        write(path, type(error).__name__)
        raise
    write(path, "ended")
    return "rested"


@app.job
async def arest(seconds: float, path: str) -> str:
    """Sleep in an event loop; write when it began and how it ended."""
    write(path, f"begun {os.getpid()}")
    try:
        await asyncio.sleep(seconds)
    except BaseException as error:
        write(path, type(error).__name__)
        raise
    return "rested"


@app.job(timeout=0.4, retries=1, backoff=0.01)
def endless() -> None:
    while True:
        time.sleep(0.01)


@app.job(timeout=0.4, retries=1, backoff=0.01)
async def aendless() -> None:
    await asyncio.sleep(60)


@app.job(retries=1, backoff=0.01)
def die(number: int) -> None:
    """End this process by a signal, or by an exit."""
    if number:
        os.kill(os.getpid(), number)
        time.sleep(10)
    os._exit(3)


@app.job(retries=0)
def hoard(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))


@app.job
def litter(path: str) -> list[str]:
    """Leave a file in the work folder, write the folder's name, and give the list of files before."""
    before = os.listdir()
    Path("litter").write_text("litter")
    write(path, os.getcwd())
    return before


@app.job
def parent(path: str) -> None:
    """Start another process without waiting for it."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    write(path, str(child.pid))


@app.job
def told(context: Context) -> str:
    context.log("a line")
    context.progress(1, 2)
    assert current() is context
    return context.klass


@app.job
def huge() -> str:
    return "x" * (2 << 20)


@app.job(retries=0)
def exhaust() -> None:
    raise StopIteration("nothing is left")


@app.job(retries=0)
def hush() -> None:
    """Close the stream to which the log is written."""
    sys.stderr.close()


def _no_backoff(failures: int) -> float:
    raise LookupError(f"no backoff for {failures}")


@app.job(timeout=0.4, retries=1, backoff=_no_backoff)
def endless_without_backoff() -> None:
    while True:
        time.sleep(0.01)


@app.job(timeout=0.4, retries=1, backoff=_no_backoff)
async def aendless_without_backoff() -> None:
    await asyncio.sleep(60)


KILLED = signal.SIGKILL


@app.job
def bear(path: str) -> None:
    """Fork, and end in both processes."""
    if child := os.fork():
        write(path, str(child))


@app.job
async def abear(path: str) -> None:
    if child := os.fork():
        write(path, str(child))


@app.job(retries=0)
def leave_daemon(path: str) -> None:
    """Leave a process in a session of its own, and be killed."""
    if not os.fork():
        os.setsid()
        write(path, str(os.getpid()))
        time.sleep(60)
        os._exit(0)
    while not os.path.exists(path):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
