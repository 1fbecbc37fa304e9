"""The vectors and requirements: complete, current, and with ids that stay."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from qmodel.conformance.kit import probes, suite, vectors
from qmodel.conformance.kit.requirements import REQUIREMENTS
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import REASONS
from tests.servers import Server

ROOT = Path(__file__).parents[2]

SAID_OTHERWISE = {"SPACE-1", "TIME-3", "MIXED-1", "RESEND-read", "REPLY-jid", "REPLY-state", "REPLY-number",
                  "REPLY-recorded"}  # fmt: skip
"""Requirements without a probe: checked by hand, by mixing bindings, by nearly every other probe, or by an auditor."""


@pytest.mark.parametrize("level", vectors.LEVELS)
def test_ids_are_unique_and_requirements_are_known(level: str) -> None:
    found = vectors.load(level)
    assert len({vector.id for vector in found}) == len(found)
    for vector in found:
        assert vector.why and vector.level == level
        assert set(vector.requirements) <= REQUIREMENTS.keys()
        assert not re.search(r"\s", vector.id), vector.id


def test_every_requirement_about_bindings_has_a_probe() -> None:
    derived = ("OP-", "REFUSE-", "DRIVER-")
    missing = {one for one in REQUIREMENTS if not one.startswith(derived)} - probes.PROBES.keys() - SAID_OTHERWISE
    assert missing == set()


def test_every_operation_and_every_refusal_is_in_some_vector() -> None:
    touched = {one for level in vectors.LEVELS for vector in vectors.load(level) for one in vector.requirements}
    assert {f"OP-{name}" for name in CATALOGUE} - touched == set()
    assert {f"REFUSE-{code}" for code in REASONS} - touched == {
        "REFUSE-CANCEL_LIMIT",
        "REFUSE-DEPENDENCY_LIMIT",
        "REFUSE-OVER_BUDGET",
    }


def test_histories_with_a_thousand_jobs_are_not_vectors() -> None:
    long = {case.id: case.requirements for case in suite.of_directed() if "thousand" in case.id}
    assert long
    assert {"REFUSE-CANCEL_LIMIT", "REFUSE-DEPENDENCY_LIMIT"} <= {one for told in long.values() for one in told}


@pytest.mark.parametrize("level", vectors.LEVELS)
def test_the_model_does_what_the_vectors_say(level: str) -> None:
    for vector in vectors.load(level):
        assert vectors.expected(vector.steps) == vector.outcomes, vector.id


def test_a_vector_names_the_requirements_that_it_tests() -> None:
    step = Step(0, ops.Log("a", "x", "r"))
    made = vectors.made("a", "core", "", [Step(0, ops.Put("q", "a", "k", "")), step, step, Step(0, ops.Promote("b"))])
    assert {"RESEND-memo", "REFUSE-JOB_NOT_FOUND", "OP-put", "REPLY-jid"} <= set(made.requirements)
    assert made.features == ("put.*", "change.*")


def test_vectors_of_another_format_are_refused() -> None:
    with pytest.raises(ValueError, match="format 1, not 2"):
        vectors.loads('{"format": 1}\n')


def test_the_example_runner_runs_them(server: Server, tmp_path: Path) -> None:
    text = vectors.path_of("smoke").read_text(encoding="utf-8")
    (tmp_path / "wrong.jsonl").write_text(text.replace('"expect": {"reply": 4}', '"expect": {"reply": 5}'))
    command = [sys.executable, str(ROOT / "examples" / "run_vectors.py"), server.url]
    good = subprocess.run(
        [*command, str(vectors.path_of("smoke"))], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert good.returncode == 0, good.stdout + good.stderr
    with server.client() as client:
        client.flushdb()
    bad = subprocess.run(
        [*command, str(tmp_path / "wrong.jsonl")], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert bad.returncode == 1
    assert bad.stdout.startswith("LIST-1 ")


def test_the_example_runner_is_short() -> None:
    assert len((ROOT / "examples" / "run_vectors.py").read_text(encoding="utf-8").splitlines()) <= 50
