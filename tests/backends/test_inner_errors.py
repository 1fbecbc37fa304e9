"""Inner errors on real servers: rights that are taken away, keys of a wrong type, and what repairs them.

tests/property/test_inner_errors.py tries every write; here is what only a server can show.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from qmodel.backends.redis.backend import RedisBackend
from qmodel.backends.redis.connect import connect
from qmodel.backends.redis.dump import dump_command, dump_of
from qmodel.backends.redis.raw_keys import decode
from qmodel.backends.redis.resend import ServerError
from qmodel.backends.redis.take_snapshot import taken
from qmodel.client.sync import Client
from qmodel.contract import operations as ops
from qmodel.doctor import damage, environment
from qmodel.doctor.copies import copies
from qmodel.errors import ConnectError, CorruptError, RefusedError
from qmodel.model.invariants import check
from qmodel.pipeline.audit.replay import Audit, differences
from qmodel.pipeline.journal.pages import entries
from tests.backends.helpers import Private, Starter
from tests.servers import serving

pytestmark = pytest.mark.server

WRITES = ("mset", "zadd", "zrem", "hset", "hdel", "xadd", "rpush", "zpopmin", "zincrby", "del")


class Patient(NamedTuple):
    """The subject of checks."""

    url: str
    client: Client
    look_at_keys: bool = False
    url_from: str = "here"


class World:
    """A server, a client that may do all, and one whose rights are taken away."""

    def __init__(self, server: Private, functions: str = "yes") -> None:
        self.redis = server.client()
        self.url = f"{server.url}?db=0"
        self.redis.execute_command("ACL", "SETUSER", "app", "on", ">p", "~ql:*", "+@all")
        how = f"functions={functions}"
        self.all = connect(f"{server.url}?{how}")
        self.app: RedisBackend = connect(server.url.replace("unix://", "unix://app:p@") + f"?load=never&{how}")
        self.client, self.url_from, self.look_at_keys = Client(self.all), "here", False

    def fresh(self) -> dict[str, int]:
        """Begin again with a few jobs; give the tokens of two that are held."""
        self.redis.flushall()
        for i in range(5):
            self.all.execute(ops.Put("q", f"j{i}", "K", "", tags=("t",)))
        return {job.jid: job.token for job in self.all.execute(ops.Pop("q", "w", count=2))}

    def state(self) -> dict[bytes, Any]:
        return dict(dump_of(self.redis.execute_command(*dump_command("ql:"))))

    def close(self) -> None:
        self.all.close()
        self.app.close()


@pytest.fixture
def world(private: Starter) -> Iterator[World]:
    with private() as server:
        made = World(server)
        yield made
        made.close()


def steps(tokens: dict[str, int]) -> list[ops.Operation]:
    (jid, token), *_ = tokens.items()
    return [
        ops.Put("q", "new", "K", "", tags=("n",)),
        ops.PutMany((ops.Put("q", "n1", "K", ""), ops.Put("z", "n2", "K", "", depends=("n1",)))),
        ops.Pop("q", "v", count=2),
        ops.Complete(jid, token),
        ops.Fail(jid, token, "g", "m"),
        ops.Cancel(("j4",)),
        ops.TagAdd("j4", ("a", "b")),
    ]


@pytest.mark.parametrize("denied", WRITES)
def test_a_step_without_a_right_is_undone_or_completed_by_the_next_call(world: World, denied: str) -> None:
    for n in range(len(steps(world.fresh()))):
        op = steps(world.fresh())[n]
        before = world.state()
        world.redis.execute_command("ACL", "SETUSER", "app", "-" + denied)
        try:
            world.app.execute(op)
        except CorruptError as error:
            assert error.kept and error.key.startswith("ql:")
        except ConnectError as error:
            assert getattr(error, "code", "") == "NOPERM"
            assert world.state() == before
        finally:
            world.redis.execute_command("ACL", "SETUSER", "app", "+" + denied)
        assert world.all.execute(ops.Put("other", "next", "K", "")) == "next"
        assert not check(decode(world.state()))
        assert [finding.level for finding in damage.damage(world)] == ["OK"]


def accepts(world: World, op: ops.Operation) -> bool:
    """Whether the server has room for an operation; if not, it changes nothing."""
    before = world.state()
    try:
        world.app.execute(op)
    except ServerError as error:
        assert error.code == "OOM" and "raise maxmemory" in error.next_step
        assert world.state() == before
        return False
    return True


def is_fine(world: World) -> bool:
    return not check(decode(world.state())) and [one.level for one in damage.damage(world)] == ["OK"]


@pytest.mark.parametrize("functions", ["yes", "no"])
def test_a_step_of_a_full_server_is_whole_or_changes_nothing(private: Starter, functions: str) -> None:
    """New work is refused, by the flags of functions, or by the first write of a script; what makes room is done."""
    with private() as server:
        world = World(server, functions)
        for n in range(len(steps(world.fresh()))):
            op = steps(world.fresh())[n]
            world.redis.config_set("maxmemory", 1)
            assert accepts(world, op) is (functions == "yes" and op.spec.finishes)
            world.redis.config_set("maxmemory", 0)
            assert world.app.execute(ops.Put("q", "next", "K", "")) == "next"
            assert is_fine(world)
        world.close()


@pytest.mark.parametrize("functions", ["yes", "no"])
def test_a_server_that_fills_up_under_load_goes_on_once_it_has_room(private: Starter, functions: str) -> None:
    """The limit is crossed within a step, which is completed, and then no new work is accepted."""
    with private() as server:
        world = World(server, functions)
        tokens = world.fresh()
        world.redis.config_set("maxmemory", world.redis.info("memory")["used_memory"] + 8 * 2**20)
        batches = (tuple(ops.Put("q", f"n{i}-{k}", "K", "x" * 2**17, tags=("t",)) for k in range(3)) for i in range(99))
        put = 0
        while accepts(world, ops.PutMany(next(batches))):
            put += 3
        assert 3 <= put < 90
        assert is_fine(world)
        if functions == "yes":
            assert [accepts(world, ops.Complete(*held)) for held in tokens.items()] == [True, True]
            assert accepts(world, ops.Drain("q", 9))
        world.redis.config_set("maxmemory", 0)
        left = world.app.execute(ops.Length("q")) - (2 if functions == "no" else 0)
        popped = world.app.execute(ops.Pop("q", "v", count=1000))
        assert len(popped) == left > 0
        assert all(accepts(world, ops.Complete(job.jid, job.token)) for job in popped)
        assert is_fine(world)
        world.close()


class Load:
    """Draws operations on a few jobs, and sends each again until it is done, or refused, or was tried three times."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.chance, self.number = world, random.Random(seed), 0
        self.held: list[tuple[str, int]] = []

    def draw(self) -> ops.Operation:
        self.number += 1
        jid, some = f"j{self.number}", f"j{self.chance.randint(1, self.number)}"
        choices: list[ops.Operation] = [
            ops.Put("q", jid, "K", "", request=jid),
            ops.Put("q", jid, "K", "", delay_ms=1),
            ops.Put("q", jid, "K", "", depends=(some,)),
            ops.Put("q", jid, "K", "", unique="u", tags=("t",)),
            ops.Put("q", jid, "K", "", ordered="o", throttles=("x",)),
            ops.Pop("q", "w", self.chance.randint(1, 3), request=jid),
            ops.Cancel((some,)),
        ]
        if self.held:
            held = self.held.pop()
            choices += [ops.Complete(*held), ops.Fail(*held, "g", "m")] * 2
        return self.chance.choice(choices)

    def run(self, times: int) -> None:
        for _ in range(times):
            self.execute(self.draw())

    def execute(self, op: ops.Operation) -> None:
        for _ in range(3):
            try:
                reply = self.world.app.execute(op)
            except RefusedError:
                return
            except ConnectError as error:
                assert getattr(error, "code", "") in ("CORRUPT", "NOPERM")
            else:
                if isinstance(op, ops.Pop):
                    self.held += [(job.jid, job.token) for job in reply]
                return


