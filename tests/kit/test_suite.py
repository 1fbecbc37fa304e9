"""A run of the kit: levels, expected failures, the step at fault, and the report."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest
from click.testing import CliRunner, Result

from qmodel.cli import cli
from qmodel.conformance.kit import expected, judge, show, suite, vectors
from qmodel.conformance.kit.driver import Driver
from qmodel.conformance.kit.namespace import Namespaces, namespaces
from qmodel.conformance.kit.protocol import operations_of
from qmodel.conformance.kit.session import Session
from tests.servers import Server

HERE = Path(__file__).parent
RIGHT = str(HERE.parents[1] / "examples" / "drivers" / "python_driver.py")
WRONG = str(HERE / "wrong_driver.py")


@pytest.fixture
def there(server: Server) -> Iterator[Namespaces]:
    with namespaces(server.url) as found:
        yield found


def tried(there: Namespaces, fault: str = "", level: str = "smoke", **given: object) -> suite.Report:
    """Run the kit on the right driver, or on a driver with a fault."""
    driver = Driver([sys.executable, *((WRONG, fault) if fault else (RIGHT,))], name=fault or "right", answer_s=120)
    with driver:
        return suite.run(Session([driver], there), level, **given)  # type: ignore[arg-type]


# ---- comparing


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (1, 1.0, "reply: 1 != 1.0"),
        (1, True, "reply: 1 != True"),
        (False, 0, "reply: False != 0"),
        (1, "1", "reply: 1 != '1'"),
        (None, [], "reply: None != []"),
        ({"a": 1}, {"a": 1, "b": 2}, "reply.b: unknown: 2"),
        ({"a": 1, "b": 2}, {"a": 1}, "reply.b: missing"),
        ([{"a": "x"}], [{"a": "y"}], "reply[0].a: 'x' != 'y'"),
        ([1], [1, 2], "reply: [1] != [1, 2]"),
        (1.5, 10**400, f"reply: 1.5 != 1{'0' * 99}... (401 characters)"),
    ],
)
def test_a_difference_is_reported_with_its_path(one: object, other: object, path: str) -> None:
    found = judge.compare(0, "d", {"reply": one}, {"reply": other})
    assert found is not None and found.paths == (path,)


@pytest.mark.parametrize(("one", "other"), [(2.0, 2), (0.1, 0.1), ({"a": 1, "b": 2}, {"b": 2, "a": 1})])
def test_equal_json_values_in_two_notations_are_equal(one: object, other: object) -> None:
    assert judge.compare(0, "d", {"reply": one}, {"reply": other}) is None


# ---- runs


def test_a_failure_shows_the_sentence_the_history_and_the_step_to_blame(there: Namespaces) -> None:
    report = tried(there, "renews-without-data", "core", most_failures=1)
    said = show.failure(report.failures[0])
    assert "OP-heartbeat: Renew a lease from now" in said
    assert re.search(r'^ *\(\*\) -> \{"op": "heartbeat", .*"data": "x"\}$', said, re.M), said
    assert "(*) All is right when qmodel sends this step itself." in said
    assert "reply[0].data: 'x' != ''" in said
    assert len(report.failures[0].finding.history) == 4  # type: ignore[union-attr]


def test_a_level_does_not_start_after_a_failure_in_an_earlier_level(there: Namespaces) -> None:
    report = tried(there, "swallows-null", "full", most_failures=3)
    assert {result.case.level for result in report.results} == {"smoke"}
    assert report.exit_code == 1


def test_features_that_are_not_announced_are_skipped(there: Namespaces) -> None:
    class Modest(Session):
        """A driver that announces less than it can."""

        @property
        def can(self) -> frozenset[str]:
            return operations_of(("put.*", "read.*"))

    with Driver([sys.executable, RIGHT]) as driver:
        session = Modest([driver], there)
        report = suite.run(session, "smoke")
        assert report.conforms
        assert 3 < len(report.of(suite.PASSED)) < len(report.of(suite.LEFT_OUT))
        drawn = next(suite.cases("soak", session, "1")).judge(session)
    assert drawn is None


def test_soak_draws_until_its_time_limit_and_the_same_histories_for_a_seed(
    there: Namespaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "LEVELS", ("smoke", "soak"))
    with Driver([sys.executable, RIGHT]) as driver:
        session = Session([driver], there)
        assert [case.why for case, _ in zip(suite.cases("soak", session, "s"), range(3), strict=False)] == [
            f"Drawn from the seed `s soak {number}`." for number in range(3)
        ]
        nothing = suite.run(session, "soak", minutes=0)
        something = suite.run(session, "soak", minutes=0.01)
    assert nothing.conforms and {result.case.level for result in nothing.results} == {"smoke"}
    assert something.conforms and {result.case.level for result in something.results} == {"smoke", "soak"}


# ---- what is expected to fail

NULLS = {one.id for one in vectors.load("smoke") if {"reply": None} in one.outcomes}
"""The vectors with a null reply; a driver that changes null into something else fails them."""

LIST = "\n".join(
    [
        "# not yet",
        "smoke/NULL-1        nothing is an object here: https://example.org/1",
        *(f"smoke/{name}  the same" for name in sorted(NULLS - {"NULL-1"})),
        "smoke/*NULL*        nor here: the first line that fits counts",
        "",
    ]
)


def test_expected_failures_do_not_fail_the_run(there: Namespaces) -> None:
    report = tried(there, "swallows-null", expected=expected.read(LIST + "core/* never reached"))
    assert report.conforms and report.exit_code == 0
    assert {result.case.id for result in report.of(suite.EXPECTED)} == NULLS


def test_an_unexpected_pass_is_a_failure(there: Namespaces) -> None:
    report = tried(there, expected=expected.read(LIST), most_failures=len(NULLS))
    assert {result.case.id for result in report.failures} == NULLS
    assert report.exit_code == 1
    assert "Take it off the list" in show.failure(report.failures[0])


def test_an_expected_failure_that_matches_nothing_is_a_failure(there: Namespaces) -> None:
    report = tried(there, expected=expected.read("smoke/NOTHING-* long gone"))
    assert not report.failures and not report.conforms
    assert "Nothing fits what was expected to fail: smoke/NOTHING-* (long gone)" in show.summary(report)


@pytest.mark.parametrize("line", ["NULL-1 reason", "smoke/NULL-1", "smoke/NULL-1   "])
def test_a_line_without_a_level_or_a_reason_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: write a pattern"):
        expected.read(f"# expected\n{line}\n")


# ---- the commands


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["conformance", *arguments])


def test_the_command_writes_reports_for_ci(server: Server, tmp_path: Path) -> None:
    files = ("--junit", str(tmp_path / "j.xml"), "--badge", str(tmp_path / "b.json"))
    done = run("driver", "--url", server.url, "--level", "smoke", *files, "--", sys.executable, RIGHT)
    assert done.exit_code == 0, done.output
    assert "conforms at level smoke" in done.output
    tests = xml.parse(tmp_path / "j.xml").getroot()
    assert int(tests.attrib["tests"]) == len(tests) > 50 and tests.attrib["failures"] == "0"
    assert json.loads((tmp_path / "b.json").read_text())["color"] == "brightgreen"


def test_the_command_names_the_violated_requirement(server: Server, tmp_path: Path) -> None:
    files = ("--junit", str(tmp_path / "j.xml"), "--badge", str(tmp_path / "b.json"))
    wrong = ("--url", server.url, "--level", "smoke", *files, "--", sys.executable, WRONG, "cuts-at-nul")
    done = run("driver", *wrong)
    assert done.exit_code == 1
    assert "TEXT-2: Texts may contain any character" in done.output
    assert "does not conform: TEXT-2" in done.output
    failure = xml.parse(tmp_path / "j.xml").getroot().find("testcase/failure")
    assert failure is not None and failure.attrib["message"].startswith("TEXT-2")
    assert json.loads((tmp_path / "b.json").read_text())["message"] == "1 failed"
    told = json.loads(run("driver", "--json", *wrong).output)
    broken = [result for result in told["results"] if result["status"] == "failed"]
    assert broken[0]["requirement"] == "TEXT-2" and broken[0]["paths"] and told["exit_code"] == 1


def test_a_violation_of_the_protocol_has_its_own_exit_code(server: Server) -> None:
    done = run("driver", "--url", server.url, "--", sys.executable, "-c", "raise SystemExit('no such module')")
    assert done.exit_code == 3
    assert "DRIVER-4" in done.output and "no such module" in done.output


HALF = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"hello": {"protocol": 1, "binding": "\\ud83d", "version": "1", "features": ["length"]}}
    answer["op"], done = {"reply": "\\ud83d"}, {"ok": True}
    print(json.dumps({"seq": asked["seq"], **answer.get(asked["cmd"], done)}), flush=True)
"""


