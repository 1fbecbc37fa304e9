"""The server as a subject of the conformance suite: every reply, refusal and event, and the whole state."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmodel.conformance.compare.runner import draw, first_difference
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.subjects.by_url import open_subject
from qmodel.conformance.subjects.lua import ServedSubject
from tests.serve.support import serving


@pytest.mark.parametrize("kept", [False, True], ids=["memory", "data"])
def test_no_history_tells_the_server_from_the_model(kept: bool, tmp_path: Path) -> None:
    with serving(*(("--data", str(tmp_path)) if kept else ())) as server:
        subject = open_subject(server.url)
        assert isinstance(subject, ServedSubject)
        try:
            for seed in range(25):
                history = draw(RandomChooser(seed), 60)
                assert first_difference(history, subject) is None, seed
        finally:
            subject.close()


def test_a_difference_in_the_state_is_seen() -> None:
    with serving() as server:
        subject = open_subject(server.url)
        assert isinstance(subject, ServedSubject)
        subject._dump = ("DEBUG", "QMODEL", "SNAPSHOT", "another:")
        try:
            found = first_difference(draw(RandomChooser(1), 20), subject)
            assert found is not None and found.what == "state"
        finally:
            subject.close()
