"""`./dev sim`: what it refuses, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from qmodel.errors import QmodelError
from qmodel.simulator import __main__ as sim


def invoke(*words: str) -> Result:
    return CliRunner().invoke(sim.command, words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "0"), "0 is not in the range x>=1"),
        (("--processes", "0"), "0 is not in the range x>=1"),
        (("--minutes", "0"), "0.0 is not in the range 0<x<="),
        (("--seconds", "-1"), "-1.0 is not in the range 0<x<="),
        (("--replay", "17", "--dump", "no/such/folder"), "No such file or directory"),
    ],
)
def test_a_value_with_which_nothing_runs_is_a_wrong_command_line(words: tuple[str, ...], said: str) -> None:
    result = invoke(*words)
    assert result.exit_code == 2 and said in result.output, result.output


def test_packets_are_those_of_one_seed(tmp_path: Path) -> None:
    result = invoke("--dump", str(tmp_path / "packets.txt"))
    assert result.exit_code == 2 and "name it with --replay" in result.output


def test_a_seed_is_repeated_with_its_packets(tmp_path: Path) -> None:
    dump = tmp_path / "packets.txt"
    result = invoke("--replay", "17", "--seconds", "1", "--dump", str(dump))
    assert result.exit_code == 0 and " switches" in result.output, result.output
    assert dump.read_bytes().startswith(b"0.")


def test_a_process_that_dies_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise QmodelError("A process ended in the middle of its work.")

    monkeypatch.setattr(sim, "spread", dies)
    result = invoke("--seeds", "1")
    assert (result.exit_code, result.output) == (1, "Error: A process ended in the middle of its work.\n")
