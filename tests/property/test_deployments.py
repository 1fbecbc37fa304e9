"""The laws of a deployment: N stores and one routing rule (qmodel/model/deployment).

Random histories of a deployment are drawn with its own replies, so that most calls of workers hold their leases. Names
have one of a few tags, or none.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodel.conformance.subjects.base import Step
from qmodel.contract import operations as ops
from qmodel.contract import routing
from qmodel.contract.operations import CATALOGUE, Operation
from qmodel.contract.refusals import ROUTING_REASONS, Refusal
from qmodel.contract.replies import Page, Sample
from qmodel.contract.routing import ROUTES, SLOTS, Layout, Route, shard_tag, slot, tag
from qmodel.model import engine, invariants
from qmodel.model.deployment import deployment as deployments
from qmodel.model.deployment import merging
from qmodel.model.deployment.deployment import Deployment
from qmodel.model.deployment.plans import plan
from qmodel.model.state.store import Store
from qmodel.wire import as_json
from tests.mirror import ROOT
from tests.property.support import QUICK, bulk, fails, state_of

OTHER_NAMES = {name for name in CATALOGUE if "subscription" in name} | {"subscribe", "unsubscribe", "catch_up"}

MERGED = {"throttles_used"}
"""Operations whose pages of all shards are merged: their cursor is a name, not a place in a shard."""

LAYOUT = Layout(4, single=frozenset({"alone"}), split=frozenset({"divided"}))


def test_a_deployment_of_one_shard_is_the_model() -> None:
    """But for what each shard has of its own, and for names that need a tag."""
    compared = 0
    for history in bulk(120):
        one, store = Deployment(Layout(1)), Store()
        for now, op in history:
            if op.spec.name in OTHER_NAMES:
                continue
            cursor = getattr(op, "cursor", "") if op.spec.name not in MERGED else ""
            reply = deployments.step(one, now, replace(op, cursor=f"0:{cursor}") if cursor else op)
            if isinstance(reply, Refusal) and reply.code in ROUTING_REASONS:
                continue
            expected = engine.step(store, now, op)
            if getattr(expected, "cursor", "") and op.spec.name not in MERGED:
                expected = expected._replace(cursor=f"0:{expected.cursor}")
            assert reply == expected, op
            compared += 1
        assert state_of(one.stores[0]) == state_of(store)
    assert compared > 4000


def test_an_operation_with_one_plain_name_goes_where_the_whole_rule_sends_it() -> None:
    layout, plain = Layout(8), set()
    for history in bulk(90):
        for _, op in history:
            home = layout.plain_home(op)
            if home is not None:
                plain.add(op.spec.name)
            if home is not None and engine.fault(op) is None:
                assert home == layout.route(op), op
    assert plain >= {"put", "complete", "fail", "heartbeat", "get", "unique_get", "metadata_get"}


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 1000, "\ud800", "\u00e9" * 500, 7, None, ("a",), b"a"])
@pytest.mark.parametrize("op", [ops.Get("a"), ops.Put("q", "a", "K", "{}"), ops.Complete("a", 1), ops.UniqueGet("a")])
def test_a_deployment_refuses_a_bad_name_as_one_namespace_does(op: Any, name: Any) -> None:
    argument = "unique" if type(op) is ops.UniqueGet else "jid"
    wrong = replace(op, **{argument: name})
    refused = deployments.step(Deployment(Layout(4)), 10**12, wrong)
    assert refused == engine.step(Store(), 10**12, wrong) == Refusal("BAD_ARGUMENT", (op.spec.name, argument))


# ---- random histories


class Drawer:
    """Draws operations for a deployment; it knows from the replies what is leased."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"deployments.{seed}")
        self.now = 10**12
        self.leases: list[tuple[str, int]] = []
        self.jids: list[str] = ["none"]
        self.last: Operation = ops.Newest()

    def pick(self, *of: Any) -> Any:
        return self.chance.choice(of)

    def rarely(self) -> bool:
        return self.chance.randrange(6) == 0

    def name(self, word: str, tag_: str | None = None) -> str:
        tag_ = self.pick("", "{a}", "{b}", "{c}") if tag_ is None else tag_
        return f"{word}{self.chance.randrange(4)}{tag_}"

    def job(self, tag_: str | None = None) -> ops.Put:
        tag_ = self.pick("{a}", "{b}", "{c}", "") if tag_ is None else tag_
        jid = f"j{len(self.jids)}{tag_}"
        self.jids.append(jid)
        other = None if self.rarely() else tag_
        more: dict[str, Any] = {}
        if self.rarely():
            more["unique"] = self.name("u", other)
        if self.rarely():
            more["ordered"] = self.name("o", other)
        if self.rarely():
            more["throttles"] = (self.pick("divided", self.name("t", other)),)
        if self.rarely():
            more["depends"] = (self.pick(*self.jids[-6:], f"j{len(self.jids) - 2}{tag_}"),)
        if self.rarely():
            more |= {"tags": ("blue", self.pick("red", "green")), "retries": 0, "dead_queue": "dead"}
        return ops.Put(self.pick("q", "q", "r", "alone"), jid, "K", "{}", delay_ms=self.pick(0, 0, 50), **more)

    def request(self) -> str:
        return f"r{self.chance.randrange(10**12)}"

    def jid(self) -> str:
        return str(self.pick(*self.jids[-12:]))

    def lease(self) -> tuple[str, int]:
        return self.leases.pop(0) if self.leases and not self.rarely() else (self.jid(), 1)

    def worker_call(self) -> Operation:
        jid, token = self.lease()
        return self.pick(
            ops.Complete(jid, token), ops.Complete(jid, token), ops.Complete(jid, token, next="alone"),
            ops.Fail(jid, token, "g", "m"), ops.Retry(jid, token), ops.Heartbeat(jid, token), ops.Release(jid, token),
            ops.CompleteAndPop(jid, token, self.pick("q", "alone"), "w", 2, self.rarely(), request=self.request()),
            ops.CompleteMany((ops.Complete(jid, token), ops.Complete(*self.lease()))),
        )  # fmt: skip

    def change(self) -> Operation:
        jid = self.jid()
        alike = [other for other in self.jids if tag(other) == tag(jid)]
        return self.pick(
            ops.DependsOn(jid, (self.pick(*alike),)), ops.DependsOn(jid, (self.jid(),)), ops.Cancel((jid,)),
            ops.Cancel((jid, self.jid())), ops.TagAdd(jid, ("red",)), ops.Track(jid), ops.Priority(jid, self.pick(-1,
            1)), ops.Promote(jid), ops.Revoke((jid,)), ops.Pause((self.pick("q", "r"),), "x"), ops.Unpause(("q", "r")),
            ops.ConfigSet("heartbeat", self.pick(30, 90)), ops.ThrottleSet(self.pick("queue/q", "divided", "t1{a}",
            "queue/alone"), concurrency=self.pick(1, 4, 6)), ops.ThrottleUnset(self.pick("queue/q", "divided",
            "t1{a}")), ops.RetryMany(queue="q"), ops.Recur(self.pick("q", "alone"), self.name("s"), "K", "{}", 40),
            ops.Unrecur(self.name("s")), ops.Fire("q", 3), ops.Drain("r", 3), ops.Subscribe("news", ("n.*",),
            self.pick("q", "alone"), "K"), ops.Publish(f"n.{self.chance.randrange(9)}", "{}"), ops.RequestOpen("a", "q",
            2), ops.RequestAdd("a", (ops.Put("q", f"{self.jid()}{{a}}", "K", "{}"),)), ops.MetadataIncrement("K",
            "count", 1), ops.Clean("complete", 0), ops.Deregister(("w",)),
        )  # fmt: skip

    def draw(self) -> tuple[int, Operation]:
        self.now += self.pick(0, 1, 20, 60)
        kind = self.chance.randrange(10)
        if isinstance(self.last, ops.Put) and self.last.depends and kind < 5:
            self.last = ops.DependsOn(self.last.jid, (self.pick(*self.jids[-6:-1]),))
        elif kind < 3:
            self.last = self.job()
        elif kind == 3:
            tag_ = self.pick("{a}", "{b}", None)
            self.last = ops.PutMany(tuple(self.job(tag_) for _ in range(self.chance.randrange(1, 4))))
        elif kind < 6:
            count, wait = self.pick(1, 3, 20), self.rarely()
            request = "" if self.rarely() else self.request()
            self.last = self.pick(
                ops.Pop(self.pick("q", "r", "alone"), "w", count, wait, request),
                ops.PopAny(("r", "q"), "v", count, wait, request),
            )
        else:
            self.last = self.worker_call() if kind < 8 else self.change()
        return self.now, self.last

    def hear(self, reply: Any) -> None:
        if isinstance(self.last, ops.Pop | ops.PopAny) and isinstance(reply, tuple) and not isinstance(reply, Refusal):
            self.leases += [(job.jid, job.token) for job in reply]


