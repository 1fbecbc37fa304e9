"""The program for spark-submit: the arguments after it are those of `qmodel`. With none, it prints its path."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve()

if __name__ == "__main__":
    # The folder of a program is first in its path; modules here would hide others of the same name.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != HERE.parent]
    if len(sys.argv) == 1:
        print(HERE)
    else:
        from qmodel.cli import cli

        cli(sys.argv[1:], prog_name="qmodel")
