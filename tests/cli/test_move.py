"""`qmodel move`: jobs move between namespaces and deployments, whoever dies in the middle."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from qmodel import Client
from qmodel.cli.moved_jobs import SameNamespace, move
from qmodel.contract import operations as ops
from tests.cli.moving import dies, kill_again_and_again, names, names_on, perform, run
from tests.servers import Server

COUNT = 12


def fill(client: Client) -> list[str]:
    """Put jobs that can be moved, in all states in which they can."""
    queue = client.queues["mails"]
    client.throttles["t{k}"].set(concurrency=1)
    jobs = [queue.put("Send", {"n": n}, priority=n % 3, tags=["red"], retries=7) for n in range(COUNT)]
    jobs += [queue.put("Send", {"n": n}, delay=3600 + n) for n in range(COUNT)]
    jobs += [queue.put("Send", jid=f"t{n}{{k}}", throttles=["t{k}"], unique=f"u{n}{{k}}") for n in range(3)]
    held = client.queues["mails"].pop(worker="parks")  # so that others of its throttle are parked
    while held is not None and held.raw.throttles == ():
        held.release()
        held = client.queues["mails"].pop(worker="parks")
    return [job.jid for job in jobs if held is None or job.jid != held.jid]


@pytest.mark.parametrize("back", [False, True], ids=["to a deployment", "and back"])
def test_jobs_move_with_all_that_they_have(back: bool) -> None:
    one, many = names()
    source, target = (many, one) if back else (one, many)
    with Client(source) as here, Client(target) as there:
        jids = fill(here)
        before = {job.jid: job for job in here.jobs.get_many(jids)}
        done = run(source, "move", target)
        assert done.exit_code == 0 and f"moved: {len(jids)}" in done.stdout and "left, running: 1" in done.stdout
        assert here.jobs.get_many(jids) == []
        for job in there.jobs.get_many(jids):
            old = before.pop(job.jid)
            assert (job.queue, job.klass, job.data) == (old.queue, old.klass, old.data)
            assert (job.raw.priority, job.raw.tags, job.raw.retries) == (
                old.raw.priority,
                old.raw.tags,
                old.raw.retries,
            )
            assert (job.raw.throttles, job.raw.unique) == (old.raw.throttles, old.raw.unique)
            if old.state == "scheduled":
                assert job.state == "scheduled" and job.raw.ready_at == old.raw.ready_at
        assert not before


def test_what_the_engine_ties_to_other_jobs_stays_and_ends_where_it_is() -> None:
    one, many = names()
    with Client(one, worker="w") as here, Client(many) as there:
        queue = here.queues["mails"]
        parent = queue.put("Send", jid="parent")
        queue.put("Send", jid="child", depends=["parent"])
        queue.put("Send", jid="other")
        done = run(one, "move", many)
        assert "moved: 1" in done.stdout and "left, waiting: 1" in done.stdout and "left, depends: 1" in done.stdout
        assert there.jobs.get("other") is not None and parent.refresh().state == "waiting"


def test_a_job_that_the_target_refuses_stays_as_it_was() -> None:
    one, many = names()
    with Client(one) as here, Client(many) as there:
        queue = here.queues["mails"]
        queue.put("Send", jid="a", unique="b")
        queue.put("Send", {"mine": 1}, jid="taken")
        there.queues["mails"].put("Send", {"yours": 1}, jid="taken")
        done = run(one, "move", many)
        assert done.exit_code == 1
        assert "not moved: a: " in done.stderr and "not moved: taken: its id is taken there" in done.stderr
        assert {here.jobs[jid].state for jid in ("a", "taken")} == {"waiting"}
        assert there.jobs["taken"].data == {"yours": 1}


def test_a_namespace_is_not_moved_into_itself() -> None:
    one, _ = names()
    assert run(one, "move", one).exit_code == 2
    with Client(one) as here, Client(one) as again:
        here.queues["mails"].put("Send", jid="a")
        with pytest.raises(SameNamespace):
            move(here, again)
        assert here.jobs["a"].state == "waiting"


# ---- deaths


@pytest.mark.server
@pytest.mark.parametrize("target", ["memory://", "memory://here?shards=4", "embedded://"])
def test_jobs_are_not_moved_into_the_memory_of_the_command(server: Server, target: str) -> None:
    url, _ = names_on(server)
    with Client(url) as here:
        here.queues["mails"].put("Send", jid="a")
        done = run(url, "move", target)
        assert done.exit_code == 2 and "would end with this command" in " ".join(done.stderr.split())
        assert here.jobs["a"].state == "waiting"


def test_whoever_dies_at_any_step_loses_no_job_and_doubles_none() -> None:
    chance, deaths = random.Random(1), 0
    for step in range(1, 90):
        one, many = names()
        done: Counter[str] = Counter()
        with Client(one) as here, Client(many) as there:
            jids = [here.queues["mails"].put("Send", delay=n % 2 * 3600).jid for n in range(8)]
            deaths += dies(step, here, there, lambda: move(here, there))
            perform(chance.choice((here, there)), done)
            move(here, there)
            assert here.execute(ops.Length("mails")) == 0
            for job in there.jobs.get_many([jid for jid in jids if not done[jid]]):
                job.promote()
            while there.queues["mails"].counts.waiting:
                perform(there, done)
        assert done == Counter(jids), step
    assert deaths > 40


@pytest.mark.server
def test_a_command_that_is_killed_is_begun_again(server: Server) -> None:
    one, many = names_on(server)
    with Client(one) as here, Client(many) as there:
        queue = here.queues["mails"]
        jids = [job.jid for job in queue.put_many([("Send", number) for number in range(1000)])]
        kill_again_and_again(one, many, there.queues["mails"].length, len(jids))
        assert run(one, "move", many, "--wait").exit_code == 0
        assert here.queues["mails"].length() == 0
        assert {job.jid for job in there.jobs.get_many(jids)} == set(jids)
        assert there.queues["mails"].counts.waiting == len(jids)
