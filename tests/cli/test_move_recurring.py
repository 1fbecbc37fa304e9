"""`qmodel move`: recurring jobs go on in the target, with each run once, whoever dies in the middle."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from qmodel import Client
from qmodel.cli.moved_jobs import Report, SameNamespace, move
from qmodel.cli.moved_schedules import ARRIVING, LEAVING, LEAVING_PAUSED, move_schedules
from qmodel.contract import operations as ops
from qmodel.contract.replies import Schedule
from tests.cli.moving import dies, kill_again_and_again, names, names_on, perform, run
from tests.servers import Server

HOUR = 3_600_000
DUE = 5
"""The runs that are due when a test begins."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fill(client: Client) -> dict[str, Schedule]:
    """Create a recurring job of each kind, one that is paused, and one with bounds; give them as they are."""
    now = now_ms()
    do = client.backend.execute
    do(ops.Recur("mails", "{plain}", "Send", "{}", HOUR, tags=("red",), retries=2, priority=3, backlog=9), now - HOUR)
    do(ops.Recur("mails", "{late}", "Send", "{}", HOUR, start_at=now - 2 * HOUR + 60_000, missed="one"), now - 2 * HOUR)
    times = tuple(now + n * HOUR for n in (-1, 1, 2))
    do(ops.Recur("mails", "{cron}", "Send", "{}", 0, kind="cron", cron="7 * * * *", due_at=times), now - 2 * HOUR)
    do(ops.Recur("mails", "{unset}", "Send", "{}", 0, kind="cron", cron="8 * * * *"), now - HOUR)
    turns = {"throttles": ("{after}t",), "fair_key": "a", "fair_weight": 2}
    do(ops.Recur("mails", "{after}", "Send", "{}", HOUR, 7 * HOUR, kind="after", **turns))
    do(ops.Recur("mails", "{few}", "Send", "{}", HOUR, HOUR, limit=3, end_at=now + 90 * HOUR, runs=41))
    do(ops.RecurNow("{few}"))
    do(ops.Recur("mails", "{rests}", "Send", "{}", HOUR, 60_000), now - HOUR)
    do(ops.RecurPause("{rests}"))
    return {jid: schedule(client, jid) for jid in client.execute(ops.Recurring("mails")).jids}


def schedule(client: Client, jid: str) -> Schedule:
    found = client.execute(ops.RecurGet(jid))
    assert found is not None
    return found


def expected(old: Schedule) -> Schedule:
    """Give a recurring job as it is to be in the target."""
    if old.kind == "cron":
        return old
    return old._replace(start_at=old.next_at, offset_ms=0, limit=old.limit and old.limit - old.made, made=0)


def check_moved(here: Client, there: Client, before: dict[str, Schedule]) -> None:
    assert not [one for one in here.execute(ops.Queues()) if one.recurring or one.name.startswith("~")]
    assert [one.name for one in there.execute(ops.Queues()) if one.name.startswith("~")] == []
    for client, name in ((here, LEAVING), (here, LEAVING_PAUSED), (there, ARRIVING)):
        assert not client.execute(ops.Queue(f"{name}mails")).paused
    for jid, old in before.items():
        found = schedule(there, jid)
        if old.paused:
            assert found.paused
            there.execute(ops.RecurUnpause(jid))
            assert abs(schedule(there, jid).next_at - now_ms() - 60_000) < 20_000
        else:
            assert found == expected(old), jid


@pytest.mark.parametrize("back", [False, True], ids=["to a deployment", "and back"])
def test_recurring_jobs_go_on_with_their_next_moment(back: bool) -> None:
    one, many = names()
    source, target = (many, one) if back else (one, many)
    with Client(source) as here, Client(target) as there:
        before = fill(here)
        done = run(source, "move", target)
        assert done.exit_code == 0 and f"moved, recurring: {len(before)}" in done.stdout
        assert "left, recurring" not in done.stdout
        check_moved(here, there, before)


@pytest.mark.server
def test_recurring_jobs_move_on_a_server_to_a_deployment_and_back(server: Server) -> None:
    one, many = names_on(server)
    for source, target in ((one, many), (many, one)):
        with Client(source) as here, Client(target) as there:
            before = fill(here)
            assert run(source, "move", target).exit_code == 0
            check_moved(here, there, before)
            for jid in before:
                there.execute(ops.Unrecur(jid))


def test_an_id_without_a_tag_gets_braces_in_a_deployment() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        here.execute(ops.Recur("mails", "nightly", "Send", "{}", HOUR, HOUR, runs=7))
        assert run(one, "move", many).exit_code == 0
        assert schedule(there, "{nightly}").runs == 7