class Moment(NamedTuple):
    """A step of a deployment and its reply."""

    deployment: Deployment
    now: int
    op: Operation
    reply: Any


def walk(seed: int, steps: int = 150, layout: Layout = LAYOUT) -> Iterator[Moment]:
    """Execute a random history."""
    drawer, deployment = Drawer(seed), Deployment(layout)
    for _ in range(steps):
        now, op = drawer.draw()
        reply = deployments.step(deployment, now, op)
        drawer.hear(reply)
        yield Moment(deployment, now, op, reply)


SEEDS = range(40)


def test_the_histories_reach_what_they_are_for() -> None:
    codes: dict[str, set[str]] = {}
    for seed in SEEDS:
        for moment in walk(seed):
            code = moment.reply.code if isinstance(moment.reply, Refusal) else "OK"
            codes.setdefault(moment.op.spec.name, set()).add(code)
    assert {"OK", "CROSS_SHARD"} <= codes["put"] & codes["put_many"] & codes["cancel"] & codes["complete_and_pop"]
    assert {"OK", "SPLIT_LIMIT"} <= codes["throttle_set"]
    assert {"OK", "UNTAGGED"} <= codes["recur"]
    assert {name for name, of in codes.items() if "OK" not in of} == set()


# ---- projection


def test_a_shard_does_what_the_model_does_with_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, Step]] = []
    step = engine.step

    def recording(store: Store, now: int, op: Any) -> Any:
        calls.append((id(store), Step(now, op)))
        return step(store, now, op)

    monkeypatch.setattr(deployments.engine, "step", recording)
    for seed in SEEDS:
        calls.clear()
        *_, last = walk(seed)
        for store in last.deployment.stores:
            alone = Store()
            for of, (now, op) in calls:
                if of == id(store):
                    step(alone, now, op)
            assert state_of(alone) == state_of(store)
            assert not invariants.check(state_of(store))