@pytest.mark.parametrize("denied", (*WRITES, "get", "set", "mget", "incrby", "xrevrange"))
def test_what_goes_on_without_a_right_is_whole_and_journaled(world: World, denied: str) -> None:
    """Steps that are kept, steps that go on beside them, and epochs that begin between them."""
    for seed in range(2):
        world.redis.flushall()
        world.all.execute(ops.ConfigSet("journal", 1))
        load = Load(world, seed)
        load.run(15)
        world.redis.execute_command("ACL", "SETUSER", "app", "-" + denied)
        load.run(20)
        world.redis.execute_command("ACL", "SETUSER", "app", "+" + denied)
        load.run(10)
        found, audit = taken(world.url), Audit()
        assert not check(found)
        assert not list(audit.follow(entries(world.client)))
        assert not list(differences(audit.state(), found))


def test_a_key_of_a_wrong_type_is_named_and_put_aside(world: World) -> None:
    world.fresh()
    world.redis.delete("ql:q:q-work")
    world.redis.set("ql:q:q-work", "foreign")
    with pytest.raises(CorruptError) as raised:
        world.app.execute(ops.Pop("q", "w"))
    assert (raised.value.key, raised.value.kept) == ("ql:q:q-work", False)
    with pytest.raises(CorruptError):
        world.app.execute(ops.Put("q", "late", "K", ""))
    assert world.app.execute(ops.Put("other", "a", "K", "")) == "a"
    assert [finding.level for finding in damage.damage(world)] == ["FAIL", "WARN"]
    [*done] = [finding.resolve() for finding in damage.damage(world) if finding.resolve]
    assert "renamed ql:q:q-work to ql:aside:q:q-work" in done[0]
    assert world.redis.get("ql:aside:q:q-work") == b"foreign"
    assert [job.jid for job in world.app.execute(ops.Pop("q", "w", count=9))] == ["late"]


