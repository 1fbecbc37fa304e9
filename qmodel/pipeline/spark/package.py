"""The driver's qmodel goes along to the executors, so that both have the same, and nobody has to install it there.

What is not Python of ours does not: the executors' Python has the packages that qmodel needs, or says which it lacks.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from pyspark import SparkContext

import qmodel

_SHIPPED: set[str] = set()
"""The applications whose executors have it."""


def ship(context: SparkContext) -> None:
    """Give the executors of a session the driver's own qmodel, before one that is installed there; once.

    Executors that are this machine's own process (`local[4]`) have it. Where the driver's qmodel is in a zip itself, it
    came by `--py-files`, and so did that of the executors.
    """
    here = Path(qmodel.__file__).parent
    here_too = context.master.partition("[")[0] == "local"
    if not here_too and here.is_dir() and context.applicationId not in _SHIPPED:
        _SHIPPED.add(context.applicationId)
        context.addPyFile(str(packed(here)))


@cache
def packed(folder: Path) -> Path:
    """A package as a zip, as `--py-files` takes it, in a folder that goes with this process.

    Links are followed: in a checkout some folders of qmodel are.
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
