"""Run a worker beside a program, so that an example is one file. In production it is a process: `qmodel worker`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from qmodel import App
from qmodel.worker import Worker


@contextmanager
def running(app: App, *queues: str, concurrency: int = 1) -> Iterator[Worker]:
    """Perform the jobs of some queues with a worker, within a block."""
    worker = Worker(app, queues, concurrency=concurrency)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join()
