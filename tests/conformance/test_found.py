"""Vectors of what fresh seeds found once: every subject agrees with the model on each of them, and no law is broken.

`qmodel conformance fresh --keep tests/conformance/found` writes them. What was wrong stands at the head of each file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from qmodel.conformance import laws
from qmodel.conformance.compare.agree import agree
from qmodel.conformance.dialects import json_lines as dialect_lines
from qmodel.conformance.dialects import runner as dialect_runner
from qmodel.conformance.dialects.subjects import Call, LuaSubject, ServerSubject
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects.base import ModelSubject, Subject, observe
from tests.servers import Server

FOLDER = Path(__file__).with_name("found")
IN_DIALECT = sorted(FOLDER.glob("*.qless.jsonl"))
FOUND = sorted(set(FOLDER.glob("*.jsonl")) - set(IN_DIALECT))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_the_subject_agrees_on_earlier_findings(path: Path, subject: Subject) -> None:
    history = json_lines.loads(path.read_text(encoding="utf-8"))
    assert history
    agree(subject, history)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_the_laws_hold_on_earlier_findings(path: Path) -> None:
    history = json_lines.loads(path.read_text(encoding="utf-8"))
    assert next(laws.observe(history, observe(ModelSubject(), history)), None) is None


@pytest.mark.parametrize("path", IN_DIALECT, ids=lambda path: path.stem)
def test_the_laws_hold_on_earlier_findings_in_dialects(path: Path) -> None:
    assert dialect_runner.first_broken(dialect_lines.loads(path.read_text(encoding="utf-8"))) is None


@pytest.mark.parametrize("path", IN_DIALECT, ids=lambda path: path.stem)
def test_the_library_agrees_on_earlier_findings_in_dialects(path: Path) -> None:
    history = dialect_lines.loads(path.read_text(encoding="utf-8"))
    assert dialect_runner.first_difference(history, LuaSubject()) is None


@pytest.mark.parametrize("path", IN_DIALECT, ids=lambda path: path.stem)
def test_a_server_agrees_on_earlier_findings_in_dialects(path: Path, server: Server) -> None:
    history = dialect_lines.loads(path.read_text(encoding="utf-8"))
    if any(isinstance(one, Call) and one.document for one in history):
        pytest.skip("calls as a document spells them need a clock that stands still")
    subject = ServerSubject(server.url)
    try:
        assert dialect_runner.first_difference(history, subject) is None
    finally:
        subject.close()
