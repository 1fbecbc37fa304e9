"""Every line of the Lua library is run by the suite, in this process and on a real server."""

from __future__ import annotations

import pytest

from qmodel.conformance.histories.directed.load import directed
from tests.servers import Server
from tools import coverage
from tools.mutation.suite import generated

pytestmark = pytest.mark.tester

DIALECT = "only a dialect asks for it, whose own tests run it"

UNREACHED = {
    ("wire/register", "error(fault, 0)"): "an error that is no refusal: a fault of ours, which the suite would report",
    (
        "state/queues",
        "queues.unknown()",
    ): "more queues than are kept in mind; tests/backends/test_embedded.py has as many",
    ("state/keys", "return keys.prefix .. name"): DIALECT,
    ("state/store", "local time = redis.call('TIME')"): DIALECT,
    ("state/store", "return time[1] * 1000 + math.floor(time[2] / 1000)"): DIALECT,
    ("state/store", "redis.call('PUBLISH', keys.channel(channel), message)"): DIALECT,
    ("state/tags", "return false"): "every caller takes off only a tag that the job has; the mirror of the model's",
}


@pytest.fixture(scope="module")
def suite() -> list[coverage.Named]:
    return [*generated(400), *directed()]


def unexplained(missed: set[coverage.Place]) -> list[str]:
    return sorted(
        f"lua/{at[0]}.lua:{at[1]} {coverage.text_of(at)}"
        for at in missed
        if (at[0], coverage.text_of(at)) not in UNREACHED
    )


def test_every_line_runs_or_has_a_reason_not_to(suite: list[coverage.Named]) -> None:
    active, missed = coverage.in_process(suite)
    assert len(active) > 1000
    assert unexplained(missed) == []


def test_a_suite_without_an_operation_leaves_its_lines_unrun(suite: list[coverage.Named]) -> None:
    few = [coverage.Named(n.name, [step for step in n.steps if step.op.spec.name != "retry_many"]) for n in suite[:20]]
    _, missed = coverage.in_process(few)
    assert any(at[0] == "ops/recover" for at in missed)


@pytest.mark.server
def test_every_statement_is_run_on_a_server(server: Server, suite: list[coverage.Named]) -> None:
    client = server.client()
    statements, missed = coverage.on_server(client, suite)
    assert len(statements) > 900
    assert unexplained(missed) == []
