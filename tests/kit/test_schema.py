"""The schemas: valid themselves, equal in effect to our own check of them, and strict."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from qmodel.conformance.compare import runner
from qmodel.conformance.histories import json_lines
from qmodel.conformance.histories.choose import RandomChooser
from qmodel.conformance.kit import protocol, vectors
from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract import schema
from qmodel.contract.operations import CATALOGUE
from tests.tester import share
from tools.docs import kit as pages

DRIVER = protocol.as_schema()
VECTORS = vectors.as_schema()


def validator(name: str, whole: dict[str, Any] = DRIVER) -> jsonschema.Draft202012Validator:
    """Make a standard JSON Schema validator for one definition."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": whole["$defs"]})


@pytest.mark.parametrize("whole", [DRIVER, VECTORS], ids=["driver", "vectors"])
def test_the_schemas_are_schemas(whole: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(whole)


@pytest.mark.parametrize(("name", "line"), pages.example_lines())
def test_the_messages_on_the_page_conform_to_the_schema(name: str, line: dict[str, Any]) -> None:
    validator(name).validate(line)
    assert schema.fault(line, DRIVER["$defs"][name], DRIVER["$defs"]) is None


def test_requests_of_the_runner_conform_to_the_schema() -> None:
    checks = validator("op_request")
    for number in range(6):
        for at, step in enumerate(runner.draw(RandomChooser(f"schema {number}"), 60, typed=False)):
            checks.validate({"seq": at, "cmd": "op", **json_lines.dump(step)})


@pytest.mark.parametrize("level", vectors.LEVELS)
def test_vectors_conform_to_their_schema(level: str) -> None:
    head, *lines = map(json.loads, vectors.path_of(level).read_text(encoding="utf-8").splitlines())
    validator("head", VECTORS).validate(head)
    shortest = sorted(lines, key=lambda line: -len(line["steps"]))  # a longer one of the same operation gives way
    found = {line["steps"][-1]["op"]: line for line in shortest}  # one for each last operation: all would take long
    checks = validator("vector", VECTORS)
    for line in found.values():
        checks.validate(line)
    for line in lines[: share(len(lines))]:
        assert schema.fault(line, VECTORS["$defs"]["vector"], VECTORS["$defs"]) is None


ODD: tuple[Any, ...] = (
    {"seq": 1, "reply": None},
    {"seq": 1, "reply": 1, "crash": ""},
    {"seq": 1},
    {"seq": "1", "reply": 1},
    {"seq": True, "reply": 1},
    {"seq": 1, "refusal": []},
    {"seq": 1, "refusal": ["NO_SUCH_CODE"]},
    {"seq": 1, "refusal": ["LOCK_LOST", 1]},
    {"seq": 1, "refusal": ["LOCK_LOST", "a"]},
    {"seq": 1, "skip": None},
    {"seq": 1, "reply": 1, "more": 1},
    {"seq": 1.5, "reply": 1},
    {"seq": 1, "ok": False},
    {"seq": 1, "ok": True},
    {"seq": 1, "ok": 1},
    {"seq": 1, "results": [{"reply": 1}, {"crash": ""}]},
    {"seq": 1, "results": [{}]},
    [],
    None,
)


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("command", protocol.COMMANDS)
def test_our_check_agrees_with_a_json_schema_validator(command: str, value: Any) -> None:
    valid = validator(f"{command}_answer").is_valid(value)
    assert (protocol.fault_of_answer(command, value) is None) == valid


def test_every_operation_has_a_schema_for_its_call_and_its_reply() -> None:
    for name in CATALOGUE:
        assert f"{name}_reply" in DRIVER["$defs"]
    told = {one["properties"]["op"]["const"] for one in DRIVER["$defs"]["step"]["anyOf"]}
    assert told == set(CATALOGUE)


def test_a_fault_names_its_place() -> None:
    request = {"seq": 1, "cmd": "op", **json_lines.dump(Step(0, ops.Cancel(("a",))))}
    request["jids"] = ["a", 7]
    found = schema.fault(request, DRIVER["$defs"]["op_request"], DRIVER["$defs"])
    assert found == "jids[1] is 7, not of type string"
