"""Generated calls of the dialects: model, Lua in this process and on a server (as function and script) agree."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from qmodel.backends import bundle
from qmodel.conformance.dialects import runner
from qmodel.conformance.dialects.calls import DRAWS
from qmodel.conformance.dialects.subjects import Call, LuaSubject, ServerSubject
from qmodel.conformance.subjects.base import Step
from qmodel.contract.operations import CATALOGUE, Put, PutMany
from qmodel.dialects import qless
from qmodel.dialects.qless import session
from tests.servers import Server
from tests.tester import share

EXAMPLES = int(os.environ.get("QMODEL_CONFORMANCE_EXAMPLES", share(80)))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_lua_replies_to_every_call_as_the_model_does(seed: int) -> None:
    summary = runner.run(EXAMPLES, seed, LuaSubject())
    assert summary.agrees, f"{summary}\n{summary.failures[0]}"


@pytest.mark.parametrize("script", [False, True], ids=["function", "script"])
def test_a_server_replies_to_every_call_as_the_model_does(server: Server, script: bool) -> None:
    subject = ServerSubject(server.url, script)
    try:
        summary = runner.run(EXAMPLES // 4, "server", subject)
    finally:
        subject.close()
    assert summary.agrees, f"{summary}\n{summary.failures[0]}"


def test_every_command_is_drawn_and_both_succeeds_and_is_refused() -> None:
    missing = {(name, refused) for name in DRAWS for refused in (False, True)}
    for number in range(800):
        history = runner.draw(runner.RandomChooser(f"census.{number}"), runner.STEPS, documents=True)
        missing -= runner.tally(history).keys()
        if not missing:
            return
    assert missing == set()


WRONG = {
    "a message that is not published": ("dialects/qless_jobs", "qless_session.tracked('completed', jid)", "do end"),
    "another sentence": ("dialects/qless_jobs", "given out to another worker", "given to another worker"),
    "a number that is cut": ("dialects/qless_texts", "%d.%03d", "%d.%d"),
    "a priority that is not turned round": ("dialects/qless_jobs", "qless_session.sign * found", "found"),
    "a history without its worker": ("dialects/qless_shapes", "owners[two] = one", "do end"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_fault_planted_in_the_dialect_is_found(fault: str) -> None:
    file, right, wrong = WRONG[fault]
    text = bundle.read(file)
    assert right in text, "the Lua has changed: plant the fault elsewhere"
    summary = runner.run(300, "planted", LuaSubject({file: text.replace(right, wrong)}))
    (failure,) = summary.failures
    assert len(failure.history) <= 8, str(failure)


def test_a_read_before_the_first_step_does_not_repeat_the_writes_of_the_last_call() -> None:
    subject = LuaSubject()
    subject.run([Call(("reqless.config.set", "1700173000", "jobs-history", "10"))])
    assert runner.first_difference([Call(("workers", "1700173001"))], subject) is None


def test_a_seed_always_makes_the_same_history() -> None:
    first, second = (runner.draw(runner.RandomChooser("again"), 40) for _ in range(2))
    assert first == second
    assert any(isinstance(one, Call) for one in first)


UNREACHABLE = {"OVER_CAPACITY", "FORKED"}
"""Refusals of a cost and of an epoch, which no call gives."""


def test_every_refusal_of_an_operation_that_a_call_executes_has_a_sentence() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(qless.__file__).parent.glob("*.py"))
    executed = [spec for spec in CATALOGUE.values() if re.search(rf"\b{spec.cls.__name__}\(", texts)]
    assert len(executed) > 40
    codes = {code for spec in executed for code in spec.refusals} - {"BAD_ARGUMENT"}
    assert codes - session.SENTENCES.keys() == UNREACHABLE


@pytest.mark.parametrize(
    ("command", "given"),
    [("Multiget", ["multiget", "1"]), ("Cancel", ["cancel", "1"]), ("Peek", ["peek", "1", "q", "1000"])],
)
def test_a_call_that_is_too_much_work_says_how_many_to_send(command: str, given: list[str]) -> None:
    jobs = [Put("q", f"j{number}", "k", "", tags=tuple("abcde")) for number in range(900)]
    puts = [Step(0, PutMany(tuple(jobs[first : first + 100]))) for first in range(0, 900, 100)]
    call = Call((*given, *(job.jid for job in jobs if command != "Peek")))
    assert runner.first_difference([*puts, call], LuaSubject()) is None
    said = LuaSubject().run([*puts, call])[-1].outcome
    assert said == f"ERR {command}(): This is too much work for one call: send at most 571 items of this size"
