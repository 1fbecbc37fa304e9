"""Vectors of differences that fresh seeds found once: every subject agrees with the model on each of them.

`qmodel conformance fresh --keep tests/conformance/found` writes them. What was wrong stands at the head of each file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from qmodel.conformance.compare.agree import agree
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.base import Subject

FOUND = sorted(Path(__file__).with_name("found").glob("*.jsonl"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_the_subject_agrees_on_what_was_found(path: Path, subject: Subject) -> None:
    history = json_lines.loads(path.read_text(encoding="utf-8"))
    assert history
    agree(subject, history)