# ---- home


def strangers(deployment: Deployment) -> list[tuple[int, str]]:
    """The names in each shard that belong to another one."""
    found = []
    for shard, store in enumerate(deployment.stores):
        names = {*store.jobs, *store.uniques, *store.requested, *store.schedules, *store.metadata}
        names |= {name.partition(":")[2] for name in store.concurrency_keys}
        names |= {name for name in store.throttles if not deployment.layout.is_split(name) and "/" not in name}
        names |= {name.removeprefix("queue/") for name in store.throttles if name == "queue/alone"}
        names |= {name for name, queue in store.queues.items() if name == "alone" and (queue.ready or queue.locks)}
        names |= {message.subject for message in store.messages}
        names |= set(store.subscriptions)
        found += [(shard, name) for name in sorted(names) if deployment.layout.home(name) != shard]
    return found


def test_every_name_that_a_shard_stores_belongs_there() -> None:
    shards = set()
    for seed in SEEDS:
        for moment in walk(seed):
            assert not strangers(moment.deployment), moment
        shards |= {shard for shard, store in enumerate(moment.deployment.stores) if store.jobs}
    assert shards == set(range(LAYOUT.shards))


@pytest.mark.parametrize("forgotten", ["unique", "ordered", "throttles", "depends"])
def test_a_routing_that_forgets_a_name_is_noticed(forgotten: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative twin. A dependency is no name that is stored: it is refused where it is not."""
    put = ROUTES["put"]
    names = tuple(name for name in put.names if name != forgotten)
    monkeypatch.setitem(routing.ROUTES, "put", Route(names, put.queues, put.otherwise))
    if forgotten == "depends":
        refused = [m.reply.code for seed in SEEDS for m in walk(seed) if isinstance(m.reply, Refusal)]
        assert "DEPENDENCY_NOT_FOUND" in refused
    else:
        assert fails(test_every_name_that_a_shard_stores_belongs_there)


# ---- claims


def test_a_reply_has_no_job_twice_and_not_too_many() -> None:
    several = 0
    for seed in SEEDS:
        for _, _, op, reply in walk(seed):
            if isinstance(reply, Refusal) or op.spec.name not in ("pop", "pop_any", "complete_and_pop"):
                continue
            jids = [job.jid for job in getattr(reply, "jobs", reply)]
            assert len(jids) == len(set(jids)) <= op.count
            several += len({LAYOUT.home(jid) for jid in jids}) > 1
    assert several > 50


def test_a_pop_leaves_no_ready_job_that_it_could_have_had() -> None:
    waited = 0
    for seed in SEEDS:
        for deployment, now, op, reply in walk(seed):
            if isinstance(op, ops.Pop) and not isinstance(reply, Refusal) and len(reply) < op.count:
                left = deployments.step(deployment, now, ops.Pop(op.queue, "other", 1))
                assert left == ()
                waited += op.wait
    assert waited > 10


# ---- refused before anything is sent


def test_what_routing_refuses_changes_no_store() -> None:
    refused = 0
    for seed in SEEDS:
        before = [state_of(Store())] * LAYOUT.shards
        for moment in walk(seed, 60):
            after = [state_of(store) for store in moment.deployment.stores]
            if isinstance(moment.reply, Refusal) and moment.reply.code in ROUTING_REASONS:
                assert after == before
                refused += 1
            before = after
    assert refused > 100


def test_what_routing_refuses_has_no_call() -> None:
    for seed in SEEDS:
        for _, _, op, reply in walk(seed, 60):
            if isinstance(reply, Refusal) and reply.code in ROUTING_REASONS:
                with pytest.raises(StopIteration) as end:
                    next(plan(LAYOUT, op))
                assert end.value.value == reply


# ---- routing is pure


@QUICK
@given(st.text(max_size=130), st.sampled_from([1, 2, 8, 64, 1024]))
def test_a_home_is_a_shard_and_the_same_for_all_names_with_a_tag(name: str, shards: int) -> None:
    layout = Layout(shards)
    assert 0 <= slot(name) < SLOTS and 0 <= layout.home(name) < shards
    if 0 < len(name) < 50 and "}" not in name:
        assert (
            layout.home(f"{{{name}}}:a")
            == layout.home(f"order-7{{{name}}}-3")
            == Layout(2 * shards).home(f"x{{{name}}}") // 2
        )
    assert layout.home(f"{name[:100]}-dead-17") == layout.home(name) or "{" in name or name.endswith("-dead-")


def crc16(data: bytes) -> int:
    """CRC16 (XMODEM), bit by bit."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def test_the_vectors_say_what_the_reference_says() -> None:
    """The rules of docs/wire.md, written once more, give what stands in docs/catalogue.json."""
    vectors = json.loads((ROOT / "docs/catalogue.json").read_text(encoding="utf-8"))["routing"]
    for vector in vectors["names"]:
        braces = [part.partition("}") for part in vector["name"][:100].split("{")[1:]]
        tags = [inside for inside, closes, _ in braces if inside and closes]
        whole = re.sub(r"(-dead-[0-9]+)+$", "", vector["name"])[:100]
        assert vector["tag"] == (tags[0] if tags else whole)
        assert vector["slot"] == crc16(vector["tag"].encode()) % vectors["slots"]
        assert vector["home"] == {n: vector["slot"] * int(n) // 16384 for n in vector["home"]}
    for shards, tags in vectors["shard_tags"].items():
        assert [crc16(one.encode()) % 16384 * int(shards) // 16384 for one in tags] == list(range(int(shards)))
    layout = Layout(
        vectors["layout"]["shards"], *map(frozenset, (vectors["layout"][name] for name in ("single", "split")))
    )
    for vector in vectors["operations"]:
        _, op = as_json.read(json.dumps(vector["call"]))
        to = layout.route(op)
        said = vector.get("refused") or vector.get("shard", vector.get("otherwise"))
        assert ([to.code, *to.facts] if isinstance(to, Refusal) else to) == said, vector


def test_every_shard_has_a_tag() -> None:
    for shards in (1, 3, 8, 64):
        assert [Layout(shards).home("x{" + shard_tag(shard, shards) + "}") for shard in range(shards)] == list(
            range(shards)
        )


def test_a_tag_that_is_not_closed_or_empty_is_none() -> None:
    assert [tag(name) for name in ("a{b", "a{}b", "a{}{b}", "{a}{b}", "a}b{c}", "{" + "x" * 100 + "}")] == [
        "a{b", "a{}b", "b", "a", "c", "{" + "x" * 99,
    ]  # fmt: skip


def test_every_operation_has_a_route_of_its_arguments() -> None:
    assert list(ROUTES) == list(CATALOGUE)
    for name, route in ROUTES.items():
        known = {argument.name for argument in CATALOGUE[name].arguments}
        assert {*route.names, *route.queues} <= known, name
        queues = {"queue", "queues", "next", "to", "dead_queue"} & known
        ids = {
            "jid",
            "jids",
            "jobs",
            "depends",
            "dependencies",
            "unique",
            "ordered",
            "throttle",
            "throttles",
            "id",
            "subject",
        }
        everywhere = route.otherwise in ("every", "merge") or name == "search"
        assert everywhere or (ids & known <= set(route.names) and queues <= set(route.queues)), name


# ---- what is sent to all shards


def stopped(deployment: Deployment, now: int, op: Any, calls: int) -> None:
    """Execute an operation by a client that dies after so many calls."""
    going = plan(deployment.layout, op)
    some = next(going)
    for _ in range(calls):
        call, *some = some
        reply = deployments.execute(deployment, now, call, op)
        if not some:
            some = going.send([reply])


@pytest.mark.parametrize("calls", range(LAYOUT.shards))
def test_what_was_accepted_holds_everywhere_though_its_client_died(calls: int) -> None:
    deployment = Deployment(LAYOUT)
    stopped(deployment, 1, ops.ConfigSet("heartbeat", 7), calls)
    stopped(deployment, 2, ops.ConfigSet("heartbeat", 9), 1)
    for shard in range(LAYOUT.shards):
        jid = f"j{{{shard_tag(shard, LAYOUT.shards)}}}"
        deployments.step(deployment, 3, ops.Put("q", jid, "K", "{}"))
    leases = {job.expires_at for job in deployments.step(deployment, 10, ops.Pop("q", "w", 9))}
    assert leases == {10 + 9}
    assert len({tuple(store.config.items()) for store in deployment.stores}) == 1


def test_what_the_first_shard_refuses_is_sent_to_no_other() -> None:
    deployment = Deployment(LAYOUT)
    refused = deployments.step(deployment, 1, ops.ConfigSet("heartbeats", 7))
    assert refused == Refusal("UNKNOWN_OPTION", ("heartbeats",))
    assert not deployment.accepted and not any(store.seq for store in deployment.stores)


def test_a_queue_is_forgotten_if_it_is_empty_everywhere() -> None:
    deployment = Deployment(LAYOUT)
    for shard in range(1, LAYOUT.shards):
        jid = f"j{{{shard_tag(shard, LAYOUT.shards)}}}"
        deployments.step(deployment, 1, ops.Put("q", jid, "K", "{}"))
    assert deployments.step(deployment, 2, ops.Forget(("q",))) == Refusal("QUEUE_NOT_EMPTY", ("q", "3"))
    deployments.step(deployment, 3, ops.Drain("q", 9))
    assert deployments.step(deployment, 4, ops.Forget(("q",))) == 1
    assert deployments.step(deployment, 5, ops.Queues()) == ()


@pytest.mark.parametrize("name", ["queue/q", "divided"])
def test_a_divided_throttle_is_never_exceeded(name: str) -> None:
    most = 0
    for seed in SEEDS:
        drawer, deployment = Drawer(seed), Deployment(LAYOUT)
        deployments.step(deployment, 1, ops.ThrottleSet(name, concurrency=6))
        for _ in range(150):
            now, op = drawer.draw()
            if isinstance(op, ops.ThrottleSet | ops.ThrottleUnset | ops.ConfigSet):
                continue
            if isinstance(op, ops.Put):
                drawer.last = op = replace(op, queue="q", throttles=None if name == "queue/q" else ("divided",))
            drawer.hear(deployments.step(deployment, now, op))
            shown = deployments.step(deployment, now, ops.ThrottleGet(name))
            assert shown.concurrency == 6 and shown.running <= 6
            most = max(most, shown.running)
    assert most > 4


# ---- merged replies


def played(layout: Layout, seed: int) -> Deployment:
    """A history whose outcome does not depend on which of two ready jobs comes first."""
    chance, deployment = random.Random(f"merged.{seed}"), Deployment(layout)
    now = 10**12

    def call(op: Operation) -> Any:
        reply = deployments.step(deployment, now, op)
        assert not isinstance(reply, Refusal), (op, reply)
        return reply

    for number in range(60):
        tags = chance.sample(("red", "green", "blue", "grey"), 2)
        op = ops.Put(chance.choice("qr"), f"j{number}", "K", "{}", delay_ms=chance.choice((0, 0, 70)), tags=tuple(tags))
        now += chance.randrange(9)
        call(op)
    for number in chance.sample(range(60), 15):
        call(ops.Track(f"j{number}"))
    call(ops.Pause(("r",), "night"))
    held = call(ops.Pop("q", "w", 1000))
    for job in sorted(held, key=lambda job: job.jid):
        now += 7
        way = int(job.jid[1:]) % 5
        if way < 3:
            call(ops.Complete(job.jid, job.token))
        elif way == 3:
            call(ops.Fail(job.jid, job.token, f"g{int(job.jid[1:]) % 3}", "m"))
    return deployment


READS: list[Any] = [
    ops.Waiting("q", 0, 1000), ops.Waiting("r", 0, 1000), ops.Scheduled("r", 0, 1000), ops.Running("q", 0, 1000),
    ops.Completed(0, 1000), ops.Tagged("red", 0, 1000), ops.Failed("g1", 0, 1000), ops.FailedGroups(), ops.Queues(),
    ops.Queue("q"), ops.Queue("r"), ops.Length("q"), ops.Workers(), ops.Worker("w"), ops.Stats("q"), ops.Metrics("q"),
    ops.Tracked(0, 1000), ops.Peek("r", 1000), ops.Config(), ops.ConfigGet("heartbeat"),
    ops.Multiget(tuple(f"j{number}" for number in range(60))), ops.Search(queue="q", count=1000),
]  # fmt: skip


def whole(deployment: Deployment, op: Any) -> Any:
    """Read something to its end, without what order alone decides."""
    now = 10**12 + 900
    found = deployments.step(deployment, now, op)
    assert not isinstance(found, Refusal), (op, found)
    if op.spec.reply == "page":
        return Page(found.total, tuple(sorted(found.jids)))
    if op.spec.reply == "found":
        jobs = list(found.jobs)
        while found.cursor:
            found = deployments.step(deployment, now, replace(op, cursor=found.cursor))
            jobs += found.jobs
        return sorted(job.jid for job in jobs)
    if op.spec.reply == "jobs":
        jids = [job.jid for job in found]
        return sorted(jids) if op.spec.name == "peek" else jids
    if op.spec.reply == "tracked":
        return sorted(job.jid for job in found.jobs), sorted(found.expired)
    if op.spec.reply == "worker":
        return tuple(map(sorted, found))
    if op.spec.reply == "queues":
        return sorted(found)
    if op.spec.reply == "stats":
        return [
            (round(one.mean, 6), round(one.squares, 3), one.count, one.histogram) for one in (found.wait, found.run)
        ], found[4:]
    return found


def test_merged_replies_are_those_of_one_store_with_everything() -> None:
    for seed in range(12):
        one, several = played(Layout(1), seed), played(Layout(8), seed)
        assert sum(bool(store.jobs) for store in several.stores) == 8
        for op in READS:
            assert whole(several, op) == whole(one, op), op


def test_the_pages_of_a_list_are_the_list() -> None:
    deployment = played(Layout(8), 1)
    for op in (ops.Tagged("red"), ops.Tracked(), ops.Completed(), ops.Queues(), ops.TopTags()):
        everything = deployments.step(deployment, 10**12 + 900, replace(op, count=1000))
        entries = [entry for part in everything if isinstance(part, tuple) for entry in part] or list(everything)
        pages: list[Any] = []
        for offset in range(0, len(entries), 3):
            found = deployments.step(deployment, 10**12 + 900, replace(op, offset=offset, count=3))
            pages.append(found)
        if op.spec.reply == "page":
            assert [jid for page in pages for jid in page.jids] == list(everything.jids)
            assert {page.total for page in pages} == {everything.total}
        elif op.spec.reply == "tracked":
            assert [job.jid for page in pages for job in page.jobs] == [job.jid for job in everything.jobs]
        else:
            assert [entry for page in pages for entry in page] == list(everything)


@QUICK
@given(st.lists(st.lists(st.integers(0, 10**7), max_size=9), min_size=1, max_size=5))
def test_samples_add_up(parts: list[list[int]]) -> None:
    def sample(values: list[int]) -> Sample:
        mean = sum(values) / len(values) if values else 0.0
        return Sample(len(values), mean, sum((value - mean) ** 2 for value in values), (len(values),))

    found = Sample(0, 0.0, 0.0, (0,))
    for part in parts:
        found = merging.add_samples(found, sample(part))
    expected = sample([value for part in parts for value in part])
    assert found[::3] == expected[::3]
    assert found[1:3] == pytest.approx(expected[1:3])


# ---- bulk, shard after shard


def test_a_cursor_leads_through_all_shards_and_ends() -> None:
    deployment = played(Layout(8), 2)
    now, cursor, done, calls = 10**12 + 900, "", 0, 0
    while True:
        found = deployments.step(deployment, now, ops.CancelMany(queue="r", cursor=cursor, count=2))
        done, cursor, calls = done + found.done, found.cursor, calls + 1
        if not cursor:
            break
    assert done and calls > 3
    assert deployments.step(deployment, now, ops.Length("r")) == 0


@pytest.mark.parametrize("cursor", ["8:", "ready 0 0 0", "01:", ":", "-1:"])
def test_a_cursor_of_no_shard_is_refused(cursor: str) -> None:
    refused = deployments.step(Deployment(Layout(8)), 1, ops.Search(queue="q", cursor=cursor))
    assert refused == Refusal("BAD_ARGUMENT", ("search", "cursor"))


def test_no_shard_is_passed_over() -> None:
    """Between two turns of a shard, each other one has one."""
    deployment = Deployment(Layout(8))
    for number in range(64):
        jid = f"j{number}{{{shard_tag(number % 8, 8)}}}"
        deployments.step(deployment, 1, ops.Put("q", jid, "K", "{}"))
    for _ in range(8):
        jobs = [deployments.step(deployment, 2, ops.Pop("q", "w"))[0] for _ in range(8)]
        assert {deployment.layout.home(job.jid) for job in jobs} == set(range(8))
    assert deployments.step(deployment, 2, ops.Pop("q", "w")) == ()
