"""One of the processes of `qmodel dev`: a command of qmodel, or a worker, that ends when its standard input closes."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback

import click

from qmodel.errors import QmodelError

PATIENCE_SECONDS = 5.0


def main(words: list[str]) -> None:
    """Run the process that the arguments name."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if words[0] == "work":
        _work(*words[1:])
        return
    from qmodel.cli import main as command_line

    sys.argv = ["qmodel", *words]
    command_line()


def _end_with_parent() -> None:
    while os.read(0, 100):  # by its number: a daemon thread that holds sys.stdin cannot be ended
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE_SECONDS)
    os._exit(1)  # for example a worker that still tries to reach a server that has ended, too


def _work(name: str, queues: str, concurrency: str) -> None:
    """Run the jobs of an app; without names, of all queues that the app knows."""
    from qmodel.app import load
    from qmodel.app.connections import Connection
    from qmodel.telemetry import logs
    from qmodel.worker import Worker

    logs.install(level=logging.INFO)
    try:
        app = load(name)
        app.connection = Connection(os.environ["QMODEL_URL"])
        known = {kind.queue for kind in app.jobs.values()} | {one.queue for one in app.schedules.values()}
        names = [one for one in queues.split(",") if one] or sorted(known) or ["default"]
        Worker(app, names, order="round-robin", concurrency=int(concurrency), grace=5).run()
    except Exception as error:
        click.secho("\n".join(_told(error)), fg="red", err=True)
        raise SystemExit(1) from None


def _told(error: Exception) -> list[str]:
    """Describe an error: our sentence, or the part of the traceback in files of this folder."""
    if isinstance(error, QmodelError):
        return [f"Error: {error}"]
    here = os.getcwd() + os.sep
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(here)]
    lines = [*traceback.format_list(own), *traceback.format_exception_only(error)]
    return [line.rstrip("\n") for line in lines]


if __name__ == "__main__":
    main(sys.argv[1:])
