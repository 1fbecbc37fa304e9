"""The default name of a worker."""

from __future__ import annotations

import os
import re
import threading
from functools import lru_cache

from qmodel.contract.arguments import NAME_BYTES

_CONTROL = re.compile("[\x00-\x1f\x7f]")


def default_worker() -> str:
    """Name this thread so that no other worker has the name: `<hostname>-<pid>-<thread>`."""
    return _worker(os.getpid(), threading.current_thread().name, threading.get_ident())


@lru_cache(1000)
def _worker(pid: int, thread: str, number: int) -> str:
    name = f"{os.uname().nodename}-{pid}-{_CONTROL.sub('?', thread)}"
    return name if len(name.encode()) <= NAME_BYTES else f"{name[:40]}-{pid}-{number}"
