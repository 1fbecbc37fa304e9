"""Output of a run of the kit: for people, for programs, for the test page of a CI, and for a badge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as xml

from qmodel.conformance.histories import json_lines
from qmodel.conformance.kit.driver import Hello, Outcome
from qmodel.conformance.kit.judge import Difference
from qmodel.conformance.kit.protocol import operations_of
from qmodel.conformance.kit.session import Finding
from qmodel.conformance.kit.suite import EXPECTED, FAILED, LEFT_OUT, LEVELS, PASSED, UNEXPECTED, Report, Result
from qmodel.contract.operations import CATALOGUE
from qmodel.contract.refusals import Refusal
from qmodel.present.numbers import counted

LONGEST = 600
"""The longest line of a transcript, in characters."""


# ---- for people


def introduced(name: str, hello: Hello) -> str:
    """Introduce a driver by its name and version."""
    batch = ", in batches" if hello.batch else ""
    count = len(operations_of(hello.features))
    return f"{name}: {hello.binding} {hello.version}, {count} of {len(CATALOGUE)} operations{batch}"


def failure(result: Result) -> str:
    """Show a failure: the broken sentence, the transcript, the expected answer, and the actual one."""
    if result.finding is None:
        return f"{result.case.name} passes, and was expected to fail: {result.reason}\nTake it off the list."
    finding = result.finding
    lines = [f"{result.case.name} FAILED", f"  {result.case.why}".rstrip(), "", f"  {finding.requirement.text}", ""]
    lines += transcript(finding)
    return "\n".join([*(line for line in lines if line.strip() or line == ""), ""])


def transcript(finding: Finding) -> Iterator[str]:
    """Show the messages of a history with the model's answers, and the fault at the end."""
    last = len(finding.history) - 1
    for at, (step, was) in enumerate(zip(finding.history, finding.expected, strict=True)):
        by = f"{finding.dealt[at]} " if len(set(finding.dealt)) > 1 else ""
        by += "(*) " if at == finding.blamed else ""
        yield f"  {by}-> {_cut(json.dumps(json_lines.dump(step), ensure_ascii=False))}"
        if at < last or finding.difference is None:
            yield f"  {' ' * len(by)}<- {_cut(_answer(was))}"
    if finding.difference is not None:
        yield f"  expected {_cut(_answer(finding.difference.expected))}"
        yield f"  answered {_cut(_answer(finding.difference.found))}   by {finding.difference.by}"
        yield from _where(finding.difference)
    if finding.blamed is not None:
        yield "  (*) All is right when qmodel sends this step itself."
    if finding.broken is not None:
        yield f"  {finding.broken.detail}"
        if finding.broken.stderr:
            yield "  It wrote to its standard error:"
            yield from (f"    {line}" for line in finding.broken.stderr.splitlines()[-12:])


def _where(difference: Difference) -> Iterator[str]:
    """Describe where an answer differs, if both are replies or both are refusals, so that it is hard to see."""
    if difference.expected.keys() == difference.found.keys():
        yield "  where, expected != answered:"
        yield from (f"    {path}" for path in difference.paths[:12])
        if len(difference.paths) > 12:
            yield f"    and {len(difference.paths) - 12} more"


def _answer(was: Outcome) -> str:
    if isinstance(was.get("crash"), str):
        return "\n    ".join(["crash:", *was["crash"].splitlines()[:6], ""])
    text = json.dumps(was, ensure_ascii=False)
    if "refusal" in was and isinstance(was["refusal"], list):
        try:
            text += f"   {Refusal(was['refusal'][0], tuple(was['refusal'][1:])).sentence}"
        except (KeyError, ValueError, TypeError, IndexError):  # the driver's answer may be any JSON
            return text
    return text


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}... ({len(line)} characters)"


def summary(report: Report) -> str:
    """Summarise a run in a few lines."""
    lines = []
    for level in LEVELS:
        tried = [result for result in report.results if result.case.level == level]
        if tried:
            counts = {status: sum(result.status == status for result in tried) for status in _STATUSES}
            said = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
            lines.append(f"{level:<6} {said}")
    lines += [f"Nothing fits what was expected to fail: {one.pattern} ({one.reason})" for one in report.stale]
    names = " with ".join(report.drivers)
    verdict = f"conforms at level {report.level}" if report.conforms else "does not conform"
    broken = list(dict.fromkeys(r.finding.requirement.id for r in report.failures if r.finding))
    because = f": {', '.join(broken)}" if broken else ""
    rate = f"{counted(report.operations, 'operation')} in {report.seconds:.1f} s"
    return "\n".join([*lines, f"{names} {verdict}{because} ({rate})"])


_STATUSES = (PASSED, FAILED, UNEXPECTED, EXPECTED, LEFT_OUT)


# ---- for programs


def as_json(report: Report) -> dict[str, Any]:
    """Convert the report of a run to JSON."""
    return {
        "drivers": list(report.drivers),
        "level": report.level,
        "seed": report.seed,
        "conforms": report.conforms,
        "exit_code": report.exit_code,
        "operations": report.operations,
        "seconds": round(report.seconds, 3),
        "results": [_result(result) for result in report.results],
        "stale": [one.pattern for one in report.stale],
    }


def _result(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {"name": result.case.name, "status": result.status, "seconds": round(result.seconds, 4)}
    if result.reason:
        found["reason"] = result.reason
    if result.finding is not None:
        finding = result.finding
        found |= {"requirement": finding.requirement.id, "sentence": finding.requirement.sentence}
        found["steps"] = [json_lines.dump(step) for step in finding.history]
        if finding.difference is not None:
            found |= {"expected": finding.difference.expected, "answered": finding.difference.found}
            found |= {"by": finding.difference.by, "paths": list(finding.difference.paths), "blamed": finding.blamed}
        if finding.broken is not None:
            found |= {"broken": finding.broken.detail, "stderr": finding.broken.stderr}
    return found


def junit(report: Report) -> str:
    """Convert a report to JUnit's XML, which every CI can show."""
    failed, left_out = len(report.failures), len(report.of(LEFT_OUT, EXPECTED))
    suite = xml.Element(
        "testsuite",
        name=f"qmodel conformance of {' with '.join(report.drivers)}",
        tests=str(len(report.results)),
        failures=str(failed),
        skipped=str(left_out),
        time=f"{report.seconds:.3f}",
    )
    for result in report.results:
        case = xml.SubElement(
            suite, "testcase", classname=result.case.level, name=result.case.id, time=f"{result.seconds:.4f}"
        )
        if result.status in (FAILED, UNEXPECTED):
            message = result.finding.requirement.text if result.finding else "passes, and was expected to fail"
            xml.SubElement(case, "failure", message=message).text = _printable(failure(result))
        elif result.status != PASSED:
            xml.SubElement(case, "skipped", message=f"{result.status}: {result.reason}")
    xml.indent(suite)
    return xml.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Remove the characters that XML cannot represent."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def badge(report: Report) -> str:
    """Convert a report to the JSON that badges are made of."""
    passed = len(report.of(PASSED))
    message = f"{report.level}, {passed} passed" if report.conforms else f"{len(report.failures)} failed"
    color = "brightgreen" if report.conforms else "red"
    return json.dumps({"schemaVersion": 1, "label": "qmodel", "message": message, "color": color}) + "\n"