def test_one_that_waits_for_a_run_stays_until_that_has_ended() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        here.execute(ops.Recur("mails", "{a}", "Send", "{}", HOUR, overlap="skip"))
        job = here.queues["mails"].pop(worker="w")
        assert job is not None
        assert "left, recurring: 1 (" in run(one, "move", many).stdout
        job.complete()
        assert "moved, recurring: 1" in run(one, "move", many).stdout
        assert schedule(there, "{a}").next_at > now_ms()


def test_what_the_target_has_declared_itself_goes_on_and_another_one_of_the_same_id_is_told() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        here.execute(ops.Recur("mails", "{same}", "Send", "{}", HOUR, HOUR))
        there.execute(ops.Recur("mails", "{same}", "Send", "{}", HOUR, 2 * HOUR))
        here.execute(ops.Recur("mails", "{other}", "Send", "{}", HOUR, HOUR))
        there.execute(ops.Recur("mails", "{other}", "Print", "{}", HOUR, HOUR))
        here.execute(ops.Recur("mails", "{far}", "Send", "{}", HOUR, HOUR, throttles=("away",)))
        before = schedule(there, "{same}"), schedule(here, "{other}"), schedule(here, "{far}")
        done = run(one, "move", many)
        assert done.exit_code == 1
        assert "not moved: recurring job {other}: its id is taken there" in done.stderr
        assert "not moved: recurring job {far}: " in done.stderr
        assert here.execute(ops.RecurGet("{same}")) is None
        assert before == (schedule(there, "{same}"), schedule(here, "{other}"), schedule(here, "{far}"))


def test_a_recurring_job_is_not_moved_into_its_own_namespace() -> None:
    one, _ = names()
    with Client(one) as here, Client(one) as again:
        before = fill(here)
        with pytest.raises(SameNamespace):
            move_schedules(here, again, (), Report())
        assert {jid: schedule(here, jid) for jid in before} == before


def test_what_another_move_has_not_finished_is_told() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        here.execute(ops.Recur(f"{ARRIVING}mails", "{a}", "Send", "{}", HOUR, HOUR))
        done = run(one, "move", many, "--wait")
        assert done.exit_code == 1 and "not moved: recurring job {a}: it has not quite arrived here" in done.stderr
        assert there.execute(ops.RecurGet("{a}")) is None


def test_only_those_of_the_queues_that_are_named_move() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        for queue in ("mails", "other"):
            here.execute(ops.Recur(queue, f"{{{queue}}}", "Send", "{}", HOUR, HOUR))
        run(one, "move", many, "-q", "other")
        assert here.execute(ops.RecurGet("{mails}")) is not None
        assert there.execute(ops.RecurGet("{mails}")) is None and schedule(there, "{other}").queue == "other"


def test_whoever_dies_at_any_step_loses_no_run_and_makes_none_twice() -> None:
    chance, deaths = random.Random(1), 0
    for step in range(1, 70):
        one, many = names()
        done: Counter[str] = Counter()
        with Client(one) as here, Client(many) as there:
            began = now_ms() - DUE * HOUR + 60_000
            here.backend.execute(ops.Recur("mails", "{a}", "Send", "{}", HOUR, limit=DUE), began)
            here.backend.execute(ops.Recur("mails", "{p}", "Send", "{}", HOUR, HOUR))
            here.backend.execute(ops.RecurPause("{p}"))
            deaths += dies(step, here, there, lambda: move_schedules(here, there, (), Report()))
            perform(chance.choice((here, there)), done)
            move(here, there)
            move_schedules(here, there, (), Report())
            while there.queues["mails"].counts.waiting or there.queues["mails"].counts.due:
                perform(there, done)
            assert schedule(there, "{p}").paused
            assert here.execute(ops.RecurGet("{p}")) is None and here.execute(ops.RecurGet("{a}")) is None
        assert done == Counter(f"{{a}}-{n}" for n in range(1, DUE + 1)), step
    assert deaths > 40


@pytest.mark.server
def test_a_command_that_is_killed_on_a_server_is_begun_again(server: Server) -> None:
    one, many = names_on(server)
    with Client(one) as here, Client(many) as there:
        jids = [f"{{{number}}}" for number in range(100)]
        here.execute_many(ops.Recur("mails", jid, "Send", "{}", HOUR, HOUR) for jid in jids)
        kill_again_and_again(one, many, lambda: there.queues["mails"].counts.recurring, len(jids))
        assert run(one, "move", many).exit_code == 0
        assert there.queues["mails"].counts.recurring == len(jids)
        assert all(here.execute(ops.RecurGet(jid)) is None for jid in jids)
        assert [queue.name for queue in there.execute(ops.Queues())] == ["mails"]
