"""`qmodel dev`: run an app during its development.

This process supervises three others: the model behind the Redis protocol (`qmodel serve`; not with --url), the pages
(`qmodel web`), and a worker. When a file changes, only the worker restarts, so the jobs stay. At the end the worker
stops first, because it reports its jobs to the server. Each process reads its standard input, a pipe from this one: it
closes when this process ends, in whatever way, and then they end, too.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Final

import click

from qmodel.cli.listen import port_option
from qmodel.cli.session import session
from qmodel.errors import LocalError

LOOK_SECONDS: Final = 0.3
GRACE_SECONDS: Final = 10.0
SERVE_PORT: Final = 6380
NEEDED: Final = {"redis": "redis", "watchfiles": "reload", "starlette": "web", "jinja2": "web", "uvicorn": "web"}
"""The packages that it needs, each with its extra."""


@click.command("dev")
@click.argument("app", metavar="MODULE:APP")
@click.option("--url", metavar="URL", help="Where the jobs are. [default: in memory, while this runs]")
@click.option(
    "--queues", "-q", default="", help="The queues, separated by commas. [default: those of the app's job types]"
)
@click.option(
    "--concurrency", "-c", type=click.IntRange(1, 1000), default=10, show_default=True, help="The most jobs at a time."
)
@port_option(8700, "The port of the pages; another one if it is taken.")
@click.option("--no-web", is_flag=True, help="No pages.")
def command(app: str, url: str | None, queues: str, concurrency: int, port: int, no_web: bool) -> None:
    """Run the jobs of an app during its development, and show them on web pages.

    \b
        qmodel dev jobs                              the app of jobs.py; no server is needed
        qmodel dev jobs --url redis://localhost:6379/0

    The worker restarts when a Python file below this folder changes. Ctrl-C ends all processes after the running jobs;
    a second Ctrl-C releases these jobs at once.
    """
    _check_packages([one for one in NEEDED if not (no_web and NEEDED[one] == "web")])
    dev = Dev(app, url or _given_url(), queues, concurrency)
    before = {number: signal.signal(number, dev.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        dev.start(None if no_web else port)
        dev.watch()
    finally:
        dev.end()
        for number, handler in before.items():
            signal.signal(number, handler)
    if dev.status:
        raise click.exceptions.Exit(dev.status)


def _given_url() -> str:
    """Give the --url before the command, but not QMODEL_URL: a trial run must not touch the jobs of production."""
    if session().url_from == "QMODEL_URL":
        click.echo("QMODEL_URL is ignored: these jobs are in memory. To use a server, give --url.", err=True)
    return session().url if session().url_from == "--url" else ""


def _check_packages(needed: list[str]) -> None:
    from importlib.util import find_spec

    if missing := [one for one in needed if find_spec(one) is None]:
        extras = ",".join(dict.fromkeys(NEEDED[one] for one in missing))
        raise LocalError(
            f"qmodel dev needs {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed.",
            f"Run: pip install {' '.join(missing)} (or, in a checkout of qmodel: pip install '.[{extras}]')",
        )


class Dev:
    """The processes, and their common state."""

    def __init__(self, app: str, url: str, queues: str, concurrency: int) -> None:
        self.url = url
        self.status = 0
        self._work = ["work", app, queues, str(concurrency)]
        self._given = url
        self._asked = 0
        self._over = threading.Event()
        self._processes: dict[str, subprocess.Popen[str]] = {}

    # ---- start

    def start(self, port: int | None) -> None:
        """Start all of them; raise ConnectError if there is no server for the jobs."""
        if not self._given:
            self._serve()
        kept = "" if self._given else " (in memory: they are lost when this command ends)"
        click.echo(f"qmodel dev has its jobs at {self.url}{kept}")
        if not self._given:
            click.echo(f"In another terminal: export QMODEL_URL={self.url}")
        if port is not None:
            self._begin("web", ["web", "--url", self.url, "--port", str(_free(port)), "--writable"])
        self._begin("worker", self._work)

    def _serve(self) -> None:
        """Start the server in memory, at its usual port if that is free. Somebody may take it at the last moment."""
        for port in dict.fromkeys((_free(SERVE_PORT), 0)):
            process = self._begin("serve", ["serve", "--port", str(port)], stdout=subprocess.PIPE)
            assert process.stdout is not None
            said = process.stdout.readline()
            self.url = said.rpartition(" at ")[2].strip()
            if self.url.startswith("redis://"):
                return
            process.wait()
        raise LocalError("The server in memory did not start.", "The output above says why.")

    def _begin(self, name: str, words: list[str], **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "qmodel.cli.child", *words]
        environment = {**os.environ, "QMODEL_URL": self.url, "PYTHONUNBUFFERED": "1"}
        self._processes[name] = subprocess.Popen(
            command, stdin=subprocess.PIPE, env=environment, text=True, start_new_session=True, **options
        )
        return self._processes[name]

    # ---- supervision

    def watch(self) -> None:
        """Supervise them until a signal."""
        from watchfiles import PythonFilter, watch

        every = int(LOOK_SECONDS * 1000)
        for changes in watch(
            ".", watch_filter=PythonFilter(), stop_event=self._over, rust_timeout=every, yield_on_timeout=True
        ):
            self._look_after()
            if changes and not self._asked:
                self._renew(sorted(os.path.relpath(path) for _, path in changes))

    def _look_after(self) -> None:
        for name, process in list(self._processes.items()):
            status = process.poll()
            if status is None or self._asked:
                continue
            del self._processes[name]
            if name == "serve":
                click.secho(f"The server ended with the status {status}, and the jobs are gone.", fg="red", err=True)
                self.status = 1
                self._over.set()
            elif name == "worker":
                click.secho("The worker ended. It restarts when a file changes.", fg="yellow", err=True)
            else:
                click.secho("The pages ended; the other processes continue.", fg="yellow", err=True)

    def _renew(self, changed: list[str]) -> None:
        click.secho(f"{', '.join(changed[:3])} changed: the worker restarts.", bold=True)
        self._finish("worker", signal.SIGTERM)
        if not self._asked:
            self._begin("worker", self._work)

    # ---- end

    def stop(self, number: int, frame: object) -> None:
        """End all; at the second signal without finishing the running jobs."""
        self._asked += 1
        self._over.set()
        if worker := self._processes.get("worker"):
            worker.send_signal(signal.SIGINT)

    def end(self) -> None:
        """End all, the worker first; after a signal it is ending already."""
        self._finish("worker", None if self._asked else signal.SIGTERM)
        for name in ("web", "serve"):
            self._finish(name, signal.SIGTERM)

    def _finish(self, name: str, by: signal.Signals | None) -> None:
        """End a process, by a signal if it is not ending yet, and wait for it."""
        process = self._processes.get(name)
        if process is None:
            return
        if by is not None:
            process.send_signal(by)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        del self._processes[name]


def _free(port: int) -> int:
    """Give the port, or 0 (any free port) if it is in use on this machine."""
    with socket.socket() as tried:
        return 0 if port and tried.connect_ex(("127.0.0.1", port)) == 0 else port
