"""Restart a worker whenever its code changes: for development.

The worker is a separate process, so that everything is imported again. A worker that ends because of a mistake in the
code is started again at the next change. Running jobs get a few seconds to finish, and are given back after that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from qmodel.errors import QmodelError
from qmodel.processes import die_with_parent

PATIENCE: Final = 3.0
"""Seconds that running jobs get to finish after a change."""


class ReloadingError(QmodelError):
    """Files cannot be watched."""


def run(command: Sequence[str], folder: str | Path) -> None:
    """Run a command until Ctrl-C or SIGTERM; restart it at each change of a Python file in a folder or below it."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError as error:
        raise ReloadingError("--reload needs the package watchfiles. Run: pip install watchfiles") from error
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    process = _start(command)
    try:
        for changes in watch(folder, watch_filter=PythonFilter(), raise_interrupt=False):
            names = sorted({os.path.relpath(path, folder) for _, path in changes})
            print(f"{', '.join(names[:3])} changed: the worker restarts.", file=sys.stderr, flush=True)
            _stop(process, PATIENCE)
            process = _start(command)
    finally:
        _stop(process, None)


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    gone = partial(die_with_parent, os.getpid(), signal.SIGTERM)
    # Cached bytecode counts as current if the source has the same size and second, so frequent changes need no cache.
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(command, env=env, process_group=0, preexec_fn=gone)  # noqa: PLW1509 (no other threads)


def _stop(process: subprocess.Popen[bytes], patience: float | None) -> None:
    """Let a worker finish its jobs; at the deadline, or at a Ctrl-C, let it give them back."""
    for wait in (patience, 5.0):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(wait)
            return
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            continue
    process.kill()
    process.wait()
