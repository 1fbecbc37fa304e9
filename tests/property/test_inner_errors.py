"""An inner command that fails leaves the state before the step, or that after it once the next call has written.

The Lua library runs in this process, on a keyspace in which one command is denied: each write of a step in turn, as a
fault of the server would deny it, and each command by its name, as an ACL rule would.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from qmodel.backends import bundle
from qmodel.backends.embedded.backend import EmbeddedBackend, Namespace
from qmodel.backends.embedded.host import ReplyError
from qmodel.backends.embedded.keyspace import Keyspace
from qmodel.client.sync import Client
from qmodel.conformance.subjects.base import Step
from qmodel.conformance.subjects.lua import PREFIX, LuaSubject
from qmodel.contract import operations as ops
from qmodel.contract.arguments import TOKEN_EPOCH
from qmodel.doctor import damage, environment
from qmodel.errors import CorruptError
from qmodel.model import engine
from qmodel.model.invariants import check
from qmodel.model.snapshot import Snapshot
from qmodel.model.state.store import Store
from tests.property.support import bulk, state_of
from tests.tester import share

HISTORIES = 24
EVERY = 3
"""The number of steps of which one is tried."""

NEXT = ops.Deregister(("nobody",))
"""A call that writes, and changes nothing."""

Failing = Callable[[str, bool], str | None]


class Denying:
    """Denies the n-th write of a step, or a command by its name; counts the writes and names the commands."""

    def __init__(self, nth: int = -1, name: str = "") -> None:
        self.nth, self.name = nth, name
        self.seen: Counter[str] = Counter()
        self.writes = 0

    def __call__(self, name: str, writes: bool) -> str | None:
        self.seen[name] += 1
        self.writes += writes
        if name == self.name or (writes and self.writes == self.nth):
            return f"NOPERM {name} is denied"
        return None


class Trial:
    """A state of the library and of the model before a step, and a step that is tried with denials."""

    def __init__(self, subject: LuaSubject, data: bytes, step: Step, before: Snapshot, after: Snapshot) -> None:
        self.subject, self.data, self.at = subject, data, step
        self.before, self.after = before, after

    @property
    def keyspace(self) -> Keyspace:
        return self.subject.host.keyspace

    def run(self, failing: Failing | None) -> Exception | None:
        """Execute the step on the state before, with denials; give its error."""
        self.keyspace._data = pickle.loads(self.data)
        self.keyspace.failing = failing
        try:
            self.subject.step(self.at.now, self.at.op)
        except ReplyError as error:
            return error
        finally:
            self.keyspace.failing = None
        return None

    def ends(self) -> str:
        """Let the next call write; say which state there is then."""
        self.subject.step(self.at.now, NEXT)
        found = replace(self.subject.snapshot(), journal=(), journaled=0)
        assert not check(found)
        return "before" if found == self.before else "after" if found == self.after else "half"


def trials(histories: int) -> Iterator[Trial]:
    return trials_of(bulk(histories))


def trials_of(histories: list[list[Step]]) -> Iterator[Trial]:
    """Every third step of some histories."""
    subject = LuaSubject()
    for history in histories:
        subject.reset()
        model = Store()
        for i, step in enumerate(history):
            data, before = pickle.dumps(subject.host.keyspace._data), state_of(model)
            engine.step(model, step.now, step.op)
            if i % EVERY == 0:
                yield Trial(subject, data, step, before, state_of(model))
            subject.host.keyspace._data = pickle.loads(data)
            subject.step(step.now, step.op)


def test_each_write_that_fails_leaves_the_state_before_or_the_state_after() -> None:
    ends: Counter[str] = Counter()
    for trial in trials(share(HISTORIES)):
        trial.run(whole := Denying())
        for nth in range(1, whole.writes + 1):
            trial.run(Denying(nth))
            end = trial.ends()
            assert end != "half", (trial.at, nth)
            ends[end] += 1
    assert min(ends["before"], ends["after"]) > 50


def test_each_denied_command_leaves_the_state_before_or_the_state_after() -> None:
    ends: Counter[str] = Counter()
    for trial in trials(share(HISTORIES)):
        trial.run(whole := Denying())
        for name in sorted(whole.seen):
            trial.run(Denying(name=name))
            end = trial.ends()
            assert end != "half", (trial.at, name)
            ends[end] += 1
    assert min(ends["before"], ends["after"]) > 50


def test_a_step_that_writes_without_repair_is_noticed() -> None:
    """The negative twin: without what is kept, some states are half."""
    halves = 0
    for trial in trials(2):
        trial.run(whole := Denying())
        for name in sorted(whole.seen):
            trial.run(Denying(name=name))
            counters = trial.keyspace._data.get(b"ql:counters", b"")
            trial.keyspace._data.pop(b"ql:intent", None)
            if counters.startswith(b"!"):
                trial.keyspace._data[b"ql:counters"] = counters[1:]
                try:
                    halves += trial.ends() == "half"
                except (AssertionError, ValueError):
                    halves += 1
    assert halves > 10


# ---- what callers see


class Asked:
    """The subject of the doctor: a client of `embedded://`."""

    url, url_from, look_at_keys = "embedded://", "here", True

    def __init__(self) -> None:
        self.namespace = Namespace(lambda: 1000.0)
        self.client = Client(EmbeddedBackend(self.namespace))
        for i in range(3):
            self.client.execute(ops.Put("q", f"q{i}", "K", ""))

    def deny(self, name: str) -> None:
        self.namespace.keyspace.failing = Denying(name=name)

    def allow(self) -> None:
        self.namespace.keyspace.failing = None

    def plant(self, key: bytes) -> None:
        self.namespace.keyspace._data.pop(key, None)
        self.namespace.keyspace.execute("SADD", key, b"foreign")

    def call(self, op: Any) -> Any:
        return self.client.execute(op)

    def kinds(self) -> list[str]:
        return [finding.level for finding in damage.damage(self)]

    def resolve(self) -> str:
        return next(finding.resolve() for finding in damage.damage(self) if finding.resolve)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_a_write_that_fails_is_kept_and_the_next_call_does_it(asked: Asked) -> None:
    asked.deny("ZADD")
    with pytest.raises(CorruptError) as raised:
        asked.call(ops.Put("q", "late", "K", ""))
    assert (raised.value.key, raised.value.kept) == ("ql:q:q-work", True)
    asked.allow()
    assert asked.kinds() == ["WARN"]
    assert asked.call(ops.Put("other", "a", "K", "")) == "a"
    assert asked.kinds() == ["OK"]
    assert [job.jid for job in asked.call(ops.Pop("q", "w", count=9))] == ["q0", "q1", "q2", "late"]


def test_a_first_write_that_fails_changes_nothing(asked: Asked) -> None:
    before = asked.namespace.keyspace.dump()
    asked.deny("MSET")
    with pytest.raises(ReplyError, match="NOPERM MSET"):
        asked.call(ops.Pop("q", "w"))
    asked.allow()
    assert asked.namespace.keyspace.dump() == before


def test_a_key_of_a_wrong_type_stops_only_calls_that_need_it(asked: Asked) -> None:
    asked.plant(b"ql:q:q-work")
    with pytest.raises(CorruptError) as raised:
        asked.call(ops.Pop("q", "w"))
    assert (raised.value.key, raised.value.kept) == ("ql:q:q-work", False)
    for op in (ops.Put("q", "late", "K", ""), ops.Put("q", "later", "K", ""), ops.Length("q")):
        with pytest.raises(CorruptError):
            asked.call(op)
    assert asked.call(ops.Put("other", "a", "K", "")) == "a"
    assert [job.jid for job in asked.call(ops.Pop("other", "w"))] == ["a"]
    assert asked.kinds() == ["FAIL", "WARN"]
    assert "renamed ql:q:q-work to ql:aside:q:q-work" in asked.resolve()
    assert asked.kinds() == ["OK"]
    assert [job.jid for job in asked.call(ops.Pop("q", "w", count=9))] == ["late"]
    assert asked.namespace.keyspace.execute("TYPE", b"ql:aside:q:q-work") == b"set"


def test_a_pop_drops_an_id_without_a_job_and_serves_the_next(asked: Asked) -> None:
    del asked.namespace.keyspace._data[b"ql:j:q0"]
    assert asked.kinds() == ["FAIL"]
    assert [job.jid for job in asked.call(ops.Pop("q", "w"))] == ["q1"]
    assert asked.kinds() == ["WARN"]
    assert asked.resolve() == "forgot that ql:j:q0 was missing"
    assert asked.kinds() == ["OK"]


def test_checking_every_key_survives_a_missing_job(asked: Asked) -> None:
    asked.call(ops.Put("q", "child", "K", "", depends=("q1",)))
    for jid in ("q0", "q1", "q2", "child"):
        data = dict(asked.namespace.keyspace._data)
        del asked.namespace.keyspace._data[f"ql:j:{jid}".encode()]
        assert {finding.level for finding in environment.invariants(asked)} == {"FAIL"}
        asked.namespace.keyspace._data = data


def test_a_read_names_the_job_that_is_missing(asked: Asked) -> None:
    del asked.namespace.keyspace._data[b"ql:j:q0"]
    with pytest.raises(CorruptError) as raised:
        asked.call(ops.Peek("q"))
    assert raised.value.key == "ql:j:q0"
    assert asked.resolve() == "dropped 0000000100000000000000000002q0 from ql:q:q-work"
    assert [job.jid for job in asked.call(ops.Peek("q"))] == ["q1"]


def test_a_job_that_is_lost_while_it_runs_does_not_stop_its_queue(asked: Asked) -> None:
    asked.call(ops.Pop("q", "w"))
    del asked.namespace.keyspace._data[b"ql:j:q0"]
    assert [job.jid for job in asked.client.backend.execute(ops.Pop("q", "v", count=9), 10**9)] == ["q1", "q2"]
    asked.resolve()
    assert asked.kinds() == ["OK"]


def test_a_lost_job_whose_time_is_over_does_not_stop_its_queue(asked: Asked) -> None:
    for jid in ("late", "later"):
        asked.call(ops.Put("q", jid, "K", "", ttl_ms=1))
    del asked.namespace.keyspace._data[b"ql:j:late"]
    assert [job.jid for job in asked.client.backend.execute(ops.Pop("q", "w", count=9), 10**9)] == ["q0", "q1", "q2"]
    assert asked.call(ops.Get("later")).state == "failed"
    asked.resolve()
    assert asked.kinds() == ["OK"]


@pytest.mark.parametrize("op", [ops.Forget(("r",)), ops.Obliterate("r")])
def test_a_queue_with_a_write_that_is_kept_is_not_deleted_behind_it(asked: Asked, op: ops.Operation) -> None:
    asked.call(ops.Pop("r", "w", wait=True))
    asked.deny("RPUSH")
    with pytest.raises(CorruptError):
        asked.call(ops.Put("r", "late", "K", ""))
    asked.call(ops.Cancel(("late",)))
    with pytest.raises(CorruptError) as raised:
        asked.call(op)
    assert raised.value.key == "ql:q:r-wake"
    asked.allow()
    asked.call(op)
    assert not any(b"q:r-" in key for key in asked.namespace.keyspace._data)


def test_a_lost_request_is_named(asked: Asked) -> None:
    asked.call(ops.RequestOpen("r", "q", 1))
    asked.call(ops.RequestAdd("r", (ops.Put("q", "sub", "K", ""),)))
    del asked.namespace.keyspace._data[b"ql:rq:r"]
    with pytest.raises(CorruptError) as raised:
        asked.call(ops.Cancel(("sub",)))
    assert raised.value.key == "ql:rq:r"


def test_counters_that_are_lost_are_read_from_the_stream(asked: Asked) -> None:
    del asked.namespace.keyspace._data[b"ql:counters"]
    assert asked.call(ops.Put("q", "late", "K", "")) == "late"
    assert asked.call(ops.Pop("q", "w"))[0].token % TOKEN_EPOCH == 6


def test_an_event_of_another_program_does_not_wedge_the_sequence(asked: Asked) -> None:
    asked.namespace.keyspace.execute("XADD", b"ql:events", b"100-0", b"e", b"1\tfoo")
    assert asked.kinds() == ["FAIL"]
    assert asked.call(ops.Put("q", "late", "K", "")) == "late"
    assert asked.kinds() == ["OK"]
    assert [job.jid for job in asked.call(ops.Pop("q", "w", count=9))] == ["q0", "q1", "q2", "late"]


def test_the_doctor_raises_a_sequence_that_is_behind(asked: Asked) -> None:
    asked.namespace.keyspace.execute("XADD", b"ql:events", b"100-0", b"e", b"1\tfoo")
    assert asked.resolve() == "raised the sequence to 100"
    assert asked.call(ops.Pop("q", "w"))[0].token % TOKEN_EPOCH == 102  # behind the event that begins an epoch


def test_a_deletion_of_many_turns_is_undone() -> None:
    subject = LuaSubject()
    keyspace = subject.host.keyspace
    subject.step(10**12, ops.ConfigSet("fair", 1))
    subject.step(10**12, ops.Put("q", "a", "K", "{}", fair_key="a"))
    passed = [word for i in range(4500) for word in (b"1", b"kpassed%d" % i)]
    keyspace.execute("ZADD", b"ql:turns:0:q", *passed)
    before, data = keyspace.dump(), pickle.dumps(keyspace._data)
    again = ops.PutMany(tuple(ops.Put("q", jid, "K", "{}", fair_key=jid) for jid in "abc"))
    keyspace.failing = denying = Denying(name="MSET")
    with pytest.raises(ReplyError, match="NOPERM"):
        subject.step(10**12, again)
    assert denying.seen["DEL"] == 1
    assert keyspace.dump() == before
    keyspace.failing, keyspace._data = None, pickle.loads(data)
    subject.step(10**12, again)
    assert len(keyspace.dump()[b"ql:turns:0:q"][1]) == 4


def test_raising_the_sequence_writes_no_record_of_an_earlier_operation() -> None:
    subject, other = LuaSubject(), LuaSubject()
    for i in range(4):
        subject.step(10**12, ops.Put("q", f"q{i}", "K", "{}", request=f"put{i}"))
    held = [subject.step(10**12, ops.Pop("q", "w", request=f"pop{i}"))[0] for i in range(3)]
    subject.step(10**12, ops.Complete("q0", held[0].token))
    subject.step(10**12 + 5, ops.Heartbeat("q1", held[1].token))
    subject.step(10**12 + 5, ops.Complete("q1", held[1].token))
    other.host.keyspace = keyspace = subject.host.keyspace
    before = keyspace.dump()[b"ql:j:q1"]
    for at, server in ((100, subject), (200, other)):
        keyspace.execute("XADD", b"ql:events", b"%d-0" % at, b"e", b"1\tfoo")
        (mended,) = server.host.fcall(f"{bundle.LIBRARY}_mend", (PREFIX,))
        assert mended[0] == b"behind"
        assert keyspace.dump()[b"ql:counters"][1].startswith(b"%d\t" % at)
        assert keyspace.dump()[b"ql:j:q1"] == before


def test_an_entry_of_the_journal_whose_number_is_taken_gets_the_next_one() -> None:
    subject = LuaSubject()
    for op in (ops.ConfigSet("journal", 1), ops.Put("q", "a", "K", "{}"), ops.Put("q", "b", "K", "{}")):
        subject.step(10**12, op)
    keyspace = subject.host.keyspace
    for op in (ops.Put("q", "c", "K", "{}"), ops.Cancel(("a",))):
        del keyspace._data[b"ql:journaled"]
        subject.step(10**12, op)
    for i in range(14):
        subject.step(10**12, ops.Put("q", f"d{i}", "K", "{}"))
    keyspace._data[b"ql:journaled"] = b"15"
    subject.step(10**12, ops.Put("q", "late", "K", "{}"))
    assert [entry.number for entry in subject.step(10**12, ops.Journal(0, 100))] == [*range(1, 21)]
    assert keyspace.dump()[b"ql:journaled"] == keyspace.dump()[b"ql:journal-heavy"] == ("string", b"20")
    assert b"ql:intent" not in keyspace.dump()


def test_a_key_aside_does_not_replace_another_one(asked: Asked) -> None:
    for _ in range(2):
        asked.plant(b"ql:q:q-locks")
        asked.resolve()
    assert {b"ql:aside:q:q-locks", b"ql:aside:q:q-locks+"} <= asked.namespace.keyspace.dump().keys()