@pytest.mark.parametrize("functions", ["yes", "no"])
@pytest.mark.parametrize("key", ["ql:counters", "ql:j:j0"])
def test_keys_of_another_version_are_refused_with_their_name(private: Starter, functions: str, key: str) -> None:
    """Each time: nothing of what was read is remembered as if it were right."""
    with private() as server:
        world = World(server, functions)
        for text in ("51", "51\t0\t0\t1\t0\t0\t0", "51\t0\t0\t1\t0\t0\t0\t0\t7", "waiting\t1\t2", ""):
            world.fresh()
            world.redis.set(key, text)
            for op in (ops.Put("q", "j0", "K", ""), ops.Get("j0"), ops.Put("q", "j0", "K", "")):
                with pytest.raises(CorruptError, match="its text is not that of") as raised:
                    world.app.execute(op)
                assert (raised.value.key, raised.value.kept) == (key, False)
                assert raised.value.next_step == "Use the version of qmodel that wrote it, or restore a backup."
        world.close()


@pytest.mark.parametrize("functions", ["yes", "no"])
def test_damage_is_found_and_mended_with_functions_and_as_a_script(private: Starter, functions: str) -> None:
    with private() as server:
        world = World(server, functions)
        world.client = Client(world.app)
        world.fresh()
        assert [finding.level for finding in damage.damage(world)] == ["OK"]
        world.redis.delete("ql:j:j4")
        (found,) = damage.damage(world)
        assert found.level == "FAIL" and found.resolve is not None and "dropped" in found.resolve()
        assert [finding.level for finding in damage.damage(world)] == ["OK"]
        world.close()


def test_what_is_not_checked_is_not_called_fine() -> None:
    """`qmodel serve` has no keys, no replicas, and no measure of its memory; its state can be read."""
    with serving() as server, Client(server.url) as client:
        asked = Patient(server.url, client)
        checks = (environment.memory, copies, damage.damage)
        assert [[finding.level for finding in check(asked)] for check in checks] == [["SKIP"]] * 3
        assert [finding.level for finding in environment.invariants(asked)] == ["SKIP"]
        assert [finding.level for finding in environment.invariants(asked._replace(look_at_keys=True))] == ["OK"]


def test_keys_that_the_user_may_not_list_are_not_called_broken(private: Starter) -> None:
    with private() as server:
        world = World(server)
        world.redis.execute_command("ACL", "SETUSER", "app", "-keys")
        asked = Patient(f"{server.url}?db=0", Client(world.app), look_at_keys=True)
        (found,) = environment.invariants(asked)
        assert found.level == "SKIP" and "the keys were not checked" in found.what
        world.redis.execute_command("ACL", "SETUSER", "app", "+keys")
        assert [finding.level for finding in environment.invariants(asked)] == ["OK"]
        world.close()


def test_a_missing_job_does_not_stop_its_queue(world: World) -> None:
    world.fresh()
    world.redis.delete("ql:j:j2")
    assert [job.jid for job in world.app.execute(ops.Pop("q", "w"))] == ["j3"]
    assert [finding.level for finding in damage.damage(world)] == ["WARN"]
