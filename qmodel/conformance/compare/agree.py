"""The assertion that a subject agrees with the model on a history."""

from __future__ import annotations

from qmodel.conformance.compare import report, runner
from qmodel.conformance.subjects.base import History, Subject


def agree(subject: Subject, history: History) -> None:
    """Assert that a subject does with a history what the model does; show where they differ first."""
    difference = runner.first_difference(history, subject)
    assert difference is None, "\n" + report.transcript(history, difference, subject.name)
