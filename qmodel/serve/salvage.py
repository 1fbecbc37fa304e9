"""Keep what a salvage cannot use: copies of the damaged files, and the jobs of namespaces that were not restored."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qmodel.model.state.store import Store
from qmodel.serve import files
from qmodel.serve.disk import DISK


def keep(folder: Path) -> Path:
    """Copy the files of the journal to a new folder; give its path."""
    aside = folder / f"damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    number = 0
    while aside.exists():
        number += 1
        aside = aside.with_name(f"{aside.name.partition('.')[0]}.{number}")
    aside.mkdir()
    kinds = tuple(f"{kind}-" for kind in files.KINDS)
    for one in folder.iterdir():
        if one.is_file() and (one.name == files.MANIFEST or one.name.startswith(kinds)):
            shutil.copy2(one, aside)
    DISK.sync_folder(aside)
    return aside


def write_jobs(file: Path, partial: Mapping[tuple[int, str], Store]) -> int:
    """Write the readable jobs of namespaces that were not restored, one JSON object a line; give their number."""
    lines = 0
    with open(file, "w", encoding="utf-8") as out:
        for (db, prefix), store in partial.items():
            for job in store.jobs.values():
                out.write(json.dumps({"db": db, "prefix": prefix, **_plain(job)}) + "\n")
                lines += 1
        out.flush()
        DISK.sync(out.fileno())
    return lines


def _plain(job: Any) -> dict[str, Any]:
    """Give the fields of a job that JSON can hold."""
    found = {name: getattr(job, name) for name in type(job).__slots__}
    return {name: value for name, value in found.items() if isinstance(value, str | int | None)}
