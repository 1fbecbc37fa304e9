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

from qmodel.conformance.code_digest import digest_of

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("tester.sha256")
TESTER = (
    "qmodel/conformance/**/*.py", "qmodel/simulator/*.py", "tools/mutation/*.py", "tools/coverage.py",
    "tests/conformance/*.py", "tests/simulator/*.py", "tests/property/*_rules.py",
)  # fmt: skip


def digest() -> str:
    """Digest the files of the tester."""
    return digest_of(ROOT, TESTER)


def is_due() -> bool:
    """Whether the tests of the tester are to run: in a run of everything, and when the tester has changed."""
    recorded = RECORD.read_text(encoding="utf-8").strip() if RECORD.exists() else ""
    return runs_everything() or recorded != digest()


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
    """Run pytest; record the digest if everything was to run and passed."""
    import pytest

    status = int(pytest.main(arguments))
    if status == 0 and runs_everything():
        RECORD.write_text(digest() + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
