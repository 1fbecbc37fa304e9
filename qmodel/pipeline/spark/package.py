"""Ship the driver's qmodel to the executors, so that both have the same version and nobody has to install it.

Only our own Python files are shipped. The executors' Python must have the packages that qmodel needs; an error names
what is missing.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from pyspark import SparkContext

import qmodel.version

_SHIPPED: set[str] = set()
"""The applications that it was shipped to."""


def ship(context: SparkContext) -> None:
    """Give the executors of a session the driver's qmodel, which precedes an installed one; once for each session.

    Executors in this machine's own process (`local[4]`) have it. If the driver's qmodel is in a zip, it came by
    `--py-files`, and so did the executors'.
    """
    here = Path(qmodel.__file__).parent
    here_too = context.master.partition("[")[0] == "local"
    if not here_too and here.is_dir() and context.applicationId not in _SHIPPED:
        _SHIPPED.add(context.applicationId)
        context.addPyFile(str(packed(here)))


@cache
def packed(folder: Path) -> Path:
    """Make a zip of a package, for `--py-files`, in a folder that is removed when this process ends.

    Links are followed, because some folders of a checkout are links.
    """
    made = Path(tempfile.mkdtemp(prefix="qmodel-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    path = made / f"{folder.name}.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as out:
        _add(out, folder, folder.name)
    return path


def _add(out: ZipFile, folder: Path, name: str) -> None:
    for one in sorted(folder.iterdir()):
        if one.name == "__pycache__":
            continue
        if one.is_dir():
            _add(out, one, f"{name}/{one.name}")
        else:
            out.write(one, f"{name}/{one.name}")
