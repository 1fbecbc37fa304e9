"""`qmodel move`: options, limits and subscriptions are copied; failed jobs stay, or begin anew."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from qmodel import Client
from qmodel.cli.moved_jobs import Report, move, retry_failed
from qmodel.cli.moved_settings import copy_settings
from qmodel.contract import operations as ops
from qmodel.contract.replies import Subscription, Throttle
from tests.cli.moving import dies, names, names_on, perform, run
from tests.servers import Server

OPTIONS = {"heartbeat": 30_000, "heartbeat-mails": 90_000, "jobs-history-count": 77}
LIMITS = (
    ops.ThrottleSet("stripe", concurrency=3),
    ops.ThrottleSet("queue/mails", concurrency=8, rate=100, rate_ms=60_000),
    ops.ThrottleSet("customer-*", capacity=10, refill=2, refill_ms=1000),
)
SUBSCRIPTIONS = (
    ops.Subscribe("all", ("orders.>",), "audits", "Audit", -2, 500, 9, ("red",)),
    ops.Subscribe("some", ("orders.*",), "mails", "Send", lifo=True, ttl_ms=900, dead_queue="dead"),
)


def fill(client: Client) -> None:
    """Set some of each kind."""
    client.execute_many(ops.ConfigSet(name, value) for name, value in OPTIONS.items())
    client.execute_many((*LIMITS, *SUBSCRIPTIONS))


def settings(client: Client) -> tuple[dict[str, int], tuple[Throttle, ...], tuple[Subscription, ...]]:
    options = {one.option: one.value for one in client.execute(ops.Config()) if one.is_set}
    throttles = client.execute(ops.Throttles())
    return options, throttles, client.execute(ops.Subscriptions())


@pytest.mark.parametrize("back", [False, True], ids=["to a deployment", "and back"])
def test_settings_are_copied(back: bool) -> None:
    one, many = names()
    source, target = (many, one) if back else (one, many)
    with Client(source) as here, Client(target) as there:
        fill(here)
        before = settings(here)
        assert before[0] == OPTIONS and len(before[1]) == len(LIMITS) and len(before[2]) == len(SUBSCRIPTIONS)
        done = run(source, "move", target)
        assert done.exit_code == 0
        assert "copied, options: 3\ncopied, limits: 3\ncopied, subscriptions: 2\n" in done.stdout
        assert settings(there) == before == settings(here)


@pytest.mark.server
def test_settings_are_copied_on_a_server_to_a_deployment_and_back(server: Server) -> None:
    (one, many), (other, _) = names_on(server), names_on(server)
    with Client(one) as here, Client(many) as there, Client(other) as back:
        fill(here)
        assert run(one, "move", many).exit_code == 0
        assert run(many, "move", other).exit_code == 0
        assert settings(here) == settings(there) == settings(back)


def test_what_the_target_has_set_itself_stays_and_is_told() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        fill(here)
        there.execute(ops.ConfigSet("heartbeat", 5000))
        there.execute(ops.ThrottleSet("stripe", rate=1, rate_ms=1000))
        there.execute(ops.Subscribe("some", ("other",), "mails", "Send"))
        done = run(one, "--json", "move", many)
        answer = json.loads(done.stdout)
        assert done.exit_code == 1 and answer["copied"] == {"options": 2, "limits": 2, "subscriptions": 1}
        assert set(answer["kept"]) == {"options, heartbeat", "limits, stripe", "subscriptions, some"}
        assert there.execute(ops.ConfigGet("heartbeat")) == 5000
        assert there.execute(ops.ThrottleGet("stripe")).concurrency == 0


def test_a_limit_that_the_target_refuses_is_told_and_others_are_copied() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        here.execute(ops.ThrottleSet("queue/mails", concurrency=1))
        here.execute(ops.ThrottleSet("stripe", concurrency=1))
        done = run(one, "move", many)
        assert done.exit_code == 1 and "not moved: limits, queue/mails: " in done.stderr
        assert there.execute(ops.ThrottleGet("stripe")).concurrency == 1


def test_with_queues_settings_stay() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        fill(here)
        assert "copied" not in run(one, "move", many, "-q", "mails").stdout
        assert settings(there) == ({}, (), ())


def test_whoever_dies_at_any_step_copies_the_rest_the_next_time() -> None:
    deaths = 0
    for step in range(1, 40):
        one, many = names()
        with Client(one) as here, Client(many) as there:
            fill(here)
            deaths += dies(step, here, there, lambda: copy_settings(here, there, Report()))
            report = Report()
            copy_settings(here, there, report)
            assert not report.kept and settings(there) == settings(here)
    assert deaths > 20


# ---- failed jobs


def fail(client: Client) -> None:
    client.queues["mails"].put("Send", {"n": 1}, jid="broken", tags=["red"], retries=7)
    job = client.queues["mails"].pop(worker="w")
    assert job is not None
    job.fail("bounced", "no such address")


def test_failed_jobs_stay_and_the_next_step_is_told() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        fail(here)
        done = run(one, "move", many)
        assert "left, failed: 1 (move them with --failed retry, or cancel them)" in done.stdout
        assert here.jobs["broken"].state == "failed" and there.jobs.get("broken") is None


def test_failed_jobs_begin_anew_in_the_target_if_they_are_retried() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        fail(here)
        assert "moved: 1" in run(one, "move", many, "--failed", "retry").stdout
        job = there.jobs["broken"]
        assert job.state == "waiting" and job.data == {"n": 1} and job.raw.tags == ("red",) and job.raw.remaining == 7
        assert "failed before it was moved: bounced: no such address" in [
            stage.facts[0] for stage in job.raw.history if stage.what == "log"
        ]
        assert here.jobs.get("broken") is None


def test_whoever_dies_while_failed_jobs_move_loses_none_and_doubles_none() -> None:
    deaths = 0
    for step in range(1, 40):
        one, many = names()
        done: Counter[str] = Counter()
        with Client(one) as here, Client(many) as there:
            fail(here)
            deaths += dies(step, here, there, lambda: (retry_failed(here), move(here, there)))
            perform((here, there)[step % 2], done)
            retry_failed(here)
            move(here, there)
            perform(there, done)
        assert done == {"broken": 1}, step
    assert deaths > 20


def test_what_is_left_is_counted_by_kind() -> None:
    one, many = names()
    with Client(one) as here:
        here.queues["mails"].put("Send", jid="done")
        job = here.queues["mails"].pop(worker="w")
        assert job is not None
        job.complete()
        here.execute(ops.RequestOpen("order", "mails", limit=1))
        here.execute(ops.Pause(("mails", "other")))
        told = run(one, "move", many).stdout
        for kind in ("complete: 1", "requests: 1", "paused queues: 1"):
            assert f"left, {kind} (" in told
