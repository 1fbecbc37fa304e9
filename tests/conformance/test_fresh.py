"""Fresh seeds: campaigns can be repeated, and differences are shown, kept, and replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from qmodel.backends import bundle
from qmodel.cli import cli
from qmodel.conformance.campaign import fresh
from qmodel.conformance.campaign.fresh import SIZES, Campaign, Size
from qmodel.conformance.compare import runner
from qmodel.conformance.dialects import json_lines as dialect_lines
from qmodel.conformance.dialects import runner as dialect_runner
from qmodel.conformance.dialects import subjects as dialect_subjects
from qmodel.conformance.histories import json_lines
from qmodel.conformance.subjects import named
from tests.conformance.faults import FAULTS, Wrong
from tests.conformance.test_dialects import WRONG
from tools.mutation import model, python


def test_campaigns_end_at_the_time_limit() -> None:
    (only,) = fresh.campaigns("memory", "seed", 0)
    assert (only.seed, only.size, only.histories, only.text) == ("seed-0", SIZES[0], SIZES[0].examples, "")


def test_a_campaign_prints_the_command_that_repeats_it() -> None:
    assert Campaign("valkey", "a-2", Size(15, 60, "qless", True), 15, 900, 1.0).again == (
        "qmodel conformance run --examples 15 --steps 60 --seed a-2 --subject valkey --dialect qless --laws"
    )


def test_a_difference_ends_the_campaigns_and_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fresh, "open_subject", lambda url: Wrong(FAULTS[0]))
    *before, last = fresh.campaigns("memory", "faults", 1000)
    assert last.text and not any(one.text for one in before)
    path = fresh.keep(tmp_path / "found", last)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# memory differed from the model in its ") and last.seed in text
    history = json_lines.loads(text)
    assert runner.first_difference(history, Wrong(FAULTS[0])) is not None
    assert runner.first_difference(history, runner.ModelSubject()) is None


def test_a_difference_in_a_dialect_is_kept_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file, right, wrong = WRONG["another sentence"]
    subject = dialect_subjects.LuaSubject({file: bundle.read(file).replace(right, wrong)})
    monkeypatch.setattr(fresh, "SIZES", (Size(100, 60, "qless"),))
    monkeypatch.setattr(dialect_subjects, "open_subject", lambda url: subject)
    *_, last = fresh.campaigns("memory", "planted", 1000)
    path = fresh.keep(tmp_path, last)
    assert path.name.endswith(".qless.jsonl")
    history = dialect_lines.loads(path.read_text(encoding="utf-8"))
    assert dialect_runner.first_difference(history, subject) is not None
    assert dialect_runner.first_difference(history, dialect_subjects.LuaSubject()) is None


def test_a_rule_that_is_wrong_on_both_sides_is_found_in_a_dialect_too() -> None:
    file, right = "model/rules/admission", "            return name, opens\n"
    text = python.read(file)
    assert text.count(right) == 1
    with model.planted(file, text.replace(right, "            continue\n")) as failure:
        assert not failure
        summary = dialect_runner.run(100, "wrong", dialect_subjects.ModelSubject(), lawful=True)
    (found,) = summary.failures
    assert found.said[0].startswith("law: no_claim_passes_a_closed_throttle: ")
    assert len(found.history) < 12
    assert dialect_runner.first_broken(found.history) is None


def test_histories_of_a_dialect_survive_being_written_and_read() -> None:
    history = dialect_runner.draw(dialect_runner.RandomChooser("lines"), 60, documents=True)
    assert list(map(repr, dialect_lines.loads(dialect_lines.dumps(history)))) == list(map(repr, history))


def test_the_subjects_available_here_are_listed_once() -> None:
    assert named.available()[0] == "embedded"
    assert set(named.available()) <= {"embedded", *named.OWN}


@pytest.mark.parametrize("subject", ["memory", "embedded", "valkey"])
@pytest.mark.parametrize("dialect", ["", "qless"])
@pytest.mark.parametrize("lawful", [False, True])
def test_the_command_that_runs_a_campaign_again_can_be_run(subject: str, dialect: str, lawful: bool) -> None:
    again = Campaign(subject, "a-2", Size(2, 5, dialect, lawful), 2, 10, 1.0).again
    said = CliRunner().invoke(cli, again.split()[1:])
    assert said.exit_code == 0, said.output
    assert "2 histories" in said.output and said.output.endswith(f"Again: {again}\n")


def test_the_command_prints_its_seed() -> None:
    arguments = ["conformance", "fresh", "--seconds", "0", "--subject", "memory"]
    said = CliRunner().invoke(cli, [*arguments, "--seed", "again"])
    assert said.exit_code == 0, said.output
    assert "Seed again: 0 s on each of memory" in said.output and "no difference" in said.output
    answer = CliRunner().invoke(cli, [*arguments, "--json"])
    (subject,) = json.loads(answer.output)["subjects"]
    assert subject["agrees"] and subject["campaigns"][0]["run"].startswith("qmodel conformance run --examples ")


def test_the_command_fails_on_a_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fresh, "open_subject", lambda url: Wrong(FAULTS[0]))
    arguments = ["conformance", "fresh", "--subject", "memory", "--seed", "faults", "--keep", str(tmp_path)]
    said = CliRunner().invoke(cli, arguments)
    assert said.exit_code == 1
    assert "As a vector:" in said.output and "Again: qmodel conformance run " in said.output
    assert len(list(tmp_path.glob("memory-faults-*.jsonl"))) == 1