def test_a_driver_that_answers_half_a_character_is_reported(server: Server) -> None:
    """JavaScript cuts texts between the halves of a character; the output of the command is UTF-8."""
    qmodel = [sys.executable, "-m", "qmodel.cli", "conformance", "driver", "--url", server.url, "--level", "smoke"]
    done = subprocess.run(
        [*qmodel, "--", sys.executable, "-c", HALF], capture_output=True, check=False, env=os.environ | STRICT
    )
    assert done.returncode == 1, done.stderr
    assert b"\\ud83d 1, 1 of" in done.stdout and b'answered {"reply": "\\ud83d"}' in done.stdout
    assert b"does not conform: NUMBER-1" in done.stdout


STRICT = {"PYTHONIOENCODING": "utf-8:strict"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("driver", "--", "true"), "which cannot reach memory://"),
        (("mixed", "--url", "redis://localhost:1", "--driver", "true"), "Give --driver twice"),
        (("driver", "--url", "redis://localhost:1", "--expected", WRONG, "--", "true"), "line 1: write a pattern"),
        (("driver",), "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_reported(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_the_command_mixes_bindings(server: Server) -> None:
    drivers = [shlex.join((sys.executable, str(RIGHT))), shlex.join((sys.executable, str(WRONG), "renames-types"))]
    done = run("mixed", "--url", server.url, "--level", "smoke", "--driver", drivers[0], "--driver", drivers[1])
    assert done.exit_code == 1
    assert "MIXED-1: What one binding writes, every other binding reads the same." in done.output
    assert "python_driver.py -> {" in done.output and "renames-types -> {" in done.output


def test_the_command_exports_vectors_and_schemas(tmp_path: Path) -> None:
    done = run("vectors", "--out", str(tmp_path / "v"))
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "v").iterdir()} == {
        "smoke.jsonl", "core.jsonl", "full.jsonl", "vectors.schema.json",
    }  # fmt: skip
    assert json.loads(run("schema", "driver").output)["title"].startswith("qmodel driver protocol")
    assert json.loads(run("schema", "vectors").output)["$defs"]["vector"]
    assert "LEASE-2" in run("requirements").output
    assert len(json.loads(run("requirements", "--json").output)) > 100
