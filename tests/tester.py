"""The tester: what the suite is made of, and whether its own tests passed with it as it is.

The tests of the tester (the marker `tester`) take minutes and depend on the tester, hardly on the product. So a run
leaves them out while the digest in `tests/tester.sha256` is the tester's. `./dev test --all` runs them, and records the
digest when all tests passed: `python -m tests.tester` is pytest, and does that at its end.

Such a run also does what takes long (the marker `long`), and all of the histories of which another run draws a share.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from qmodel.conformance.code_digest import Stamp

ROOT = Path(__file__).parents[1]
STAMP = Stamp(Path(__file__).with_name("tester.sha256"), ROOT, (
    "qmodel/conformance/**/*.py", "qmodel/simulator/*.py", "tools/mutation/*.py", "tools/coverage.py",
    "tests/conformance/*.py", "tests/simulator/*.py", "tests/property/*_rules.py",
))  # fmt: skip
"""The stamp of the tester that has passed its own tests."""


def is_due() -> bool:
    """Whether the tests of the tester are to run: in a run of everything, and when the tester has changed."""
    return runs_everything() or not STAMP.is_current()


def runs_everything() -> bool:
    """Whether this is a run of `./dev test --all`."""
    return "QMODEL_TEST_ALL" in os.environ


def share(count: int) -> int:
    """How many of `count` drawn histories a run takes: all in a run of everything, and the first third in another."""
    return count if runs_everything() else -(-count // 3)


def is_of_the_tester(path: Path) -> bool:
    """Whether all tests of a file are tests of the tester, as its `pytestmark` says."""
    return re.search(r"^pytestmark = .*\bmark\.tester\b", path.read_text(encoding="utf-8"), re.M) is not None


def main(arguments: list[str]) -> int:
    """Run pytest; renew the stamp if everything was to run and passed."""
    import pytest

    status = int(pytest.main(arguments))
    if status == 0 and runs_everything():
        STAMP.renew()
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
