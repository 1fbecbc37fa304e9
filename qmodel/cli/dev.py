"""`qmodel dev`: an app while it is written.

Three processes, which this one looks after: the model behind the protocol of Redis (`qmodel serve`; none with --url),
the pages (`qmodel web`), and a worker. When a file changes, only the worker begins anew: so the jobs stay. They end in
order, the worker first, for what it performs has to be told to somebody. Each listens to its standard input, which is
a pipe to here: it closes when this process is gone, in whatever way, and then they end too.
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
@click.option("--url", metavar="URL", help="Where the jobs are. [default: in memory, for as long as this runs]")
@click.option("--queues", "-q", default="", help="Their names by commas. [default: those of the app's job types]")
@click.option("--concurrency", "-c", default=10, show_default=True, help="How many jobs at a time.")
@port_option(8700, "Of the pages; another one if it is taken.")
@click.option("--no-web", is_flag=True, help="No pages.")
def command(app: str, url: str | None, queues: str, concurrency: int, port: int, no_web: bool) -> None:
    """Perform the jobs of an app while it is written, and show them on pages in a browser.

    \b
        qmodel dev jobs                              the app of jobs.py; no server is needed
        qmodel dev jobs --url redis://localhost:6379/0

    The worker begins anew when a Python file below this folder changes. Ctrl-C ends all; jobs at hand are finished
    before, and with a second Ctrl-C given back.
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
    """What was said before the command. Not what the environment says: nobody tries things out on jobs in earnest."""
    if session().url_from == "QMODEL_URL":
        click.echo("QMODEL_URL is not heeded: these jobs are in memory. Give --url to have them there.", err=True)
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
    """The processes, and what they have in common."""

    def __init__(self, app: str, url: str, queues: str, concurrency: int) -> None:
        self.url = url
        self.status = 0
        self._work = ["work", app, queues, str(concurrency)]
        self._given = url
        self._asked = 0
        self._over = threading.Event()
        self._processes: dict[str, subprocess.Popen[str]] = {}

    # ---- beginning

    def start(self, port: int | None) -> None:
        """Start all of them; raise ConnectError where there is no server for the jobs."""
        if not self._given:
            self._serve()
        kept = "" if self._given else " (in memory: they are gone when this ends)"
        click.echo(f"qmodel dev has its jobs at {self.url}{kept}")
        if not self._given:
            click.echo(f"In another terminal: export QMODEL_URL={self.url}")
        if port is not None:
            self._begin("web", ["web", "--url", self.url, "--port", str(_free(port)), "--writable"])
        self._begin("worker", self._work)

    def _serve(self) -> None:
        """Start the server in memory, at its usual port if that is free."""
        process = self._begin("serve", ["serve", "--port", str(_free(SERVE_PORT))], stdout=subprocess.PIPE)
        assert process.stdout is not None
        said = process.stdout.readline()
        self.url = said.rpartition(" at ")[2].strip()
        if not self.url.startswith("redis://"):
            raise LocalError("The server in memory did not start.", "What stands above says why.")

    def _begin(self, name: str, words: list[str], **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "qmodel.cli.child", *words]
        environment = {**os.environ, "QMODEL_URL": self.url, "PYTHONUNBUFFERED": "1"}
        self._processes[name] = subprocess.Popen(
            command, stdin=subprocess.PIPE, env=environment, text=True, start_new_session=True, **options
        )
        return self._processes[name]

    # ---- going on

    def watch(self) -> None:
        """Look after them until somebody wants it to end."""
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
                click.secho("The worker ended. It begins again when a file changes.", fg="yellow", err=True)
            else:
                click.secho("There are no pages; all else goes on.", fg="yellow", err=True)

    def _renew(self, changed: list[str]) -> None:
        click.secho(f"{', '.join(changed[:3])} changed: the worker begins anew.", bold=True)
        self._finish("worker", signal.SIGTERM)
        if not self._asked:
            self._begin("worker", self._work)

    # ---- ending

    def stop(self, number: int, frame: object) -> None:
        """Let all end; when it is said again, without finishing what is at hand."""
        self._asked += 1
        self._over.set()
        if worker := self._processes.get("worker"):
            worker.send_signal(signal.SIGINT)

    def end(self) -> None:
        """End all, the worker first; it knows already if a signal asked."""
        self._finish("worker", None if self._asked else signal.SIGTERM)
        for name in ("web", "serve"):
            self._finish(name, signal.SIGTERM)

    def _finish(self, name: str, by: signal.Signals | None) -> None:
        """Let a process end, by a signal if it does not know yet, and wait for it."""
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
    """A port of this machine, or 0, which is any that is free, where somebody listens there already."""
    with socket.socket() as tried:
        return 0 if port and tried.connect_ex(("127.0.0.1", port)) == 0 else port
