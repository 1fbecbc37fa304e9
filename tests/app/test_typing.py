"""What type checkers know of apps: `typed_usage.py` says what it expects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXPECTED = re.compile(r"# expect: (.+)")


def test_a_type_checker_finds_the_mistakes_and_no_others(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    program = HERE / "typed_usage.py"
    lines = program.read_text(encoding="utf-8").splitlines()
    marked = [(number, found[1]) for number, line in enumerate(lines, 1) if (found := EXPECTED.search(line))]
    expected = {(number, code) for number, codes in marked for code in codes.split()}
    out, errors, _ = api.run(["--strict", "--no-error-summary", f"--cache-dir={tmp_path}", str(program)])
    told = {(int(line), code) for line, code in re.findall(r"typed_usage\.py:(\d+): error: .*\[([\w-]+)\]$", out, re.M)}
    assert told == expected, out + errors
    assert len(expected) > 8
