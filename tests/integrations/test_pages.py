"""The programs of the guides as users run them: a web server, a worker and a job server, each in its own process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.docs.pages import ROOT, Terminal, examples
from tests.processes import started
from tests.servers import Server


def written(guide: str, folder: Path, url: str) -> Path:
    """Write the files of a guide into a folder."""
    terminal = Terminal(folder, url)
    for one in examples(ROOT / "docs/guides" / guide):
        if one.title.endswith(".py"):
            terminal.write(one.title, one.text)
    return terminal.home


@contextmanager
def process(home: Path, *command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a Python module in a folder, and stop it as a supervisor would."""
    environment = {"PYTHONPATH": f"{ROOT}:{home}", "PYTHONUNBUFFERED": "1"}
    given = [sys.executable, "-m", *command]
    with started(given, cwd=home, env=environment, text=True, **options) as running:
        try:
            yield running
        finally:
            running.terminate()
            running.wait(30)


def ask(url: str, method: str = "GET") -> Any:
    """Send a request to a web server; give its reply as JSON."""
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as answer:
        return json.load(answer)


def test_fastapi_under_uvicorn_with_a_worker_beside_it(server: Server, tmp_path: Path) -> None:
    home = written("fastapi.md", tmp_path, f"{server.url}?prefix=pages-fastapi:")
    serves = ("uvicorn", "main:api", "--port", "0")
    works = ("qmodel", "worker", "jobs:app", "--queues", "emails", "--quiet")
    with process(home, *serves, stderr=subprocess.PIPE) as web, process(home, *works):
        assert web.stderr is not None
        where = next(found[0] for line in web.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
        jid = ask(f"{where}/sign-up/Ada", "POST")["jid"]
        assert ask(f"{where}/welcome/{jid}?wait=30") == {"text": "Welcome, Ada!"}
